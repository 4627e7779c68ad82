"""Reports as they were made when a run was judged last, so that nothing is judged anew to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from collector.storage.tables import REPORTS


@dataclass(frozen=True, slots=True)
class StoredReport:
    """What is kept of a report.

    ``state`` stands for all that it rests on, ``step`` is what led to the run from the one before it (``None`` where
    there is none), ``content`` everything else, packed.
    """

    state: str
    step: Mapping[str, Any] | None
    content: bytes


def save_report(connection: Connection, run_id: int, report: StoredReport) -> None:
    """Store the report of a run in place of the one before."""
    connection.execute(delete(REPORTS).where(REPORTS.c.run_id == run_id))
    values = {"run_id": run_id, "state": report.state, "step": report.step, "content": report.content}
    connection.execute(insert(REPORTS), values)


def load_report(connection: Connection, run_id: int) -> StoredReport | None:
    """The report of a run; ``None`` where none was stored."""
    columns = REPORTS.c
    query = select(columns.state, columns.step, columns.content).where(columns.run_id == run_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else StoredReport(row.state, row.step, row.content)


def load_steps(connection: Connection, run_ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """What led to each of these runs from the one before it, where that is known."""
    columns = REPORTS.c
    query = select(columns.run_id, columns.step).where(columns.run_id.in_(run_ids), columns.step.is_not(None))
    return {row.run_id: row.step for row in connection.execute(query) if row.step is not None}
