"""A collector in a process of its own, for tests that stop, pause and race collectors.

It scrapes a server that gives the snapshot it is asked for: the first one that is not stored yet, at that
snapshot's own time. So whatever happens between scrapes, what has to be stored is always the same.

Usage: python -m tests.storage.collector_process DATABASE ENGINE PACE alone|elected

After each snapshot it rests for PACE seconds, or, where that is "asked", until a line comes on its standard input.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

import httpx

from collector.domain.errors import StorageError
from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.leadership import Leadership
from collector.storage.scrapes import scraped_at
from dashboard.electing import Election

ASKED: Final = "asked"


def say(*words: object) -> None:
    """Tell the test, a line at a time."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Collector:
    """Stores snapshot by snapshot until all are."""

    def __init__(self, database: Database, engine: str, pace: str) -> None:
        self.database, self.engine, self.pace = database, engine, pace
        self.instants: list[float] = httpx.get(f"{engine}/instants").json()
        self.done = False

    def step(self) -> None:
        with Endpoint(self.engine) as endpoint, self.database.reading() as connection:
            stored = scraped_at(connection, endpoint.address) or 0.0
        index = next((index for index, at in enumerate(self.instants) if at > stored + 0.0005), None)
        if index is None:
            self.done = True
            return
        with Endpoint(self.engine, api_key=str(index)) as endpoint:
            watch = Watch(self.database, Scraper(endpoint, clock=lambda: self.instants[index]), deployment="chat")
            watch.take()
        say("stored", index)
        if self.pace == ASKED:
            sys.stdin.readline()
        else:
            time.sleep(float(self.pace))

    def all_stored(self, database: Database) -> bool:
        with database.reading() as connection, Endpoint(self.engine) as endpoint:
            return (scraped_at(connection, endpoint.address) or 0.0) >= self.instants[-1] - 0.0005

    def alone(self) -> None:
        while not self.done:
            try:
                self.step()
            except StorageError as error:
                say("refused", error.what)
                time.sleep(0.2)

    async def run(self, stop: asyncio.Event) -> None:
        """As the service runs it."""
        say("collects")
        while not stop.is_set() and not self.done:
            try:
                await asyncio.to_thread(self.step)
            except StorageError as error:
                say("refused", error.what)
                await asyncio.sleep(0.2)
        await stop.wait()


async def elected(database: Database, engine: str, pace: str) -> None:
    leadership = Leadership(database)
    collector = Collector(leadership.database, engine, pace)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(Election(leadership, [collector]).run(stop))
        while not collector.done:
            await asyncio.sleep(0.1)
            try:
                collector.done |= await asyncio.to_thread(collector.all_stored, database)
            except StorageError:
                continue  # it is away for a while
        stop.set()


def main(url: str, engine: str, pace: str, how: str) -> None:
    with open_database(url) as database:
        say("ready")
        if how == "alone":
            Collector(database, engine, pace).alone()
        else:
            asyncio.run(elected(database, engine, pace))
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
