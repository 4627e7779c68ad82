"""SpecForge: ``step 400: {'eval/avg_acc': 0.74, 'eval/per_position_acc': [0.74, 0.7]}``, and its scripts of 2025.

Source: SpecForge main of 2026-08 (``specforge/eval/evaluator.py``, ``training/tracking.py``) and
``scripts/train_eagle3.py`` of 2025-11 to 2026-06. Figures are per position and teacher-forced; a target
token outside the draft's vocabulary counts as a miss. ``eval/avg_acc`` is position 0 alone for EAGLE-3
drafts and the mean over the positions of a block for DFlash and Domino. ``eval/simulated_acc_len``
leaves out the target's own token, and is no length at all for DFlash and Domino, where it equals
``eval/avg_acc``.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output, Scalars
from collector.models.trainers.base import NUMBER, Found, Trainer

_LINE: Final = re.compile(
    rf"Eval - Step (?P<step>\d+) \[\d+/\d+\], position (?P<position>\d+), +Acc: (?P<accuracy>{NUMBER})"
)
_STEP: Final = re.compile(r"\bstep \d+: \{")


class SpecForgeTrainer(Trainer):
    """Dictionaries after ``step N:`` and the keys of its trackers; evaluations count before training."""

    name: ClassVar[str] = "SpecForge"
    order: ClassVar[int] = 20

    def find(self, output: Output) -> Found | None:
        """The figures of the last evaluation, else of the last training step."""
        row = output.last("eval/per_position_acc/0")
        if row is not None:
            return _evaluated(row, row.numbered("eval/per_position_acc/{}"))
        row = output.last("eval/acc_0")
        if row is not None and "eval/avg_acc" not in row.values:
            return _evaluated(row, row.numbered("eval/acc_{}"))
        row = output.last("eval/avg_acc")
        if row is not None and (_STEP.search(row.text) or "eval/simulated_acc_len" in row.values):
            return _average(row)
        return _printed(output) or _trained(output)


TRAINER: Final = SpecForgeTrainer()


def _evaluated(row: Scalars, values: list[float]) -> Found:
    length = row.values.get("eval/simulated_acc_len")
    return Found(
        values[0], row.line, tuple(values), Measure.MARGINAL, True,
        vocabulary=Vocabulary.MISS, reference=Reference.TARGET, held_out=True,
        length=None if length is None else 1 + length, length_depth=None if length is None else len(values),
        text=row.text,
    )  # fmt: skip


def _average(row: Scalars) -> Found:
    """An evaluation without positions."""
    average = row.values["eval/avg_acc"]
    if row.values.get("eval/simulated_acc_len") == average:
        return Found(
            average, row.line, vocabulary=Vocabulary.FULL, reference=Reference.DATA, held_out=True, text=row.text,
            remarks=(
                "it is the mean over all positions of a block (DFlash, Domino)",
                "eval/simulated_acc_len repeats it and is no length",
            ),
        )  # fmt: skip
    return Found(
        average, row.line, held_out=True, text=row.text,
        remarks=("eval/avg_acc is position 0 alone for EAGLE-3 drafts, a mean over positions for others",),
    )  # fmt: skip


def _printed(output: Output) -> Found | None:
    """Lines of ``scripts/train_eagle3.py``, which says ``Eval`` of training batches too."""
    positions: dict[int, tuple[float, int]] = {}
    last = ""
    for number, line in enumerate(output.lines, 1):
        match = _LINE.search(line)
        if match is None:
            continue
        if match["step"] != last:
            positions, last = {}, match["step"]
        positions[int(match["position"])] = (float(match["accuracy"]), number)
    if 0 not in positions:
        return None
    values = tuple(positions[index][0] for index in range(len(positions)) if index in positions)
    return Found(
        values[0], positions[0][1], values, Measure.MARGINAL, True,
        vocabulary=Vocabulary.MISS, reference=Reference.TARGET,
        remarks=("the lines say Eval of training batches too", "they are of one batch"),
    )  # fmt: skip


def _trained(output: Output) -> Found | None:
    for prefix in ("train/", ""):
        row = output.last(f"{prefix}acc_0")
        if row is not None and "train/avg_acc" not in row.values:
            values = row.numbered(f"{prefix}acc_{{}}")
            return Found(
                values[0], row.line, tuple(values), Measure.MARGINAL, True,
                vocabulary=Vocabulary.MISS, reference=Reference.TARGET, held_out=False, text=row.text,
            )  # fmt: skip
        row = output.last(f"{prefix}acceptance_rate_0")
        if row is not None:
            values = row.numbered(f"{prefix}acceptance_rate_{{}}")
            return Found(
                values[0], row.line, tuple(values), Measure.MARGINAL, True,
                vocabulary=Vocabulary.LEFT_OUT, reference=Reference.TARGET, held_out=False, temperature=1.0,
                text=row.text, remarks=("it is the overlap of the two distributions: acceptance at temperature 1",),
            )  # fmt: skip
        row = output.last(f"{prefix}acc")
        if row is not None and _STEP.search(row.text):
            return Found(
                row.values[f"{prefix}acc"], row.line, held_out=False, text=row.text,
                remarks=("it is pooled over all positions",),
            )  # fmt: skip
    return None
