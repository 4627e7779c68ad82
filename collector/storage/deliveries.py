"""The outbox: messages to alert channels, queued in the transaction that made them due."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from collector.storage.tables import ALERT_CHANNELS, ALERT_DELIVERIES


class DeliveryStatus(StrEnum):
    """Where a message stands: ``pending`` is tried again, ``failed`` was given up."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one channel. Instants are seconds since 1970.

    ``message_id`` is the same at every attempt, so that a receiver can drop repetitions. Messages of
    one ``subject`` reach a channel in the order they were queued.
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
    finished_at: float | None
    last_error: str


@dataclass(frozen=True, slots=True)
class Channel:
    """How sending to a channel went lately."""

    name: str
    kind: str
    last_success: float | None
    last_failure: float | None
    last_error: str


def save_channel(connection: Connection, name: str, kind: str) -> None:
    """Make a channel known; settings (and secrets) stay in the settings."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(ALERT_CHANNELS).values(name=name, kind=kind, last_error="")
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"kind": kind}))


def list_channels(connection: Connection) -> list[Channel]:
    """All channels by name."""
    rows = connection.execute(select(ALERT_CHANNELS).order_by(ALERT_CHANNELS.c.name))
    return [Channel(row.name, row.kind, row.last_success, row.last_failure, row.last_error) for row in rows]


def enqueue(
    connection: Connection,
    channel: str,
    event: str,
    payload: Mapping[str, Any],
    *,
    finding_id: int | None = None,
    subject: str | None = None,
    at: float,
) -> int:
    """Queue a message for a known channel, due at once; returns its id.

    Without ``subject`` the message belongs to its finding, or stands alone.
    """
    message_id = f"msg_{secrets.token_urlsafe(18)}"
    if subject is None:
        subject = message_id if finding_id is None else f"finding {finding_id}"
    values = {
        "message_id": message_id,
        "channel": channel,
        "finding_id": finding_id,
        "subject": subject,
        "event": event,
        "payload": dict(payload),
        "status": DeliveryStatus.PENDING.value,
        "attempts": 0,
        "created_at": at,
        "next_try": at,
        "last_error": "",
    }
    return int(
        connection.execute(insert(ALERT_DELIVERIES).values(values).returning(ALERT_DELIVERIES.c.id)).scalar_one()
    )


def due(connection: Connection, *, at: float, limit: int = 100) -> list[Delivery]:
    """Messages to send now, in the order they were queued.

    A message waits while an earlier one of the same subject to the same channel is pending,
    so that "resolved" never arrives before "opened".
    """
    return [_delivery(row) for row in connection.execute(_due(at, limit))]


def claim(connection: Connection, *, at: float, until: float, limit: int = 100) -> list[Delivery]:
    """Messages to send now, as :func:`due`; no other process gets them before ``until``.

    Whoever is killed while sending leaves them due from then on.
    """
    query = _due(at, limit).with_for_update(skip_locked=True, of=ALERT_DELIVERIES)
    claimed = [_delivery(row) for row in connection.execute(query)]
    columns = ALERT_DELIVERIES.c
    ids = [delivery.id for delivery in claimed]
    connection.execute(update(ALERT_DELIVERIES).where(columns.id.in_(ids)).values(next_try=until))
    return claimed


def _due(at: float, limit: int) -> Select[Any]:
    columns = ALERT_DELIVERIES.c
    pending = columns.status == DeliveryStatus.PENDING.value
    before = ALERT_DELIVERIES.alias("before")
    held = (
        select(before.c.id)
        .where(
            before.c.status == DeliveryStatus.PENDING.value,
            before.c.channel == columns.channel,
            before.c.subject == columns.subject,
            before.c.id < columns.id,
        )
        .exists()
    )
    return select(ALERT_DELIVERIES).where(pending, columns.next_try <= at, ~held).order_by(columns.id).limit(limit)


def last_event(connection: Connection, channel: str, subject: str) -> str | None:
    """What the latest message of a subject to a channel says, given up ones left out; ``None`` if there is none."""
    columns = ALERT_DELIVERIES.c
    query = select(columns.event).where(
        columns.channel == channel, columns.subject == subject, columns.status != DeliveryStatus.FAILED.value
    )
    found: str | None = connection.execute(query.order_by(columns.id.desc()).limit(1)).scalar_one_or_none()
    return found


def mark_sent(connection: Connection, delivery: Delivery, *, at: float) -> None:
    """Note that a message was accepted."""
    _finish(connection, delivery, {"status": DeliveryStatus.SENT.value, "finished_at": at, "last_error": ""})
    values = {"last_success": at, "last_error": ""}
    connection.execute(update(ALERT_CHANNELS).where(ALERT_CHANNELS.c.name == delivery.channel).values(values))


def mark_failed(connection: Connection, delivery: Delivery, error: str, *, next_try: float | None, at: float) -> None:
    """Note a failed attempt; without ``next_try`` the message is given up."""
    values: dict[str, Any] = {"last_error": error}
    if next_try is None:
        values |= {"status": DeliveryStatus.FAILED.value, "finished_at": at}
    else:
        values["next_try"] = next_try
    _finish(connection, delivery, values)
    channel = {"last_failure": at, "last_error": error}
    connection.execute(update(ALERT_CHANNELS).where(ALERT_CHANNELS.c.name == delivery.channel).values(channel))


def list_deliveries(
    connection: Connection,
    *,
    channel: str | None = None,
    status: DeliveryStatus | None = None,
    finding_id: int | None = None,
    limit: int = 100,
) -> list[Delivery]:
    """Messages, the latest first."""
    columns = ALERT_DELIVERIES.c
    query = select(ALERT_DELIVERIES)
    if channel is not None:
        query = query.where(columns.channel == channel)
    if status is not None:
        query = query.where(columns.status == status.value)
    if finding_id is not None:
        query = query.where(columns.finding_id == finding_id)
    return [_delivery(row) for row in connection.execute(query.order_by(columns.id.desc()).limit(limit))]


def _finish(connection: Connection, delivery: Delivery, values: Mapping[str, Any]) -> None:
    columns = ALERT_DELIVERIES.c
    statement = update(ALERT_DELIVERIES).where(columns.id == delivery.id)
    connection.execute(statement.values({**values, "attempts": columns.attempts + 1}))


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        row.id, row.message_id, row.channel, row.finding_id, row.subject, row.event, row.payload, DeliveryStatus(row.status),
        row.attempts, row.created_at, row.next_try, row.finished_at, row.last_error,
    )  # fmt: skip
