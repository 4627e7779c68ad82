"""Multi-token-prediction modules: which checkpoints have one, and how many tokens it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from analysis.resolve.base import Launch
from collector.domain.drafts import ModelConfig

_LAYERS: Final = "num_nextn_predict_layers"


@dataclass(frozen=True, slots=True)
class Kind:
    """How a checkpoint with a module is recognised: by its ``model_type`` or by its class.

    ``module`` is the name vLLM gives the module, ``first`` the release that knows it, ``counts``
    the key with the number of predicted tokens, ``fixed`` that number where it is not read.
    """

    module: str
    first: str
    types: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    counts: str = _LAYERS
    fixed: int | None = None
    otherwise: int | None = None


_KINDS: Final = (
    Kind("dots3_note_mtp", "0.28", ("dots3_note", "dots3_note_mtp"), otherwise=1),
    Kind("deepseek_mtp", "0.8", ("deepseek_v3", "deepseek_mtp")),
    Kind("deepseek_mtp", "0.11.0", ("deepseek_v32",)),
    Kind("deepseek_mtp", "0.15", ("glm_moe_dsa",)),
    Kind("deepseek_mtp", "0.20", ("deepseek_v4",)),
    Kind("deepseek_mtp", "0.30", ("deepseek_v41",)),
    Kind("pangu_ultra_moe_mtp", "0.11.1", ("pangu_ultra_moe", "pangu_ultra_moe_mtp")),
    Kind("kimi_k3_mtp", "0.27", ("kimi_k3", "kimi_k3_mtp")),
    Kind("mimo_mtp", "0.9", ("mimo_mtp",), ("MiMoForCausalLM",)),
    Kind(
        "mimo_v2_mtp",
        "0.21",
        ("mimo_v2_mtp",),
        ("MiMoV2ForCausalLM", "MiMoV2OmniForCausalLM", "MiMoV2FlashForCausalLM"),
        fixed=1,
    ),
    Kind("glm4_moe_mtp", "0.10.0", ("glm4_moe_mtp",), ("Glm4MoeForCausalLM",)),
    Kind("glm4_moe_lite_mtp", "0.15", ("glm4_moe_lite_mtp",), ("Glm4MoeLiteForCausalLM",)),
    Kind("glm_ocr_mtp", "0.16", ("glm_ocr_mtp",), ("GlmOcrForConditionalGeneration",)),
    Kind("ernie_mtp", "0.10.2", ("ernie4_5_moe", "ernie_mtp")),
    Kind("nemotron_h_mtp", "0.17", ("nemotron_h_mtp",), otherwise=1),
    Kind("qwen3_next_mtp", "0.10.2", ("qwen3_next", "qwen3_next_mtp")),
    Kind("qwen4_exp_mtp", "0.29", ("qwen4_exp", "qwen4_exp_text", "qwen4_exp_mtp"), counts="mtp_num_hidden_layers"),
    Kind("bailing_hybrid_v3_mtp", "0.28", ("bailing_hybrid_v3_mtp",), ("BailingMoeV3ForCausalLM",)),
    Kind("bailing_hybrid_mtp", "0.25", ("bailing_hybrid", "bailing_hybrid_mtp"), ("BailingMoeV2_5ForCausalLM",)),
    Kind("exaone_moe_mtp", "0.14", ("exaone_moe", "exaone_moe_mtp")),
    Kind("exaone4_5_mtp", "0.20", ("exaone4_5", "exaone4_5_mtp")),
    Kind("qwen3_5_mtp", "0.17", ("qwen3_5", "qwen3_5_moe", "qwen3_5_mtp"), counts="mtp_num_hidden_layers"),
    Kind("qwen3_5_mtp", "0.28", ("qwen3_5_text", "qwen3_5_moe_text"), counts="mtp_num_hidden_layers"),
    Kind("qwen3_5_mtp", "0.22", ("intern_s2_preview",), counts="mtp_num_hidden_layers"),
    Kind("qwen3_5_mtp", "0.28", ("interns2_mobius",), counts="mtp_num_hidden_layers"),
    Kind("longcat_flash_mtp", "0.11.0", ("longcat_flash", "longcat_flash_mtp"), otherwise=1),
    Kind("step3p5_mtp", "0.15", ("step3p5", "step3p5_mtp"), otherwise=1),
    Kind(
        "step3p5_mtp",
        "0.23",
        ("step3p7",),
        ("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"),
        otherwise=1,
    ),
    Kind("hy_v3_mtp", "0.20", ("hy_v3", "hy_v3_mtp")),
    Kind("hy_v4_mtp", "0.29", ("hy_v4", "hy_v4_mtp")),
    Kind("inkling_mtp", "0.26", ("inkling_mm_model", "inkling_model", "inkling_mtp")),
    Kind("gemma4_mtp", "0.21", ("gemma4_assistant", "gemma4_mtp"), fixed=1),
    Kind("gemma4_mtp", "0.23", ("gemma4_unified_assistant",), fixed=1),
    Kind(
        "minimax_m3_mtp",
        "0.24",
        ("minimax_m3_vl", "minimax_m3_mtp"),
        ("MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3MTP"),
        counts="num_mtp_modules",
        otherwise=1,
    ),
    Kind("glm5_next_mtp", "0.30", ("glm5_next", "glm5_next_mtp")),
)

_OLD_METHODS: Final = {
    "deepseek_mtp": "0.9",
    "mimo_mtp": "0.10.0",
    "glm4_moe_mtp": "0.10.0",
    "ernie_mtp": "0.10.2",
    "qwen3_next_mtp": "0.10.2",
}
"""Modules that have a method before 0.11, and since when."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module found in a checkpoint. ``predicts``: how many tokens it predicts, ``None`` where it does not say."""

    name: str
    predicts: int | None

    def method(self, launch: Launch) -> str:
        """The method that runs it."""
        if launch.since("0.11.0"):
            return "mtp"
        return self.name if self.name in ("ernie_mtp", "qwen3_next_mtp") else "deepseek_mtp"


