"""Endpoints that are waited for, so that one thread asks thousands: by httpx, or by aiohttp, which takes a fraction of the work."""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
from abc import ABC, abstractmethod
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx

from collector.domain.errors import InputError
from collector.sources.http import Answer, Server, of_httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp
    from yarl import URL


class Client(StrEnum):
    """The library that asks."""

    HTTPX = "httpx"
    AIOHTTP = "aiohttp"


class AsyncEndpoint(Server, ABC):
    """A server that is asked without holding up others."""

    @abstractmethod
    async def get(self, path: str) -> Answer:
        """Ask for one path.

        Raises:
            SourceError: nothing answers, not in time, too much, or only in part.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class HttpxEndpoint(AsyncEndpoint):
    """By httpx."""

    def __init__(self, url: str, **options: Any) -> None:
        """Options and errors are those of :class:`Server`."""
        super().__init__(url, **options)
        self._client = httpx.AsyncClient(
            headers=self.headers, auth=self.auth, timeout=self.timeout, trust_env=False, verify=self.tls
        )

    async def get(self, path: str) -> Answer:
        """Ask for one path."""
        url = self.url(path)
        try:
            async with asyncio.timeout(self.timeout), self._client.stream("GET", url) as response:
                parts: list[bytes] = []
                size = 0
                async for part in response.aiter_raw():
                    size += len(part)
                    if size > self.largest:
                        raise self.too_large(url)
                    parts.append(part)
                return Answer(url, response.status_code, b"".join(parts), response.headers)
        except TimeoutError as error:
            raise self.too_slow(url) from error
        except (httpx.HTTPError, ssl.SSLError) as error:  # a refusal after the handshake comes as it is
            raise of_httpx(self, url, error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class AiohttpEndpoint(AsyncEndpoint):
    """By aiohttp; all endpoints of a session share its connections."""

    def __init__(self, session: aiohttp.ClientSession, url: str, **options: Any) -> None:
        """Options and errors are those of :class:`Server`; the session is closed by whoever made it."""
        import aiohttp
        from yarl import URL

        super().__init__(url, **options)
        self._parse: Callable[[str], URL] = URL
        self._session = session
        self._limit = aiohttp.ClientTimeout(total=self.timeout)
        if self.auth is not None:
            self.headers["Authorization"] = aiohttp.BasicAuth(*self.auth).encode()
        self._errors = aiohttp
        self._parsed: dict[str, URL] = {}

    async def get(self, path: str) -> Answer:
        """Ask for one path."""
        url = self.url(path)
        if path not in self._parsed:
            self._parsed[path] = self._parse(url)
        try:
            async with self._session.get(
                self._parsed[path], headers=self.headers, timeout=self._limit, ssl=self.tls, allow_redirects=False
            ) as response:
                return Answer(url, response.status, await self._body(response, url), response.headers)
        except TimeoutError as error:
            raise self.too_slow(url) from error
        except (self._errors.ClientConnectorError, ConnectionRefusedError) as error:
            raise self.failed(url, error, connecting=True) from error
        except (self._errors.ClientPayloadError, self._errors.ServerDisconnectedError, ConnectionError) as error:
            raise self.failed(url, error, broke_off=True) from error
        except (self._errors.ClientError, ssl.SSLError) as error:
            raise self.failed(url, error) from error

    async def _body(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        """The body; one whose length is announced ends there."""
        announced = response.content_length
        if announced is not None and announced <= self.largest:
            return await response.read()
        parts: list[bytes] = []
        size = announced or 0
        if size <= self.largest:
            async for part in response.content.iter_any():
                size += len(part)
                if size > self.largest:
                    break
                parts.append(part)
        if size > self.largest:
            response.close()
            raise self.too_large(url)
        return b"".join(parts)

    async def close(self) -> None:
        """Nothing of its own to close."""


class Fetching:
    """Makes endpoints that share what can be shared; to be used as a context manager."""

    def __init__(self, client: Client = Client.HTTPX) -> None:
        """Nothing is opened yet.

        Raises:
            InputError: the library is not installed.
        """
        if client is Client.AIOHTTP and importlib.util.find_spec("aiohttp") is None:
            raise InputError(
                "aiohttp is not installed", where="scrape_client", hint='pip install "draftscope[aiohttp]", or scrape_client = "httpx"'
            )  # fmt: skip
        self._client = client
        self._session: aiohttp.ClientSession | None = None

    def endpoint(self, url: str, **options: Any) -> AsyncEndpoint:
        """A server that is asked; options and errors are those of :class:`Server`."""
        if self._client is Client.HTTPX:
            return HttpxEndpoint(url, **options)
        if self._session is None:
            import aiohttp

            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=30)
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=1 << 20
            )
        return AiohttpEndpoint(self._session, url, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
