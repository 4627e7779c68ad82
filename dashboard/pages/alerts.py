"""The page of alerts: what fires, silences, channels, and the log of deliveries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from collector.domain.errors import DraftscopeError, MalformedInput
from collector.storage.silences import Silence
from dashboard.alert_book import AlertBook, ChannelRow, DeliveryRow, FiringRow, duration
from dashboard.api.alerts import known_book, needed_book
from dashboard.api.errors import status_of
from dashboard.api.security import check_token
from dashboard.pages import figures
from dashboard.pages.templating import render

LASTING: Final = {"1h": "1 hour", "2h": "2 hours", "8h": "8 hours", "1d": "1 day", "7d": "7 days"}
_MOST_DELIVERIES: Final = 50
_STATES: Final = {
    "ready": ("ok", "reaches it"),
    "failing": ("problem", "last attempt failed"),
    "paused": ("problem", "paused, tried again"),
    "unused": ("cannot_tell", "not tried yet"),
}
_STATUSES: Final = {
    "held": "held",
    "pending": "waits",
    "sent": "arrived",
    "failed": "given up",
    "dropped": "not needed",
}

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_Text = Annotated[str, Form(max_length=500)]


@dataclass(frozen=True, slots=True)
class Row:
    """One finding that fires."""

    severity: str
    title: str
    link: str
    rule: str
    where: str
    since: str
    told: str
    silenced: str
    silence_link: str


@dataclass(frozen=True, slots=True)
class Hush:
    """One silence."""

    id: int
    what: str
    until: str
    comment: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One line of the log."""

    when: str
    channel: str
    event: str
    title: str
    link: str
    status: str
    failed: bool
    attempts: int
    answer: str


@dataclass(frozen=True, slots=True)
class Line:
    """One channel: the mark and words for its state beside what is known of it."""

    row: ChannelRow
    mark: str
    state: str
    last: str


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """The page; ``done`` says what a form just did, ``problem`` why it could not."""

    statement: str
    firing: tuple[Row, ...]
    silences: tuple[Hush, ...]
    channels: tuple[Line, ...]
    deliveries: tuple[Sent, ...]
    asks_token: bool
    form: Mapping[str, str]
    lasting: Mapping[str, str]
    done: str = ""
    problem: DraftscopeError | None = None


