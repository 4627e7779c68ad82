"""Do the intervals, tests and detectors hold what they promise, on simulated traffic of known truth.

    python benchmarks/theory_study.py            a short version, half a minute of one core
    python benchmarks/theory_study.py --full     all replicates, four minutes of one core

Prints the Markdown tables of docs/theory.md. Figures "on traces" were measured on public acceptance
traces of Llama-3.1-8B with EAGLE drafts (GSM8K, ShareGPT and InstructCoder stand beside the maths-, chat-
and code-like profiles).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.simulation.scenario import CHAT, CODE, MATHS, Fault, Profile, Scenario
from analysis.simulation.serving import Simulation, simulate_many
from analysis.theory.divergence import divergence_test
from analysis.theory.drift import DriftDetector, date_changes, request_equivalents
from analysis.theory.intervals import (
    Interval,
    conservative_interval,
    ewc_interval,
    request_interval,
    t_quantile,
    window_interval,
)
from analysis.theory.replicas import ReplicaFigures, compare_replicas
from analysis.theory.steps import step_time

DEPTH = 5
WARM_WINDOWS = 30
"""Windows before the measured ones, so that requests are met in mid-flight as on a live server."""


@dataclass(frozen=True)
class Size:
    """How many replicates of everything."""

    truth_runs: int
    replicates: int
    request_replicates: int
    fleets: int
    blocks: int
    streams: int
    changes: int


SHORT = Size(truth_runs=15, replicates=200, request_replicates=400, fleets=10, blocks=1_500, streams=3, changes=10)
FULL = Size(truth_runs=150, replicates=600, request_replicates=4_000, fleets=200, blocks=20_000, streams=20, changes=60)


def in_batches(scenario: Scenario, seeds: range, batch: int = 40) -> Iterator[Simulation]:
    """Simulated runs, a few of them in memory at a time."""
    for start in range(0, len(seeds), batch):
        yield from simulate_many(scenario, seeds[start : start + batch])


@dataclass(frozen=True)
class Traffic:
    """A profile with its truth, pooled over very many requests."""

    profile: Profile
    accepted_per_step: float
    steps_per_request: float
    requests: tuple[np.ndarray, np.ndarray]

    def lifetime_windows(self, interval: int = 40) -> float:
        """Mean request lifetime in windows."""
        return self.steps_per_request / interval


def traffic(profile: Profile, size: Size, seed: int = 1_000_000) -> Traffic:
    """The truth of a profile: long runs, their beginnings left out."""
    scenario = Scenario(profile=profile, depth=DEPTH, running=32, windows=WARM_WINDOWS + 200)
    warm = WARM_WINDOWS * scenario.interval
    accepted: list[float] = []
    starts: list[float] = []
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for run in in_batches(scenario, range(seed, seed + size.truth_runs), 10):
        accepted.append(float(run.walk.accepted[warm:].mean()))
        # What finished inside the run leaves out the longest requests, so their mean length comes from the starts.
        starts.append(float(run.new_request[warm:].mean()))
        pairs.append(run.requests())
    requests = (np.concatenate([a for a, _ in pairs]), np.concatenate([n for _, n in pairs]))
    return Traffic(profile, float(np.mean(accepted)), 1 / float(np.mean(starts)), requests)


def measured(run: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Accepted per step and steps of the measured windows."""
    windows = run.windows()
    return windows.accepted_per_step[WARM_WINDOWS:], windows.steps[WARM_WINDOWS:]


