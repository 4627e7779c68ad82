"""What benchmark rows say about a run that has no windows of its own, and where a report contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from analysis.drafting import Drafting
from collector.domain.evidence import Evidence
from collector.domain.quantities import Estimate
from collector.domain.results import BenchmarkRow, Latency
from collector.domain.runs import RunRecord
from collector.domain.windows import Origin, Window

LATENCIES: Final = {
    "time_to_first_token_seconds": "time_to_first_token",
    "time_per_output_token_seconds": "time_per_output_token",
    "inter_token_latency_seconds": "inter_token_latency",
    "request_latency_seconds": "request_latency",
}
"""Quantities and the field of a row that has them."""
LENGTH_ROUNDING: Final = 0.02
"""How far two figures for one length may lie apart by rounding. Tokens."""
RATE_ROUNDING: Final = 0.006
"""How far two figures for one rate may lie apart by rounding."""

DEEPEST: Final = 17
"""Depths below it are tried where a report does not state its own."""


@dataclass(frozen=True, slots=True)
class RowContradiction:
    """What contradicts what in a report: title, explanation, figures, and the rows that show it."""

    title: str
    why: str
    values: dict[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()


def with_windows_of_rows(record: RunRecord) -> RunRecord:
    """A run without windows, with those its benchmark rows stand for: one a row of the judged setting and load."""
    if record.windows or not record.results:
        return record
    windows = [window for index, row in enumerate(judged_rows(record.results)) if (window := _window(index, row))]
    return replace(record, windows=windows) if windows else record


def judged_rows(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """The drafting rows of one setting, at one concurrency on one data set.

    The last setting of the report is judged, and of its loads and data sets the first that also ran without
    drafts. Of a report without drafts it is the first load.
    """
    drafting = [row for row in rows if row.speculating]
    plain = [row for row in rows if row.speculating is False]
    if not drafting:
        first = next((_load(row) for row in plain if row.throughput), None)
        return [row for row in plain if _load(row) == first]
    last = drafting[-1]
    same = [row for row in drafting if _setting(row) == _setting(last) and (row.depth or row.label == last.label)]
    loads = {_load(row) for row in plain if row.throughput}
    load = next((_load(row) for row in same if _load(row) in loads), _load(same[0]))
    return [row for row in same if _load(row) == load]


def drafting_of_rows(rows: Sequence[BenchmarkRow]) -> Drafting | None:
    """How the judged rows draft, where no argument says so; ``None`` where they do not say either."""
    judged = judged_rows(rows)
    if not judged or judged[0].speculating is None:
        return None
    if not judged[0].speculating:
        return Drafting(known=True)
    depth, topk, width = _setting(judged[0])
    if width is None and depth is not None and topk in (None, 1):
        width = depth + 1
    return Drafting("unknown", False, depth, width, topk, assumed=True, note="as the benchmark's report says")


def latencies_of(rows: Sequence[BenchmarkRow]) -> dict[str, Estimate]:
    """Latencies of the judged rows as quantities: the mean, else the median, with percentiles beside it."""
    figures: dict[str, Estimate] = {}
    for row in judged_rows(rows):
        stated = {key: getattr(row, name) for key, name in LATENCIES.items()}
        figures = latency_quantities({key: value for key, value in stated.items() if value is not None}) | figures
    return figures


def latency_quantities(latencies: Mapping[str, Latency]) -> dict[str, Estimate]:
    """Latencies as quantities: the mean, else the median, with percentiles beside it."""
    figures: dict[str, Estimate] = {}
    for key, stated in latencies.items():
        value = stated.mean if stated.mean is not None else stated.p50
        if value is None:
            continue
        parts = [f"{label} {figure:.4g} s" for label in ("p50", "p90", "p99")
                 if (figure := getattr(stated, label)) is not None and figure is not value]  # fmt: skip
        of_median = [] if stated.mean is not None else ["the median"]
        figures[key] = Estimate(value, note=", ".join([*of_median, *parts]))
    return figures


def report_contradictions(rows: Sequence[BenchmarkRow]) -> Iterator[RowContradiction]:
    """Figures of one report that cannot all be right: within a row, and definitions that change between rows."""
    for row in rows:
        found = _length(row) or _rate(row)
        if found is not None:
            yield found
    mixed = _mixed_rates(rows)
    if mixed is not None:
        yield mixed


def _load(row: BenchmarkRow) -> tuple[float | None, str]:
    return row.concurrency, row.dataset


def _setting(row: BenchmarkRow) -> tuple[int | None, int | None, int | None]:
    return row.depth, row.topk, row.width


def _window(index: int, row: BenchmarkRow) -> Window | None:
    """The window a row stands for; a report without counts tells rates and shares, as of one second or one step."""
    tokens, seconds = row.output_tokens, row.seconds
    if tokens is None and row.throughput is not None:
        seconds = seconds if seconds is not None else 1.0
        tokens = row.throughput * seconds
    length = row.acceptance_length
    steps = row.verify_steps
    if steps is None and length:
        steps = tokens / length if tokens is not None else 1.0
    accepted = row.accepted_tokens
    if accepted is None and steps is not None and length:
        accepted = (length - 1) * steps
    if row.throughput is None and steps is None:
        return None
    positions = row.acceptance_rate_at
    return Window(
        position=index,
        line=0,
        at=float(index),
        seconds=seconds,
        running_requests=row.concurrency,
        verify_steps=steps if row.speculating else None,
        accepted_tokens=accepted if row.speculating else None,
        drafted_tokens=row.drafted_tokens,
        generated_tokens=tokens,
        generation_throughput=row.throughput,
        accepted_at=tuple(share * steps for share in positions) if positions and steps is not None else None,
        origin=Origin.COUNTERS,
    )


def _length(row: BenchmarkRow) -> RowContradiction | None:
    """The stated length against counts and positions."""
    stated = row.acceptance_length
    counted = None
    if row.accepted_tokens is not None and row.verify_steps:
        counted = 1 + row.accepted_tokens / row.verify_steps
    others = [("the counts say", counted)]
    stated = stated if stated is not None else counted
    if row.acceptance_rate_at:
        summed = 1 + sum(row.acceptance_rate_at)
        whole = row.depth == len(row.acceptance_rate_at)
        if whole or (stated is not None and summed > stated):  # some positions alone give a lower bound
            others.append(("its positions add up to", summed))
    for words, other in others:
        if stated is not None and other is not None and abs(stated - other) > LENGTH_ROUNDING * stated:
            return RowContradiction(
                f"A benchmark states length {stated:.2f}, {words} {other:.2f}",
                "1 + accepted drafts a step is the length by definition, and so is 1 + the shares of all positions.",
                {"metric": "acceptance_length", "acceptance_length": stated, "summed": other},
                (row.evidence,),
            )
    return None


def _rate(row: BenchmarkRow) -> RowContradiction | None:
    """The stated rate against the row's own counts."""
    if row.acceptance_rate is None or row.accepted_tokens is None or not row.drafted_tokens:
        return None
    counted = row.accepted_tokens / row.drafted_tokens
    if abs(counted - row.acceptance_rate) <= RATE_ROUNDING:
        return None
    return RowContradiction(
        f"A benchmark states an acceptance rate of {row.acceptance_rate:.1%}, its counts say {counted:.1%}",
        "Accepted over drafted tokens is the rate that its counts give.",
        {"metric": "acceptance_rate", "printed": row.acceptance_rate, "draft_acceptance_rate": counted},
        (row.evidence,),
    )


