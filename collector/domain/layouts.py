"""Who wrote a draft's config, and what kind of draft it describes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from collector.domain.drafts import ModelConfig


class Kind(StrEnum):
    """How a draft drafts."""

    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE-3"
    P_EAGLE = "P-EAGLE"
    MTP = "MTP"
    MEDUSA = "Medusa"
    DFLASH = "DFlash"
    DSPARK = "DSpark"
    MODEL = "draft model"
    """A language model of its own."""


class Layout(StrEnum):
    """The tool whose keys a config uses."""

    SPECULATORS = "speculators"
    MODEL_OPTIMIZER = "Model Optimizer"
    SPECFORGE = "SpecForge"
    EAGLE = "EAGLE"
    MEDUSA = "Medusa"
    GGUF = "GGUF"
    PLAIN = "plain"


READS_SEVERAL_LAYERS: Final = frozenset({Kind.EAGLE3, Kind.P_EAGLE})
"""Kinds that are fed hidden states of several target layers, by EAGLE-3's keys."""

_SPECULATORS: Final = {
    "eagle": Kind.EAGLE,
    "eagle3": Kind.EAGLE3,
    "peagle": Kind.P_EAGLE,
    "dflash": Kind.DFLASH,
    "dflash2": Kind.DFLASH,
    "dspark": Kind.DSPARK,
    "mtp": Kind.MTP,
}
# Parts of class names, of model types and of GGUF architectures; the most particular first.
_WORDS: Final = (
    ("peagle", Kind.P_EAGLE),
    ("eagle3", Kind.EAGLE3),
    ("eagle", Kind.EAGLE),
    ("medusa", Kind.MEDUSA),
    ("dspark", Kind.DSPARK),
    ("dflash", Kind.DFLASH),
    ("domino", Kind.DFLASH),
    ("nextn", Kind.MTP),
    ("mtp", Kind.MTP),
    ("assistant", Kind.MTP),
)
_OF_MODEL_OPTIMIZER: Final = frozenset({"use_last_layernorm", "use_mtp_layernorm", "parallel_draft_step"})


def kind_of(config: ModelConfig) -> Kind:
    """The kind of draft by the config's own words, else by the keys that only one kind has."""
    raw = config.raw
    stated = raw.get("speculators_model_type")
    if isinstance(stated, str) and stated.lower() in _SPECULATORS:
        return _SPECULATORS[stated.lower()]
    names = " ".join([*config.architectures, str(raw.get("model_type", "")), str(raw.get("general.architecture", ""))])
    for word, kind in _WORDS:
        if word in names.lower():
            return Kind.P_EAGLE if kind is Kind.EAGLE3 and raw.get("parallel_drafting") else kind
    if "medusa_num_heads" in raw:
        return Kind.MEDUSA
    if "dflash_config" in raw:
        return Kind.DFLASH
    if "eagle_config" in raw or "draft_vocab_size" in raw:
        return Kind.EAGLE3
    return Kind.EAGLE if config.layers == 1 else Kind.MODEL


def layout_of(config: ModelConfig) -> Layout:
    """The tool that wrote the config, as far as its keys tell."""
    raw = config.raw
    if "general.architecture" in raw:
        return Layout.GGUF
    if "speculators_model_type" in raw or "speculators_config" in raw:
        return Layout.SPECULATORS
    nested = raw.get("eagle_config")
    if isinstance(nested, Mapping) and _OF_MODEL_OPTIMIZER & set(nested):
        return Layout.MODEL_OPTIMIZER
    if "medusa_num_heads" in raw:
        return Layout.MEDUSA
    kind = kind_of(config)
    if kind in (Kind.EAGLE3, Kind.P_EAGLE, Kind.DFLASH, Kind.DSPARK):
        official = not isinstance(nested, Mapping) and "LlamaForCausalLM" in config.architectures
        return Layout.EAGLE if official else Layout.SPECFORGE
    return Layout.EAGLE if kind is Kind.EAGLE else Layout.PLAIN


def trained_depth(config: ModelConfig) -> tuple[int, str] | None:
    """The longest draft the config says it was made for, and the key that says so."""
    raw = config.raw
    stated = raw.get("speculators_config")
    methods = stated.get("proposal_methods") if isinstance(stated, Mapping) else None
    first = methods[0] if isinstance(methods, list) and methods else None
    tokens = _whole(first.get("speculative_tokens")) if isinstance(first, Mapping) else None
    if tokens:
        return tokens, "speculative_tokens"
    block = _whole(raw.get("block_size"))
    if block and block > 1 and kind_of(config) is Kind.DFLASH:
        return block if raw.get("sample_from_anchor") is True else block - 1, "block_size"
    heads = _whole(raw.get("medusa_num_heads"))
    return (heads, "medusa_num_heads") if heads else None


def trained_for(config: ModelConfig) -> tuple[str, str] | None:
    """The target the draft was trained for, and the key that names it."""
    stated = config.raw.get("speculators_config")
    verifier = stated.get("verifier") if isinstance(stated, Mapping) else None
    name = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    if isinstance(name, str) and name:
        return name, "name_or_path"
    name = config.raw.get("base_model_name_or_path")
    return (name, "base_model_name_or_path") if isinstance(name, str) and name else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
