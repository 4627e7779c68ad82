"""Figures of watched engines over time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from collector.storage.engine import Database
from collector.storage.runs import load_stored
from collector.storage.traces import ACCEPTANCE, MOST_POINTS, Trace, list_groups, traces_of_group, traces_of_run
from dashboard.api.errors import ErrorDocument
from dashboard.database_store import run_number

_UNKNOWN: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is no such run, group or quantity."},
}
router = APIRouter(prefix="/api/v1", responses=_UNKNOWN)


@dataclass(frozen=True, slots=True)
class TraceDocument:
    """One quantity over time, as columns: ``tier`` is what it was read from: raw, minute or hour."""

    quantity: str
    tier: str
    width_seconds: int
    at: list[float]
    value: list[float]
    low: list[float | None]
    high: list[float | None]


_ANSWER: Final[dict[str, Any]] = {
    "response_class": JSONResponse,
    "responses": {200: {"model": TraceDocument, "description": "Columns of one length."}},
}

Quantity = Annotated[
    str, Query(max_length=60, description="acceptance_length, step_seconds, or a gauge of the windows")
]
Since = Annotated[float | None, Query(description="Seconds since 1970; default: all that is known")]
Until = Annotated[float | None, Query(description="Seconds since 1970, not included")]
Points = Annotated[int, Query(ge=1, le=MOST_POINTS, description="Most points to give")]


@router.get("/groups", summary="Groups of watched runs")
def groups(request: Request) -> list[str]:
    """Names of deployments; runs of none are together by engine, model, draft and method."""
    with _database(request).reading() as connection:
        return list_groups(connection)


@router.get("/runs/{run_id}/trace", summary="A quantity of a watched run over time", **_ANSWER)
def trace_of_one_run(
    request: Request,
    run_id: str,
    quantity: Quantity = ACCEPTANCE,
    since: Since = None,
    until: Until = None,
    points: Points = MOST_POINTS,
) -> Response:
    """Columns: beginning of each stretch, its value, and those of its lowest and highest window."""
    number = run_number(run_id)
    with _database(request).reading() as connection:
        load_stored(connection, number)
        (trace,) = traces_of_run(connection, number, [quantity], since=since, until=until, points=points)
    return _answer(trace)


@router.get("/trace", summary="A quantity of a group of watched runs over time", **_ANSWER)
def trace_of_one_group(
    request: Request,
    group: Annotated[str, Query(max_length=500, description="Its name as in the list of groups")],
    quantity: Quantity = ACCEPTANCE,
    since: Since = None,
    until: Until = None,
    points: Points = MOST_POINTS,
) -> Response:
    """As for one run; gauges are the mean of a unit."""
    with _database(request).reading() as connection:
        (trace,) = traces_of_group(connection, group, [quantity], since=since, until=until, points=points)
    return _answer(trace)


def trace_document(trace: Trace) -> str:
    """A trace as JSON, six digits of each figure."""
    columns = {name: [_rounded(value) for value in getattr(trace, name)] for name in ("value", "low", "high")}
    document = {"quantity": trace.quantity, "tier": trace.tier, "width_seconds": trace.width, "at": trace.at, **columns}
    return json.dumps(document, separators=(",", ":"))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _answer(trace: Trace) -> Response:
    return Response(trace_document(trace), media_type="application/json")


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database
