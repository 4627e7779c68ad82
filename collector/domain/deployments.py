"""What a run serves, as far as its arguments say: the names by which runs are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collector.domain.arguments import Arguments


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
            return "" if value is None else str(value)

        sizes = ((short, arguments.value(name)) for short, name in names.sizes.items())
        target = text(names.target)
        return cls(
            served_model=text(names.served) or target,
            target_model=target,
            draft_model=text(names.draft),
            method=_method(names, arguments),
            parallelism=" ".join(f"{short}={size}" for short, size in sizes if size not in (None, 1)),
            device=text(names.device),
        )


@dataclass(frozen=True, slots=True)
class _Names:
    """Under which names an engine's argument line states these things."""

    served: str
    target: str
    draft: str
    method: str
    device: str
    sizes: Mapping[str, str]
    methods: Mapping[str, str]


_NAMES: Final[Mapping[str, _Names]] = {
    "sglang": _Names(
        served="served_model_name",
        target="model_path",
        draft="speculative_draft_model_path",
        method="speculative_algorithm",
        device="device",
        sizes={"tp": "tp_size", "dp": "dp_size", "pp": "pp_size", "ep": "ep_size"},
        methods={"nextn": "eagle", "standalone": "draft_model", "frozen_kv_mtp": "mtp"},
    ),
}


def _method(names: _Names, arguments: Arguments) -> str | None:
    if not arguments.seen(names.method):
        return "" if arguments.any_effective else None
    stated = arguments.value(names.method)
    if stated is None:
        return ""
    name = str(stated).lower()
    return names.methods.get(name, name)
