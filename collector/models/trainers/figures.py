"""Figures without a known tool around them: one accuracy, or a list of them, under a usual name.

Asked last. What such a figure counts is not known unless a note says so.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.drafts import Measure
from collector.models.scalars import Output
from collector.models.trainers.base import FIGURE, Found, Trainer, share

_NAMED: Final = re.compile(
    rf"(?P<name>[\w/. -]{{0,60}}?\b[\w/]*(?:acc|accuracy|acc_rate|agreement|top[-_ ]?1)[\w/]{{0,30}})['\"]?\s*(?:[=:]|\bis\b)\s*"
    rf"(?P<values>\[[^\]]{{1,400}}\]|{FIGURE}(?:\s*,\s*{FIGURE})*)",
    re.IGNORECASE,
)
_BARE: Final = re.compile(rf"^\s*\[?\s*(?P<values>{FIGURE}(?:[\s,]+{FIGURE})*)\s*\]?\s*$")
_ACCURACY: Final = re.compile(r"acc(?!ept)|accuracy|top[-_ ]?1\b|agreement", re.IGNORECASE)
_EVALUATION: Final = re.compile(r"eval|val|test|held", re.IGNORECASE)


class PlainFigures(Trainer):
    """``eval/avg_acc: 0.747``, ``val accuracy = [0.75, 0.71]``, or nothing but numbers."""

    name: ClassVar[str] = ""
    order: ClassVar[int] = 90

    def find(self, output: Output) -> Found | None:
        """The last figure named as of an evaluation, else the last one at all."""
        named = bare = evaluated = None
        for number, line in enumerate(output.lines, 1):
            match = _NAMED.search(line)
            values = _values(match["values"]) if match is not None else []
            if match is not None and values:
                found = Found(values[0], number, tuple(values) if len(values) > 1 else (), Measure.UNKNOWN)
                named = found
                if _EVALUATION.search(match["name"]):
                    evaluated = found
                continue
            match = _BARE.match(line)
            values = _values(match["values"]) if match is not None else []
            if values and all(value <= 1.0 for value in values):
                bare = Found(values[0], number, tuple(values) if len(values) > 1 else (), Measure.UNKNOWN)
        return evaluated or named or bare or _logged(output)


TRAINER: Final = PlainFigures()


def _logged(output: Output) -> Found | None:
    """A named figure of a source without lines."""
    for wanted in (_EVALUATION, _ACCURACY):
        for row in reversed(output.rows):
            for key, value in row.values.items():
                if wanted.search(key) and _ACCURACY.search(key):
                    return Found(value, row.line, text=row.text)
    return None


def _values(text: str) -> list[float]:
    return [share(item) for item in re.findall(FIGURE, text)]
