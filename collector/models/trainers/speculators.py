"""speculators (vllm-project): ``val/full_acc_0_epoch=0.74, val/cond_acc_1_epoch=0.71, …``, ``val_metrics.json``.

Source: speculators main of 2026-08 (logger ``speculators.metrics``, ``models/metrics.py``, ``train/checkpointer.py``).
``full_acc_k`` is joint (this and all earlier steps right), ``cond_acc_k`` conditional on all earlier ones,
``position_i_acc`` (DFlash from 1 or 0, DSpark, P-EAGLE from 0) per position. The target's best token is
looked for inside the draft's vocabulary. ``eal`` leaves out the target's own token, ``accept_len``
counts it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output, Scalars
from collector.models.trainers.base import Found, Trainer

# Prefix and suffix of keys: a log of the validation, the file beside a checkpoint, training.
_FORMS: Final = (("val/", "_epoch", True), ("", "_epoch", True), ("val/", "", True), ("train/", "", False))
_MEASURES: Final = (("full_acc", Measure.PREFIX), ("cond_acc", Measure.CONDITIONAL))


class SpeculatorsTrainer(Trainer):
    """Validation before training; joint figures before conditional ones, both before positions."""

    name: ClassVar[str] = "speculators"
    order: ClassVar[int] = 20

    def find(self, output: Output) -> Found | None:
        """The last figures of the best form."""
        for prefix, suffix, held_out in _FORMS:
            for name, measure in _MEASURES:
                row = output.last(f"{prefix}{name}_0{suffix}")
                if row is not None:
                    values = row.numbered(f"{prefix}{name}_{{}}{suffix}")
                    return _found(row, values, measure, held_out=held_out)
            for first in (0, 1):
                row = output.last(f"{prefix}position_{first}_acc{suffix}")
                if row is not None:
                    values = row.numbered(f"{prefix}position_{{}}_acc{suffix}", first)
                    return _found(row, values, Measure.MARGINAL, _length(row, prefix, suffix), held_out=held_out)
            row = output.last(f"{prefix}full_acc{suffix}")
            if row is not None:
                pooled = row.values[f"{prefix}full_acc{suffix}"]
                return Found(
                    pooled, row.line, vocabulary=Vocabulary.INSIDE, reference=Reference.TARGET, held_out=held_out,
                    length=_length(row, prefix, suffix), text=row.text, remarks=("it is the mean over all positions",),
                )  # fmt: skip
        return None


TRAINER: Final = SpeculatorsTrainer()


def _length(row: Scalars, prefix: str, suffix: str) -> float | None:
    """The acceptance length, the target's token included."""
    counted = row.values.get(f"{prefix}accept_len{suffix}")
    if counted is not None:
        return counted
    drafts = row.values.get(f"{prefix}eal{suffix}")
    return None if drafts is None else 1 + drafts


def _found(
    row: Scalars, values: list[float], measure: Measure, length: float | None = None, *, held_out: bool
) -> Found:
    return Found(
        values[0], row.line, tuple(values), measure, True,
        vocabulary=Vocabulary.INSIDE, reference=Reference.TARGET, held_out=held_out,
        length=length, length_depth=None if length is None else len(values), text=row.text,
    )  # fmt: skip
