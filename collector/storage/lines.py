"""Lines of sources that something rests on; kept so that evidence survives log rotation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, delete, exists, select

from collector.domain.evidence import Evidence
from collector.storage.bulk import digest_of, insert_or_keep
from collector.storage.tables import FINDING_EVIDENCE, RUN_EVENTS, SOURCE_LINES

_CHUNK = 500


def save_lines(connection: Connection, run_id: int, evidence: Iterable[Evidence | None]) -> Mapping[Evidence, int]:
    """Store lines of a run once each; returns their ids."""
    digests = {item: digest_of(item.source, item.line, item.text) for item in evidence if item is not None}
    if not digests:
        return {}
    rows = [
        {"run_id": run_id, "digest": digest, "source": item.source, "line": item.line, "text": item.text}
        for item, digest in digests.items()
    ]
    connection.execute(insert_or_keep(connection, SOURCE_LINES), rows)
    ids: dict[str, int] = {}
    wanted = sorted(set(digests.values()))
    for start in range(0, len(wanted), _CHUNK):
        query = select(SOURCE_LINES.c.digest, SOURCE_LINES.c.id).where(
            SOURCE_LINES.c.run_id == run_id, SOURCE_LINES.c.digest.in_(wanted[start : start + _CHUNK])
        )
        ids.update((row.digest, row.id) for row in connection.execute(query))
    return {item: ids[digest] for item, digest in digests.items()}


def forget_unused_lines(connection: Connection, run_ids: Sequence[int]) -> None:
    """Delete lines of runs on which no event and no finding rests any more."""
    line = SOURCE_LINES.c.id
    used = [exists().where(table.c.line_id == line) for table in (RUN_EVENTS, FINDING_EVIDENCE)]
    connection.execute(delete(SOURCE_LINES).where(SOURCE_LINES.c.run_id.in_(run_ids), *(~use for use in used)))


def load_lines(connection: Connection, run_id: int) -> Mapping[int, Evidence]:
    """All stored lines of a run by id."""
    query = select(SOURCE_LINES.c.id, SOURCE_LINES.c.source, SOURCE_LINES.c.line, SOURCE_LINES.c.text)
    rows = connection.execute(query.where(SOURCE_LINES.c.run_id == run_id))
    return {row.id: Evidence(row.source, row.line, row.text) for row in rows}
