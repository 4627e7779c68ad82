"""What the engine knows of the target's architecture."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import architecture

_KNOWN_SINCE: Final = {"KimiK25ForConditionalGeneration": "0.5.9"}
"""Architectures younger than the oldest release here; an older one treats them as any other."""

_TEXT_ONLY_BY_DEFAULT: Final = (
    "Gemma3ForConditionalGeneration",
    "Llama4ForConditionalGeneration",
    "Step3VLForConditionalGeneration",
)


def knows_architecture(launch: Launch) -> bool:
    """Whether the release is not older than the target's architecture."""
    return launch.since(_KNOWN_SINCE.get(architecture(launch), "0"))


def uses_latent_attention(launch: Launch) -> bool:
    """Whether the target attends over a compressed cache (MLA)."""
    return launch.target.number("kv_lora_rank") is not None and knows_architecture(launch)


def is_multimodal(launch: Launch) -> bool:
    """Whether the target reads images and the server lets it."""
    if "vision_config" not in launch.target.raw or not knows_architecture(launch):
        return False
    asked = launch["enable_multimodal"]
    return bool(asked) if asked is not None else architecture(launch) not in _TEXT_ONLY_BY_DEFAULT


def uses_sparse_attention(launch: Launch) -> bool:
    """Whether the target picks the tokens it attends to with an index (DSA)."""
    return launch.target.number("index_topk") is not None
