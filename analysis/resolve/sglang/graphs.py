"""CUDA graphs: which batch sizes are captured, and when capture is turned off.

Up to 0.5.13 flat flags say it; from 0.5.14 one nested ``cuda_graph_config`` for the two phases.
"""

from __future__ import annotations

from typing import Any, Final

from analysis.resolve.base import Launch, Unsettled

CONFIG: Final = "cuda_graph_config"
DISABLED: Final = "disabled"
BREAKABLE: Final = "breakable"
PIECEWISE: Final = "tc_piecewise"


_ABSURD: Final = 1 << 20
"""No server captures more; a list of them would fill our memory."""


def _check(largest: int) -> None:
    if largest > _ABSURD:
        raise Unsettled(f"whether anything of size {largest} can be captured")


def decode_sizes(launch: Launch, largest: int) -> list[int]:
    """Batch sizes captured for decode; with a draft the small ones are denser."""
    _check(largest)
    if launch["disable_cuda_graph_padding"]:
        return list(range(1, largest + 1))
    if launch["speculative_algorithm"] is None:
        sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, largest + 1, 32)]
    else:
        to_64 = range(40, 65 if launch.since("0.5.4") else 64, 4)
        sizes = [*range(1, 9), *range(10, 33, 2), *to_64, *range(72, 257, 8), *range(272, largest + 1, 16)]
    captured = [size for size in sizes if size <= largest]
    if launch.since("0.5.10") and largest not in captured:
        captured.append(largest)
    return captured


def prefill_sizes(launch: Launch, largest: int) -> list[int]:
    """Token counts captured for prefill."""
    _check(largest)
    small = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32)]
    if launch.since("0.5.8"):
        first = 576 if launch.since("0.5.9") else 640
        large = [*range(first, 1025, 64), *range(1280, 4097, 256), *range(4608, largest + 1, 512)]
    else:
        large = [*range(640, 4097, 128), *range(4352, largest + 1, 256)]
    return [size for size in small + large if size <= largest]


def phase(launch: Launch, name: str) -> dict[str, Any]:
    """The settings of one phase (``decode``, ``prefill``) from 0.5.14 on."""
    settings: dict[str, Any] = launch[CONFIG][name]
    return settings


def set_phase(launch: Launch, name: str, **settings: Any) -> None:
    """Change settings of one phase."""
    launch[CONFIG] = {**launch[CONFIG], name: {**launch[CONFIG][name], **settings}}


def locked(launch: Launch, name: str, setting: str) -> bool:
    """Whether the user chose this setting, so that the engine leaves it alone."""
    return (name, setting) in launch.notes.get("locked graph settings", ())
