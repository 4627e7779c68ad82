"""What draft and target configs say that must agree: windows, rotary settings, precision, vocabulary, widths."""

from __future__ import annotations

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


def precision(config: ModelConfig) -> str | None:
    """The type of the weights and how they are quantised: ``float16, awq 4 bit``; ``None`` where nothing is stated."""
    parts = []
    dtype = config.text.get("torch_dtype") or config.text.get("dtype") or config.raw.get("torch_dtype")
    if isinstance(dtype, str):
        parts.append(dtype.removeprefix("torch."))
    quantization = config.raw.get("quantization_config") or config.text.get("quantization_config")
    if isinstance(quantization, Mapping):
        method = quantization.get("quant_method") or quantization.get("quant_algo") or "quantised"
        bits = _number(quantization.get("bits"))
        parts.append(f"{method} {bits:g} bit" if bits else str(method))
    return ", ".join(parts) or None


def fed_width(draft: ModelConfig) -> int | None:
    """Width of the hidden states that an EAGLE-like draft expects from the target."""
    width = draft.number("target_hidden_size") or draft.number("hidden_size")
    return int(width) if width else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
