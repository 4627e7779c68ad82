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
            method=names.method(arguments),
            parallelism=" ".join(f"{short}={size}" for short, size in sizes if size not in (None, 1)),
            device=text(names.device),
        )


def _sglang_method(arguments: Arguments) -> str | None:
    if not arguments.seen("speculative_algorithm"):
        return "" if arguments.any_effective else None
    stated = arguments.value("speculative_algorithm")
    name = "" if stated is None else str(stated).lower()
    return {"nextn": "eagle", "standalone": "draft_model", "frozen_kv_mtp": "mtp"}.get(name, name)


def _vllm_method(arguments: Arguments) -> str | None:
    if arguments["speculative_config"].effective is None:
        return ""
    stated = arguments.value("speculative_config.method")
    if stated is None:
        model = arguments.value("speculative_config.model") or arguments.value("speculative_model")
        if model is None:
            return "" if arguments.any_effective else None
        return "ngram" if model in ("ngram", "[ngram]") else UNKNOWN_METHOD
    name = str(stated).lower()
    return "mtp" if name.endswith("mtp") else name


def _llamacpp_method(arguments: Arguments) -> str | None:
    if not arguments.seen("spec_type"):
        return "" if arguments.any_effective else None
    types = [kind for kind in str(arguments.value("spec_type") or "").split(",") if kind not in ("", "none")]
    if not types:
        return ""
    kind = next((kind for kind in types if kind.startswith("draft")), types[0])
    methods = {"draft-simple": "draft_model", "draft": UNKNOWN_METHOD}
    return methods.get(kind, kind.removeprefix("draft-").replace("-", "_"))


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
}
