"""What all alert channels share: what is worth retrying, time limits, private addresses, signatures, words for errors.

A channel is one module in this package with one class. It renders a notice; everything else is here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import TYPE_CHECKING, Any, ClassVar, Final

from collector.domain.findings import Severity
from dashboard.masked import Secret, SecretUrl
from dashboard.sinks.notice import Notice

if TYPE_CHECKING:
    import httpx

TIME_LIMIT_SECONDS: Final = 10.0
"""For one attempt as a whole, from looking up the host to the answer's status."""
LARGEST_BODY: Final = 128 * 1024
"""Bytes of one message."""
FIRST_DELAY_SECONDS: Final = 5.0
DELAY_GROWTH: Final = 3.0
LONGEST_DELAY_SECONDS: Final = 3600.0
LONGEST_WAIT_SECONDS: Final = 86_400.0
"""How long a receiver may ask us to wait (``Retry-After``)."""
MOST_ATTEMPTS: Final = 12
"""After these a message is given up: about five and a half hours with the delays above."""

RETRIED_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Answers after which trying again can help."""

for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # below that they print whole addresses, which are secret


class SendError(Exception):
    """A message was not accepted. ``permanent``: trying again cannot help. Holds no secret."""

    def __init__(self, reason: str, *, permanent: bool, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after


def retry_delay(attempt: int, jitter: float, retry_after: float | None = None) -> float:
    """Seconds until the next attempt.

    ``attempt`` counts those made, from 1; ``jitter`` lies between 0 and 1 and takes away up to half,
    so that messages that failed together do not come back together. What the receiver asks for
    (``retry_after``) is the least.
    """
    delay = min(FIRST_DELAY_SECONDS * DELAY_GROWTH ** (attempt - 1), LONGEST_DELAY_SECONDS) * (1 - jitter / 2)
    return max(delay, min(retry_after or 0.0, LONGEST_WAIT_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig:
    """The settings every channel has."""

    name: str
    min_severity: Severity = Severity.WARNING


class Sink(ABC):
    """A channel: where notices go."""

    kind: ClassVar[str]
    Config: ClassVar[type[SinkConfig]]

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def check(cls, config: Any) -> str:
        """What is wrong with a configuration, in words without secrets; "" if nothing is."""
        del config
        return ""

    @abstractmethod
    async def send(self, message_id: str, notice: Notice, *, at: float) -> None:
        """Deliver one notice. ``message_id`` is the same at every attempt; ``at`` is the present instant.

        Raises:
            SendError: it was not accepted.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give back what is held open."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A rendered notice."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig(SinkConfig):
    """The settings of a channel that sends over HTTP.

    ``secret`` signs (Standard Webhooks). ``allow_private`` permits receivers in private networks and
    on this machine.
    """

    url: SecretUrl
    secret: Secret | None = None
    allow_private: bool = True


class HttpSink(Sink):
    """A channel that sends each notice as one request."""

    config: HttpConfig
    _client: httpx.AsyncClient | None = None

    @classmethod
    def check(cls, config: HttpConfig) -> str:
        """Address and secret are well-formed."""
        import httpx

        try:
            url = httpx.URL(config.url.reveal())
        except httpx.InvalidURL:
            return "url is no address"
        if url.scheme not in ("http", "https") or not url.host:
            return "url needs the form https://host/path"
        if config.secret is not None:
            try:
                _signer(config.secret)
            except ValueError:
                return "secret needs the form whsec_ followed by at least 24 bytes in base64"
        return ""

    @abstractmethod
    def render(self, notice: Notice) -> OutgoingRequest:
        """The request for a notice; pure."""

    async def send(self, message_id: str, notice: Notice, *, at: float) -> None:
        """Post one notice."""
        request = self.render(notice)
        if len(request.body) > LARGEST_BODY:
            raise SendError(f"the message is larger than {LARGEST_BODY // 1024} KiB", permanent=True)
        headers = {"Content-Type": request.content_type, "User-Agent": "draftscope"}
        if self.config.secret is not None:
            headers |= signature_headers(self.config.secret, message_id, request.body, at=at)
        status, retry_after = await self._answer(request.body, headers)
        verdict_on(status, retry_after, at=at)

    async def _answer(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, str | None]:
        """The status of the answer and its ``Retry-After``; its body is not read."""
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=TIME_LIMIT_SECONDS, follow_redirects=False)
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                url, more, extensions = await self._target()
                async with self._client.stream(
                    "POST", url, content=body, headers={**headers, **more}, extensions=extensions
                ) as response:
                    return response.status_code, response.headers.get("retry-after")
        except (TimeoutError, httpx.TimeoutException):
            raise SendError(f"no answer within {TIME_LIMIT_SECONDS:g} s", permanent=False) from None
        except (httpx.HTTPError, OSError) as error:
            # The library's own words may hold the address.
            raise SendError(_words(error), permanent=False) from None

    async def _target(self) -> tuple[httpx.URL, dict[str, str], dict[str, Any]]:
        """Where to connect to; with private addresses refused, an address that was checked instead of the name."""
        import httpx

        url = httpx.URL(self.config.url.reveal())
        if self.config.allow_private:
            return url, {}, {}
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in found]
        if not all(is_public(address) for address in addresses):
            raise SendError("the receiver's address is private and allow_private is off", permanent=True)
        host = url.netloc.decode("ascii").rpartition("@")[2]
        return url.copy_with(host=addresses[0]), {"Host": host}, {"sni_hostname": url.host}

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def verdict_on(status: int, retry_after: str | None, *, at: float) -> None:
    """Whether an answer accepts the message.

    Raises:
        SendError: it does not.
    """
    if 200 <= status < 300:
        return
    reason = f"the receiver answered {status} {responses.get(status, '')}".rstrip()
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


def is_public(address: str) -> bool:
    """Whether an IP address belongs to a machine on the open internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast


def signature_headers(secret: Secret, message_id: str, body: bytes, *, at: float) -> dict[str, str]:
    """The headers ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``.

    Source: the Standard Webhooks specification.
    """
    moment = datetime.fromtimestamp(int(at), UTC)
    signature: str = _signer(secret).sign(message_id, moment, body.decode())
    return {"webhook-id": message_id, "webhook-timestamp": str(int(at)), "webhook-signature": signature}


def _signer(secret: Secret) -> Any:
    """What signs with a secret.

    Raises:
        ValueError: the secret is malformed or too short.
    """
    import base64
    import binascii

    from standardwebhooks import Webhook

    prefix, _, key = secret.reveal().partition("_")
    try:
        raw = base64.b64decode(key + "=" * (-len(key) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("malformed") from None
    if prefix != "whsec" or len(raw) < 24:
        raise ValueError("malformed")
    return Webhook(raw)


def _words(error: BaseException) -> str:
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
