"""What draft and target configs say that must agree: windows, rotary settings, precision, vocabulary, widths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from collector.domain.drafts import ModelConfig

DEFAULT_THETA: Final = 10_000.0
"""Rotary base where a config names none. Source: Hugging Face `LlamaConfig`."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary settings with defaults filled in; ``scaling`` is ``default`` where there is none."""

    theta: float
    scaling: str
    parameters: Mapping[str, float]

    def __str__(self) -> str:
        """``theta 500,000, scaling llama3 (factor 8)``."""
        inner = ", ".join(f"{name} {value:g}" for name, value in self.parameters.items())
        return f"theta {self.theta:,.0f}, scaling {self.scaling}" + (f" ({inner})" if inner else "")


def rotary(config: ModelConfig) -> Rotary | None:
    """The rotary settings; ``None`` where they differ by layer or the config states nothing about attention."""
    text = config.text
    parameters = text.get("rope_parameters")
    scaling = text.get("rope_scaling")
    if any(
        isinstance(part, Mapping) and any(isinstance(v, Mapping) for v in part.values())
        for part in (parameters, scaling)
    ):
        return None
    if not {"rope_theta", "rope_parameters", "rope_scaling", "max_position_embeddings"} & set(text):
        return None
    merged: dict[str, Any] = {}
    for part in (scaling, parameters):
        if isinstance(part, Mapping):
            merged.update(part)
    theta = _number(merged.pop("rope_theta", None)) or config.number("rope_theta") or DEFAULT_THETA
    kind = str(merged.pop("rope_type", None) or merged.pop("type", None) or "default")
    merged.pop("type", None)
    figures = {name: value for name, item in sorted(merged.items()) if (value := _number(item)) is not None}
    return Rotary(theta, kind, {} if kind == "default" else figures)


def window(config: ModelConfig) -> int | None:
    """The longest context the model was made for, tokens."""
    size = config.number("max_position_embeddings")
    return int(size) if size else None


STORED: Final = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F8_E4M3": "float8_e4m3",
    "F8_E5M2": "float8_e5m2",
}
"""Types of weights as headers name them and as configs do."""


def precision(config: ModelConfig) -> str | None:
    """The type of the weights and how they are quantised: ``float16, awq 4 bit``; ``None`` where nothing is stated.

    Where the config names no type, the one that most of the stored weights have counts.
    """
    parts = []
    dtype = config.text.get("torch_dtype") or config.text.get("dtype") or config.raw.get("torch_dtype")
    if isinstance(dtype, str):
        parts.append(dtype.removeprefix("torch."))
    elif (stored := _stored(config)) is not None:
        parts.append(stored)
    quantization = _quantization(config)
    if quantization is not None:
        method = quantization.get("quant_method") or quantization.get("quant_algo") or "quantised"
        bits = _number(quantization.get("bits"))
        parts.append(f"{method} {bits:g} bit" if bits else str(method))
    return ", ".join(parts) or None


def quantised_on_loading(config: ModelConfig, flag: object) -> str | None:
    """What an engine's flag makes of weights that are not quantised as stored; ``None`` if nothing."""
    if not isinstance(flag, str) or flag.lower() in ("", "none", "unquant") or _quantization(config) is not None:
        return None
    return flag


def _quantization(config: ModelConfig) -> Mapping[str, Any] | None:
    stated = config.raw.get("quantization_config") or config.text.get("quantization_config")
    return stated if isinstance(stated, Mapping) else None


def _stored(config: ModelConfig) -> str | None:
    tensors = config.weights.tensors.values() if config.weights is not None else ()
    counts = Counter(STORED[tensor.dtype] for tensor in tensors if tensor.dtype in STORED)
    return counts.most_common(1)[0][0] if counts else None


def fed_width(draft: ModelConfig) -> int | None:
    """Width of the hidden states that an EAGLE-like draft expects from the target."""
    width = draft.number("target_hidden_size") or draft.number("hidden_size")
    return int(width) if width else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
