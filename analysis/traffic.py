"""What request results say: acceptance over requests, and traffic by what the requests are.

Requests are what the interval rests on (theory section 4.3, method A). One mean hides two kinds of
traffic, and a change of their mixture looks like a fault; so figures are also given by temperature,
route and length. Counts are pooled in each stratum; ratios are never averaged.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from analysis.drafting import Drafting
from analysis.figures import Pooled, acceptance_quantities, pooled_requests
from analysis.theory.intervals import request_interval
from analysis.theory.settings import DEFAULTS
from collector.domain.errors import InputError
from collector.domain.quantities import Estimate
from collector.domain.requests import RequestResult
from collector.domain.results import Latency

MOST_STRATA: Final = 8
"""Routes or temperatures that are shown by themselves; the rest is put together."""
SHARED_WEIGHT: Final = 0.8
"""Share of both runs' steps that the strata they share must hold for their mixtures to be compared."""
PROMPT_CLASSES: Final = (512, 2_048, 8_192, 32_768)
"""Where classes of prompt length begin. Tokens; draft windows are usually 2,048 to 32,768."""
OUTPUT_CLASSES: Final = (64, 256, 1_024)
"""Where classes of output length begin. Tokens; short answers cut off their last drafts."""
NOT_STATED: Final = "not stated"
OTHERS: Final = "all others"
TEMPERATURE: Final = "temperature"

_LATENCIES: Final = {
    "time_to_first_token_seconds": "first_token_seconds",
    "time_per_output_token_seconds": "token_seconds",
    "request_latency_seconds": "latency_seconds",
}


@dataclass(frozen=True, slots=True)
class Stratum:
    """The requests that are alike in one respect (``by``).

    ``share`` is theirs of the verify steps, or of the generated tokens where steps are not counted;
    ``pooled`` is ``None`` there.
    """

    by: str
    value: str
    requests: int
    share: float
    pooled: Pooled | None
    quantities: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class MixShift:
    """What a change of the mixture does to accepted drafts per step between two runs.

    ``by`` says which mixture, ``from_mixture`` how much of the fall it explains; ``within`` is the
    rest, the fall inside the strata. Tokens per step; negative where it rose.
    """

    by: str
    from_mixture: float
    within: float


