"""Acceptance by walking held-out text as a server does: each step starts where the one before ended.

A validation that averages over positions promises more than a server delivers, because steps start where the draft
just failed (theory section 2.4). Where it is known for each token whether the draft gets it right, the walk gives
the length that a healthy server shows, and the factor f_k falls away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from analysis.theory.chain import expected_length
from collector.domain.errors import ImpossibleFigure

CUT: Final = -1
"""A run of right drafts that the end of the text cuts before depth is no step."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What the walk counted at one depth.

    Attributes:
        depth: drafts a step at most. tokens: of the text.
        steps, accepted: verify steps and accepted drafts, by text, shape (texts,) each.
        prefix: share of steps that accepted at least i drafts, i = 1 to depth.
        accuracy: share of all tokens whose first draft is right, as a validation reports it.
    """

    depth: int
    tokens: int
    steps: tuple[int, ...]
    accepted: tuple[int, ...]
    prefix: tuple[float, ...]
    accuracy: float

    @property
    def length(self) -> float:
        """Acceptance length: 1 + accepted / steps, pooled."""
        return 1 + sum(self.accepted) / sum(self.steps)

    @property
    def promised_length(self) -> float:
        """What the chain formula makes of the accuracy."""
        return expected_length(self.accuracy, self.depth)

    @property
    def kept(self) -> float:
        """Accepted per step over what the chain formula promises: the factor of this text and draft."""
        promised = self.promised_length - 1
        return (self.length - 1) / promised if promised > 0 else 0.0


def replay(texts: Sequence[Sequence[int]], depth: int) -> Replay:
    """Walk texts; each has, for every token, how many drafts in a row are right if a step starts there.

    Raises:
        ImpossibleFigure: no text is long enough for one step, or the depth is below 1.
    """
    if depth < 1:
        raise ImpossibleFigure(f"a draft depth of {depth}", why="at least one token is drafted", hint="--depth 5")
    reached = [0] * depth
    steps, accepted = [], []
    right = tokens = 0
    for text in texts:
        made = kept = at = 0
        while at < len(text):
            here = _step(text, at, depth)
            if here == CUT:
                break
            made += 1
            kept += here
            for position in range(here):
                reached[position] += 1
            at += here + 1
        if made:
            steps.append(made)
            accepted.append(kept)
        right += sum(run > 0 for run in text)
        tokens += len(text)
    total = sum(steps)
    if not total:
        raise ImpossibleFigure(
            "no text is long enough for a step", why=f"{tokens} tokens at depth {depth}", hint="give longer texts"
        )
    prefix = tuple(count / total for count in reached)
    return Replay(depth, tokens, tuple(steps), tuple(accepted), prefix, right / tokens)


def _step(text: Sequence[int], at: int, depth: int) -> int:
    run = text[at]
    if run >= depth:
        return depth
    return CUT if at + run >= len(text) else run
