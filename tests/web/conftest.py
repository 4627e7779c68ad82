"""The app around recorded cases, asked in this process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from dashboard.app import create_app
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
