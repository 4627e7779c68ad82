"""Small defaults that fill in late."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ARGUMENTS, Stage, step
from collector.domain.arguments import Value

_EMPTY: Final[dict[str, tuple[str, Value]]] = {
    "custom_weight_loader": ("0.4.7", []),
    "mm_process_config": ("0.5.6", {}),
}


@step(
    "sglang-135",
    "Empty where not set",
    when="custom_weight_loader or mm_process_config is not set",
    then="an empty list, an empty mapping",
    releases="0.4.7-",
    source=ARGUMENTS,
    stage=Stage.LOADING,
    sets=tuple(_EMPTY),
)
def empty(launch: Launch) -> None:
    """Nothing given is an empty collection."""
    for flag, (since, value) in _EMPTY.items():
        if launch.since(since) and launch.has(flag) and launch[flag] is None:
            launch[flag] = value
