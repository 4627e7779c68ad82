"""Medusa: ``{'medusa0_top1': 0.72, 'medusa1_top1': 0.51, …}``.

Source: Medusa ``medusa/train/train_legacy.py`` of 2024-04. Each head is compared with the token of the data,
not with the target's choice; head i drafts position i.
"""

from __future__ import annotations

from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output
from collector.models.trainers.base import Found, Trainer


class MedusaTrainer(Trainer):
    """Figures by head; an evaluation before training."""

    name: ClassVar[str] = "Medusa"
    order: ClassVar[int] = 20

    def find(self, output: Output) -> Found | None:
        """The last figures of all heads."""
        for prefix, held_out in (("eval_", True), ("eval/", True), ("train/", False), ("", False)):
            row = output.last(f"{prefix}medusa0_top1")
            if row is not None:
                values = tuple(row.numbered(f"{prefix}medusa{{}}_top1"))
                return Found(
                    values[0], row.line, values, Measure.MARGINAL, True,
                    vocabulary=Vocabulary.FULL, reference=Reference.DATA, held_out=held_out, text=row.text,
                )  # fmt: skip
        return None


TRAINER: Final = MedusaTrainer()
