"""The outbox: messages to alert channels, queued in the transaction that made them due."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from collector.storage.tables import ALERT_CHANNELS, ALERT_DELIVERIES

_D: Final = ALERT_DELIVERIES.c
_C: Final = ALERT_CHANNELS.c


class DeliveryStatus(StrEnum):
    """Where a message stands.

    ``held`` waits until it is sure that it has to be sent, and may be dropped until then; ``pending`` is
    to be sent, or tried again; ``failed`` was given up; ``dropped`` was not needed any more.
    """

    HELD = "held"
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"


UNFINISHED: Final = (DeliveryStatus.HELD.value, DeliveryStatus.PENDING.value)
_NOT_TOLD: Final = (DeliveryStatus.FAILED.value, DeliveryStatus.DROPPED.value)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One finding's change told to one channel. Instants are seconds since 1970.

    ``message_id`` is the same at every attempt, so that a receiver can drop repetitions, and for all
    deliveries that travel in one message. Those of one ``subject`` reach a channel in the order they
    were queued. ``answer`` is what the receiver said when it accepted, ``last_error`` why it did not.
    """

    id: int
    message_id: str
    channel: str
    finding_id: int | None
    subject: str
    event: str
    payload: Mapping[str, Any]
    status: DeliveryStatus
    attempts: int
    created_at: float
    next_try: float
    tried_at: float | None
    finished_at: float | None
    last_error: str
    answer: str


@dataclass(frozen=True, slots=True)
class Channel:
    """How sending to a channel went lately; while it is paused nothing is sent to it."""

    name: str
    kind: str
    last_success: float | None
    last_failure: float | None
    last_error: str
    failures_in_a_row: int
    paused_until: float | None