def replicates(
    profile: Profile, running: int, windows: int, count: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows of independent runs of one cell."""
    scenario = Scenario(profile=profile, depth=DEPTH, running=running, windows=windows + WARM_WINDOWS)
    return [measured(run) for run in in_batches(scenario, range(seed, seed + count))]


def binomial_half(accepted_per_step: np.ndarray, steps: np.ndarray) -> float:
    """The interval that takes drafted tokens for coin tosses."""
    share = float((accepted_per_step * steps).sum() / steps.sum()) / DEPTH
    return 1.96 * math.sqrt(DEPTH * share * (1 - share) / float(steps.sum()))


def window_t_half(accepted_per_step: np.ndarray) -> float:
    """The interval that takes windows for independent."""
    size = accepted_per_step.size
    return t_quantile(size - 1) * float(accepted_per_step.std(ddof=1)) / math.sqrt(size)


@dataclass(frozen=True)
class Coverage:
    """Share of 95% intervals that hold the truth, by method."""

    profile: str
    running: int
    windows: int
    binomial: float
    window_t: float
    ewc: float
    ewc_lifetime_unknown: float


@dataclass(frozen=True)
class Power:
    """Share of runs flagged as divergent at the margin 0.75, by the true share of promised drafts kept."""

    profile: str
    running: int
    windows: int
    at_margin: float
    healthy: float
    reduced: float
    broken: float
    at_margin_lifetime_unknown: float
    at_margin_binomial: float


CELLS = ((1, 12), (1, 60), (8, 12), (8, 60), (32, 60))
SHARES = {"at_margin": 0.75, "healthy": 0.82, "reduced": 0.60, "broken": 0.353}


def intervals_and_power(known: Traffic, size: Size, seed: int = 0) -> Iterator[tuple[Coverage, Power]]:
    """One row of each table per cell."""
    truth = known.accepted_per_step
    for running, windows in CELLS:
        series = replicates(known.profile, running, windows, size.replicates, seed)
        lifetimes = known.lifetime_windows()
        intervals = [ewc_interval(y, w, lifetimes, running=running) for y, w in series]
        unknown = [ewc_interval(y, w) for y, w in series]
        pooled = np.array([interval.accepted_per_step for interval in intervals])

        def cover(halves: Sequence[float], pooled: np.ndarray = pooled) -> float:
            return float((np.abs(pooled - truth) <= np.array(halves)).mean())

        def flagged(share: float, intervals: Sequence[Interval] = intervals) -> float:
            tests = [divergence_test(interval, truth / share, 0.75) for interval in intervals]
            return float(np.mean([test.verdict == "divergent" for test in tests]))

        binomial = [binomial_half(y, w) for y, w in series]
        by_binomial = float(np.mean((pooled + np.array(binomial)) / (truth / 0.75) < 0.75))
        yield (
            Coverage(
                known.profile.name,
                running,
                windows,
                cover(binomial),
                cover([window_t_half(y) for y, _ in series]),
                cover([interval.half for interval in intervals]),
                cover([interval.half for interval in unknown]),
            ),
            Power(
                known.profile.name,
                running,
                windows,
                **{name: flagged(share) for name, share in SHARES.items()},
                at_margin_lifetime_unknown=flagged(SHARES["at_margin"], unknown),
                at_margin_binomial=by_binomial,
            ),
        )


def jackknife_coverage(known: Traffic, size: Size, seed: int = 0) -> dict[int, float]:
    """Coverage of the request-level interval by the number of requests, resampled from very many."""
    random = np.random.default_rng(seed)
    accepted, steps = known.requests
    truth = float(accepted.sum() / steps.sum())
    coverage: dict[int, float] = {}
    for count in (10, 20, 50, 100, 300):
        hits = 0
        for _ in range(size.request_replicates):
            picked = random.integers(0, steps.size, count)
            interval = request_interval(accepted[picked], steps[picked])
            hits += abs(interval.accepted_per_step - truth) <= interval.half
        coverage[count] = hits / size.request_replicates
    return coverage


def conservative_coverage(known: Traffic, size: Size, running: int, windows: int, seed: int = 0) -> float:
    """Coverage of the fallback under 12 windows."""
    hits = 0
    for y, w in replicates(known.profile, running, windows, size.replicates, seed):
        accepted, steps = float((y * w).sum()), float(w.sum())
        interval = conservative_interval(accepted, None, steps, DEPTH, running)
        hits += abs(interval.accepted_per_step - known.accepted_per_step) <= interval.half
    return hits / size.replicates


@dataclass(frozen=True)
class Discovery:
    """Replica test over fleets of 20 with 3 degraded ones: share of false ones among those named, and of those found."""

    profile: str
    windows: int
    false_discovery_rate: float
    power: float
    alarms_in_healthy_fleets: float


def discovery(profile: Profile, size: Size, windows: int = 60, running: int = 8, seed: int = 0) -> Discovery:
    """The replica test on fleets, degraded and healthy."""
    sound = Scenario(profile=profile, depth=DEPTH, running=running, windows=windows + WARM_WINDOWS)
    degraded = replace(sound, fault=Fault.REPLICA)
    false_shares: list[float] = []
    found: list[float] = []
    healthy_named: list[bool] = []
    for fleet in range(size.fleets):
        first = seed + fleet * 100
        bad = simulate_many(degraded, range(first, first + 3))
        good = simulate_many(sound, range(first + 3, first + 23))
        named = _named([*bad, *good[:17]])
        false_shares.append(sum(index >= 3 for index in named) / max(1, len(named)))
        found.append(sum(index < 3 for index in named) / 3)
        healthy_named.append(bool(_named(good)))
    return Discovery(
        profile.name, windows, float(np.mean(false_shares)), float(np.mean(found)), float(np.mean(healthy_named))
    )


def _named(runs: Sequence[Simulation]) -> list[int]:
    figures = {}
    for index, run in enumerate(runs):
        y, w = measured(run)
        figures[str(index)] = ReplicaFigures(window_interval(y, w, DEPTH, run.scenario.running), float(w.sum()))
    return [int(verdict.unit) for verdict in compare_replicas(figures) if verdict.outlier]


@dataclass(frozen=True)
class Drift:
    """The drift detector: false alarms on healthy traffic, and blocks until a drop is seen (median, 90th percentile)."""

    profile: str
    running: int
    windows_per_block: float
    healthy_blocks: int
    false_alarms: int
    delay_20: tuple[float, float]
    delay_40: tuple[float, float]
    dating_error: float


def drift(known: Traffic, size: Size, running: int, seed: int = 0) -> Drift:
    """Long streams of healthy windows, then the same with fewer accepted drafts from a known block on."""
    healthy_blocks = false_alarms = 0
    block_windows: list[float] = []
    delays: dict[float, list[float]] = {0.2: [], 0.4: []}
    dating: list[float] = []
    for stream in range(size.streams):
        accepted, steps = _stream(known, running, size.blocks // size.streams + 60, seed + 10_000 * stream)
        outcomes, _ = _detect(DriftDetector(), known, running, accepted, steps)
        scored = [outcome for _, outcome in outcomes if outcome.score is not None]
        healthy_blocks += len(scored)
        false_alarms += sum(outcome.alarm for outcome in scored)
        block_windows.append(steps.size / max(1, len(outcomes)))
        for drop, seen in delays.items():
            for change in range(size.changes // size.streams + 1):
                start = int((52 + 3 * change) * block_windows[-1])
                part = slice(0, start + int(60 * block_windows[-1]))
                changed = np.where(np.arange(accepted.size) >= start, accepted * (1 - drop), accepted)
                seen.append(_delay(known, running, changed[part], steps[part], start))
        blocks = np.array([outcome.value for _, outcome in outcomes[:120]])
        if blocks.size == 120:
            blocks[70:] *= 0.8
            changes = date_changes(blocks)
            dating.append(min((abs(change.index - 70) for change in changes), default=math.inf))
    return Drift(
        known.profile.name,
        running,
        float(np.mean(block_windows)),
        healthy_blocks,
        false_alarms,
        (float(np.median(delays[0.2])), float(np.quantile(delays[0.2], 0.9))),
        (float(np.median(delays[0.4])), float(np.quantile(delays[0.4], 0.9))),
        float(np.median(dating)) if dating else math.nan,
    )


def _stream(known: Traffic, running: int, blocks: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Accepted and steps of so many windows as the blocks need, from runs laid end to end."""
    per_block = max(20 * known.steps_per_request / running, known.steps_per_request) / 40
    needed = int(blocks * per_block) + 1
    scenario = Scenario(profile=known.profile, depth=DEPTH, running=running, windows=WARM_WINDOWS + 400)
    pairs = [measured(run) for run in in_batches(scenario, range(seed, seed + math.ceil(needed / 400)))]
    accepted = np.concatenate([y * w for y, w in pairs])[:needed]
    return accepted, np.concatenate([w for _, w in pairs])[:needed]


def _detect(
    detector: DriftDetector,
    known: Traffic,
    running: int,
    accepted: np.ndarray,
    steps: np.ndarray,
    *,
    stop_after: int | None = None,
) -> tuple[list, int | None]:
    """Outcomes of blocks, and the number of blocks after window ``stop_after`` until the alarm."""
    outcomes = []
    after = 0
    for index, (count, weight) in enumerate(zip(accepted.tolist(), steps.tolist(), strict=True)):
        requests, lifetimes = request_equivalents(weight, running, known.steps_per_request)
        outcome = detector.add(index, count, weight, requests=requests, lifetimes=lifetimes)
        if outcome is None:
            continue
        outcomes.append((index, outcome))
        if stop_after is not None and index > stop_after:
            after += 1
            if outcome.alarm:
                return outcomes, after
    return outcomes, None


def _delay(known: Traffic, running: int, accepted: np.ndarray, steps: np.ndarray, start: int) -> float:
    _, delay = _detect(DriftDetector(), known, running, accepted, steps, stop_after=start)
    return math.inf if delay is None else float(delay)


@dataclass(frozen=True)
class StepTimeError:
    """Largest relative error of the step time with prefills and a pause in the log: steady windows, all windows."""

    profile: str
    steady: float
    every: float


def step_time_error(profile: Profile, size: Size, seed: int = 0) -> StepTimeError:
    """Runs with a pause of 20 s and a prefill per request."""
    scenario = Scenario(profile=profile, depth=DEPTH, running=4, windows=80, idle=((30, 20.0),))
    errors: list[tuple[float, float]] = []
    for run in in_batches(scenario, range(seed, seed + max(10, size.replicates // 10))):
        windows = run.windows()
        steady, truth = windows.steady, scenario.step_seconds
        kept = step_time(windows.running[steady], windows.length[steady], windows.throughput[steady]).seconds
        every = float(np.mean(windows.running * windows.length / windows.throughput))
        errors.append((abs(kept / truth - 1), abs(every / truth - 1)))
    steady_error, every_error = np.max(errors, axis=0)
    return StepTimeError(profile.name, float(steady_error), float(every_error))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    lines += [" | ".join(str(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Print the whole study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all replicates")
    size = FULL if parser.parse_args().full else SHORT
    known = [traffic(profile, size) for profile in (MATHS, CHAT, CODE)]
    rows = [row for one in known for row in intervals_and_power(one, size)]

    print(f"Replicates per cell: {size.replicates}; depth {DEPTH}; windows of 40 steps.\n")
    print("Coverage of 95% intervals\n")
    print(
        table(
            ("traffic", "b", "windows", "binomial", "windows, t", "EWC", "EWC, lifetime unknown"),
            [
                (
                    c.profile,
                    c.running,
                    c.windows,
                    f"{c.binomial:.2f}",
                    f"{c.window_t:.2f}",
                    f"{c.ewc:.3f}",
                    f"{c.ewc_lifetime_unknown:.3f}",
                )
                for c, _ in rows
            ],
        )
    )
    print("\nOn traces: binomial .51-.68 maths, .12-.22 chat, .28-.37 code; windows .92-.95, .53-.64, .84-.89;")
    print("EWC .96-.99, .88-.95 (.81-.92 with the lifetime unknown), .94-.98.\n")
    print("Coverage of the request-level interval, by requests (traces: .935-.956)\n")
    by_requests = [(one.profile.name, jackknife_coverage(one, size)) for one in known]
    print(
        table(
            ("traffic", *(str(count) for count in by_requests[0][1])),
            [(name, *(f"{share:.3f}" for share in shares.values())) for name, shares in by_requests],
        )
    )
    print("\nCoverage of the conservative interval with 4 windows\n")
    print(
        table(
            ("traffic", "b = 1", "b = 8"),
            [
                (one.profile.name, *(f"{conservative_coverage(one, size, running, 4):.3f}" for running in (1, 8)))
                for one in known
            ],
        )
    )
    print("\nShare flagged as divergent, margin 0.75 (nominal 2.5% at the margin)\n")
    print(
        table(
            (
                "traffic",
                "b",
                "windows",
                "r = 0.75",
                "lifetime unknown",
                "binomial",
                "r = 0.82",
                "r = 0.60",
                "r = 0.353",
            ),
            [
                (
                    p.profile,
                    p.running,
                    p.windows,
                    f"{p.at_margin:.3f}",
                    f"{p.at_margin_lifetime_unknown:.3f}",
                    f"{p.at_margin_binomial:.2f}",
                    f"{p.healthy:.3f}",
                    f"{p.reduced:.2f}",
                    f"{p.broken:.2f}",
                )
                for _, p in rows
            ],
        )
    )
    print("\nOn traces: .007-.065 at the margin (binomial .18-.43); .000-.038 at 0.82; .20-1.00 at 0.60;")
    print(".81-1.00 at 0.353 with 12 windows and b = 1, 1.00 from 60 windows on.\n")
    print("Replicas: fleets of 20, three of them accepting 0.85 times as often (traces: false .000-.021, found 1.00)\n")
    fleets = [discovery(profile, size) for profile in (CODE, CHAT)]
    print(
        table(
            ("traffic", "windows", "false among named", "found", "healthy fleets with a name"),
            [
                (
                    f.profile,
                    f.windows,
                    f"{f.false_discovery_rate:.3f}",
                    f"{f.power:.2f}",
                    f"{f.alarms_in_healthy_fleets:.2f}",
                )
                for f in fleets
            ],
        )
    )
    print(
        "\nDrift: blocks of 20 requests (traces: no alarm in 132,000 blocks; 20% drop 7-10, p90 10-15; 37-40% drop 3-6)\n"
    )
    maths, chat, code = known
    drifts = [drift(maths, size, 8), drift(chat, size, 8), drift(code, size, 1), drift(code, size, 8)]
    print(
        table(
            (
                "traffic",
                "b",
                "lines per block",
                "healthy blocks",
                "alarms",
                "20% drop: median, p90",
                "40% drop: median, p90",
                "dated within",
            ),
            [
                (
                    d.profile,
                    d.running,
                    f"{d.windows_per_block:.0f}",
                    d.healthy_blocks,
                    d.false_alarms,
                    f"{d.delay_20[0]:.0f}, {d.delay_20[1]:.0f}",
                    f"{d.delay_40[0]:.0f}, {d.delay_40[1]:.0f}",
                    f"{d.dating_error:.0f}",
                )
                for d in drifts
            ],
        )
    )
    print("\nStep time: largest relative error with prefills and a pause in the log\n")
    errors = [step_time_error(profile, size) for profile in (MATHS, CHAT, CODE)]
    print(
        table(
            ("traffic", "steady windows", "all windows"),
            [(e.profile, f"{e.steady:.1%}", f"{e.every:.0%}") for e in errors],
        )
    )


if __name__ == "__main__":
    main()
