"""The causes of a run page: the differential diagnosis, what would tell them apart, what is known upstream, the case history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.causes.weighing import LIKELY, NONE_OF_THESE, UNEXPLAINED_WEIGHT
from analysis.compare import ChangeEffect, Difference
from analysis.history import Fate
from dashboard import names
from dashboard.pages import figures
from dashboard.pages.findings import linked
from dashboard.store import HistoryEntry, RunReport

WIDEST: Final = 5.0
"""Log-odds at the end of the axis of evidence; what weighs more ends there."""
LEADING: Final = 2
"""Causes whose experiments are open from the start."""
CHANGES_SHOWN: Final = 4
"""Changes before a run that are shown at once; the rest is folded."""
_EFFECTS: Final = {"yes": "in effect", "no": "not in effect", "cannot tell": "cannot tell"}

Linked = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CauseView:
    """One cause, ready to show. ``width`` is the length of its bar of evidence in percent."""

    id: str
    title: str
    standing: str
    kind: str
    weight: str
    width: float
    reasons_for: tuple[Linked, ...]
    reasons_against: tuple[Linked, ...]
    what: str
    commands: tuple[str, ...]
    outcomes: tuple[tuple[str, str], ...]
    open: bool


@dataclass(frozen=True, slots=True)
class KnownFaultView:
    """A fault that is known upstream; ``thread`` names its issue or pull request, as text: pages point to no other site."""

    title: str
    standing: str
    symptom: str
    workaround: str
    holds: str
    unknown: str
    thread: str


@dataclass(frozen=True, slots=True)
class ChangeView:
    """Something that was changed before a run, and whether it is in effect."""

    what: str
    effect: str


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One run of the history; ``figures`` by column, each with what became of it; ``here`` marks the shown run."""

    id: str
    when: str
    with_what: str
    here: bool
    changes: tuple[ChangeView, ...]
    more_changes: tuple[ChangeView, ...]
    figures: tuple[tuple[figures.Figure | None, str], ...]
    fates: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CausesSection:
    """What the section shows. ``likely_at`` is where a cause begins to be likely, in percent of the axis."""

    lead: str
    causes: tuple[CauseView, ...]
    none_of_these: tuple[str, ...]
    ruled_out: tuple[tuple[str, Linked], ...]
    known_faults: tuple[KnownFaultView, ...]
    history: tuple[HistoryRow, ...]
    history_columns: tuple[str, ...]
    likely_at: float

    @property
    def shown(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.causes or self.none_of_these or self.known_faults or self.history)


HISTORY_FIGURES: Final = ("acceptance_length", "generation_throughput", "step_seconds")


def causes_section(report: RunReport) -> CausesSection:
    """Causes of the document, and the history of the report."""
    document = report.document
    here = {finding["rule"] for finding in document["findings"]}
    offered = [cause for cause in document["causes"] if cause["cause"] != NONE_OF_THESE]
    none = next((cause for cause in document["causes"] if cause["cause"] == NONE_OF_THESE), None)
    return CausesSection(
        lead=_lead(offered),
        causes=tuple(_cause(cause, here, number < LEADING) for number, cause in enumerate(offered)),
        none_of_these=tuple(reason["text"] for reason in none["for"]) if none is not None else (),
        ruled_out=tuple((cause["title"], _refuted(cause, here)) for cause in document.get("refuted_causes", ())),
        known_faults=tuple(map(_fault, document.get("known_faults", ()))),
        history=tuple(_row(entry, report.id) for entry in reversed(report.history)),
        history_columns=HISTORY_FIGURES,
        likely_at=_place(LIKELY),
    )


def _lead(offered: Sequence[Mapping[str, Any]]) -> str:
    if not offered:
        return "Nothing was found that needs a cause, or none that is known fits."
    first = offered[0]
    alone = len(offered) == 1 or offered[1]["standing"] != first["standing"]
    certainty = {
        "certain": f"{first['title']}: the evidence suffices by itself.",
        "likely": f"{first['title']}: {'the likeliest' if alone else 'one of the likeliest'}, not proven.",
        "possible": "No cause stands out. The experiments below would tell them apart.",
    }
    return certainty[first["standing"]]


def _cause(cause: Mapping[str, Any], here: set[str], leading: bool) -> CauseView:
    experiment: Mapping[str, Any] = cause.get("next", {})
    return CauseView(
        id=cause["cause"],
        title=cause["title"],
        standing=cause["standing"],
        kind=cause["kind"],
        weight=f"{cause['weight']:+.1f}",
        width=_place(cause["weight"]),
        reasons_for=tuple(_reason(reason, here) for reason in cause["for"]),
        reasons_against=tuple(_reason(reason, here) for reason in cause["against"]),
        what=experiment.get("what", ""),
        commands=tuple(experiment.get("command", "").splitlines()),
        outcomes=tuple(experiment.get("if", {}).items()),
        open=leading,
    )


def _place(weight: float) -> float:
    """A weight on the axis from "none of these" to :data:`WIDEST`, percent."""
    share = (weight - UNEXPLAINED_WEIGHT) / (WIDEST - UNEXPLAINED_WEIGHT)
    return round(100 * min(max(share, 0.02), 1.0), 2)


def _reason(reason: Mapping[str, Any], here: set[str]) -> Linked:
    rule = reason.get("rule", "")
    return linked(f"{reason['text']} {rule}".strip(), here)


def _refuted(cause: Mapping[str, Any], here: set[str]) -> Linked:
    """The reason that weighs most against it."""
    return _reason(min(cause["against"], key=lambda reason: reason["weight"]), here)


def _fault(fault: Mapping[str, Any]) -> KnownFaultView:
    return KnownFaultView(
        title=fault["title"],
        standing=fault["standing"],
        symptom=fault["symptom"],
        workaround=fault["workaround"],
        holds=", ".join(fault["holds"]),
        unknown="; ".join(fault["unknown"]),
        thread=fault["link"],
    )


def _row(entry: HistoryEntry, shown: str) -> HistoryRow:
    step = entry.step
    words = {item.key: _word(item) for item in step.differences} if step is not None else {}
    changes = tuple(map(_change, step.changes)) if step is not None else ()
    release = entry.engine_version or "release not printed"
    return HistoryRow(
        id=entry.id,
        when=figures.instant(entry.started_at) if entry.started_at is not None else "start not stated",
        with_what=f"{names.method(entry.method or None, speculates=None if entry.method != '' else False)}, {release}",
        here=entry.id == shown,
        changes=changes[:CHANGES_SHOWN],
        more_changes=changes[CHANGES_SHOWN:],
        figures=tuple((figures.figure(key, entry.figures.get(key)), words.get(key, "")) for key in HISTORY_FIGURES),
        fates=tuple(map(_fate, step.fates)) if step is not None else (),
    )


def _change(change: ChangeEffect) -> ChangeView:
    return ChangeView(f"{change.what} {change.before} → {change.after}", _EFFECTS[change.effect])


def _word(difference: Difference) -> str:
    return "" if difference.word in ("not known", "not comparable") else difference.word


def _fate(fate: Fate) -> tuple[str, str]:
    return fate.cause.title, f"{fate.word}: {fate.why}"
