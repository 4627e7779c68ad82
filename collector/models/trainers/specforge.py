"""SpecForge since 2026: ``step 400: {'eval/avg_acc': 0.74, 'eval/per_position_acc': [0.74, 0.7]}``.

Source: SpecForge main of 2026-08. ``eval/avg_acc`` is position 0 alone for EAGLE-3 drafts; the
figures are per position and teacher-forced; a target token outside the draft's vocabulary counts
as a miss. Training figures carry no prefix, or ``train/``.
"""

from __future__ import annotations

import ast
import re
from typing import Any, ClassVar, Final

from collector.domain.drafts import Measure
from collector.models.trainers.base import Found, Trainer

_STEP: Final = re.compile(r"\bstep \d+: (?P<values>\{.*\})\s*$")
_LONGEST: Final = 20_000


class SpecForgeTrainer(Trainer):
    """Dictionaries after ``step N:``; evaluation figures count before those of training."""

    name: ClassVar[str] = "SpecForge"
    order: ClassVar[int] = 20

    def find(self, lines: list[str]) -> Found | None:
        """The figures of the last evaluation, else of the last training step."""
        evaluated = trained = None
        for number, line in enumerate(lines, 1):
            match = _STEP.search(line[:_LONGEST])
            values = _dictionary(match["values"]) if match is not None else None
            if values is None:
                continue
            evaluated = _evaluation(values, number) or evaluated
            trained = _training(values, number) or trained
        return evaluated or trained


TRAINER: Final = SpecForgeTrainer()


def _dictionary(text: str) -> dict[str, Any] | None:
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return values if isinstance(values, dict) else None


def _evaluation(values: dict[str, Any], number: int) -> Found | None:
    listed = values.get("eval/per_position_acc")
    positions = (
        [float(item) for item in listed] if isinstance(listed, list) else _numbered(values, "eval/per_position_acc/")
    )
    average = values.get("eval/avg_acc")
    if positions:
        return Found(positions[0], number, tuple(positions), Measure.MARGINAL, True)
    if isinstance(average, (int, float)):
        return Found(float(average), number, (), Measure.MARGINAL, False)
    return None


def _training(values: dict[str, Any], number: int) -> Found | None:
    positions = _numbered(values, "acc_") or _numbered(values, "train/acc_")
    return Found(positions[0], number, tuple(positions), Measure.MARGINAL, True) if positions else None


def _numbered(values: dict[str, Any], prefix: str) -> list[float]:
    found: list[float] = []
    while isinstance(values.get(f"{prefix}{len(found)}"), (int, float)):
        found.append(float(values[f"{prefix}{len(found)}"]))
    return found
