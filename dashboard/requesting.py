"""Request results that come over HTTP: read, put to the run they are of, and stored once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from collector.bundle import no_responses
from collector.domain.errors import InputError, UnknownName
from collector.requests import read_responses
from collector.storage.engine import Database
from collector.storage.requests import append_requests
from collector.storage.runs import latest_run, load_stored
from collector.storage.sources import attach_source, ordinal_in_source, source_at
from dashboard.database_store import run_number

SOURCE: Final = "POST /api/v1/requests"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of some responses: the run they were put to, how many were new, and what could not be used."""

    run: int
    responses: int
    stored: int
    problems: tuple[str, ...]


def take_responses(
    database: Database, content: bytes, *, run: str = "", deployment: str | None = None, labels: Mapping[str, str]
) -> Taken:
    """Store the responses of a body with the run of this number, else with the latest one of the deployment and labels.

    Raises:
        InputError: nothing says whose responses these are, there is none with figures, or they are of another engine.
        UnknownName: there is no such run.
    """
    if not (run or deployment or labels):
        raise InputError(
            "nothing says of which run these responses are",
            hint="add ?run=NUMBER, ?deployment=NAME, or a label of the run: ?cluster=a",
        )
    found = read_responses([content], SOURCE)
    if not found.results:
        raise no_responses(found)
    engines = {result.engine for result in found.results}
    with database.transaction() as connection:
        run_id = run_number(run) if run else _latest(connection, engines, deployment, labels)
        engine = load_stored(connection, run_id).engine
        fitting = [result for result in found.results if result.engine == engine]
        if not fitting:
            raise InputError(
                f"these are responses of {', '.join(sorted(engines))}, and run {run_id} is one of {engine}",
                where=SOURCE,
            )
        source_id = source_at(connection, SOURCE, at=time.time())
        attach_source(connection, run_id, source_id, ordinal=ordinal_in_source(connection, source_id, run_id))
        stored = append_requests(connection, run_id, source_id, fitting)
    problems = list(found.notes()[1:])
    if len(fitting) < len(found.results):
        problems.append(f"{len(found.results) - len(fitting)} are not of {engine}, the engine of run {run_id}")
    return Taken(run_id, len(fitting), stored, tuple(problems))


def _latest(connection: Connection, engines: set[str], deployment: str | None, labels: Mapping[str, str]) -> int:
    engine = next(iter(engines)) if len(engines) == 1 else None
    found = latest_run(connection, engine=engine, deployment=deployment, labels=labels)
    if found is None:
        told = [
            *([f"deployment {deployment}"] if deployment else []),
            *(f"{name}={text}" for name, text in labels.items()),
        ]
        raise UnknownName(
            f"no run of {' or '.join(sorted(engines))} is known with {', '.join(told)}",
            hint="GET /api/v1/runs lists runs with their labels; ?run=NUMBER names one",
        )
    return found
