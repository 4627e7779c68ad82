"""The page that holds runs against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from analysis import words
from analysis.compare import Against, Difference
from collector.domain.arguments import UNSEEN
from collector.domain.quantities import QUANTITIES
from dashboard.charts.base import Chart
from dashboard.charts.overlays import Series, acceptance_lengths, throughputs
from dashboard.pages import figures
from dashboard.pages.drawing import drawn_of
from dashboard.pages.figures import Figure
from dashboard.pages.fleet import FleetRow, fleet_row
from dashboard.store import Compared, RunReport, RunRow

MOST_RUNS: Final = 8
"""Runs side by side; more do not fit a table."""
MOST_OFFERED: Final = 100
"""Runs that are offered to choose from, the latest."""

_WORD_STATES: Final = {"yes": "took effect", "no": "did not take effect", "cannot tell": "cannot tell"}


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A change, and whether it runs. ``effect`` is ``yes``, ``no`` or ``cannot tell``."""

    what: str
    before: str
    after: str
    effect: str
    says: str
    why: str


@dataclass(frozen=True, slots=True)
class DifferenceCell:
    """One run's figure and how it differs from the first run's; ``word`` is "" for the first itself."""

    figure: Figure | None
    change: str = ""
    word: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class QuantityRow:
    """One quantity over all runs."""

    key: str
    cells: tuple[DifferenceCell, ...]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A column: the run's name, link and what it is."""

    id: str
    name: str
    sub: str


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything the template shows: what to choose from, or the comparison.

    ``effects`` has for each run after the first its changes.
    """

    chosen: tuple[str, ...]
    offered: tuple[FleetRow, ...]
    more: int = 0
    statement: str = ""
    runs: tuple[ComparedRun, ...] = ()
    effects: tuple[tuple[ComparedRun, tuple[EffectRow, ...]], ...] = ()
    quantities: tuple[QuantityRow, ...] = ()
    settings: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...] = ()
    ranking: tuple[tuple[str, Figure | None, str], ...] = ()
    ranked_by: str = ""
    charts: tuple[Chart, ...] = ()


def choice_page(rows: Sequence[RunRow], chosen: Sequence[str]) -> ComparePage:
    """The page before two runs are chosen."""
    return ComparePage(tuple(chosen), tuple(map(fleet_row, rows[:MOST_OFFERED])), max(len(rows) - MOST_OFFERED, 0))


def compare_page(compared: Compared) -> ComparePage:
    """The page of a comparison."""
    comparison = compared.comparison
    runs = _told_apart([_run(report) for report in compared.reports], compared.reports)
    drawn = [(run.name, drawn_of(report)) for run, report in zip(runs, compared.reports, strict=True)]
    charts = (
        acceptance_lengths([Series(name, one.lengths) for name, one in drawn]),
        throughputs([Series(name, one.throughputs) for name, one in drawn]),
    )
    labels = dict(zip(comparison.labels, runs, strict=True))
    return ComparePage(
        chosen=tuple(run.id for run in runs),
        offered=(),
        statement=_statement(comparison.against),
        runs=runs,
        effects=tuple(
            (labels[item.label], tuple(_effect(effect) for effect in item.effects)) for item in comparison.against
        ),
        quantities=_quantities(comparison.against),
        settings=tuple(
            (
                setting.name,
                tuple(
                    (
                        "not stated" if value is UNSEEN else words.value(value),
                        place > 0 and value not in (UNSEEN, setting.values[0]),
                    )
                    for place, value in enumerate(setting.values)
                ),
            )
            for setting in comparison.settings
        ),
        ranking=tuple(
            (
                labels[item.label].name,
                figures.figure(comparison.ranked_by, _plain(item.figure)),
                f"not told apart from {', '.join(labels[name].name for name in item.tied)}" if item.tied else "",
            )
            for item in comparison.ranking
        ),
        ranked_by=comparison.ranked_by,
        charts=tuple(chart for chart in charts if chart is not None),
    )


def _told_apart(runs: Sequence[ComparedRun], reports: Sequence[RunReport]) -> tuple[ComparedRun, ...]:
    """Runs that began at one time, as replicas do, are named by their source; those of one source by their number."""
    names = Counter(run.name for run in runs)
    sources = Counter(report.subject["source"] for report in reports)

    def named(run: ComparedRun, source: str) -> ComparedRun:
        if names[run.name] == 1:
            return run
        if sources[source] > 1:
            return replace(run, name=f"run {run.id}", sub=f"{run.name}, {run.sub}")
        return replace(run, name=source, sub=f"{run.name}, {run.sub.removeprefix(f'{source}, ')}")

    return tuple(named(run, report.subject["source"]) for run, report in zip(runs, reports, strict=True))


def _run(report: RunReport) -> ComparedRun:
    subject = report.subject
    started = subject["started_at"]
    release = subject["engine_version"] or "release not printed"
    return ComparedRun(
        report.id,
        figures.instant(started) if started is not None else f"run {report.id}",
        f"{subject['source']}, {release}",
    )


def _statement(against: Sequence[Against]) -> str:
    """What is most worth knowing: a change that does not run, else what became of the first comparable figure."""
    idle = [effect.what for item in against for effect in item.effects if effect.effect == "no"]
    if idle:
        verb = "change" if len(idle) == 1 else "changes"
        return f"{figures.count(len(idle))} {verb} did not take effect: {words.listing(idle, 3)}"
    for item in against:
        for one in item.differences:
            if one.word in ("rose", "fell") and len(against) == 1:
                before, after = (figures.figure(one.key, _plain(estimate)) for estimate in (one.before, one.after))
                return f"{QUANTITIES[one.key].label} {one.word}{_from_to(before, after)}"
    told = sum(one.word in ("rose", "fell") for item in against for one in item.differences)
    if not told:
        return "No difference that these windows can show"
    return f"{figures.plural(len(against) + 1, 'run')} side by side; {figures.plural(told, 'figure')} told apart from the first run"


def _from_to(before: Figure | None, after: Figure | None) -> str:
    """The unit stands once where both have the same."""
    if before is None or after is None:
        return ""
    first = before.value if before.unit == after.unit else f"{before.value} {before.unit}"
    return f" from {first} to {after.value} {after.unit}".rstrip()


def _effect(effect: Any) -> EffectRow:
    return EffectRow(effect.what, effect.before, effect.after, effect.effect, _WORD_STATES[effect.effect], effect.why)


def _quantities(against: Sequence[Against]) -> tuple[QuantityRow, ...]:
    keys = dict.fromkeys(one.key for item in against for one in item.differences)
    rows = []
    for key in keys:
        found = [next((one for one in item.differences if one.key == key), None) for item in against]
        first = next((one.before for one in found if one is not None), None)
        cells = [DifferenceCell(figures.figure(key, _plain(first)))]
        cells += [DifferenceCell(None) if one is None else _cell(one) for one in found]
        rows.append(QuantityRow(key, tuple(cells)))
    return tuple(rows)


def _cell(one: Difference) -> DifferenceCell:
    return DifferenceCell(figures.figure(one.key, _plain(one.after)), _change(one), one.word, one.note)


def _change(one: Difference) -> str:
    """The difference with its interval, in the form of the figure itself: ``-0.10 [-0.31, +0.11]``."""
    if one.change is None or one.after is None:
        return ""
    written = figures.form(one.key, float(one.after.value))

    def signed(number: float) -> str:
        return f"{'+' if number >= 0 else '-'}{written.digits(abs(number))}"

    interval = "" if one.half is None else f" [{signed(one.change - one.half)}, {signed(one.change + one.half)}]"
    return f"{signed(one.change)}{written.after}{interval}"


def _plain(estimate: Any) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "assumed": estimate.assumed}
