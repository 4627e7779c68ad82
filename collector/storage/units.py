"""Names of units, which samples hold as numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection

from collector.storage.bulk import insert_or_keep, rows_of
from collector.storage.tables import UNITS
from collector.storage.types import storable


def unit_ids(connection: Connection, names: Collection[str]) -> Mapping[str, int]:
    """The ids of units by name as it was read, stored on first sight."""
    stored = {name: storable(name) for name in names}
    if not stored:
        return {}
    known = {name: unit_id for unit_id, name in unit_names(connection).items()}
    fresh = sorted(set(stored.values()) - known.keys())
    if fresh:
        connection.execute(insert_or_keep(connection, UNITS), [{"name": name} for name in fresh])
        known = {name: unit_id for unit_id, name in unit_names(connection).items()}
    return {name: known[text] for name, text in stored.items()}


def unit_names(connection: Connection) -> Mapping[int, str]:
    """The names of all units by id."""
    return dict(rows_of(connection, f"SELECT id, name FROM {UNITS.name}"))  # noqa: S608 - our name
