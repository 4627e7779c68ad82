"""The page of engines that are watched and stores that are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.domain.errors import DraftscopeError
from dashboard import names
from dashboard.collecting import TargetState
from dashboard.feeding import SourceState
from dashboard.pages import figures


@dataclass(frozen=True, slots=True)
class WatchedRow:
    """One address or store. ``state`` is ``ok``, ``problem`` or ``cannot_tell``; ``says`` is what is wrong now."""

    place: str
    sub: str
    state: str
    word: str
    run: str
    reads: str
    last: str
    says: str
    hint: str


@dataclass(frozen=True, slots=True)
class TargetsPage:
    """Everything the template shows."""

    statement: str
    targets: tuple[WatchedRow, ...]
    sources: tuple[WatchedRow, ...]
    problems: tuple[DraftscopeError, ...]


def targets_page(
    targets: Sequence[TargetState], problems: Sequence[DraftscopeError], sources: Sequence[SourceState]
) -> TargetsPage:
    """The page; what does not answer stands first."""
    rows = sorted(map(_target, targets), key=_order)
    stores = sorted(map(_source, sources), key=_order)
    return TargetsPage(_statement([*rows, *stores]), tuple(rows), tuple(stores), tuple(problems))


def _order(row: WatchedRow) -> tuple[int, str]:
    return ("problem", "cannot_tell", "ok").index(row.state), row.place


def _statement(rows: Sequence[WatchedRow]) -> str:
    if not rows:
        return "Nothing is watched"
    silent = sum(row.state == "problem" for row in rows)
    total = figures.plural(len(rows), "address", "addresses")
    if silent:
        verb, they = ("does", "it") if silent == 1 else ("do", "they")
        return f"{figures.count(silent)} of {total} {verb} not answer as {they} should"
    return f"{total}, each answers" if all(row.state == "ok" for row in rows) else f"{total}, not all were asked yet"


def _target(state: TargetState) -> WatchedRow:
    labels = ", ".join(f"{name} {text}" for name, text in state.labels.items())
    condition, word = _condition(state.error, asked=bool(state.scrapes))
    engine = names.engine(state.engine) if state.engine else ""
    return WatchedRow(
        place=state.address,
        sub=", ".join(part for part in (engine, state.deployment, labels) if part),
        state=condition,
        word=word,
        run="" if state.run_id is None else str(state.run_id),
        reads=figures.plural(state.scrapes, "scrape"),
        last=_last(state.last_success_at),
        says=_says(state.error, state.failures_in_a_row),
        hint=state.hint,
    )


def _source(state: SourceState) -> WatchedRow:
    condition, word = _condition(state.error, asked=state.last_success_at is not None)
    return WatchedRow(
        place=state.place,
        sub=state.kind,
        state=condition,
        word=word,
        run="",
        reads=figures.plural(state.runs, "run"),
        last=_last(state.last_success_at),
        says="; ".join(part for part in (_says(state.error, state.failures_in_a_row), *state.problems) if part),
        hint=state.hint,
    )


def _condition(error: str, *, asked: bool) -> tuple[str, str]:
    if error:
        return "problem", "Does not answer"
    return ("ok", "Answers") if asked else ("cannot_tell", "Not asked yet")


def _says(error: str, failures: int) -> str:
    return f"{error}, {figures.plural(failures, 'time')} in a row" if error else ""


def _last(at: float | None) -> str:
    return "never" if at is None else figures.instant(at)
