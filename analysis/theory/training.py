"""From what a draft's training printed to the length it promises.

Trainers count different things under the same word. Prefix accuracies add up to the length;
conditional ones multiply to prefixes; marginal ones (teacher-forced) multiply only approximately;
one accuracy without a position is read as constant along the chain. All of them average over
positions of the text, whereas serving averages over steps, see
:func:`analysis.theory.divergence.healthy_factor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.theory.chain import expected_length, implied_rate
from analysis.theory.positions import (
    extend_prefix,
    length_from_prefix,
    prefix_from_conditional,
    prefix_from_marginal,
)
from collector.domain.drafts import Measure
from collector.domain.errors import ImpossibleFigure


@dataclass(frozen=True, slots=True)
class Promise:
    """The acceptance length that validation figures imply at a depth.

    Attributes:
        length: the expected length.
        length_low, length_high: its bounds where the draft's vocabulary does not cover all of the
            target's tokens; equal to ``length`` where it does or the coverage is unknown.
        prefix: share of steps expected to accept the first i drafts, i = 1 to depth.
        note: in plain words, what was assumed on the way; empty if nothing.
    """

    length: float
    length_low: float
    length_high: float
    prefix: tuple[float, ...]
    note: str


def draft_vocabulary_bounds(metric: float, coverage: float) -> tuple[float, float]:
    """Bounds of the acceptance rate behind an accuracy against the best token inside the draft vocabulary.

    ``coverage`` is the share of target tokens inside it: ``max(0, m - (1 - coverage)) <= a <= min(m, coverage)``.

    Raises:
        ImpossibleFigure: either is not between 0 and 1.
    """
    if not (0 <= metric <= 1 and 0 <= coverage <= 1):
        raise ImpossibleFigure(
            f"accuracy {metric:g} with coverage {coverage:g}", why="both are shares, between 0 and 1"
        )
    return max(0.0, metric - (1 - coverage)), min(metric, coverage)


def promised_length(
    accuracy: float, accuracy_at: Sequence[float], measure: str, depth: int, coverage: float | None = None
) -> Promise:
    """The length that validation implies at this depth, by what its figures count.

    ``accuracy`` is the headline figure, ``accuracy_at`` the figures by position (may be empty),
    ``measure`` what these count, a value of :class:`collector.domain.drafts.Measure`, and
    ``coverage`` the share of target tokens in the draft's vocabulary. Figures for fewer positions
    than the depth are continued with the last conditional rate; figures by position whose meaning
    is unknown are left aside for the headline accuracy.

    Raises:
        ImpossibleFigure: a figure is not between 0 and 1, or prefix accuracies grow with the position.
    """
    counted = Measure(measure)
    caveats: list[str] = []
    if accuracy_at and counted is not Measure.UNKNOWN:
        prefix = _prefix(tuple(accuracy_at), counted)
        if counted is Measure.MARGINAL:
            caveats.append("accuracies by position are multiplied as if positions were independent")
        if len(prefix) < depth:
            caveats.append(
                f"{len(prefix)} positions are stated; the other {depth - len(prefix)} continue with the last rate"
            )
        prefix = extend_prefix(prefix, depth)
        length = length_from_prefix(prefix)
    else:
        length = expected_length(accuracy, depth)
        prefix = tuple(accuracy**position for position in range(1, depth + 1))
        if depth > 1:
            caveats.append("one accuracy is taken to hold at every position")
        if accuracy_at:
            caveats.append("the figures by position are left aside, as the source does not say what they count")
    low = high = length
    if coverage is not None and coverage < 1:
        low, high = (_length_if_covered(prefix, coverage, upper) for upper in (False, True))
        caveats.append(f"the draft knows {coverage:.0%} of the target's tokens, so the promise has bounds")
    return Promise(length, low, high, prefix, "; ".join(caveats))


def promised_by_length(length: float, length_depth: int | None, depth: int) -> Promise:
    """The promise of a length that was measured or estimated at ``length_depth``, at the depth served.

    Between depths the constant conditional rate of the one is taken for the other; an unknown depth is
    taken to be that served.

    Raises:
        ImpossibleFigure: the length is above its depth + 1.
    """
    measured_at = length_depth or depth
    rate = implied_rate(length, measured_at)
    prefix = tuple(rate**position for position in range(1, depth + 1))
    if length_depth is None:
        note = "the depth at which the length was measured is not stated and taken to be this one"
    elif length_depth != depth:
        note = f"the length was measured at depth {length_depth}; one conditional rate is taken to hold at this one"
    else:
        note = ""
    promised = length if measured_at == depth else expected_length(rate, depth)
    return Promise(promised, promised, promised, prefix, note)


def _prefix(values: tuple[float, ...], measure: Measure) -> tuple[float, ...]:
    if measure is Measure.CONDITIONAL:
        return prefix_from_conditional(values)
    if measure is Measure.MARGINAL:
        return prefix_from_marginal(values)
    return values


def _length_if_covered(prefix: tuple[float, ...], coverage: float, upper: bool) -> float:
    """Length with each conditional rate moved to its bound."""
    rates = [here / before if before > 0 else 0.0 for here, before in zip(prefix, (1.0, *prefix), strict=False)]
    bounds = [draft_vocabulary_bounds(min(1.0, rate), coverage)[upper] for rate in rates]
    return length_from_prefix(prefix_from_conditional(bounds))
