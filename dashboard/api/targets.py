"""Which engines are watched, and how that goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Depends, Request

from collector.domain.errors import DraftscopeError, InputError, RefusedError
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token
from dashboard.collecting import Collection, TargetState
from dashboard.feeding import Feeding, SourceState

router = APIRouter(prefix="/api/v1")

_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "The settings cannot be used; what was watched goes on."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "This service does not read its settings again."},
}


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One address: what answers there and since when it does not; ``error`` is empty while all is well."""

    address: str
    deployment: str
    labels: Mapping[str, str]
    engine: str
    run_id: int | None
    scrapes: int
    failures_in_a_row: int
    last_success_at: float | None
    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class TargetList:
    """Every address that is watched, and what could not be looked up."""

    targets: list[TargetRow]
    problems: list[str]


@router.get("/targets", summary="Engines that are watched")
def list_targets(request: Request) -> TargetList:
    """How watching each address goes."""
    collection: Collection | None = request.app.state.collection
    if collection is None:
        return TargetList([], [])
    return TargetList(
        [_row(state) for state in collection.states()], [str(problem) for problem in collection.problems.values()]
    )


def _row(state: TargetState) -> TargetRow:
    return TargetRow(**{name: getattr(state, name) for name in TargetRow.__slots__})


@dataclass(frozen=True, slots=True)
class Reloaded:
    """How many tables of the settings hold from now on."""

    targets: int
    sources: int


@router.post(
    "/targets/reload", summary="Read the settings again", responses=_REFUSED, dependencies=[Depends(require_token)]
)
async def reload_targets(request: Request) -> Reloaded:
    """Watch the targets and read the sources that the settings name now; what stays the same goes on undisturbed.

    Settings that cannot be used change nothing, and the error says what is wrong with them. The same as SIGHUP.
    """
    reload: Callable[[], tuple[int, int]] | None = request.app.state.reload
    if reload is None:
        raise RefusedError("this service does not read its settings again", hint="start it with draftscope serve")
    try:
        targets, sources = reload()
    except DraftscopeError as error:
        raise InputError(
            "the settings cannot be used; what was watched goes on", why=": ".join(filter(None, (error.what, error.why))),
            where=error.where, hint=error.hint,
        ) from error  # fmt: skip
    return Reloaded(targets, sources)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One source: what is read there, and since when it cannot be; ``error`` is empty while all is well."""

    kind: str
    place: str
    runs: int
    failures_in_a_row: int
    last_success_at: float | None
    problems: tuple[str, ...]
    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class SourceList:
    """Every source that is read."""

    sources: list[SourceRow]


@router.get("/sources", summary="Stores of metrics and logs that are read")
def list_sources(request: Request) -> SourceList:
    """How reading each source goes."""
    feeding: Feeding | None = request.app.state.feeding
    return SourceList([] if feeding is None else [_source_row(state) for state in feeding.states()])


def _source_row(state: SourceState) -> SourceRow:
    return SourceRow(**{name: getattr(state, name) for name in SourceRow.__slots__})
