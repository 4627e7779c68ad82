"""Does speculation pay: step cost, speed-up, break-even, and what a repair would bring.

A speculative step costs rho plain steps and yields L tokens, so the speed-up is ``S = L / rho``
and speculation pays where L exceeds rho. Throughput and time per output token change by the same
factor at equal concurrency. Everything here but the usual step cost is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

from analysis.theory.chain import implied_rate
from analysis.theory.settings import DEFAULTS, Settings
from collector.domain.errors import ImpossibleFigure, InputError

RepairName = Literal["as_it_is", "acceptance_repaired", "step_cost_repaired", "both_repaired"]


class PublishedCost(NamedTuple):
    """A published step cost: ``ratio`` plain steps for a step at ``depth`` with ``batch`` requests."""

    model: str
    mixture_of_experts: bool
    depth: int
    batch: int
    ratio: float
    source: str


def _published() -> tuple[PublishedCost, ...]:
    vllm, bundle = "vLLM issue 20780", "SpecBundle results"
    rows: tuple[tuple[str, bool, int, str, dict[int, float]], ...] = (
        ("Llama-3.1-8B", False, 1, vllm, {2: 1.44, 3: 1.61, 4: 1.76, 5: 1.94, 6: 2.06, 7: 2.15}),
        ("Llama-3.1-8B, EAGLE-1", False, 1, vllm, {2: 1.30, 3: 1.39, 4: 1.51, 5: 1.62, 6: 1.71, 7: 1.82}),
        ("Llama-3.1-8B, SGLang", False, 1, bundle, {3: 1.36, 5: 1.49, 7: 1.63}),
        ("Llama-3.3-70B", False, 8, bundle, {3: 1.25, 5: 1.32, 7: 1.41}),
        ("Qwen3-30B-A3B", True, 8, bundle, {3: 1.68, 5: 1.90, 7: 2.08}),
        ("Qwen3-Next-80B-A3B", True, 8, bundle, {3: 2.02, 5: 2.20, 7: 2.38}),
        ("Kimi-K2", True, 8, bundle, {3: 1.98, 5: 2.31, 7: 2.60}),
    )
    return tuple(
        PublishedCost(model, experts, depth, batch, ratio, source)
        for model, experts, batch, source, by_depth in rows
        for depth, ratio in by_depth.items()
    )


PUBLISHED_COSTS: Final = _published()
"""Step costs by model, depth and batch, EAGLE-3 drafts unless the name says otherwise."""


def step_seconds(running: float, length: float, throughput: float) -> float:
    """Time of one iteration of the batch: ``b L / X`` (running requests, acceptance length, tokens per second).

    Raises:
        ImpossibleFigure: the throughput is not above zero.
    """
    _check_positive("throughput", throughput)
    return running * length / throughput


def step_cost(verify_cost: float, depth: float, draft_cost: float, overhead: float = 0.0) -> float:
    """Step cost in plain steps from its parts: ``rho = v + k c + o``."""
    return verify_cost + depth * draft_cost + overhead


def usual_step_cost(depth: float, mixture_of_experts: bool, settings: Settings = DEFAULTS) -> float:
    """What a step usually costs at this depth, in plain steps: an assumption, the middle of published cases.

    Dense targets ``1.15 + 0.07 k``, mixtures of experts ``1.45 + 0.11 k``, depths beyond 8 priced as 8.
    """
    intercept, slope = settings.usual_cost_experts if mixture_of_experts else settings.usual_cost_dense
    return intercept + slope * min(depth, settings.usual_cost_depth_cap)


def nearest_published_cost(depth: float, mixture_of_experts: bool) -> tuple[str, int, int, float]:
    """The published case to show beside the usual step cost: ``(model, depth, batch, ratio)``.

    Of the target's class, nearest in depth; among those, the dearest (the one whose step excuses most).
    """
    of_class = [case for case in PUBLISHED_COSTS if case.mixture_of_experts == mixture_of_experts]
    best = min(of_class, key=lambda case: (abs(case.depth - depth), -case.ratio))
    return best.model, best.depth, best.batch, best.ratio


def fit_step_cost(depths: Sequence[float], ratios: Sequence[float]) -> tuple[float, float]:
    """Verify cost and cost per draft position from step costs at several depths: intercept and slope of a line.

    Raises:
        InputError: fewer than two different depths.
    """
    if len(set(depths)) < 2 or len(depths) != len(ratios):
        raise InputError("a cost per position needs step costs at two depths", hint="measure at another depth too")
    middle = math.fsum(depths) / len(depths)
    level = math.fsum(ratios) / len(ratios)
    pairs = zip(depths, ratios, strict=True)
    slope = math.fsum((depth - middle) * (ratio - level) for depth, ratio in pairs) / math.fsum(
        (depth - middle) ** 2 for depth in depths
    )
    return level - slope * middle, slope


def break_even_rate(step_cost_ratio: float, depth: float) -> float | None:
    """The conditional acceptance at which the length equals the step cost; ``None`` where none does.

    A cost above ``k + 1`` cannot pay at any acceptance; a cost below 1 is not physical.
    """
    return implied_rate(step_cost_ratio, depth, 0.0) if depth > 0 and 1 <= step_cost_ratio <= depth + 1 else None


@dataclass(frozen=True, slots=True)
class Repair:
    """What one repair would bring.

    ``assumed`` marks a row that rests on the usual step cost, which is an assumption; the other
    rows use measured figures and validation.
    """

    name: RepairName
    length: float
    step_cost_ratio: float
    speedup: float
    throughput: float
    assumed: bool


@dataclass(frozen=True, slots=True)
class PayOff:
    """Whether speculation pays in one run against a comparable run without it.

    Attributes:
        length, throughput, baseline_throughput, depth: as given.
        step_cost_ratio: rho, plain steps that one speculative step costs.
        speedup: throughput over the baseline's.
        speedup_time: the baseline's time per output token over this run's, where both are known.
        speedup_low, speedup_high: its 95% interval, ``None`` where the inputs had none.
        break_even_length: the length at which it neither gains nor loses, which is rho.
        break_even_rate: the conditional acceptance that gives that length; ``None`` where none does.
        baseline_comparable: whether rho is at least 1; below it the baseline ran under another load.
        realistic_length: what a healthy deployment would deliver.
        usual_step_cost: the assumed reference for rho.
        repairs: as it is, then each repair that would change something.
        loss_share_acceptance, loss_share_step_cost: how much of the loss against the repaired run
            each explains, on a log scale where losses add; ``None`` without a loss or a reference.
        step_seconds, baseline_step_seconds: time of one iteration, where the running requests are known.
    """

    length: float
    throughput: float
    baseline_throughput: float
    depth: float | None
    step_cost_ratio: float
    speedup: float
    speedup_time: float | None
    speedup_low: float | None
    speedup_high: float | None
    break_even_length: float
    break_even_rate: float | None
    baseline_comparable: bool
    realistic_length: float | None
    usual_step_cost: float | None
    repairs: tuple[Repair, ...]
    loss_share_acceptance: float | None
    loss_share_step_cost: float | None
    step_seconds: float | None
    baseline_step_seconds: float | None

    def document(self) -> dict[str, Any]:
        """All of it as plain values, repairs as a list of mappings."""
        document = asdict(self)
        document["repairs"] = list(document["repairs"])
        return document


def pay_off(
    *,
    length: float,
    throughput: float,
    baseline_throughput: float,
    depth: float | None,
    realistic_length: float | None = None,
    usual_step_cost: float | None = None,
    running: float | None = None,
    throughput_half: float | None = None,
    baseline_half: float | None = None,
    time_per_output_token: float | None = None,
    baseline_time_per_output_token: float | None = None,
) -> PayOff:
    """The pay-off of a run from its length and throughput and the throughput of a comparable plain run.

    ``rho = L X0 / X``, ``S = X / X0``. Repairs: the healthy length at today's step cost, the usual
    step cost at today's length, and both. The loss ``ln(S_ref / S) = ln(L_ref / L) + ln(rho / rho_ref)``
    is split between the two; a part that is better than its reference counts as none.
    ``throughput_half`` and ``baseline_half`` are half widths of 95% intervals, in tokens per second,
    times per output token are seconds.

    Raises:
        ImpossibleFigure: a throughput is not above zero or the length is below 1 beyond rounding.
    """
    _check_positive("throughput", throughput)
    _check_positive("baseline throughput", baseline_throughput)
    if not length >= 1 - DEFAULTS.printed_rounding:
        raise ImpossibleFigure(
            f"acceptance length {length:g} is below 1",
            why="every step yields at least the target's own token",
            hint="check whether the figure leaves that token out",
        )
    ratio = length * baseline_throughput / throughput
    speedup = throughput / baseline_throughput
    low, high = _speedup_bounds(speedup, throughput, throughput_half, baseline_throughput, baseline_half)
    acceptance_loss = 0.0 if realistic_length is None else max(0.0, math.log(realistic_length / length))
    cost_loss = 0.0 if usual_step_cost is None else max(0.0, math.log(ratio / usual_step_cost))
    total = acceptance_loss + cost_loss
    shares_known = realistic_length is not None and usual_step_cost is not None and total > 0
    time_ratio = None
    if time_per_output_token and baseline_time_per_output_token:
        time_ratio = baseline_time_per_output_token / time_per_output_token
    return PayOff(
        length=length,
        throughput=throughput,
        baseline_throughput=baseline_throughput,
        depth=depth,
        step_cost_ratio=ratio,
        speedup=speedup,
        speedup_time=time_ratio,
        speedup_low=low,
        speedup_high=high,
        break_even_length=ratio,
        break_even_rate=None if depth is None else break_even_rate(ratio, depth),
        baseline_comparable=ratio >= 1,
        realistic_length=realistic_length,
        usual_step_cost=usual_step_cost,
        repairs=_repairs(length, ratio, baseline_throughput, realistic_length, usual_step_cost),
        loss_share_acceptance=acceptance_loss / total if shares_known else None,
        loss_share_step_cost=cost_loss / total if shares_known else None,
        step_seconds=None if running is None else step_seconds(running, length, throughput),
        baseline_step_seconds=None if running is None else step_seconds(running, 1.0, baseline_throughput),
    )


def _repairs(
    length: float, ratio: float, baseline: float, realistic_length: float | None, usual_step_cost: float | None
) -> tuple[Repair, ...]:
    def repair(name: RepairName, new_length: float, new_ratio: float, assumed: bool) -> Repair:
        speedup = new_length / new_ratio
        return Repair(name, new_length, new_ratio, speedup, speedup * baseline, assumed)

    rows = [repair("as_it_is", length, ratio, False)]
    better_length = realistic_length if realistic_length is not None and realistic_length > length else None
    better_ratio = usual_step_cost if usual_step_cost is not None and usual_step_cost < ratio else None
    if better_length is not None:
        rows.append(repair("acceptance_repaired", better_length, ratio, False))
    if better_ratio is not None:
        rows.append(repair("step_cost_repaired", length, better_ratio, True))
    if better_length is not None and better_ratio is not None:
        rows.append(repair("both_repaired", better_length, better_ratio, True))
    return tuple(rows)


def _speedup_bounds(
    speedup: float, throughput: float, half: float | None, baseline: float, baseline_half: float | None
) -> tuple[float | None, float | None]:
    """Bounds of a ratio of two independent means, on the log scale so that they stay positive."""
    if half is None or baseline_half is None:
        return None, None
    relative = math.hypot(half / throughput, baseline_half / baseline)
    return speedup * math.exp(-relative), speedup * math.exp(relative)


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ImpossibleFigure(
            f"{name} {value:g} is not above zero", hint="leave out windows in which nothing was generated"
        )