@router.get("/alerts")
def alerts(
    request: Request,
    rule: Annotated[str, Query(max_length=200)] = "",
    deployment: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """The page; the query fills the form of silences."""
    return _answer(request, form={"rule": rule, "deployment": deployment})


@router.post("/alerts/test")
def send_test(request: Request, channel: _Text = "", token: _Text = "") -> HTMLResponse:
    """Send a test message and say what came back."""

    def work(book: AlertBook) -> str:
        made = book.test(channel)
        arrived = "arrived" if made.status == "sent" else "did not arrive"
        return f"The test message to {channel} {arrived}: {made.answer}."

    return _done(request, token, work)


@router.post("/alerts/silences")
def add_silence(
    request: Request, rule: _Text = "", deployment: _Text = "", label: _Text = "", lasting: _Text = "2h",
    comment: _Text = "", token: _Text = "",
) -> HTMLResponse:  # fmt: skip
    """Begin a silence."""

    def work(book: AlertBook) -> str:
        name, sign, value = label.partition("=")
        if label and not (name and sign):
            raise MalformedInput(f"{label!r} is no label", hint="team=search")
        made = book.silence(
            seconds=duration(lasting), rule=rule, deployment=deployment, comment=comment,
            labels={name.strip(): value.strip()} if label else {},
        )  # fmt: skip
        return f"Silence {made.id} holds until {figures.instant(made.ends_at)} UTC."

    given = {"rule": rule, "deployment": deployment, "label": label, "lasting": lasting, "comment": comment}
    return _done(request, token, work, form=given)


@router.post("/alerts/silences/end")
def end_silence(request: Request, silence: Annotated[int, Form(ge=1, lt=1 << 53)], token: _Text = "") -> HTMLResponse:
    """End a silence."""

    def work(book: AlertBook) -> str:
        book.end_silence(silence)
        return f"Silence {silence} has ended. What it held back is told within half a minute."

    return _done(request, token, work)


def _done(
    request: Request, token: str, work: Callable[[AlertBook], str], form: Mapping[str, str] | None = None
) -> HTMLResponse:
    try:
        check_token(request, token)
        return _answer(request, done=work(needed_book(request)))
    except DraftscopeError as error:
        return _answer(request, problem=error, form=form or {}, status=status_of(error))


def _answer(
    request: Request, *, done: str = "", problem: DraftscopeError | None = None, form: Mapping[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:  # fmt: skip
    book = known_book(request)
    empty = {"rule": "", "deployment": "", "label": "", "lasting": "2h", "comment": ""}
    page = alerts_page(
        firing=book.firing() if book else [],
        silences=book.silences() if book else [],
        channels=book.channels() if book else [],
        deliveries=book.deliveries(limit=_MOST_DELIVERIES) if book else [],
        asks_token=bool(request.app.state.token),
        form={**empty, **(form or {})},
    )
    return HTMLResponse(render("alerts.html", {"page": replace(page, done=done, problem=problem)}), status)


def alerts_page(
    *, firing: Sequence[FiringRow], silences: Sequence[Silence], channels: Sequence[ChannelRow],
    deliveries: Sequence[DeliveryRow], asks_token: bool, form: Mapping[str, str],
) -> AlertsPage:  # fmt: skip
    """What the page says."""
    return AlertsPage(
        statement=_statement(firing),
        firing=tuple(map(_firing, firing)),
        silences=tuple(Hush(item.id, _fits(item), figures.instant(item.ends_at), item.comment) for item in silences),
        channels=tuple(map(_line, channels)),
        deliveries=tuple(map(_sent, deliveries)),
        asks_token=asks_token,
        form=form,
        lasting=LASTING,
    )


def _statement(firing: Sequence[FiringRow]) -> str:
    if not firing:
        return "Nothing fires"
    words = "finding fires" if len(firing) == 1 else "findings fire"
    quiet = sum(row.silence_id is not None for row in firing)
    untold = sum(row.silence_id is None and not row.told for row in firing)
    parts = [
        f"{len(firing)} {words}",
        *([f"{quiet} silenced"] if quiet else []),
        *([f"{untold} told to nobody"] if untold else []),
    ]
    return ", ".join(parts)


def _firing(row: FiringRow) -> Row:
    silenced = "" if row.silence_id is None else f"silence {row.silence_id}"
    where = [row.deployment, f"run {row.run_id}", *([row.scope] if row.scope != "run" else [])]
    wanted: dict[str, Any] = {"rule": row.rule, "deployment": row.deployment}
    return Row(
        row.severity, row.title, f"/runs/{row.run_id}#{row.rule}", row.rule, ", ".join(where), figures.instant(row.since),
        ", ".join(row.told) or "nobody", silenced, f"/alerts?{urlencode(wanted)}#silence",
    )  # fmt: skip


def _fits(item: Silence) -> str:
    parts = [item.rule, item.deployment, f"run {item.run}" if item.run else ""]
    return ", ".join(part for part in (*parts, *(f"{name}={value}" for name, value in item.labels.items())) if part)


def _line(row: ChannelRow) -> Line:
    mark, words = _STATES[row.state]
    if row.paused_until is not None:
        words += f" at {figures.clock(row.paused_until)} UTC"
    tried = [at for at in (row.last_success_at, row.last_failure_at) if at is not None]
    return Line(row, mark, words, f"{figures.instant(max(tried))} UTC" if tried else "")


def _sent(row: DeliveryRow) -> Sent:
    return Sent(
        figures.instant(row.created_at), row.channel, row.event, row.title, f"/runs/{row.run_id}" if row.run_id else "",
        _STATUSES[row.status], row.status == "failed", row.attempts, row.answer,
    )  # fmt: skip