def module_of(config: ModelConfig, launch: Launch, *, for_method: bool = True) -> Module | None:
    """The module of a checkpoint, ``None`` where it has none that this release knows.

    ``for_method``: only modules that have a method of the release; others are read all the same.
    """
    for kind in _KINDS:
        if not launch.since(kind.first) or not _is(kind, config):
            continue
        if for_method and not launch.since("0.11.0") and not launch.since(_OLD_METHODS.get(kind.module, "99")):
            return None
        return Module(kind.module, _predicted(kind, config, launch))
    if launch.since("0.17") and config.raw.get("model_type") in ("nemotron_h", "nemotron_h_puzzle"):
        count = config.number(_LAYERS)
        if count and (config.raw["model_type"] == "nemotron_h" or launch.since("0.19")):
            return Module("nemotron_h_mtp", int(count))
    return None


def _is(kind: Kind, config: ModelConfig) -> bool:
    first = config.architectures[:1]
    return config.raw.get("model_type") in kind.types or any(name in first for name in kind.classes)


def _predicted(kind: Kind, config: ModelConfig, launch: Launch) -> int | None:
    if kind.fixed is not None:
        return kind.fixed
    if kind.module == "inkling_mtp":
        inner = config.raw.get("mtp_config")
        count = inner.get(_LAYERS) if isinstance(inner, Mapping) else None
        return int(count) if count and launch.since("0.28") else 1
    if kind.module == "qwen3_5_mtp" and config.raw.get("model_type") in ("qwen3_5", "qwen3_5_moe"):
        nested = launch.since("0.30")  # before, only the outer config is asked
        stated = config.number(kind.counts) if nested else config.raw.get(kind.counts)
    else:
        stated = config.number(kind.counts)
    return int(stated) if stated is not None else kind.otherwise
