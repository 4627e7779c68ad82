"""GPUs by their common names, with what the engines' defaults ask of them.

Memory is what the driver states in MiB for the usual board; capability is the CUDA compute
capability.
"""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Gpu

GPUS: Final[dict[str, Gpu]] = {
    gpu.name: gpu
    for gpu in (
        Gpu("t4", 15360, (7, 5)),
        Gpu("v100", 32768, (7, 0)),
        Gpu("a10", 23028, (8, 6)),
        Gpu("a10g", 23028, (8, 6)),
        Gpu("a40", 46068, (8, 6)),
        Gpu("a6000", 49140, (8, 6)),
        Gpu("a100-40gb", 40960, (8, 0)),
        Gpu("a100", 81920, (8, 0)),
        Gpu("l4", 23034, (8, 9)),
        Gpu("l40s", 46068, (8, 9)),
        Gpu("rtx4090", 24564, (8, 9)),
        Gpu("rtx5090", 32607, (12, 0)),
        Gpu("h20", 97871, (9, 0)),
        Gpu("h100", 81559, (9, 0)),
        Gpu("h200", 143771, (9, 0)),
        Gpu("gh200", 97871, (9, 0)),
        Gpu("b200", 183359, (10, 0)),
        Gpu("gb200", 189471, (10, 0)),
        Gpu("mi300x", 196592, (0, 0), "amd"),
        Gpu("mi325x", 262128, (0, 0), "amd"),
        Gpu("mi355x", 294896, (0, 0), "amd"),
        Gpu("cpu", 0, (0, 0), "none"),
    )
}


def find_gpu(name: str | None) -> Gpu | None:
    """The GPU of this name, whatever its case and punctuation; ``None`` where it is not known."""
    if name is None:
        return None
    wanted = _plain(name)
    return next((gpu for gpu in GPUS.values() if _plain(gpu.name) == wanted), None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum()).removeprefix("nvidia")
