"""EAGLE's measured acceptance: JSON lines of ``gen_ea_alpha_*`` with accepted and drafted counts by position.

Source: EAGLE ``eagle/evaluation/gen_ea_alpha_vicuna.py``, ``alpha.py``. A chain is drafted and verified as a server
does; ``alpha[i]`` of ``alpha_num[i]`` drafts at a position were right, and a position is only reached where all
earlier drafts were right, so shares are conditional. Temperature 0 stands in the model's id.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any, ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output
from collector.models.trainers.base import Found, Trainer

DEEPEST: Final = 64


class EagleAlpha(Trainer):
    """One answer a line; counts of all of them are pooled."""

    name: ClassVar[str] = "EAGLE gen_ea_alpha"
    order: ClassVar[int] = 5

    def find(self, output: Output) -> Found | None:
        """Accepted over drafted, position by position, up to the first that was never reached."""
        counts: list[tuple[float, float]] = []
        first = answers = 0
        for number, line in enumerate(output.lines, 1):
            for right, drafted in _choices(line):
                first = first or number
                answers += 1
                added = zip_longest(counts, zip(right, drafted, strict=False), fillvalue=(0.0, 0.0))
                counts = [(before[0] + here[0], before[1] + here[1]) for before, here in added]
        shares = []
        for accepted, of in counts[:DEEPEST]:
            if of <= 0:
                break
            shares.append(accepted / of)
        if not shares:
            return None
        return Found(
            shares[0], first, tuple(shares), Measure.CONDITIONAL, True,
            vocabulary=Vocabulary.MISS, reference=Reference.TARGET, held_out=True, replayed=True, count=counts[0][1],
            text=f"alpha over alpha_num of {answers} answers: {', '.join(f'{value:.3f}' for value in shares)}",
        )  # fmt: skip


TRAINER: Final = EagleAlpha()


def _choices(line: str) -> list[tuple[list[float], list[float]]]:
    if '"alpha_num"' not in line:
        return []
    try:
        document: Any = json.loads(line)
    except (ValueError, RecursionError):
        return []
    choices = document.get("choices") if isinstance(document, dict) else None
    found = []
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            right, drafted = _counts(choice.get("alpha")), _counts(choice.get("alpha_num"))
            if right and drafted:
                found.append((right, drafted))
    return found


def _counts(values: Any) -> list[float]:
    if not isinstance(values, list) or not all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15 for value in values
    ):
        return []
    return [float(value) for value in values]
