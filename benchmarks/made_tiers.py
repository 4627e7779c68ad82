"""Watched replicas with their windows in all tiers, made inside the database: what years of scrapes would leave there."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import insert, text

from collector.domain.runs import RunRecord
from collector.domain.windows import Origin, Window
from collector.storage.bulk import add_rows
from collector.storage.engine import Database
from collector.storage.packing import pack_counts, pack_figures
from collector.storage.partitions import make_room
from collector.storage.runs import save_run
from collector.storage.sources import source_at
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GAUGES,
    GROUPS,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
)
from collector.storage.tiers import shape_of
from collector.storage.units import unit_ids

BATCH = 10_000
START = 1_775_001_600
DAY = 86_400
INTERVAL = 15
GROUP = "chat"
_MEANS = {"running_requests": 24.0, "waiting_requests": 4.0, "tokens_in_use": 60_000.0, "kv_cache_usage": 0.4,
          "generation_throughput": 111.0}  # fmt: skip


def scrapes(replicas: int, number: int, start: float = START) -> Iterator[list[Window]]:
    """What is scraped of many engines, one after the other, round after round: vLLM's counters."""
    chance = random.Random(2)
    for round_ in range(number):
        for replica in range(replicas):
            at = start + round_ * INTERVAL + replica * INTERVAL / replicas + round(chance.random() / 50, 6)
            steps = chance.randrange(400, 900)
            at_positions = tuple(float(int(steps * share)) for share in (0.8, 0.55, 0.35))
            accepted = sum(at_positions)
            seconds = INTERVAL + round(chance.random() / 50, 6)
            yield [
                Window(
                    round(at * 1000), 0, at, "", seconds, float(chance.randrange(1, 48)), 0.0, float(steps), accepted,
                    3.0 * steps, steps + accepted, (steps + accepted) / seconds, None, None, None,
                    chance.random(), None, chance.randrange(9), at_positions, Origin.COUNTERS,
                )
            ]  # fmt: skip


def add_replicas(database: Database, records: Sequence[RunRecord]) -> list[int]:
    """Store runs that are watched, one stream each and all in one group; the run and stream of place i have the ids i + 1."""
    runs = []
    with database.transaction() as connection:
        connection.execute(insert(GROUPS).values(id=1, name=GROUP))
        unit = unit_ids(connection, {""})[""]
        for number, record in enumerate(records, 1):
            source = source_at(connection, record.source, at=0.0)
            runs.append(save_run(connection, record, source_id=source, deployment=GROUP, at=0.0))
            values = {"id": number, "run_id": runs[-1], "source_id": source, "unit_id": unit}
            connection.execute(insert(LIVE_STREAMS).values(values))
    return runs


def fill_raw(database: Database, replicas: int, windows: Sequence[Window]) -> None:
    """These raw windows for the first stream, and the same for all others, as if they had answered at the same instants."""
    for first in range(0, len(windows), BATCH):
        part = windows[first : first + BATCH]
        with database.transaction() as connection:
            make_room(connection, [LIVE_SAMPLES], {one.at // DAY * DAY for one in part})
            add_rows(connection, LIVE_SAMPLES, [(1, one.at, 0, pack_figures(one, None)) for one in part])
    for owner in range(2, replicas + 1):
        with database.transaction() as connection:
            query = f"INSERT INTO live_samples SELECT {owner}, at, place, figures FROM live_samples WHERE stream_id = 1"
            connection.execute(text(query))


def fill_rollups(database: Database, replicas: int, last: int, days: Mapping[int, int]) -> None:
    """Roll-ups of every replica and of their group up to ``last``, for so many days by minute (60) and by hour (3600)."""
    series = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count} - 1) "
    if database.engine.dialect.name == "postgresql":
        series = "WITH n(i) AS (SELECT * FROM generate_series(0, {count} - 1)) "
    for table, width, owners in (
        (MINUTE_SAMPLES, 60, replicas), (FLEET_MINUTE_SAMPLES, 60, 1),
        (HOUR_SAMPLES, 3600, replicas), (FLEET_HOUR_SAMPLES, 3600, 1),
    ):  # fmt: skip
        span = days[width] * DAY
        count = span // width
        values, shape = _values(width // INTERVAL * (replicas if owners == 1 else 1))
        with database.transaction() as connection:
            make_room(connection, [table], range(last - span, last, DAY))
            for owner in range(1, owners + 1):
                bucket = f"{last - span} + i * {width}"
                query = (
                    f"INSERT INTO {table.name} ({table.columns.keys()[0]}, bucket, shape, {', '.join(values)}) "
                    + series.format(count=count)
                    + f"SELECT {owner}, bucket, {shape}, {', '.join(values.values())} FROM "
                    f"(SELECT {bucket} AS bucket, (i * 7919 + {owner}) % 50000 / 50000.0 AS noise FROM n) AS made"
                )
                connection.execute(
                    text(query), {"accepted_at": pack_counts([1.0 * count for count in (520, 357, 227)])}
                )


def _values(windows: int) -> tuple[dict[str, str], int]:
    """Each column of a roll-up of so many windows as an expression of ``bucket`` and ``noise`` (0 to 1), and its shape."""
    gauges = {
        name + end: f"{mean * factor} * (0.8 + 0.4 * noise)"
        for name, mean in _MEANS.items()
        for end, factor in (("", windows), ("_low", 0.5), ("_high", 1.5))
    }
    assert set(_MEANS) == set(GAUGES)
    example = next(scrapes(1, 1))[0]._replace(tokens_in_use=1.0)
    return {
        "windows": str(windows),
        "last_at": "bucket + 59.5",
        "seconds": str(windows * INTERVAL),
        "verify_steps": str(650 * windows),
        "accepted_tokens": f"{650 * windows} * (1.65 + 0.1 * noise)",
        "drafted_tokens": str(3 * 650 * windows),
        "generated_tokens": f"{650 * windows} * (2.65 + 0.1 * noise)",
        "acceptance_low": "2.4 + noise / 10",
        "acceptance_high": "2.9 + noise / 10",
        **gauges,
        "prefills": "7",
        "accepted_at": ":accepted_at",
    }, shape_of(example)
