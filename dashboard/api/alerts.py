"""Alerts over HTTP: what fires, channels, the log, silences. Reading is open as everything is, writing needs the token."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, Field

from collector.domain.errors import UnknownName
from collector.storage.deliveries import DeliveryStatus
from collector.storage.silences import Silence
from dashboard.alert_book import LONGEST_COMMENT, LONGEST_SILENCE_SECONDS, AlertBook, ChannelRow, DeliveryRow, FiringRow
from dashboard.api.errors import ErrorDocument
from dashboard.api.security import require_token

MOST_DELIVERIES: Final = 500

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorDocument, "description": "There is no such channel or silence."},
    422: {"model": ErrorDocument, "description": "The request is malformed."},
    500: {"model": ErrorDocument, "description": "draftscope failed to answer."},
}
_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": ErrorDocument, "description": "The silence is not possible."},
    401: {"model": ErrorDocument, "description": "The token is missing or another one."},
    403: {"model": ErrorDocument, "description": "Another site's page sent the request."},
}

router = APIRouter(prefix="/api/v1/alerts", responses=_ERRORS)

_Pattern = Annotated[str, Field(max_length=200)]


class Firing(BaseModel):
    """Findings that are open now, the gravest first."""

    firing: list[FiringRow]


class Channels(BaseModel):
    """The channels of the settings, in their order; no secret is among it."""

    channels: list[ChannelRow]


class Deliveries(BaseModel):
    """The latest messages, the newest first."""

    deliveries: list[DeliveryRow]


class Silences(BaseModel):
    """The silences that hold now, the one that ends first before the others."""

    silences: list[Silence]


class NewSilence(BaseModel):
    """What to keep quiet, and for how long; patterns may hold ``*``, and at least one is needed."""

    rule: _Pattern = Field("", examples=["PAY001"])
    deployment: _Pattern = ""
    run: _Pattern = ""
    labels: dict[_Pattern, _Pattern] = Field(default_factory=dict, max_length=32, examples=[{"team": "search"}])
    seconds: float = Field(gt=0, le=LONGEST_SILENCE_SECONDS, examples=[7200])
    comment: str = Field("", max_length=LONGEST_COMMENT)


class Ended(BaseModel):
    """Which silence was ended."""

    ended: int


def known_book(request: Request) -> AlertBook | None:
    """The alerts of the running app; ``None`` where it has no database of its own."""
    book: AlertBook | None = request.app.state.alerts
    return book


def needed_book(request: Request) -> AlertBook:
    """The same for what changes them.

    Raises:
        UnknownName: there are none.
    """
    book = known_book(request)
    if book is None:
        raise UnknownName("nothing is alerted here", why="there is no database", hint="draftscope serve")
    return book


Known = Annotated[AlertBook | None, Depends(known_book)]
Needed = Annotated[AlertBook, Depends(needed_book)]


@router.get("", summary="Findings that are open now, and whom they were told")
def firing(book: Known) -> Firing:
    """Warnings and critical ones; sample runs never alert."""
    return Firing(firing=book.firing() if book else [])


@router.get("/channels", summary="Alert channels and how sending to them goes")
def channels(book: Known) -> Channels:
    """Each with where it leads, without anything secret."""
    return Channels(channels=book.channels() if book else [])


@router.post(
    "/channels/{name}/test", summary="Send a channel a test message", responses=_REFUSED,
    dependencies=[Depends(require_token)],
)  # fmt: skip
def test(book: Needed, name: Annotated[str, Path(max_length=200)]) -> DeliveryRow:
    """One attempt, now; ``status`` says whether it arrived and ``answer`` what came back."""
    return book.test(name)


@router.get("/deliveries", summary="Messages that were sent, or are to be")
def deliveries(
    book: Known,
    channel: Annotated[str | None, Query(max_length=200)] = None,
    status: DeliveryStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_DELIVERIES)] = 100,
) -> Deliveries:
    """With attempts and the answer received."""
    rows = book.deliveries(channel=channel, status=status, limit=limit) if book else []
    return Deliveries(deliveries=rows)


@router.get("/silences", summary="Silences that hold now")
def silences(book: Known) -> Silences:
    """What nobody is told of at present."""
    return Silences(silences=book.silences() if book else [])


@router.post(
    "/silences", summary="Keep findings quiet for a while", status_code=201, responses=_REFUSED,
    dependencies=[Depends(require_token)],
)  # fmt: skip
def silence(book: Needed, wanted: NewSilence) -> Silence:
    """Holds for findings that fit all that is given."""
    return book.silence(**wanted.model_dump())


@router.delete(
    "/silences/{silence_id}", summary="End a silence now", responses=_REFUSED, dependencies=[Depends(require_token)]
)
def end_silence(book: Needed, silence_id: Annotated[int, Path(ge=1, lt=1 << 53)]) -> Ended:
    """What was held back is told within half a minute, if it is still open."""
    book.end_silence(silence_id)
    return Ended(ended=silence_id)