def save_channel(connection: Connection, name: str, kind: str) -> None:
    """Make a channel known; settings (and secrets) stay in the settings."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(ALERT_CHANNELS).values(name=name, kind=kind, last_error="", failures_in_a_row=0)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"kind": kind}))


def list_channels(connection: Connection) -> list[Channel]:
    """All channels by name."""
    rows = connection.execute(select(ALERT_CHANNELS).order_by(_C.name))
    return [
        Channel(row.name, row.kind, row.last_success, row.last_failure, row.last_error, row.failures_in_a_row, row.paused_until)
        for row in rows
    ]  # fmt: skip


def enqueue(
    connection: Connection,
    channel: str,
    event: str,
    payload: Mapping[str, Any],
    *,
    finding_id: int | None = None,
    subject: str | None = None,
    hold_until: float | None = None,
    at: float,
) -> int:
    """Queue a message for a known channel, due at once, or held at least until an instant; returns its id.

    Without ``subject`` the message belongs to its finding, or stands alone.
    """
    message_id = f"msg_{secrets.token_urlsafe(18)}"
    if subject is None:
        subject = message_id if finding_id is None else f"finding {finding_id}"
    status = DeliveryStatus.PENDING if hold_until is None else DeliveryStatus.HELD
    values = {
        "message_id": message_id,
        "channel": channel,
        "finding_id": finding_id,
        "subject": subject,
        "event": event,
        "payload": dict(payload),
        "status": status.value,
        "attempts": 0,
        "created_at": at,
        "next_try": at if hold_until is None else hold_until,
        "last_error": "",
        "answer": "",
    }
    return int(connection.execute(insert(ALERT_DELIVERIES).values(values).returning(_D.id)).scalar_one())


def drop(connection: Connection, ids: Iterable[int], reason: str, *, at: float) -> None:
    """Messages that are not needed any more."""
    values = {"status": DeliveryStatus.DROPPED.value, "finished_at": at, "last_error": reason}
    connection.execute(update(ALERT_DELIVERIES).where(_D.id.in_(list(ids))).values(values))


def hold(connection: Connection, delivery: Delivery, *, until: float, reason: str) -> None:
    """Keep a held message back for longer."""
    values = {"next_try": until, "last_error": reason}
    connection.execute(update(ALERT_DELIVERIES).where(_D.id == delivery.id).values(values))


def release(connection: Connection, ids: Sequence[int], *, at: float) -> None:
    """Held messages are to be sent."""
    values = {"status": DeliveryStatus.PENDING.value, "next_try": at, "last_error": ""}
    connection.execute(update(ALERT_DELIVERIES).where(_D.id.in_(ids)).values(values))


def held_until(connection: Connection, *, at: float, limit: int = 500) -> list[Delivery]:
    """Held messages whose time has come, in the order they were queued."""
    query = select(ALERT_DELIVERIES).where(_D.status == DeliveryStatus.HELD.value, _D.next_try <= at)
    return [_delivery(row) for row in connection.execute(query.order_by(_D.id).limit(limit))]


def due(connection: Connection, *, at: float, channel: str | None = None, limit: int = 100) -> list[Delivery]:
    """Messages to send now, in the order they were queued.

    A message waits while an earlier one of the same subject to the same channel is not finished,
    so that "resolved" never arrives before "opened".
    """
    return [_delivery(row) for row in connection.execute(_due(at, channel, limit))]


def claim(connection: Connection, messages: Iterable[Sequence[Delivery]], *, at: float, until: float) -> None:
    """Take messages, each made of the deliveries that travel together; no other process gets them before ``until``.

    Whoever is killed while sending leaves them due from then on, and together.
    """
    for deliveries in messages:
        values = {"message_id": deliveries[0].message_id, "tried_at": at, "next_try": until}
        connection.execute(update(ALERT_DELIVERIES).where(_D.id.in_([d.id for d in deliveries])).values(values))


def put_back(connection: Connection, ids: Iterable[int], *, next_try: float) -> None:
    """Messages that were taken and not tried."""
    connection.execute(update(ALERT_DELIVERIES).where(_D.id.in_(list(ids))).values(next_try=next_try))


def companions(connection: Connection, deliveries: Sequence[Delivery]) -> list[Delivery]:
    """These and what travels in the same messages, in the order they were queued."""
    ids = {delivery.message_id for delivery in deliveries}
    query = select(ALERT_DELIVERIES).where(_D.message_id.in_(ids), _D.status == DeliveryStatus.PENDING.value)
    return [_delivery(row) for row in connection.execute(query.order_by(_D.id))]


def tried_since(connection: Connection, channel: str, since: float) -> int:
    """How many messages a channel was tried with since an instant, each once."""
    query = select(func.count(_D.message_id.distinct())).where(_D.channel == channel, _D.tried_at > since)
    return int(connection.execute(query).scalar_one())


def _due(at: float, channel: str | None, limit: int) -> Select[Any]:
    before = ALERT_DELIVERIES.alias("before")
    blocked = (
        select(before.c.id)
        .where(
            before.c.status.in_(UNFINISHED),
            before.c.channel == _D.channel,
            before.c.subject == _D.subject,
            before.c.id < _D.id,
        )
        .exists()
    )
    query = select(ALERT_DELIVERIES).where(_D.status == DeliveryStatus.PENDING.value, _D.next_try <= at, ~blocked)
    if channel is not None:
        query = query.where(_D.channel == channel)
    return query.order_by(_D.id).limit(limit)


def give_up(
    connection: Connection, reason: str, *, at: float, before: float | None = None, besides: Iterable[str] = ()
) -> None:
    """Give up what is not finished: queued before an instant, to channels other than those of ``besides``."""
    query = update(ALERT_DELIVERIES).where(_D.status.in_(UNFINISHED), _D.channel.not_in(list(besides)))
    if before is not None:
        query = query.where(_D.created_at < before)
    connection.execute(query.values(status=DeliveryStatus.FAILED.value, finished_at=at, last_error=reason))


def last_told(connection: Connection, channel: str, subject: str) -> Delivery | None:
    """The latest message of a subject to a channel that was not given up or dropped; ``None`` if there is none."""
    query = select(ALERT_DELIVERIES).where(_D.channel == channel, _D.subject == subject, _D.status.not_in(_NOT_TOLD))
    row = connection.execute(query.order_by(_D.id.desc()).limit(1)).one_or_none()
    return None if row is None else _delivery(row)


def told_before(connection: Connection, channel: str, events: Iterable[str], before: float) -> list[Delivery]:
    """The latest message of each subject, where it is one of these events and arrived before an instant."""
    latest = select(func.max(_D.id)).where(_D.channel == channel, _D.status.not_in(_NOT_TOLD)).group_by(_D.subject)
    query = select(ALERT_DELIVERIES).where(
        _D.id.in_(latest),
        _D.event.in_(list(events)),
        _D.status == DeliveryStatus.SENT.value,
        _D.finished_at <= before,
    )
    return [_delivery(row) for row in connection.execute(query.order_by(_D.id))]


def forget(connection: Connection, delivery: Delivery) -> None:
    """Delete a finished message that a newer one takes the place of."""
    connection.execute(delete(ALERT_DELIVERIES).where(_D.id == delivery.id))


def mark_sent(connection: Connection, deliveries: Sequence[Delivery], answer: str, *, at: float) -> None:
    """Note that a message was accepted."""
    values = {"status": DeliveryStatus.SENT.value, "finished_at": at, "last_error": "", "answer": answer}
    _finish(connection, deliveries, values)
    channel = {"last_success": at, "last_error": "", "failures_in_a_row": 0, "paused_until": None}
    connection.execute(update(ALERT_CHANNELS).where(_C.name == deliveries[0].channel).values(channel))


def mark_failed(
    connection: Connection,
    deliveries: Sequence[Delivery],
    error: str,
    *,
    next_try: float | None,
    at: float,
    pause: Callable[[int], float | None] = lambda _: None,
) -> float | None:
    """Note a failed attempt; without ``next_try`` the message is given up.

    ``pause`` says from the failures in a row until when the channel is left alone; returns that.
    """
    values: dict[str, Any] = {"last_error": error}
    if next_try is None:
        values |= {"status": DeliveryStatus.FAILED.value, "finished_at": at}
    else:
        values["next_try"] = next_try
    _finish(connection, deliveries, values)
    named = _C.name == deliveries[0].channel
    failures = connection.execute(select(_C.failures_in_a_row).where(named)).scalar_one() + 1
    until = pause(failures)
    channel = {"last_failure": at, "last_error": error, "failures_in_a_row": failures, "paused_until": until}
    connection.execute(update(ALERT_CHANNELS).where(named).values(channel))
    return until


def count_unfinished(connection: Connection) -> dict[str, int]:
    """How many messages wait, by channel."""
    query = select(_D.channel, func.count().label("waiting")).where(_D.status.in_(UNFINISHED)).group_by(_D.channel)
    return {row.channel: row.waiting for row in connection.execute(query)}


def list_deliveries(
    connection: Connection,
    *,
    channel: str | None = None,
    status: DeliveryStatus | None = None,
    finding_id: int | None = None,
    limit: int = 100,
) -> list[Delivery]:
    """Messages, the latest first."""
    query = select(ALERT_DELIVERIES)
    if channel is not None:
        query = query.where(_D.channel == channel)
    if status is not None:
        query = query.where(_D.status == status.value)
    if finding_id is not None:
        query = query.where(_D.finding_id == finding_id)
    return [_delivery(row) for row in connection.execute(query.order_by(_D.id.desc()).limit(limit))]


def load_delivery(connection: Connection, delivery_id: int) -> Delivery:
    """One that is there."""
    return _delivery(connection.execute(select(ALERT_DELIVERIES).where(_D.id == delivery_id)).one())


def _finish(connection: Connection, deliveries: Sequence[Delivery], values: Mapping[str, Any]) -> None:
    statement = update(ALERT_DELIVERIES).where(_D.id.in_([delivery.id for delivery in deliveries]))
    connection.execute(statement.values({**values, "attempts": _D.attempts + 1}))


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        row.id, row.message_id, row.channel, row.finding_id, row.subject, row.event, row.payload, DeliveryStatus(row.status),
        row.attempts, row.created_at, row.next_try, row.tried_at, row.finished_at, row.last_error, row.answer,
    )  # fmt: skip
