"""What a training tool's output is read into, and the words all of them share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output

_ENDS: Final = r"(?!\.?\w)"
"""Behind a number: not the rest of one that was damaged."""
NUMBER: Final = rf"\d{{1,15}}(?:\.\d+)?(?:e-?\d{{1,3}})?{_ENDS}"
FIGURE: Final = rf"\d{{1,15}}(?:\.\d+)?(?:e-?\d{{1,3}})?\s?%?{_ENDS}"
"""A number or percentage, as a part of patterns."""
_TEMPERATURE: Final = re.compile(r"\btemperature\b\W{1,3}(\d+(?:\.\d+)?)", re.IGNORECASE)
# The order matters: a conditional figure's note also names the earlier tokens.
_NOTES: Final = (
    (
        Measure.CONDITIONAL,
        r"\b(?:given|if|when|provided|conditioned)\b.{0,80}\b(?:earlier|previous|prior|preceding|before)\b|\bconditional\b",
    ),
    (
        Measure.PREFIX,
        r"\b(?:joint|prefix|this and all (?:earlier|previous)|all (?:the )?(?:tokens|positions|steps|drafts) so far)\b",
    ),
    (Measure.MARGINAL, r"teacher[- ]forc|\bmarginal\b|\bper[- ](?:step|position)\b.{0,40}\bregardless\b"),
)
_NOTE_LINE: Final = re.compile(r"^\W*(?:note|remark|definition|measure|meaning|n\.b\.)\b|^\s*(?:#|//)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """Figures found in a tool's output, as shares of 1; the fields are those of ``Validation``.

    ``line`` counts from 1 and is 0 where the source has no lines; ``text`` is what stands there,
    where ``line`` does not tell. ``measure_stated`` says that the tool's own name of the figure
    says what it counts.
    """

    accuracy: float | None
    line: int
    accuracy_at: tuple[float, ...] = ()
    measure: Measure = Measure.UNKNOWN
    measure_stated: bool = False
    coverage: float | None = None
    vocabulary: Vocabulary = Vocabulary.UNKNOWN
    reference: Reference = Reference.UNKNOWN
    held_out: bool | None = None
    length: float | None = None
    length_depth: int | None = None
    replayed: bool = False
    temperature: float | None = None
    dataset: str = ""
    count: float | None = None
    remarks: tuple[str, ...] = ()
    text: str = ""


class Trainer(ABC):
    """The output of one tool. ``order``: a lower one is asked first."""

    name: ClassVar[str]
    order: ClassVar[int] = 50

    @abstractmethod
    def find(self, output: Output) -> Found | None:
        """The last evaluation in the output, ``None`` if it is not this tool's."""


def note_about_measure(lines: Sequence[str]) -> tuple[Measure, int] | None:
    """What a note in the text says the figure counts, and the note's line."""
    for number, line in enumerate(lines, 1):
        if _NOTE_LINE.search(line):
            for measure, words in _NOTES:
                if re.search(words, line, re.IGNORECASE):
                    return measure, number
    return None


def temperature_in(lines: Sequence[str]) -> float | None:
    """The sampling temperature the text states, if it states one."""
    for line in lines:
        match = _TEMPERATURE.search(line)
        if match is not None:
            return float(match[1])
    return None


def share(text: str) -> float:
    """A figure as a share of 1: ``0.747``, ``74.7%``."""
    text = text.strip()
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