def _mixed_rates(rows: Sequence[BenchmarkRow]) -> RowContradiction | None:
    """Rates beside lengths in one report that follow two definitions: with and without the target's own token."""
    pairs = [row for row in rows if row.acceptance_length is not None and row.acceptance_rate is not None]
    stated = {row.depth for row in pairs}
    depths = range(1, DEEPEST) if None in stated else (0,)  # 0: each row at its own
    readings = [_by_definition(pairs, depth) for depth in depths] if len(pairs) > 1 else []
    possible = [reading for reading in readings if reading]
    if not possible or any(len(reading) == 1 for reading in possible):
        return None
    found = possible[0]
    parts = [
        f"{row.acceptance_length:.2f} beside {row.acceptance_rate:.1%} is {definition}"
        for definition, row in found.items()
    ]
    return RowContradiction(
        "The acceptance rates of one report follow different definitions",
        f"{'; '.join(parts)}. Rates that count the target's own token cannot be compared with those that do not.",
        {"metric": "acceptance_rate", "definitions": list(found)},
        tuple(row.evidence for row in found.values()),
    )


def _by_definition(rows: Sequence[BenchmarkRow], depth: int) -> dict[str, BenchmarkRow]:
    """The first row of each definition that the rows need at this depth; empty where a row follows none."""
    needed: dict[str, BenchmarkRow] = {}
    open_ended: list[tuple[list[str], BenchmarkRow]] = []
    for row in rows:
        fits = _definitions(row, depth or row.depth or 1)
        if not fits:
            return {}
        if len(fits) == 1:
            needed.setdefault(fits[0], row)
        else:
            open_ended.append((fits, row))
    for fits, row in open_ended:
        if not any(name in needed for name in fits):
            needed.setdefault(fits[0], row)
    return needed


def _definitions(row: BenchmarkRow, depth: int) -> list[str]:
    """The definitions that connect a row's length and rate at a depth."""
    length, rate = row.acceptance_length or 0.0, row.acceptance_rate or 0.0
    implied = {"length / (depth + 1)": length / (depth + 1), "accepted / depth": (length - 1) / depth}
    return [name for name, value in implied.items() if abs(value - rate) <= RATE_ROUNDING]
