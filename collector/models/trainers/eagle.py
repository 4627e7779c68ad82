"""EAGLE's own trainer, and the SpecForge scripts of 2025 that print the same lines.

Source: EAGLE ``eagle/traineagle3/main.py`` (``Test Epoch [3/10], position 0,  Acc: 0.74``),
SpecForge ``scripts/train_eagle3*.py`` (``Eval - Step 400 [401/10], position 0,  Acc: 0.74``).
The figures are per position, teacher-forced, over the loss mask; a target token outside the
draft's vocabulary counts as a miss.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.drafts import Measure
from collector.models.trainers.base import Found, Trainer

_LINE: Final = re.compile(
    r"(?P<set>Train|Test|Eval)(?: Epoch| - Step (?P<step>\d+))? \[(?P<epoch>\d+)/\d+\], position (?P<position>\d+), +Acc: (?P<accuracy>[\d.]+)"
)
_COVERAGE: Final = re.compile(r"top \d+ token frequency ratio: (?P<share>[\d.]+)%")


class EagleTrainer(Trainer):
    """Lines with a position and its accuracy; the last test or evaluation counts, else the last training epoch."""

    name: ClassVar[str] = "EAGLE or SpecForge (script)"
    order: ClassVar[int] = 10

    def find(self, lines: list[str]) -> Found | None:
        """The figures of the last evaluation, position by position."""
        groups: dict[str, dict[int, tuple[float, int]]] = {}
        last: dict[str, str] = {}
        coverage = None
        for number, line in enumerate(lines, 1):
            ratio = _COVERAGE.search(line)
            if ratio is not None:
                coverage = float(ratio["share"]) / 100
            match = _LINE.search(line)
            if match is None:
                continue
            when = match["step"] or match["epoch"]
            if last.get(match["set"]) != when:
                groups[match["set"]] = {}
                last[match["set"]] = when
            groups[match["set"]][int(match["position"])] = (float(match["accuracy"]), number)
        for kind in ("Test", "Eval", "Train"):
            positions = groups.get(kind)
            if positions and 0 in positions:
                ordered = [positions[index][0] for index in range(len(positions)) if index in positions]
                return Found(ordered[0], positions[0][1], tuple(ordered), Measure.MARGINAL, True, coverage)
        return None


TRAINER: Final = EagleTrainer()
