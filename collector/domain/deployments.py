"""What a run serves, as far as its arguments say: the names by which runs are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from collector.domain.arguments import Arguments

UNKNOWN_METHOD: Final = "unknown"
"""The method of a run that drafts, where nothing says how."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What one run serves and with what.

    ``method`` is the engine's effective name in lower case, "" where the engine states that it
    does not speculate, ``None`` where nobody said. ``parallelism`` names the sizes that are not 1
    (``tp=8 dp=2``). Other texts are "" where unknown.
    """

    served_model: str = ""
    target_model: str = ""
    draft_model: str = ""
    method: str | None = None
    parallelism: str = ""
    device: str = ""

    @classmethod
    def of(cls, engine: str, arguments: Arguments) -> Serving:
        """Read it from a run's arguments; nothing is guessed."""
        names = _NAMES.get(engine)
        if names is None:
            return cls()

        def text(name: str) -> str:
            value = arguments.value(name)
            if isinstance(value, list):
                value = value[0] if value else None
            return "" if value is None else str(value)

        sizes = ((short, arguments.value(name)) for short, name in names.sizes.items())
        target = text(names.target)
        return cls(
            served_model=text(names.served) or target,
            target_model=target,
            draft_model=text(names.draft),
            method=method_of(engine, arguments),
            parallelism=" ".join(f"{short}={size}" for short, size in sizes if size not in (None, 1)),
            device=text(names.device),
        )


def method_of(engine: str, arguments: Arguments) -> str | None:
    """The method a run drafts with: "" where it is stated that there is none, ``None`` where nobody said.

    Names are the engine's effective ones in lower case; :data:`UNKNOWN_METHOD` where it drafts
    and nothing says how.
    """
    names = _NAMES.get(engine)
    method = names.method(arguments) if names is not None else None
    # SGLang states all its arguments: where this one is missing, the line was cut off in front of it.
    cut = engine == "sglang" and not arguments.any_requested and not arguments.seen("speculative_algorithm")
    stated = (arguments.any_effective and not cut) or arguments.any_requested
    return "" if method is None and names is not None and stated else method


def _sglang_method(arguments: Arguments) -> str | None:
    stated = arguments.value("speculative_algorithm")
    name = "" if stated is None else str(stated).lower()
    known = {"nextn": "eagle", "standalone": "draft_model", "frozen_kv_mtp": "mtp"}
    return known.get(name, name) or None


def _vllm_method(arguments: Arguments) -> str | None:
    """By ``speculative_config``; releases before 0.8.5 had an option for each setting."""
    if arguments["speculative_config"].effective is None:
        return ""
    stated = arguments.value("speculative_config.method")
    if stated is not None:
        name = str(stated).lower()
        return "mtp" if name.endswith("mtp") else name
    model = arguments.value("speculative_config.model") or arguments.value("speculative_model")
    depths = map(arguments.value, ("speculative_config.num_speculative_tokens", "num_speculative_tokens"))
    if model is None and all(depth is None for depth in depths):
        return None
    return "ngram" if model in {"ngram", "[ngram]"} else UNKNOWN_METHOD


def _llamacpp_method(arguments: Arguments) -> str | None:
    """By ``--spec-type``, the draft model's before an n-gram's where a server has several types."""
    types = [kind for kind in str(arguments.value("spec_type") or "").split(",") if kind not in {"", "none"}]
    if not types:
        return None
    kind = next((kind for kind in types if kind.startswith("draft")), types[0])
    methods = {"draft-simple": "draft_model", "draft": UNKNOWN_METHOD}
    return methods.get(kind, kind.removeprefix("draft-").replace("-", "_"))


def _tensorrt_llm_method(arguments: Arguments) -> str | None:
    """By ``speculative_config`` of the options file."""
    kind = arguments.value("speculative_config.decoding_type")
    if kind is None:
        settings = ("speculative_config.max_draft_len", "speculative_config.num_nextn_predict_layers")
        return None if all(arguments.value(name) is None for name in settings) else UNKNOWN_METHOD
    name = str(kind).replace("_", "").lower()
    return {"eagle": "eagle3", "drafttarget": "draft_model"}.get(name, name)


@dataclass(frozen=True, slots=True)
class _Names:
    """Under which names an engine's arguments state these things."""

    served: str
    target: str
    draft: str
    method: Callable[[Arguments], str | None]
    device: str = "device"
    sizes: Mapping[str, str] = field(default_factory=dict)


_NAMES: Final[Mapping[str, _Names]] = {
    "sglang": _Names(
        served="served_model_name",
        target="model_path",
        draft="speculative_draft_model_path",
        method=_sglang_method,
        sizes={"tp": "tp_size", "dp": "dp_size", "pp": "pp_size", "ep": "ep_size"},
    ),
    "vllm": _Names(
        served="served_model_name",
        target="model",
        draft="speculative_config.model",
        method=_vllm_method,
        sizes={"tp": "tensor_parallel_size", "dp": "data_parallel_size", "pp": "pipeline_parallel_size"},
    ),
    "llamacpp": _Names(served="alias", target="model", draft="spec_draft_model", method=_llamacpp_method),
    "tensorrt-llm": _Names(
        served="served_model_name",
        target="model",
        draft="speculative_config.speculative_model",
        method=_tensorrt_llm_method,
        sizes={"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "ep": "moe_expert_parallel_size"},
    ),
}
