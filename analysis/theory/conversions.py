"""From what each engine prints to canonical counts: steps, accepted, drafted, and shares by position.

Once figures are counts they can be added up; ratios cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from analysis.theory.positions import check_prefix
from collector.domain.errors import ImpossibleFigure, InputError


@dataclass(frozen=True, slots=True)
class Counts:
    """Canonical counts of some stretch of decoding; the target's own token is in none of them.

    ``accepted_at[i]`` counts the steps that accepted at least i + 1 drafts; empty where unknown.
    ``drafted`` is ``None`` where unknown.
    """

    steps: float
    accepted: float
    drafted: float | None = None
    accepted_at: tuple[float, ...] = ()

    @property
    def length(self) -> float:
        """Acceptance length, ``1 + accepted / steps``.

        Raises:
            InputError: there are no steps.
        """
        if self.steps == 0:
            raise InputError("no acceptance length without verify steps")
        return 1 + self.accepted / self.steps

    @property
    def prefix(self) -> tuple[float, ...]:
        """Share of steps that accepted at least the first i drafts."""
        return tuple(count / self.steps for count in self.accepted_at) if self.steps else ()

    def __add__(self, other: Counts) -> Counts:
        """Both stretches together; a part that only one of them knows is unknown of both."""
        drafted = None if self.drafted is None or other.drafted is None else self.drafted + other.drafted
        both = bool(self.accepted_at) and bool(other.accepted_at)
        by_position = zip_longest(self.accepted_at, other.accepted_at, fillvalue=0.0) if both else ()
        return Counts(
            self.steps + other.steps,
            self.accepted + other.accepted,
            drafted,
            tuple(mine + theirs for mine, theirs in by_position),
        )


def from_length(length: float, steps: float, depth: float | None = None) -> Counts:
    """From an acceptance length and the steps behind it.

    SGLang prints the length of ``decode_log_interval`` (40) iterations of all running requests, so
    steps = interval x running.

    Raises:
        ImpossibleFigure: the length is below 1 or above depth + 1.
    """
    _check_length(length, depth)
    return Counts(steps, (length - 1) * steps, None if depth is None else depth * steps)


def from_histogram(histogram: Sequence[float], depth: int | None = None) -> Counts:
    """From the number of steps that accepted exactly 0, 1, 2, ... drafts.

    Source: SGLang ``meta_info`` of a response, the best input of all.

    Raises:
        ImpossibleFigure: a count is negative.
    """
    if any(count < 0 for count in histogram):
        raise ImpossibleFigure("a histogram of accepted drafts holds a negative count")
    steps = sum(histogram)
    at_least = tuple(sum(histogram[position:]) for position in range(1, len(histogram)))
    return Counts(steps, sum(at_least), None if depth is None else depth * steps, at_least)


def from_counters(steps: float, drafted: float, accepted: float, accepted_at: Sequence[float] = ()) -> Counts:
    """From the growth of counters between two readings.

    Source: vLLM V1 ``num_drafts``, ``num_draft_tokens``, ``num_accepted_tokens``, ``..._per_pos``.

    Raises:
        ImpossibleFigure: a counter fell, more is accepted than drafted, or positions grow.
    """
    if min(steps, drafted, accepted, *accepted_at, 0) < 0:
        raise ImpossibleFigure(
            "a counter fell between two readings", why="the engine restarted in between", hint="start at the later one"
        )
    if accepted > drafted:
        raise ImpossibleFigure(f"{accepted:g} drafts accepted of {drafted:g}")
    if steps:
        check_prefix([count / steps for count in accepted_at])
    return Counts(steps, accepted, drafted, tuple(accepted_at))


def from_printed_mean(
    mean_length: float,
    accepted: float,
    drafted: float,
    *,
    depth: int | None = None,
    bonus_included: bool = True,
    prefix: Sequence[float] = (),
) -> Counts:
    """From a printed mean length beside counts: steps are ``D / k`` at a fixed depth, else ``A / (mean - 1)``.

    Source: vLLM V1 ``Mean acceptance length`` (bonus excluded in 0.8.3 to 0.8.5), llama.cpp
    ``mean acceptance length`` (drafts end early there, so its depth is not fixed).

    Raises:
        ImpossibleFigure: more is accepted than drafted, or the mean leaves the steps undetermined.
    """
    if accepted > drafted:
        raise ImpossibleFigure(f"{accepted:g} drafts accepted of {drafted:g}")
    length = mean_length if bonus_included else mean_length + 1
    _check_length(length, depth)
    if depth is not None:
        steps = drafted / depth
    elif length > 1:
        steps = accepted / (length - 1)
    else:
        raise ImpossibleFigure(
            "a mean length of 1 does not tell the number of steps", hint="give the draft depth or the number of drafts"
        )
    return Counts(steps, accepted, drafted, tuple(share * steps for share in prefix))


def from_drafted(accepted: float, drafted: float, depth: int) -> Counts:
    """From accepted and drafted of an engine with a fixed depth: ``N = D / k``.

    Raises:
        ImpossibleFigure: more is accepted than drafted, or the depth is not above zero.
    """
    if depth <= 0 or accepted > drafted:
        raise ImpossibleFigure(f"{accepted:g} drafts accepted of {drafted:g} at depth {depth}")
    return Counts(drafted / depth, accepted, drafted)


def from_generated(generated: float, accepted: float, first_token_from_prefill: int = 1) -> Counts:
    """From accepted and generated tokens of an engine that counts no steps: ``N = T - A - 1``.

    The first token comes from the prefill. Within one step of the truth, as the last one may be cut.

    Raises:
        ImpossibleFigure: more is accepted than generated.
    """
    steps = generated - accepted - first_token_from_prefill
    if steps < 0:
        raise ImpossibleFigure(f"{accepted:g} drafts accepted of {generated:g} generated tokens")
    return Counts(steps, accepted)


def length_from_system_efficiency(efficiency: float, depth: int) -> float:
    """Length from vLLM V0's ``System efficiency`` = emitted / ((k + 1) steps).

    Its ``Draft acceptance rate`` is of no use: it also counts matches after the first rejection.

    Raises:
        ImpossibleFigure: the efficiency is not between 1 / (k + 1) and 1.
    """
    length = efficiency * (depth + 1)
    _check_length(length, depth)
    return length


def _check_length(length: float, depth: float | None) -> None:
    highest = float("inf") if depth is None else depth + 1
    # Printed with two decimals; a system efficiency with three, times at most a few dozen.
    if not 1 - 0.03 <= length <= highest + 0.03:
        raise ImpossibleFigure(
            f"acceptance length {length:g} is not possible" + ("" if depth is None else f" at depth {depth:g}"),
            why="a step yields at least the target's own token and at most depth + 1",
            hint="check the depth and whether the figure counts the target's own token",
        )
