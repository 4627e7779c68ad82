"""Single runs, their windows, the catalogue of rules, the quantities, and how the service is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import pandas as pd
from fastapi import APIRouter, Path, Query, Request

from analysis.base import Rule, catalogue, find_rule
from collector.domain.conditions import Aspect
from collector.domain.quantities import QUANTITIES
from collector.domain.runs import Role
from dashboard.api.errors import ErrorDocument
from dashboard.charts.base import numbers, thin
from dashboard.doctor import Doctor
from dashboard.store import RunRow, RunStore, row_of

MOST_POINTS: Final = 2_000

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    422: {"model": ErrorDocument, "description": "A parameter is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}
_UNKNOWN: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is none of this name."},
}

router = APIRouter(prefix="/api/v1", responses=_ERRORS)

Column = Literal[
    "acceptance_length", "generation_throughput", "running_requests", "waiting_requests", "verify_steps",
    "accepted_tokens", "drafted_tokens", "kv_cache_usage",
]  # fmt: skip
RunId = Annotated[str, Path(max_length=40, examples=["17"])]


@dataclass(frozen=True, slots=True)
class Series:
    """Windows as columns, in order of time. ``total`` counts them before any was left out.

    ``at`` is in seconds since 1970; a figure that a window does not have is null; ``counted`` says
    whether the window stands for acceptance, ``steady`` whether for throughput.
    """

    run: str
    role: str
    quantity: str
    unit: str
    total: int
    at: list[float | None]
    value: list[float | None]
    counted: list[bool]
    steady: list[bool]


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule of the catalogue."""

    id: str
    name: str
    says: str
    severity: str
    confidence: str
    since: str


@dataclass(frozen=True, slots=True)
class RuleList:
    """The catalogue."""

    rules: list[RuleEntry]


@dataclass(frozen=True, slots=True)
class QuantityEntry:
    """A quantity: its key, what people call it, its unit and definition; ``formula`` may be empty."""

    key: str
    label: str
    unit: str
    definition: str
    formula: str


@dataclass(frozen=True, slots=True)
class QuantityList:
    """Every quantity that is measured or derived."""

    quantities: list[QuantityEntry]


@dataclass(frozen=True, slots=True)
class Health:
    """Every aspect of the service, and its settings by table with secrets masked."""

    aspects: list[Aspect]
    settings: Mapping[str, Mapping[str, str]]


def _store(request: Request) -> RunStore:
    store: RunStore = request.app.state.store
    return store


@router.get("/runs/{run_id}", summary="One run as the list has it", responses=_UNKNOWN)
def run(request: Request, run_id: RunId) -> RunRow:
    """Names, verdicts and figures; `diagnosis` has the rest."""
    return row_of(_store(request).report(run_id))


@router.get("/runs/{run_id}/series", summary="A quantity of each window, as columns", responses=_UNKNOWN)
def series(
    request: Request,
    run_id: RunId,
    quantity: Column = "acceptance_length",
    role: Annotated[Role, Query(description="The run itself, the one before it, or its baseline")] = Role.SUBJECT,
    points: Annotated[int, Query(ge=2, le=MOST_POINTS, description="Windows at most; extremes are kept")] = MOST_POINTS,
) -> Series:
    """What the plots draw. Of more windows than `points` the lowest and the highest of each stretch are kept."""
    frame = _store(request).frame(run_id, role)
    if frame is None:
        frame = pd.DataFrame({"at": [], quantity: [], "counted": [], "steady": []})
    known = frame[frame[quantity].notna()]
    shown = thin(known, quantity, points)
    unit = QUANTITIES[quantity].unit if quantity in QUANTITIES else ""
    return Series(
        run_id,
        role.value,
        quantity,
        unit,
        len(known),
        numbers(shown["at"], 3),
        numbers(shown[quantity]),
        [bool(value) for value in shown["counted"]],
        [bool(value) for value in shown["steady"]],
    )


@router.get("/rules", summary="The catalogue of rules")
def rules() -> RuleList:
    """Each ends as a finding, as clear, or as not judged with the reason."""
    return RuleList([_entry(rule) for rule in catalogue()])


@router.get("/rules/{rule_id}", summary="One rule", responses=_UNKNOWN)
def rule(rule_id: Annotated[str, Path(max_length=80, examples=["FLG001"])]) -> RuleEntry:
    """By its code or its name."""
    return _entry(find_rule(rule_id))


@router.get("/quantities", summary="What each figure means")
def quantities() -> QuantityList:
    """The same words as on pages and in the exporter."""
    return QuantityList(
        [QuantityEntry(one.key, one.label, one.unit, one.definition, one.formula) for one in QUANTITIES.values()]
    )


@router.get("/doctor", summary="How the service itself is")
def doctor(request: Request) -> Health:
    """What it reads and does, whether that goes well, and what to do where it does not."""
    looked: Doctor | None = request.app.state.doctor
    if looked is None:
        return Health([], {})
    return Health(looked.look(), {name: dict(values) for name, values in looked.in_use()})


def _entry(rule: Rule) -> RuleEntry:
    says = (rule.__doc__ or "").strip().splitlines()[0]
    return RuleEntry(rule.id, rule.name, says, rule.severity.word, rule.confidence.word, rule.since)
