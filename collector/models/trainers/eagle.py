"""EAGLE's own trainers, and the SpecForge scripts of 2025 that print the same lines.

Source: EAGLE ``eagle/traineagle3/main.py``, ``cnets.py`` (``Test Epoch [3/10], position 0,  Acc: 0.74``;
``test/epochacc_0``), ``eagle/train/main.py`` (``test/0_acc``, ``Test Accuracy: 74.70%``).
EAGLE-3 figures are per position, teacher-forced, over the loss mask; a target token outside the
draft's vocabulary counts as a miss. EAGLE-1's ``test/k_acc`` feeds the draft with its own tokens and
counts positions after a miss as wrong, so they are prefix accuracies.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output
from collector.models.trainers.base import NUMBER, Found, Trainer

_LINE: Final = re.compile(
    rf"(?P<set>Train|Test) Epoch \[(?P<epoch>\d+)/\d+\], position (?P<position>\d+), +Acc: (?P<accuracy>{NUMBER})"
)
_COVERAGE: Final = re.compile(rf"top \d+ token frequency ratio: (?P<share>{NUMBER})%")
_PERCENT: Final = re.compile(rf"(?P<set>Train|Test) Accuracy: (?P<accuracy>{NUMBER})%")


class EagleTrainer(Trainer):
    """Lines with a position and its accuracy, or their keys; the last test counts, else the last training epoch."""

    name: ClassVar[str] = "EAGLE or SpecForge (script)"
    order: ClassVar[int] = 10

    def find(self, output: Output) -> Found | None:
        """The figures of the last evaluation, position by position."""
        coverage = None
        for line in output.lines:
            ratio = _COVERAGE.search(line)
            if ratio is not None:
                coverage = float(ratio["share"]) / 100
        found = _lines(output) or _keys(output) or _first_generation(output)
        return None if found is None else replace(found, coverage=coverage)


TRAINER: Final = EagleTrainer()


def _lines(output: Output) -> Found | None:
    groups: dict[str, dict[int, tuple[float, int]]] = {}
    last: dict[str, str] = {}
    for number, line in enumerate(output.lines, 1):
        match = _LINE.search(line)
        if match is None:
            continue
        if last.get(match["set"]) != match["epoch"]:
            groups[match["set"]] = {}
            last[match["set"]] = match["epoch"]
        groups[match["set"]][int(match["position"])] = (float(match["accuracy"]), number)
    for kind in ("Test", "Train"):
        positions = groups.get(kind, {})
        if 0 in positions:
            ordered = tuple(positions[index][0] for index in range(len(positions)) if index in positions)
            return _per_position(ordered, positions[0][1], held_out=kind == "Test")
    return None


def _keys(output: Output) -> Found | None:
    for kind in ("test", "train"):
        for name in ("epochacc", "epoch_acc"):
            row = output.last(f"{kind}/{name}_0")
            if row is not None:
                values = tuple(row.numbered(f"{kind}/{name}_{{}}"))
                return replace(_per_position(values, row.line, held_out=kind == "test"), text=row.text)
    return None


def _per_position(values: tuple[float, ...], line: int, *, held_out: bool) -> Found:
    return Found(
        values[0], line, values, Measure.MARGINAL, True,
        vocabulary=Vocabulary.MISS, reference=Reference.TARGET, held_out=held_out,
    )  # fmt: skip


def _first_generation(output: Output) -> Found | None:
    """EAGLE-1: prefix accuracies where the tracker has them, else the printed accuracy of the next token."""
    row = output.last("test/0_acc")
    if row is not None:
        values = tuple(row.numbered("test/{}_acc"))
        return Found(
            values[0], row.line, values, Measure.PREFIX, True,
            vocabulary=Vocabulary.FULL, reference=Reference.TARGET, held_out=True, text=row.text,
            remarks=("counted over the first 10 test batches",),
        )  # fmt: skip
    last: dict[str, tuple[float, int]] = {}
    for number, line in enumerate(output.lines, 1):
        match = _PERCENT.search(line)
        if match is not None:
            last[match["set"]] = float(match["accuracy"]) / 100, number
    for kind in ("Test", "Train"):
        if kind in last:
            accuracy, number = last[kind]
            return Found(
                accuracy, number, (accuracy,), Measure.MARGINAL, True,
                vocabulary=Vocabulary.FULL, reference=Reference.TARGET, held_out=kind == "Test",
            )  # fmt: skip
    return None
