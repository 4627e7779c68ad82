"""A request's lines put together: one window a request and slot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from collector.domain.windows import PrefillWindow, Window
from collector.formats.counts import spec_counts

OLD_DEPTH, NEW_DEPTH = 16, 3
"""Draft tokens of a draft model where nobody states them: to b9093, and since."""
FIRST_TOKEN: Final = 1
"""The first token of an answer comes from the prompt's batch, so no draft was verified for it."""


class Place(NamedTuple):
    """Where a line stands: byte offset, line number, seconds."""

    position: int
    line: int
    at: float


@dataclass(slots=True)
class Drafts:
    """How the server drafts, as far as it is known.

    ``depth`` is the largest number of tokens in a draft; where it is not stated, that of a draft
    model is the build's own if it is known that there is one (``by_model``). ``short`` says that
    drafts often have fewer tokens: n-gram look-ups, and draft models that stop where they are unsure.
    """

    depth: int | None = None
    by_model: bool = False
    short: bool = False

    def most(self, *, old: bool) -> int | None:
        """The largest number of tokens in a draft, as far as it is known."""
        return self.depth or ((OLD_DEPTH if old else NEW_DEPTH) if self.by_model else None)


@dataclass(slots=True)
class Request:
    """What the lines say of one request.

    ``steps`` is what the implementations' own counters moved by. ``bare`` marks an answer of an old
    build, which prints no length: without such counters each pass is taken to verify a draft.
    """

    slot: int
    begun: Place | None = None
    ended: Place | None = None
    accepted_place: Place | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens: int | None = None
    throughput: float | None = None
    accepted: int | None = None
    drafted: int | None = None
    rate: float | None = None
    length: float | None = None
    positions: tuple[float, ...] = ()
    steps: int | None = None
    bare: bool = False
    cut: bool = False
    """Whether the log ended before its last lines, which tell of drafts: then nothing says that there were none."""

    @property
    def unit(self) -> str:
        """The slot as a unit."""
        return f"slot {self.slot}"

    def window(self, drafts: Drafts) -> Window | None:
        """The decoding of this request; ``None`` where its tokens were not printed."""
        place = self.accepted_place or self.ended
        if place is None:
            return None
        steps: float | None = None
        accepted_at: tuple[float, ...] | None = None
        if self.accepted is not None and self.drafted is not None:
            depth = drafts.most(old=self.bare)
            counts = spec_counts(
                self.accepted,
                self.drafted,
                self.length,
                self.positions,
                depth,
                known=self.steps,
                passes=self.tokens - FIRST_TOKEN - self.accepted if self.tokens is not None else None,
                short=drafts.short or depth is None or self.bare,
            )
            steps, accepted_at = counts.verify_steps, counts.accepted_at
        known = self.throughput is not None and math.isfinite(self.throughput) and self.throughput > 0
        return Window(
            position=place.position,
            line=place.line,
            at=(self.ended or place).at,
            unit=self.unit,
            # the printed rate leaves out the first token's time, the printed time does not always
            seconds=self.tokens / self.throughput if known and self.tokens and self.throughput else None,
            running_requests=None if self.cut else 1,
            verify_steps=steps,
            accepted_tokens=self.accepted,
            drafted_tokens=self.drafted,
            generated_tokens=self.tokens,
            generation_throughput=self.throughput if known else None,
            printed_length=self.length,
            printed_rate=self.rate,
            accepted_at=accepted_at,
        )

    def prefill(self) -> PrefillWindow | None:
        """The prompt of this request; ``None`` where its tokens or the cached ones were not printed."""
        if self.begun is None or self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return PrefillWindow(
            self.begun.position, self.begun.line, self.begun.at, self.unit, self.prompt_tokens, self.cached_tokens
        )
