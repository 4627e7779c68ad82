"""What the server does without speculation: from a run, else from a benchmark table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.benchmarks import judged_rows
from analysis.view import RunView
from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Throughput with and without drafts at equal load.

    ``half`` and ``plain_half`` are half widths of 95% intervals. ``relative`` marks figures in
    units of the plain throughput, where nothing else is known. ``certain`` says that enough
    windows, or rows of a table, stand behind both.
    """

    speculative: float
    plain: float
    half: float | None
    plain_half: float | None
    relative: bool
    certain: bool
    length: float | None
    evidence: tuple[Evidence | None, ...]

    @property
    def ratio(self) -> float:
        """The speed-up."""
        return self.speculative / self.plain


def throughputs(run: RunView, baseline: RunView | None, few_windows: int, load_difference: float) -> Throughputs | None:
    """From the run without speculation where there is one, else from the run's table."""
    own = run.measured.get("generation_throughput")
    if baseline is not None:
        plain = baseline.measured.get("generation_throughput")
        if own is None or plain is None or baseline.pooled is not None:
            return None
        certain = min(own.windows or 0, plain.windows or 0) >= few_windows
        evidence = (*run.first_and_last, *baseline.first_and_last_plain)
        return Throughputs(float(own.value), float(plain.value), own.half, plain.half, False, certain, None, evidence)
    rows = run.record.results
    return _from_relative(rows) or _from_table(run, rows, load_difference) or _from_times(run, rows, load_difference)


def _from_relative(rows: Sequence[BenchmarkRow]) -> Throughputs | None:
    """A table that states throughput over plain throughput only."""
    found = [row for row in rows if row.speculating and row.relative_low is not None and row.relative_high is not None]
    plain = [row for row in rows if row.speculating is False]
    if not found or any(row.throughput is not None for row in rows):
        return None
    row = found[-1]
    low, high = sorted((row.relative_low or 0.0, row.relative_high or 0.0))
    evidence = tuple(item.evidence for item in (*plain[:1], row))
    half = (high - low) / 2
    return Throughputs((low + high) / 2, 1.0, half, 0.0, True, True, row.acceptance_length, evidence)


def _from_table(run: RunView, rows: Sequence[BenchmarkRow], load_difference: float) -> Throughputs | None:
    """Rows at the run's own setting and load; the run's windows win over a row of the same setting."""
    own = run.measured.get("generation_throughput")
    running = run.measured.get("running_requests")
    load = float(running.value) if running is not None else None
    alike = [row for row in rows if row.throughput and _near(row.concurrency, load, load_difference)]
    judged = judged_rows(rows)
    data = {row.dataset for row in judged}  # other prompts are another load
    alike = [row for row in alike if row.dataset in data]
    plain = [row for row in alike if row.speculating is False]
    same = [row for row in alike if row.speculating and _same_setting(run, row) and (row.depth or row in judged)]
    if not plain or (own is None and not same):
        return None
    if load is None and len({row.concurrency for row in plain}) > 1:
        concurrency = same[0].concurrency if same else None
        plain = [row for row in plain if row.concurrency == concurrency]
        if not plain:
            return None
    mean = sum(row.throughput or 0.0 for row in plain) / len(plain)
    evidence = (*(row.evidence for row in (*plain[:2], *same[:1])), *run.first_and_last)
    if own is not None:
        length = same[0].acceptance_length if same else None
        return Throughputs(float(own.value), mean, own.half, None, False, True, length, evidence)
    return Throughputs(same[0].throughput or 0.0, mean, None, None, False, True, same[0].acceptance_length, evidence)


def _from_times(run: RunView, rows: Sequence[BenchmarkRow], load_difference: float) -> Throughputs | None:
    """Rows without throughput: a request's time per token with and without drafts at equal load."""
    timed = [(row, time) for row in rows if (time := _time_per_token(row)) is not None]
    plain = [(row, time) for row, time in timed if row.speculating is False]
    same = [(row, time) for row, time in timed if row.speculating and _same_setting(run, row)]
    for row, time in reversed(same):
        others = [other for other in plain if _near(other[0].concurrency, row.concurrency, load_difference)]
        if others:
            ratio = others[0][1] / time
            evidence = (others[0][0].evidence, row.evidence)
            return Throughputs(ratio, 1.0, None, None, True, True, row.acceptance_length, evidence)
    return None


def _time_per_token(row: BenchmarkRow) -> float | None:
    """Mean, else median decode time a token of one request, seconds."""
    stated = row.time_per_output_token
    time = None if stated is None else stated.mean if stated.mean is not None else stated.p50
    return time or None


def _near(concurrency: float | None, load: float | None, difference: float) -> bool:
    return concurrency is None or load is None or abs(concurrency / load - 1) <= difference


def _same_setting(run: RunView, row: BenchmarkRow) -> bool:
    pairs = ((run.depth, row.depth), (run.width, row.width), (run.topk, row.topk))
    return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)
