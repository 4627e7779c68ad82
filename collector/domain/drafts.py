"""Draft and target models as their ``config.json`` states them, and the draft's validation figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from collector.domain.evidence import Evidence

NESTED: Final = ("text_config", "llm_config", "language_config", "transformer_layer_config", "thinker_config")
"""Keys under which a config holds that of its language model, or of a draft's decoder layers."""
LARGEST: Final = 2**53
"""No setting of a model is a larger number."""
_DEEPEST: Final = 3


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a header says of one tensor: its type (``BF16``) and its shape, the slowest dimension first."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Weights:
    """The headers of a model's weight files; no weight is read.

    ``complete`` says that every shard's header was there, ``digest`` identifies the content where
    the storage states it (a cache that names files by their hash), else "".
    """

    source: str
    tensors: Mapping[str, Tensor]
    complete: bool = True
    digest: str = ""

    def named(self, *endings: str) -> tuple[str, Tensor] | None:
        """The first tensor whose name is or ends in one of these, at a dot."""
        for ending in endings:
            for name, tensor in self.tensors.items():
                if name == ending or name.endswith(f".{ending}"):
                    return name, tensor
        return None

    def evidence(self, name: str) -> Evidence:
        """Where the header states a tensor, or that it has none of this name."""
        tensor = self.tensors.get(name)
        return Evidence(self.source, None, f"no {name}" if tensor is None else f"{name}: {tensor}")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model's ``config.json``.

    ``raw`` is the document as read, ``lines`` the line of each key while the text is at hand,
    ``text`` the part that describes the language model (a nested ``text_config`` where there is
    one, completed from the top level), ``weights`` what the headers of its weight files say.
    """

    source: str
    raw: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    weights: Weights | None = None

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
        merged = self.raw
        for _ in range(_DEEPEST):
            nested = next((part for key in NESTED if isinstance(part := merged.get(key), Mapping) and part), None)
            if nested is None:
                break
            outer = {key: value for key, value in merged.items() if not isinstance(value, Mapping)}
            merged = {**outer, **nested}
        return merged

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
        """A numeric setting of the language model, ``None`` if absent, not a number, or none that a setting can have."""
        value = self.text.get(key)
        plain = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
        return value if plain else None

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


def _find(document: Mapping[str, Any], key: str, levels: int = 4) -> Any:
    """The value of a key some levels down, as in ``eagle_config`` or a list of proposal methods; nearer ones first."""
    parts: list[Any] = [document]
    for _ in range(levels):
        inner = [item for part in parts for item in (part.values() if isinstance(part, Mapping) else part)]
        parts = [item for item in inner if isinstance(item, (Mapping, list))]
        for part in parts:
            if isinstance(part, Mapping) and part.get(key) is not None:
                return part[key]
    return None


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


class Vocabulary(StrEnum):
    """What becomes of a target token that the draft's vocabulary does not have."""

    FULL = "full"
    """The draft has every token of the target."""
    MISS = "miss"
    """It counts as a wrong draft, as it does in serving."""
    LEFT_OUT = "left out"
    """It is not counted at all, so the figure is higher than serving by 1 / coverage."""
    INSIDE = "inside"
    """The draft is compared with the target's best token inside the draft's vocabulary."""
    UNKNOWN = "unknown"


class Reference(StrEnum):
    """What a draft token is compared with."""

    TARGET = "target"
    """The target's own best token."""
    DATA = "data"
    """The token of the data set, which the target need not have chosen."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Validation:
    """What the draft's training said about its accuracy.

    Attributes:
        accuracy: the headline figure (0 to 1); ``None`` where only a length is stated.
        accuracy_at: the figures by position, if stated.
        measure, measure_stated: what they count, and whether the source said so itself.
        trainer: the tool.
        temperature: the sampling temperature of the validation, if stated.
        draft_vocabulary_coverage: share of the target's tokens in the draft's vocabulary.
        vocabulary, reference: what is compared with what.
        held_out: whether the figures are of an evaluation; ``False``: of training batches.
        length, length_depth: the acceptance length (the target's token included) that the source states, and at which depth.
        replayed: the length or the prefixes were counted along verify steps, as serving counts them.
        dataset, count: over which data, and over how many tokens or samples.
        remarks: what a reader must know before comparing.
    """

    accuracy: float | None
    accuracy_at: tuple[float, ...] = ()
    measure: Measure = Measure.UNKNOWN
    measure_stated: bool = False
    trainer: str = ""
    temperature: float | None = None
    draft_vocabulary_coverage: float | None = None
    vocabulary: Vocabulary = Vocabulary.UNKNOWN
    reference: Reference = Reference.UNKNOWN
    held_out: bool | None = None
    length: float | None = None
    length_depth: int | None = None
    replayed: bool = False
    dataset: str = ""
    count: float | None = None
    remarks: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = field(default=())
