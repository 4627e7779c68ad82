"""The JSON API, version 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from analysis.diagnosis import SCHEMA
from collector.domain.findings import State
from dashboard.api.errors import ErrorDocument
from dashboard.api.openapi import reference
from dashboard.pages import fleet
from dashboard.pages.fleet import Order
from dashboard.pages.templating import product_version
from dashboard.store import RunRow, RunStore

LARGEST_PAGE: Final = 500

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    422: {"model": ErrorDocument, "description": "A parameter is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}
_UNKNOWN: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is no such run."},
}

router = APIRouter(prefix="/api/v1", responses=_ERRORS)
health = APIRouter()


@dataclass(frozen=True, slots=True)
class RunList:
    """A page of the list of runs; ``total`` counts all that match."""

    runs: list[RunRow]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the service answers."""

    status: str
    version: str


def store_of(request: Request) -> RunStore:
    """The store of the running app."""
    store: RunStore = request.app.state.store
    return store


@router.get("/runs", summary="Runs with their four verdicts")
def list_runs(
    request: Request,
    q: Annotated[
        str,
        Query(max_length=200, description="Words to find in models, source, labels and findings", examples=["kimi"]),
    ] = "",
    state: Annotated[State | None, Query(description="Runs with a verdict in this state")] = None,
    engine: Annotated[str, Query(max_length=40, examples=["sglang"])] = "",
    order: Order = Order.LATEST,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 100,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> RunList:
    """The list that the page of all runs shows."""
    query = fleet.Query(text=q, state=state.value if state else "", engine=engine, order=order)
    wanted = fleet.in_order([row for row in store_of(request).list_runs() if query.wants(row)], order)
    return RunList(wanted[offset : offset + limit], len(wanted), limit, offset)


@router.get(
    "/runs/{run_id}/diagnosis",
    summary=f"The diagnosis document ({SCHEMA})",
    response_class=JSONResponse,
    responses={
        **_UNKNOWN,
        200: {
            "description": "Verdicts, runs with arguments and quantities, findings with evidence, what was ruled out, "
            "what could not be judged and why, and what was read.",
            "content": {"application/json": {"schema": reference("Diagnosis")}},
        },
    },
)
def diagnosis(request: Request, run_id: str) -> JSONResponse:
    """The one document that pages, reports and alerts show too."""
    return JSONResponse(store_of(request).report(run_id).document)


@health.get("/healthz", summary="Whether the service answers")
def healthz() -> Health:
    """For load balancers and containers."""
    return Health("ok", product_version())
