"""Keys of draft configs that somebody reads, so that the others can be named.

Source: Hugging Face ``PretrainedConfig`` and the decoder classes drafts are built of; SpecForge
``configs/``; speculators ``models/*/config.py``; Model Optimizer ``hf_spec_configs.py``; Medusa
``medusa_model.py``; SGLang and vLLM, reading of draft configs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from collector.domain.drafts import NESTED, ModelConfig


@cache
def known_keys() -> frozenset[str]:
    """All keys of ``config_keys.txt``; nested ones as ``eagle_config.key``."""
    lines = files("collector.models").joinpath("config_keys.txt").read_text("utf-8").splitlines()
    return frozenset(key for line in lines if not line.startswith("#") for key in line.split())


def unknown_keys(config: ModelConfig) -> tuple[str, ...]:
    """Keys that no reader of drafts is known to look at, nested ones as ``eagle_config.key``; each once."""
    if "general.architecture" in config.raw:
        return ()  # a GGUF header is read by name; its other fields belong to the tokenizer
    return tuple(dict.fromkeys(_unknown(config.raw, "")))


def _unknown(part: Mapping[str, Any], path: str) -> Iterator[str]:
    known = known_keys()
    for key, value in part.items():
        if isinstance(value, Mapping) and key in NESTED:
            yield from _unknown(value, f"{key}.")
        elif key not in known and key not in NESTED:
            yield f"{path}{key}"
        elif isinstance(value, Mapping) and any(name.startswith(f"{key}.") for name in known):
            yield from (f"{key}.{inner}" for inner in value if f"{key}.{inner}" not in known)
