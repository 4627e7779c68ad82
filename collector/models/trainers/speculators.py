"""speculators (vllm-project): ``val/full_acc_0_epoch=0.74, val/cond_acc_1_epoch=0.71, …``.

Source: speculators main of 2026-08, logger ``speculators.metrics``. ``full_acc_k`` is joint (this
and all earlier steps right), ``cond_acc_k`` conditional on all earlier ones. ``train/`` figures
count where there is no validation.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.drafts import Measure
from collector.models.trainers.base import Found, Trainer

_PAIR: Final = re.compile(
    r"(?P<set>val|train)/(?P<kind>full|cond)_acc_(?P<position>\d+)(?:_epoch)?['\"]?[=:] ?(?P<value>[\d.]+(?:e-?\d+)?)"
)
_MEASURES: Final = {"full": Measure.PREFIX, "cond": Measure.CONDITIONAL}


class SpeculatorsTrainer(Trainer):
    """``key=value`` pairs; validation before training, joint figures before conditional ones."""

    name: ClassVar[str] = "speculators"
    order: ClassVar[int] = 20

    def find(self, lines: list[str]) -> Found | None:
        """The figures of the last line that has them."""
        last: dict[tuple[str, str], tuple[int, dict[int, float]]] = {}
        for number, line in enumerate(lines, 1):
            on_line: dict[tuple[str, str], dict[int, float]] = {}
            for match in _PAIR.finditer(line):
                on_line.setdefault((match["set"], match["kind"]), {})[int(match["position"])] = float(match["value"])
            last |= {key: (number, positions) for key, positions in on_line.items()}
        for key in (("val", "full"), ("val", "cond"), ("train", "full"), ("train", "cond")):
            if key in last and 0 in last[key][1]:
                number, positions = last[key]
                ordered = tuple(positions[index] for index in range(len(positions)) if index in positions)
                return Found(ordered[0], number, ordered, _MEASURES[key[1]], True)
        return None


TRAINER: Final = SpeculatorsTrainer()