@dataclass(frozen=True)
class Traffic:
    """The request results of one run. ``stand`` says that the run's acceptance is taken from them."""

    results: Sequence[RequestResult]
    drafting: Drafting
    stand: bool

    @cached_property
    def pooled(self) -> Pooled | None:
        """Acceptance over the requests that count verify steps; ``None`` where none does."""
        return pooled_requests(self.results, self.drafting)

    @cached_property
    def quantities(self) -> dict[str, Estimate]:
        """Acceptance, coverage and counts over all of them."""
        return _quantities(self.results, self.pooled, self.drafting)

    @property
    def latencies(self) -> dict[str, Latency]:
        """Latencies over all of them, by quantity."""
        found = {}
        for key, name in _LATENCIES.items():
            known = [value for result in self.results if (value := getattr(result, name)) is not None]
            if known:
                p50, p90, p99 = (float(value) for value in np.percentile(known, (50, 90, 99)))
                found[key] = Latency(math.fsum(known) / len(known), p50, p90, p99)
        return found

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """Traffic by temperature, route, prompt and output length, as far as requests state them."""
        return tuple(stratum for by, label in _RESPECTS for stratum in self._by(by, label))

    @cached_property
    def temperatures(self) -> dict[float, float]:
        """Each temperature's share of the verify steps; empty where some requests do not state theirs."""
        weights: dict[float, float] = {}
        for result, weight in zip(self.results, _weights(self.results), strict=True):
            if weight and result.temperature is None:
                return {}
            if weight and result.temperature is not None:
                weights[result.temperature] = weights.get(result.temperature, 0.0) + weight
        total = sum(weights.values())
        return {temperature: weight / total for temperature, weight in sorted(weights.items())}

    @property
    def greedy_and_sampled(self) -> tuple[Pooled, Pooled] | None:
        """Acceptance of the greedy requests, and of those at the highest temperature; ``None`` where either is missing."""
        pooled = {item.value: item.pooled for item in self.strata if item.by == TEMPERATURE}
        greedy = pooled.pop("0", None)
        sampled = [item for value, item in pooled.items() if item is not None and value not in (OTHERS, NOT_STATED)]
        return (greedy, sampled[-1]) if greedy is not None and sampled else None

    def shift_from(self, before: Traffic) -> MixShift | None:
        """How much less is accepted than before because the mixture changed, by the respect that explains most.

        ``None`` where no respect has strata that hold most of both runs.
        """
        found = [shift for by, _ in _RESPECTS if (shift := _shift(before, self, by)) is not None]
        return max(found, key=lambda shift: abs(shift.from_mixture), default=None)

    def _by(self, by: str, label: Callable[[RequestResult], str | None]) -> Iterator[Stratum]:
        labels = _gathered([label(result) for result in self.results], _weights(self.results))
        order = _ordered(by, set(labels))
        if order == [NOT_STATED] or (len(order) < 2 and by in _LENGTHS):
            return
        total = sum(_weights(self.results))
        for value in order:
            rows = [result for result, own in zip(self.results, labels, strict=True) if own == value]
            pooled = pooled_requests(rows, self.drafting)
            share = sum(_weights(rows, like=self.results)) / total if total else 0.0
            yield Stratum(by, value, len(rows), share, pooled, _quantities(rows, pooled, self.drafting))


def _class_of(tokens: int | None, begins: Sequence[int]) -> str | None:
    """The class of a length, ``None`` where it is not known."""
    if tokens is None:
        return None
    place = bisect_right(begins, tokens)
    if place == len(begins):
        return f"{begins[-1]:,} and more"
    return f"under {begins[0]:,}" if place == 0 else f"{begins[place - 1]:,} to {begins[place] - 1:,}"


_LENGTHS: Final = {
    "prompt_tokens": [_class_of(start, PROMPT_CLASSES) for start in (0, *PROMPT_CLASSES)],
    "output_tokens": [_class_of(start, OUTPUT_CLASSES) for start in (0, *OUTPUT_CLASSES)],
}
_RESPECTS: Final[Sequence[tuple[str, Callable[[RequestResult], str | None]]]] = (
    (TEMPERATURE, lambda result: None if result.temperature is None else f"{result.temperature:g}"),
    ("route", lambda result: result.route or None),
    ("prompt_tokens", lambda result: _class_of(result.prompt_tokens, PROMPT_CLASSES)),
    ("output_tokens", lambda result: _class_of(result.output_tokens, OUTPUT_CLASSES)),
)


def _gathered(labels: Sequence[str | None], weights: Sequence[float]) -> list[str]:
    """The labels with those of little weight put together."""
    heaviest: Counter[str] = Counter()
    for label, weight in zip(labels, weights, strict=True):
        if label is not None:
            heaviest[label] += weight  # type: ignore[assignment]  # weights may be shares
    kept = {label for label, _ in heaviest.most_common(MOST_STRATA)}
    return [NOT_STATED if label is None else label if label in kept else OTHERS for label in labels]


def _ordered(by: str, labels: set[str]) -> list[str]:
    last = [label for label in (OTHERS, NOT_STATED) if label in labels]
    own = labels - set(last)
    if by in _LENGTHS:
        return [label for label in _LENGTHS[by] if label in own] + last
    return sorted(own, key=lambda label: (float(label), "") if by == TEMPERATURE else (0.0, label)) + last


