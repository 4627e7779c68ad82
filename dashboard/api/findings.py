"""Findings of all runs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from analysis.documents import finding_document
from collector.domain.findings import Severity
from collector.storage.engine import Database
from collector.storage.findings import FindingFilter, FindingState, ListedFinding, list_findings
from dashboard.api.errors import ErrorDocument
from dashboard.database_store import run_number

LARGEST_PAGE: Final = 500
LARGEST_NUMBER: Final = 2**53

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is no such run."},
    422: {"model": ErrorDocument, "description": "A parameter is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}
_EXAMPLE: Final = {
    "findings": [
        {
            "id": 12, "run": "17", "state": "open", "first_seen": 1775743390.5, "last_seen": 1775746990.5, "resolved_at": None,
            "target": "moonshotai/Kimi-K2.5", "draft": "/models/kimi-k25-eagle3", "deployment": "chat",
            "rule": "ACC001", "name": "acceptance-below-validation", "severity": "critical", "confidence": "high", "scope": "run",
            "title": "The draft delivers 35% of what its validation promises",
            "why": "Validation implies a length of 3.27; 1.80 [1.62, 1.98] was measured.",
            "values": {"acceptance_length": 1.8, "expected_acceptance_length": 3.27},
            "evidence": [{"source": "input.log", "line": 6, "text": "Decode batch. accept len: 1.74, accept rate: 0.29"}],
            "fix": ["Replay the validation prompts through this server at temperature 0."], "verify": [], "ruled_out": [],
        }
    ],
    "total": 1, "limit": 100, "offset": 0,
}  # fmt: skip

router = APIRouter(prefix="/api/v1", responses=_ERRORS)

Word = Literal["info", "warning", "critical"]


class Line(BaseModel):
    """A line, or another place, that a finding rests on."""

    source: str
    line: int | None
    text: str


class Rival(BaseModel):
    """Another explanation, and what speaks against it."""

    name: str
    why: str


class FindingEntry(BaseModel):
    """A finding as the diagnosis document has it, with its history and what its run serves.

    Instants are seconds since 1970; `resolved_at` is null while it is open.
    """

    id: int
    run: str
    state: FindingState
    first_seen: float
    last_seen: float
    resolved_at: float | None
    target: str
    draft: str
    deployment: str | None
    rule: str
    name: str
    severity: Word
    confidence: str
    scope: str
    title: str
    why: str
    values: dict[str, Any] = Field(description="the figures it rests on, by quantity where they are one")
    evidence: list[Line]
    fix: list[str]
    verify: list[str]
    ruled_out: list[Rival] = []


class FindingList(BaseModel):
    """A page of findings; `total` counts all that match."""

    findings: list[FindingEntry]
    total: int
    limit: int
    offset: int


@router.get(
    "/findings",
    summary="Findings of all runs, the gravest first",
    responses={
        200: {
            "description": "Some findings, and how many match.",
            "content": {"application/json": {"example": _EXAMPLE}},
        }
    },
)
def findings(
    request: Request,
    rule: Annotated[str, Query(max_length=80, description="Its code or name", examples=["ACC001"])] = "",
    severity: Annotated[Word | None, Query(description="This severity and graver ones")] = None,
    state: Annotated[FindingState | None, Query(description="Without it open and resolved ones")] = None,
    run: Annotated[str, Query(max_length=40, description="Id of a run", examples=["17"])] = "",
    model: Annotated[str, Query(max_length=200, description="Part of a model's name", examples=["kimi"])] = "",
    deployment: Annotated[str, Query(max_length=200, examples=["chat"])] = "",
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 100,
    offset: Annotated[int, Query(ge=0, le=LARGEST_NUMBER)] = 0,
) -> FindingList:
    """Each with its evidence; a finding that is gone is resolved and stays."""
    wanted = FindingFilter(
        rule,
        None if severity is None else Severity[severity.upper()],
        state,
        run_number(run) if run else None,
        model,
        deployment,
    )
    with _database(request).reading() as connection:
        found, total = list_findings(connection, wanted, limit=limit, offset=offset)
    return FindingList(findings=list(map(_entry, found)), total=total, limit=limit, offset=offset)


def _entry(listed: ListedFinding) -> FindingEntry:
    stored = listed.stored
    return FindingEntry(
        id=stored.id,
        run=str(stored.run_id),
        state=stored.state,
        first_seen=stored.first_seen,
        last_seen=stored.last_seen,
        resolved_at=stored.resolved_at,
        target=listed.target_model,
        draft=listed.draft_model,
        deployment=listed.deployment,
        **finding_document(stored.finding),
    )


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database
