"""Draft and target models as their ``config.json`` states them, and the draft's validation figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from collector.domain.evidence import Evidence


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model's ``config.json``.

    ``raw`` is the document as read, ``lines`` the line of each key while the text is at hand,
    ``text`` the part that describes the language model (a nested ``text_config`` where there is
    one, completed from the top level).
    """

    source: str
    raw: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def evidence(self, *keys: str) -> Evidence:
        """Where the config states the first of these keys that it has; the file alone where it has none."""
        for key in keys:
            value = self.text.get(key, _find(self.raw, key))
            if value is not None:
                return Evidence(self.source, self.lines.get(key), f"{key}: {value}")
        return Evidence(self.source, None, f"no {keys[0]}" if keys else "")

    @property
    def text(self) -> Mapping[str, Any]:
        """The language model's own settings."""
        nested = self.raw.get("text_config") or self.raw.get("llm_config")
        if not isinstance(nested, dict):
            return self.raw
        outer = {key: value for key, value in self.raw.items() if not isinstance(value, dict)}
        return {**outer, **nested}

    @property
    def architectures(self) -> tuple[str, ...]:
        """Class names, the outer model's first, then the language model's."""
        names: list[str] = []
        for part in (self.raw, self.text):
            listed = part.get("architectures")
            if isinstance(listed, list):
                names += [name for name in listed if isinstance(name, str) and name not in names]
        return tuple(names)

    def number(self, key: str) -> float | None:
        """A numeric setting of the language model, ``None`` if absent or not a number."""
        value = self.text.get(key)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def layers(self) -> int | None:
        """Number of layers of the language model."""
        count = self.number("num_hidden_layers")
        return int(count) if count is not None else None

    @property
    def experts(self) -> int | None:
        """Number of routed experts, ``None`` for a dense model."""
        for key in ("n_routed_experts", "num_experts", "num_local_experts"):
            count = self.number(key)
            if count and count > 1:
                return int(count)
        return None


def _find(document: Mapping[str, Any], key: str) -> Any:
    """The value of a key one level down, as in ``eagle_config``."""
    return next((part[key] for part in document.values() if isinstance(part, Mapping) and key in part), None)


class Measure(StrEnum):
    """What a validation figure counts (theory section 1.3)."""

    PREFIX = "prefix"
    """Share of positions where this and all earlier drafts are right."""
    CONDITIONAL = "conditional"
    """Accuracy given that all earlier drafts are right."""
    MARGINAL = "marginal"
    """Accuracy at this position whatever came before (teacher-forced)."""
    UNKNOWN = "unknown"
    """Not stated; read as one constant accuracy, and said so."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What the draft's training said about its accuracy.

    ``accuracy`` is the headline figure (0 to 1), ``accuracy_at`` the figures by position if
    stated, ``measure`` what they count and ``measure_stated`` whether the source said so itself.
    ``task_accuracy`` marks a figure that is not about drafts at all.
    """

    accuracy: float
    accuracy_at: tuple[float, ...] = ()
    measure: Measure = Measure.UNKNOWN
    measure_stated: bool = False
    trainer: str = ""
    temperature: float | None = None
    draft_vocabulary_coverage: float | None = None
    evidence: tuple[Evidence, ...] = field(default=())