def _weights(results: Sequence[RequestResult], like: Sequence[RequestResult] | None = None) -> list[float]:
    """Verify steps of each request, generated tokens where no request (of ``like``) counts steps."""
    if any(result.counted for result in (results if like is None else like)):
        return [float(result.verify_steps or 0) if result.counted else 0.0 for result in results]
    return [float(result.output_tokens or 0) for result in results]


def _quantities(results: Sequence[RequestResult], pooled: Pooled | None, drafting: Drafting) -> dict[str, Estimate]:
    figures: dict[str, Estimate] = {}
    known = [result for result in results if result.accepted_tokens is not None]
    drafted = [(result.accepted_tokens or 0, result.drafted_tokens) for result in known if result.drafted_tokens]
    if pooled is None and drafted:
        accepted, proposed = zip(*drafted, strict=True)
        figures["draft_acceptance_rate"] = _ratio(accepted, proposed)
        figures["drafted_tokens"] = Estimate(float(sum(proposed)))
        figures["accepted_tokens"] = Estimate(float(sum(accepted)))
    if pooled is not None:
        figures |= acceptance_quantities(pooled, drafting)
    passes = [(result.output_tokens, _passes(result), result.verify_steps) for result in known if result.output_tokens]
    if passes and len(passes) == len(known):
        generated, made, steps = zip(*passes, strict=True)
        figures["generated_tokens"] = Estimate(float(sum(generated)))
        figures["tokens_per_target_pass"] = _ratio(generated, made)
        if None not in steps:
            figures["draft_coverage"] = Estimate(sum(steps) / sum(made), verify_steps=float(sum(steps)))
    return figures


def _passes(result: RequestResult) -> int:
    """Target passes of a request: each made one token of its own; what was accepted behind the answer's end was not given."""
    tokens, accepted = result.output_tokens or 0, result.accepted_tokens or 0
    return max(tokens - accepted, result.verify_steps or 0, 1)


def _ratio(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """A ratio of sums over requests with its jackknife interval, without one where a single request stands behind it."""
    try:
        interval = request_interval(above, below)
    except InputError:
        return Estimate(sum(above) / sum(below), windows=len(below))
    bounded = math.isfinite(interval.half)
    return Estimate(
        interval.accepted_per_step,
        interval.low if bounded else None,
        interval.high if bounded else None,
        interval.method,
        interval.count,
        note=interval.approximate,
    )


def _shift(before: Traffic, now: Traffic, by: str) -> MixShift | None:
    """Kitagawa's decomposition of the fall: weights changed at the rates of before, the rest is inside the strata."""
    old, new = (
        {item.value: item for item in traffic.strata if item.by == by and item.pooled} for traffic in (before, now)
    )
    shared = (old.keys() & new.keys()) - {NOT_STATED, OTHERS}
    if len(old.keys() | new.keys()) < 2 or not shared:
        return None
    held = [sum(strata[value].share for value in shared) for strata in (old, new)]
    if min(held) < SHARED_WEIGHT:
        return None
    weights = {value: (old[value].share / held[0], new[value].share / held[1]) for value in shared}
    rates = {value: (_rate(old[value]), _rate(new[value])) for value in shared}
    return MixShift(
        by,
        from_mixture=math.fsum((weights[value][0] - weights[value][1]) * rates[value][0] for value in shared),
        within=math.fsum(weights[value][1] * (rates[value][0] - rates[value][1]) for value in shared),
    )


def _rate(stratum: Stratum) -> float:
    assert stratum.pooled is not None
    return stratum.pooled.accepted_per_step


def stand_for_the_run(results: Sequence[RequestResult], *, asked: bool, others: bool) -> bool:
    """Whether acceptance is taken from requests: where there are enough, where nothing else tells, or where it was asked for.

    A handful of answers kept beside a log is a sample of its traffic, and says less than the log. ``others``: another source
    counts verify steps.
    """
    counted = sum(result.counted for result in results)
    return counted >= DEFAULTS.minimum_requests or bool(counted and (asked or not others))
