"""Silences: findings that nobody is told of for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, insert, select, update

from collector.domain.errors import UnknownName
from collector.storage.tables import ALERT_SILENCES

_S: Final = ALERT_SILENCES.c


@dataclass(frozen=True, slots=True)
class Silence:
    """What is kept quiet, until when, and why. Patterns may hold ``*``; an empty one fits everything.

    ``rule`` is a rule's code or name, ``run`` a run's id. Instants are seconds since 1970.
    """

    id: int
    rule: str
    deployment: str
    run: str
    labels: Mapping[str, str]
    comment: str
    created_at: float
    ends_at: float


def add_silence(
    connection: Connection,
    *,
    rule: str = "",
    deployment: str = "",
    run: str = "",
    labels: Mapping[str, str] | None = None,
    comment: str = "",
    at: float,
    until: float,
) -> Silence:
    """Begin a silence."""
    values = {"rule": rule, "deployment": deployment, "run": run, "labels": dict(labels or {}), "comment": comment,
              "created_at": at, "ends_at": until}  # fmt: skip
    made = connection.execute(insert(ALERT_SILENCES).values(values).returning(_S.id)).scalar_one()
    return Silence(int(made), rule, deployment, run, dict(labels or {}), comment, at, until)


def list_silences(connection: Connection, *, at: float) -> list[Silence]:
    """The silences that hold at an instant, the one that ends first before the others."""
    query = select(ALERT_SILENCES).where(_S.ends_at > at).order_by(_S.ends_at, _S.id)
    return [
        Silence(row.id, row.rule, row.deployment, row.run, row.labels, row.comment, row.created_at, row.ends_at)
        for row in connection.execute(query)
    ]


def end_silence(connection: Connection, silence_id: int, *, at: float) -> None:
    """End a silence now.

    Raises:
        UnknownName: none of this id holds.
    """
    ended = connection.execute(update(ALERT_SILENCES).where(_S.id == silence_id, _S.ends_at > at).values(ends_at=at))
    if ended.rowcount == 0:
        raise UnknownName(f"no silence {silence_id} holds", hint="draftscope alerts silences lists them")
