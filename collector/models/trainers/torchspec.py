"""TorchSpec: ``Step 400 eval: loss=1.2000, acc=0.7000, sim_acc_len=2.10``, and the keys of its trackers.

Source: TorchSpec of 2026-04 (``torchspec/controller/eval.py``, ``training/eagle3_trainer.py``). Target
tokens outside the draft's vocabulary are left out of the count, so the figures are higher than
serving by 1 / coverage. ``avg_acc`` is the mean over all positions; ``simulated_acc_len`` leaves out
the target's own token.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output, Scalars
from collector.models.trainers.base import NUMBER, Found, Trainer

_LINE: Final = re.compile(
    rf"\beval: loss={NUMBER}, acc=(?P<accuracy>{NUMBER}), sim_acc_len=(?P<length>{NUMBER})", re.IGNORECASE
)


class TorchSpecTrainer(Trainer):
    """Keys with ``avg_acc`` beside ``acc_i``, else the printed line."""

    name: ClassVar[str] = "TorchSpec"
    order: ClassVar[int] = 15

    def find(self, output: Output) -> Found | None:
        """The last evaluation, else the last training step."""
        for kind in ("eval", "train"):
            row = output.last(f"{kind}/avg_acc", f"{kind}/acc_0")
            if row is not None:
                return _positions(row, kind)
        for number in range(len(output.lines), 0, -1):
            match = _LINE.search(output.lines[number - 1])
            if match is not None:
                return Found(
                    float(match["accuracy"]), number, vocabulary=Vocabulary.LEFT_OUT, held_out=True,
                    length=1 + float(match["length"]),
                    remarks=("it is the mean over all positions; the tracker has them one by one",),
                )  # fmt: skip
        return None


TRAINER: Final = TorchSpecTrainer()


def _positions(row: Scalars, kind: str) -> Found:
    values = row.numbered(f"{kind}/acc_{{}}")
    length = row.values.get(f"{kind}/simulated_acc_len")
    eagle = f"{kind}/ploss_0" in row.values  # DFlash drafts log no loss by position
    return Found(
        values[0], row.line, tuple(values), Measure.MARGINAL, True,
        vocabulary=Vocabulary.LEFT_OUT, reference=Reference.TARGET if eagle else Reference.UNKNOWN,
        held_out=kind == "eval", length=None if length is None else 1 + length,
        length_depth=None if length is None else len(values), text=row.text,
        remarks=() if eagle else ("for DFlash drafts it compares with the token of the data",),
    )  # fmt: skip
