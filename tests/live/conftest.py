"""Recordings scraped from end to end, once a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from collector.domain.runs import RunRecord
from collector.scraping import Stored, Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.runs import load_run
from tests.live.replay import Replay, replay


@dataclass(frozen=True)
class Watched:
    """A recording that was scraped snapshot by snapshot into a database of its own."""

    served: Replay
    database: Database
    stored: list[Stored]
    records: list[RunRecord]

    @property
    def run_ids(self) -> list[int]:
        return list(dict.fromkeys(item.run_id for item in self.stored))


def scrape_all(database: Database, served: Replay) -> list[Stored]:
    with Endpoint(served.url) as endpoint:
        watch = Watch(database, Scraper(endpoint, clock=served.clock))
        return [watch.take() for _ in range(len(served.snapshots))]


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Watched]]:
    """Scrapes a recording by name; its database is only to be read."""
    known: dict[str, Watched] = {}
    with ExitStack() as stack:

        def scraped(name: str) -> Watched:
            if name not in known:
                folder = tmp_path_factory.mktemp("scraped")
                database = stack.enter_context(open_database(f"sqlite:///{folder / 'draftscope.db'}"))
                with replay(name) as served:
                    stored = scrape_all(database, served)
                with database.reading() as connection:
                    ids = dict.fromkeys(item.run_id for item in stored)
                    records = [load_run(connection, run_id) for run_id in ids]
                known[name] = Watched(served, database, stored, records)
            return known[name]

        yield scraped
