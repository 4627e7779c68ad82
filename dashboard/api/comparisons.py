"""Runs side by side over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from analysis.compare import SCHEMA
from dashboard.api.errors import ErrorDocument
from dashboard.api.openapi import reference
from dashboard.pages.compare import MOST_RUNS
from dashboard.store import RunStore

router = APIRouter(prefix="/api/v1")

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Figures with the interval of each difference, what was changed and whether it runs, "
        "settings that are not shared, and the ranking; the first run is what the others are held against.",
        "content": {"application/json": {"schema": reference("Comparison")}},
    },
    404: {"model": ErrorDocument, "description": "There is no such run."},
    422: {"model": ErrorDocument, "description": "A parameter is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}


@router.get("/compare", summary=f"Runs side by side ({SCHEMA})", response_class=JSONResponse, responses=_RESPONSES)
def compare(
    request: Request,
    run: Annotated[
        list[str], Query(min_length=2, max_length=MOST_RUNS, description="Ids of runs", examples=[["17", "16"]])
    ],
) -> JSONResponse:
    """The document of `draftscope compare --format json`."""
    store: RunStore = request.app.state.store
    return JSONResponse(store.compare(run).comparison.document())
