"""Windows of watched engines: roll-ups are kept with them, and stand in for those that were let go."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import Connection, delete, select

from collector.domain.runs import RunRecord
from collector.domain.windows import Origin, PrefillWindow, Window
from collector.storage.engine import Database
from collector.storage.live import Seen, append_live
from collector.storage.runs import load_run, save_run
from collector.storage.scrapes import last_scrape, save_scrape, scraped_at
from collector.storage.sources import source_at
from collector.storage.states import run_states
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    MINUTE_SAMPLES,
)

START = 1_775_001_600.0
ADDRESS = "http://gpu7:30000"


def window(at: float, *, length: float = 2.5, unit: str = "TP0", **more: object) -> Window:
    steps = 320.0
    figures = {
        "seconds": 15.0,
        "running_requests": 8.0,
        "verify_steps": steps,
        "accepted_tokens": round(steps * (length - 1)),
        "generated_tokens": round(steps * length),
        "generation_throughput": round(steps * length) / 15,
        "kv_cache_usage": 0.25,
        "accepted_at": (200.0, 100.0),
        "prefills": 1,
        "origin": Origin.COUNTERS,
    }
    return Window(round(at * 1000), 0, at, unit, **{**figures, **more})  # type: ignore[arg-type]


def scrape(connection: Connection, windows: list[Window], prefills: list[PrefillWindow] | None = None) -> int:
    record = RunRecord("sglang", ADDRESS, started_at=START - 60, ended_at=windows[-1].at, host="gpu7", port=30000)
    record = replace(record, windows=windows, prefills=prefills or [])
    after = scraped_at(connection, ADDRESS)
    return save_scrape(connection, record, address=ADDRESS, after=after, deployment="chat", at=windows[-1].at)


def test_every_scrape_is_in_each_tier(database: Database) -> None:
    seeded = random.Random(8)
    lengths = [round(seeded.uniform(1.5, 3.5), 2) for _ in range(40)]
    windows = [window(START + 15 * number, length=length) for number, length in enumerate(lengths)]
    with database.transaction() as connection:
        for one in windows:
            scrape(connection, [one], [PrefillWindow(one.position, 0, one.at, one.unit, 100.0, 50.0)])
    with database.reading() as connection:
        for table, per_row in (
            (MINUTE_SAMPLES, 4),
            (HOUR_SAMPLES, 40),
            (FLEET_MINUTE_SAMPLES, 4),
            (FLEET_HOUR_SAMPLES, 40),
        ):
            rows = connection.execute(select(table).where(table.c.windows > 0).order_by(table.c.bucket)).all()
            assert [row.windows for row in rows] == [per_row] * (40 // per_row)
            for number, row in enumerate(rows):
                part = windows[number * per_row : (number + 1) * per_row]
                assert row.verify_steps == sum(one.verify_steps for one in part)
                assert row.accepted_tokens == sum(one.accepted_tokens for one in part)
                assert row.seconds == 15.0 * per_row
                each = [1 + one.accepted_tokens / one.verify_steps for one in part]
                assert (row.acceptance_low, row.acceptance_high) == (min(each), max(each))
                throughput = [one.generation_throughput for one in part]
                assert row.generation_throughput == pytest.approx(sum(throughput))
                assert row.generation_throughput_low == min(throughput)
                assert row.generation_throughput_high == max(throughput)
                assert (row.last_at, row.prefills) == (part[-1].at, per_row)
        tokens = connection.execute(select(HOUR_SAMPLES.c.new_tokens, HOUR_SAMPLES.c.cached_tokens)).all()
        assert (4000.0, 2000.0) in [tuple(row) for row in tokens]


def test_windows_of_many_days_come_at_once(database: Database) -> None:
    windows = [window(START + 43_200 * number) for number in range(140)]  # a gap of months is a history that is read in
    with database.transaction() as connection:
        run_id = scrape(connection, windows)
        assert load_run(connection, run_id).windows == windows


def test_storing_windows_twice_adds_nothing_to_any_tier(database: Database) -> None:
    made = [window(START + 15 * number, unit=unit) for number in range(9) for unit in ("TP0", "TP1")]
    prefills = [PrefillWindow(one.position, 0, one.at, one.unit, 10.0, 0.0) for one in made]
    with database.transaction() as connection:
        source = source_at(connection, ADDRESS, at=START)
        run_id = save_run(connection, RunRecord("sglang", ADDRESS), source_id=source, at=START)
        assert append_live(connection, [Seen(run_id, source, made[:12], prefills[:12])]) == 12
        assert append_live(connection, [Seen(run_id, source, made[6:], prefills[6:])]) == 6
        assert append_live(connection, [Seen(run_id, source, made, prefills)]) == 0
        stored = load_run(connection, run_id)
        hours = connection.execute(select(HOUR_SAMPLES.c.windows).where(HOUR_SAMPLES.c.windows > 0)).scalars().all()
    assert (stored.windows, stored.prefills) == (made, prefills)
    assert sorted(hours) == [9, 9]


def test_what_a_window_does_not_know_is_not_taken_for_nothing(database: Database) -> None:
    made = [
        window(START, seconds=None, running_requests=None, generation_throughput=None),
        window(START + 15, kv_cache_usage=math.nan),
        window(START + 30, verify_steps=None, accepted_tokens=None, accepted_at=None),
        window(START + 45, graph=True),
        window(START + 46, graph=False),
        window(START + 47, accepted_at=(5.0, 4.0, 1.0)),
        window(START + 48),
    ]
    with database.transaction() as connection:
        run_id = scrape(connection, made)
        connection.execute(delete(LIVE_SAMPLES))
        old = load_run(connection, run_id).windows
    assert len(old) == 6
    by_end = {one.at: one for one in old}
    assert (by_end[START].seconds, by_end[START].generation_throughput) == (None, None)
    assert by_end[START + 15].kv_cache_usage is None
    assert (by_end[START + 30].verify_steps, by_end[START + 30].accepted_tokens) == (None, None)
    assert (by_end[START + 45].graph, by_end[START + 46].graph) == (True, False)
    assert by_end[START + 48].accepted_at == (205.0, 104.0, 1.0)
    assert by_end[START + 48].verify_steps == 640.0


def test_older_windows_come_by_minute_and_before_those_by_hour(database: Database) -> None:
    made = [window(START + 15 * number) for number in range(1200)]
    minutes_from, raw_from = START + 2 * 3600, START + 4 * 3600
    with database.transaction() as connection:
        run_id = scrape(connection, made)
        state, before = run_states(connection, [run_id]), last_scrape(connection, ADDRESS)
        connection.execute(delete(LIVE_SAMPLES).where(LIVE_SAMPLES.c.at < raw_from))
        connection.execute(delete(MINUTE_SAMPLES).where(MINUTE_SAMPLES.c.bucket < minutes_from))
        left = load_run(connection, run_id).windows
        assert run_states(connection, [run_id]) == state
        assert last_scrape(connection, ADDRESS) == before
    assert [one.seconds for one in left] == [3600.0] * 2 + [60.0] * 120 + [15.0] * 240
    assert all(one.at < other.at for one, other in pairwise(left))
    for name in ("verify_steps", "accepted_tokens", "generated_tokens", "seconds", "prefills"):
        assert sum(getattr(one, name) for one in left) == sum(getattr(one, name) for one in made)
    with database.transaction() as connection:
        connection.execute(delete(LIVE_SAMPLES))
        connection.execute(delete(MINUTE_SAMPLES))
        assert [one.seconds for one in load_run(connection, run_id).windows] == [3600.0] * 5
        assert last_scrape(connection, ADDRESS) == before
