"""Channels that send over HTTP: one request a message, and what its answer means."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import TYPE_CHECKING, Any, Final

from dashboard.masked import SecretUrl
from dashboard.sinks import base
from dashboard.sinks.addresses import public_address
from dashboard.sinks.base import SendError, Sink, SinkConfig
from dashboard.sinks.notice import Notice

if TYPE_CHECKING:
    import httpx

RETRIED_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Answers after which trying again can help."""

for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # below that they print whole addresses, which are secret


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A rendered message. ``path`` is put behind the channel's address; ``headers`` may hold secrets."""

    body: bytes
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig(SinkConfig):
    """The settings of a channel that sends over HTTP.

    ``allow_private`` permits receivers in private networks and on this machine.
    """

    url: SecretUrl
    allow_private: bool = True


class HttpSink(Sink):
    """A channel that sends each message as one request."""

    config: HttpConfig
    _client: httpx.AsyncClient | None = None

    @classmethod
    def check(cls, config: Any) -> str:
        """The address is well-formed."""
        import httpx

        try:
            url = httpx.URL(config.url.reveal())
        except httpx.InvalidURL:
            return "url is no address"
        return "" if url.scheme in ("http", "https") and url.host else "url needs the form https://host/path"

    @abstractmethod
    def render(self, message_id: str, notices: Sequence[Notice], *, at: float) -> OutgoingRequest:
        """The request for a message; pure."""

    async def send(self, message_id: str, notices: Sequence[Notice], *, at: float) -> str:
        """Post one message."""
        request = self.render(message_id, notices, at=at)
        base.refuse_oversize(request.body)
        status, retry_after = await self._answer(request)
        return verdict_on(status, retry_after, at=at)

    async def _answer(self, request: OutgoingRequest) -> tuple[int, str | None]:
        """The status of the answer and its ``Retry-After``; its body is not read."""
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=base.TIME_LIMIT_SECONDS, follow_redirects=False)
        try:
            async with asyncio.timeout(base.TIME_LIMIT_SECONDS):
                url, more, extensions = await self._target(request.path)
                headers = {"Content-Type": "application/json", "User-Agent": "draftscope", **request.headers, **more}
                async with self._client.stream(
                    "POST", url, content=request.body, headers=headers, extensions=extensions
                ) as response:
                    return response.status_code, response.headers.get("retry-after")
        except (TimeoutError, httpx.TimeoutException):
            raise SendError(f"no answer within {base.TIME_LIMIT_SECONDS:g} s", permanent=False) from None
        except (httpx.HTTPError, OSError) as error:
            # The library's own words may hold the address.
            raise SendError(words_of(error), permanent=False) from None

    async def _target(self, path: str = "") -> tuple[httpx.URL, dict[str, str], dict[str, Any]]:
        """Where to connect to; with private addresses refused, an address that was checked instead of the name."""
        import httpx

        url = httpx.URL(self.config.url.reveal())
        if path:
            url = url.copy_with(path=url.path.rstrip("/") + path)
        if self.config.allow_private:
            return url, {}, {}
        address = await public_address(url.host, url.port or (443 if url.scheme == "https" else 80))
        host = url.netloc.decode("ascii").rpartition("@")[2]
        return url.copy_with(host=address), {"Host": host}, {"sni_hostname": url.host}

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def as_json(document: object) -> bytes:
    """A document as JSON, its keys in the order they were made, so that a repetition has the same bytes."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def verdict_on(status: int, retry_after: str | None, *, at: float) -> str:
    """The answer in words, where it accepts the message.

    Raises:
        SendError: it does not.
    """
    answer = f"{status} {responses.get(status, '')}".rstrip()
    if 200 <= status < 300:
        return answer
    reason = f"the receiver answered {answer}"
    if 300 <= status < 400:
        raise SendError(f"{reason}; redirects are not followed, give the final address", permanent=True)
    permanent = status not in RETRIED_STATUSES
    raise SendError(reason, permanent=permanent, retry_after=None if permanent else wait_asked(retry_after, at=at))


def wait_asked(retry_after: str | None, *, at: float) -> float | None:
    """Seconds that a ``Retry-After`` header asks to wait: a number, or a date; ``None`` if it is neither."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - at)


def words_of(error: BaseException) -> str:
    """What went wrong on the way, in our own words."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "the receiver's certificate is not trusted"
        if isinstance(cause, ssl.SSLError):
            return "no secure connection could be made"
        if isinstance(cause, socket.gaierror):
            return "the receiver's host name is not known"
        if isinstance(cause, ConnectionRefusedError):
            return "the receiver refuses connections"
        if isinstance(cause, ConnectionResetError):
            return "the receiver closed the connection"
        cause = cause.__cause__ or cause.__context__
    return f"the receiver cannot be reached ({type(error).__name__})"
