"""The app around recorded cases, asked in this process."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from collector.storage.engine import open_database
from dashboard.app import create_app
from dashboard.diagnoses import Diagnoses
from dashboard.samples import load_samples
from dashboard.service import build_app
from dashboard.settings import Settings
from dashboard.store import RunReport
from tests.web.reports import ListStore, load_report


@pytest.fixture
def kimi() -> RunReport:
    return load_report("kimi", "17")


@pytest.fixture
def first_run() -> RunReport:
    return load_report("first-run", "16")


@dataclass
class Client:
    """Requests against an app."""

    app: Any

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://draftscope.test") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture
def client_of() -> Callable[..., Client]:
    """Makes a client for an app around the given reports."""

    def make(*reports: RunReport, token: str | None = None) -> Client:
        return Client(create_app(ListStore(reports), token=token))

    return make


@pytest.fixture(scope="session")
def samples(tmp_path_factory) -> Iterator[Client]:
    """The service over the shipped samples, as `draftscope demo` serves them; tests only read it."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('samples') / 'draftscope.db'}") as database:
        load_samples(database)
        yield Client(build_app(Diagnoses(database), Settings()))
