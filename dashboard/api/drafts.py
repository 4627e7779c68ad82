"""The registry of drafts over HTTP. Reading is open as everything is, writing needs the token."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token
from dashboard.drafts import DraftDocument, RegisteredDraft
from dashboard.store import RunStore

_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "A figure is not possible."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "Another site's page sent the request."},
}
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    422: {"model": ErrorDocument, "description": "The document is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}
_UNKNOWN: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is no such draft."},
}

router = APIRouter(prefix="/api/v1/drafts", responses=_ERRORS)

DraftId = Annotated[int, Path(ge=1, lt=1 << 53)]


class DraftList(BaseModel):
    """All registered drafts, by name."""

    drafts: list[RegisteredDraft]


class Removed(BaseModel):
    """Which draft is no longer registered."""

    removed: int


def _store(request: Request) -> RunStore:
    store: RunStore = request.app.state.store
    return store


@router.get("", summary="Registered drafts with their validation figures")
def list_drafts(request: Request) -> DraftList:
    """What runs of these drafts are held against."""
    return DraftList(drafts=list(_store(request).drafts()))


@router.post(
    "", summary="Register a draft, or add figures to one", status_code=201, responses=_REFUSED,
    dependencies=[Depends(require_token)],
)  # fmt: skip
def add_draft(request: Request, draft: DraftDocument) -> RegisteredDraft:
    """Safe to repeat: the same name, config and figures are stored once."""
    return _store(request).add_draft(draft)


@router.delete(
    "/{draft_id}", summary="Take a draft out of the registry", responses={**_REFUSED, **_UNKNOWN},
    dependencies=[Depends(require_token)],
)  # fmt: skip
def remove_draft(request: Request, draft_id: DraftId) -> Removed:
    """Runs that were stored with figures of their own keep them."""
    _store(request).remove_draft(draft_id)
    return Removed(removed=draft_id)
