"""Figures of single positions, one a line: ``medusa head 0 accuracy 0.95``, ``position 1 acc: 0.71``.

No tool of its own; what such figures count is not known unless a note says so.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.models.scalars import Output
from collector.models.trainers.base import FIGURE, Found, Trainer, share

_LINE: Final = re.compile(
    r"\b(?:head|position|pos|step|depth|draft|token)[ _#]?(?P<position>\d{1,2})\b.{0,40}?"
    rf"\b(?:top[-_ ]?1|acc|accuracy)\b\s*[=:]?\s*(?P<value>{FIGURE})",
    re.IGNORECASE,
)


class NumberedPositions(Trainer):
    """Lines that name a position and its accuracy; the last figure of each counts."""

    name: ClassVar[str] = ""
    order: ClassVar[int] = 80

    def find(self, output: Output) -> Found | None:
        """The figures in the order of their positions, which may be counted from 0 or 1."""
        found: dict[int, tuple[float, int]] = {}
        for number, line in enumerate(output.lines, 1):
            match = _LINE.search(line)
            if match is not None:
                found[int(match["position"])] = share(match["value"]), number
        first = min(found, default=-1)
        if first not in (0, 1):
            return None
        ordered = [found[first]]
        while first + len(ordered) in found:
            ordered.append(found[first + len(ordered)])
        return Found(ordered[0][0], ordered[0][1], tuple(value for value, _ in ordered))


TRAINER: Final = NumberedPositions()
