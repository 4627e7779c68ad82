"""The page of the registry of drafts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from analysis.promise import promise_of
from collector.domain.drafts import Measure, ModelConfig, Reference, Vocabulary
from collector.domain.layouts import kind_of, layout_of, trained_depth
from dashboard import names
from dashboard.drafts import RegisteredDraft, ValidationDocument
from dashboard.pages import figures

SHOWN_DEPTHS: Final = (3, 5)
"""Depths for which the page says what the figures promise."""
MEASURES: Final = {
    Measure.PREFIX: "this and all earlier drafts right",
    Measure.CONDITIONAL: "given that all earlier drafts are right",
    Measure.MARGINAL: "at each position, whatever came before",
    Measure.UNKNOWN: "not stated what it counts",
}
_VOCABULARY: Final = {
    Vocabulary.LEFT_OUT: "tokens outside the draft's vocabulary left out: higher than serving",
    Vocabulary.INSIDE: "against the best token inside the draft's vocabulary: may be higher than serving",
}


@dataclass(frozen=True, slots=True)
class Promised:
    """What figures promise at one depth: by the formula, and in a healthy deployment."""

    depth: int
    expected: str
    healthy: str


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """One validation: its figures, what they count, over what, and what they promise."""

    figures: str
    measure: str
    known: bool
    over: str
    source: str
    doubts: tuple[str, ...]
    promised: tuple[Promised, ...]


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """One registered draft."""

    id: int
    name: str
    sub: str
    facts: tuple[tuple[str, str], ...]
    validations: tuple[ValidationRow, ...]


@dataclass(frozen=True, slots=True)
class DraftsPage:
    """The registry."""

    statement: str
    drafts: tuple[DraftEntry, ...]


def drafts_page(drafts: Iterable[RegisteredDraft]) -> DraftsPage:
    """The registry as its page shows it."""
    entries = tuple(_entry(draft) for draft in drafts)
    without = sum(not entry.validations for entry in entries)
    statement = figures.plural(len(entries), "draft") if entries else "No draft is registered"
    if without:
        statement += f", {without} without validation figures"
    return DraftsPage(statement, entries)


def _entry(draft: RegisteredDraft) -> DraftEntry:
    facts: list[tuple[str, str]] = []
    if draft.config is not None:
        config = ModelConfig(draft.name, draft.config)
        facts.append(("Kind", str(kind_of(config))))
        facts.append(("Config written by", str(layout_of(config))))
        deepest = trained_depth(config)
        if deepest is not None:
            facts.append(("Trained for", figures.plural(deepest[0], "token")))
    if draft.registered_at is not None:
        facts.append(("Registered", figures.instant(draft.registered_at)))
    facts.append(("Stored runs", str(draft.runs) if draft.runs else "none"))
    if draft.weights_digest:
        facts.append(("Weights", draft.weights_digest[:12]))
    rows = tuple(_row(validation) for validation in reversed(draft.validations))
    return DraftEntry(draft.id, names.model(draft.name) or draft.name, draft.name, tuple(facts), rows)


def _row(document: ValidationDocument) -> ValidationRow:
    validation = document.figures("registry")
    at = [f"{value:.3f}" for value in validation.accuracy_at]
    if not at and validation.accuracy is not None:
        at = [f"{validation.accuracy:.3f}"]
    shown = ", ".join(at)
    if validation.length is not None:
        stated_at = f" at depth {validation.length_depth}" if validation.length_depth else ""
        shown += f"{', ' if shown else ''}length {validation.length:.2f}{stated_at}"
    over = [validation.dataset] if validation.dataset else []
    if validation.count is not None:
        over.append(f"{figures.count(validation.count)} tokens or samples")
    if validation.temperature is not None:
        over.append(f"temperature {validation.temperature:g}")
    doubts = [_VOCABULARY[validation.vocabulary]] if validation.vocabulary in _VOCABULARY else []
    if validation.reference is Reference.DATA:
        doubts.append("compared with the tokens of the data, not with the target's choice")
    if validation.held_out is False:
        doubts.append("of training batches")
    promised = []
    for depth in SHOWN_DEPTHS:
        promise = promise_of(validation, depth, validation.temperature)
        promised.append(Promised(depth, f"{promise.expected_length:.2f}", f"{promise.realistic_length:.2f}"))
    how = "counted along verify steps" if validation.replayed else MEASURES[validation.measure]
    return ValidationRow(
        figures=shown,
        measure=how,
        known=validation.replayed or validation.measure is not Measure.UNKNOWN,
        over=", ".join(over),
        source=", ".join(part for part in (validation.trainer, document.source) if part),
        doubts=(*doubts, *validation.remarks),
        promised=tuple(promised),
    )
