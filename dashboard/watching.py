"""Lets the detectors of a watched run and of its fleet take in what closed since they last did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from analysis.drafting import drafting_of
from analysis.watching import (
    MINUTE,
    RECENT_SECONDS,
    acceptance_of_late,
    among_siblings,
    minutes_of,
    taken_in,
    with_members,
)
from collector.storage.detectors import (
    Standing,
    alive_runs,
    fleet_minutes,
    fleet_standing,
    group_of,
    last_closed,
    last_closed_of_fleet,
    load_watched,
    run_minutes,
    run_standing,
    save_fleet_standing,
    save_run_standing,
)
from collector.storage.engine import Database
from collector.storage.runs import load_arguments, load_stored


def take_in(database: Database, run_id: int) -> None:
    """Bring the detectors of a run, and of its fleet, up to the last minute that closed; nothing for runs of logs alone.

    Each minute is taken in once, whatever program does it, and whether or not its raw windows are still there.

    Raises:
        StorageError: the database refused; the next call goes on where the last one ended.
    """
    with database.reading() as connection:
        last, known = last_closed(connection, run_id), run_standing(connection, run_id)
    if last is None or (known is not None and known.bucket >= last):
        return
    with database.transaction() as connection:
        _take_in(connection, run_id, last)


def _take_in(connection: Connection, run_id: int, last: int) -> None:
    known = run_standing(connection, run_id)
    if known is not None and known.bucket >= last:
        return
    group_id = group_of(connection, run_id)
    others = alive_runs(connection, group_id, last).keys() - {run_id}
    after = -1 if known is None else min(known.bucket, last - RECENT_SECONDS)
    minutes = minutes_of(run_minutes(connection, run_id, after=after, last=last))
    fresh = [minute for minute in minutes if known is None or minute.at >= known.bucket + MINUTE]
    late = [minute for minute in minutes if minute.at >= last - RECENT_SECONDS]
    state = taken_in(None if known is None else known.state, fresh, series=len(others) + 1)
    recent = acceptance_of_late(late, _drafting_of(connection, run_id))
    save_run_standing(connection, run_id, group_id, Standing(last, state), recent)
    watched = load_watched(connection, run_id)
    verdict = None if watched is None else among_siblings(watched)
    behind = verdict is not None and verdict.outlier
    if behind != bool(state.get("behind")):
        state["behind"] = behind
        save_run_standing(connection, run_id, group_id, Standing(last, state), recent)
    _take_in_fleet(connection, group_id)


def _drafting_of(connection: Connection, run_id: int) -> list[Any]:
    """What runs share that can be compared: a deployment may try several drafts at once."""
    run = load_stored(connection, run_id)
    serving = run.serving
    depth = drafting_of(run.engine, load_arguments(connection, run_id)).depth
    return [serving.target_model, serving.draft_model, serving.method, depth]


def _take_in_fleet(connection: Connection, group_id: int) -> None:
    last, known = last_closed_of_fleet(connection, group_id), fleet_standing(connection, group_id)
    if last is None or (known is not None and known.bucket >= last):
        return
    alive = alive_runs(connection, group_id, last)
    before: Mapping[str, Any] | None = with_members(None if known is None else known.state, alive)
    minutes = minutes_of(fleet_minutes(connection, group_id, after=-1 if known is None else known.bucket, last=last))
    state = taken_in(before, minutes)
    if "members" not in state:
        state["members"] = sorted(alive)
    save_fleet_standing(connection, group_id, Standing(last, state))
