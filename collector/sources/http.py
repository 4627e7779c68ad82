"""Answers of an engine's HTTP endpoints: bounded in time and size, with errors a person can act on."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import httpx

from collector.domain.errors import InputError, SourceError
from collector.domain.redaction import redact_text

LARGEST_BODY: Final = 16 << 20
"""Bytes of an answer; a busy engine's metrics are some hundred kB."""
DEFAULT_TIMEOUT: Final = 10.0
"""Seconds for one whole answer."""
_HTML: Final = (b"<!doctype html", b"<html")


class TooLarge(SourceError):  # noqa: N818 - named for what is wrong
    """An answer is larger than any that is read."""


class TooSlow(SourceError):  # noqa: N818 - named for what is wrong
    """An answer was not complete in time."""


class Answer(NamedTuple):
    """One answer: its address, status, body, and headers by name in whatever case."""

    url: str
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_page(self) -> bool:
        """Whether it is an HTML page: what stands there is not the engine."""
        return self.body[:200].lstrip().lower().startswith(_HTML)


class Endpoint:
    """One server by its base address. Only reads; never follows a redirection.

    ``address`` names it in evidence and in the database, without user or password.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        verify: bool | str = True,
        largest: int = LARGEST_BODY,
    ) -> None:
        """Prepare for requests; nothing is sent yet.

        ``headers`` are sent with every request, ``largest`` is how many bytes an answer may have;
        ``verify`` is whether the server's certificate is checked, or the file of certificates to trust.

        Raises:
            InputError: the address is none, the key cannot be sent, or the certificates cannot be read.
        """
        base = _base_url(url)
        self._timeout = timeout
        self._largest = largest
        self.host = base.host
        self.port = base.port or {"http": 80, "https": 443}[base.scheme]
        self.address = str(base.copy_with(username=None, password=None)).rstrip("/")
        sent = {
            "User-Agent": "draftscope",
            "Accept": "text/plain;version=0.0.4, */*;q=0.5",
            "Accept-Encoding": "identity",
            **_sendable(headers or {}),
        }
        if api_key:
            sent |= _sendable({"Authorization": f"Bearer {api_key}"}, "the API key")
        auth = (base.username, base.password) if base.username else None
        self._client = httpx.Client(headers=sent, auth=auth, timeout=timeout, trust_env=False, verify=_tls(verify))

    def get(self, path: str, form: Mapping[str, str] | None = None) -> Answer:
        """Ask for one path; a ``form`` is posted, for questions that are too long for an address.

        Raises:
            SourceError: nothing answers, not in time, too much, or only in part.
        """
        url = self.address + path
        deadline = time.monotonic() + self._timeout
        try:
            with self._client.stream("GET" if form is None else "POST", url, data=form) as response:
                return Answer(url, response.status_code, self._body(response, deadline), response.headers)
        except httpx.TimeoutException as error:
            raise self._too_slow(url) from error
        except httpx.ConnectError as error:
            if _of_certificate(error):
                raise SourceError(
                    "the server's certificate is not trusted", why=_cause(error), where=url,
                    hint="give the certificates to trust (ca_file in the settings)",
                ) from error  # fmt: skip
            raise SourceError(
                "nothing answers at this address",
                why=_cause(error),
                where=url,
                hint="check host and port, and that the server has finished starting",
            ) from error
        except httpx.RemoteProtocolError as error:
            raise SourceError(
                "the answer broke off", why=_cause(error), where=url, hint="look at the server's log"
            ) from error
        except httpx.HTTPError as error:
            raise SourceError("the request failed", why=_cause(error), where=url) from error

    def _body(self, response: httpx.Response, deadline: float) -> bytes:
        """The body; httpx bounds each wait, this the whole, so that a trickle ends as well."""
        parts: list[bytes] = []
        size = 0
        for part in response.iter_raw():
            size += len(part)
            if size > self._largest:
                raise TooLarge(
                    f"the answer is larger than {self._largest >> 20} MiB",
                    why="no engine's metrics are",
                    where=str(response.url),
                    hint="check that the address is that of an inference engine",
                )
            if time.monotonic() > deadline:
                raise self._too_slow(str(response.url))
            parts.append(part)
        return b"".join(parts)

    def _too_slow(self, url: str) -> TooSlow:
        return TooSlow(
            f"no complete answer within {self._timeout:g} s",
            why="the server hangs, is overloaded, or cannot be reached",
            where=url,
            hint="look whether it serves requests; --timeout waits longer",
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _sendable(headers: Mapping[str, str], what: str = "a header") -> Mapping[str, str]:
    """Headers that can be sent.

    Raises:
        InputError: one holds what no header may hold.
    """
    if all(text.isascii() and text.isprintable() for text in (*headers, *headers.values())):
        return headers
    raise InputError(f"{what} cannot be sent", why="it holds characters that no header may have")


def _tls(verify: bool | str) -> ssl.SSLContext | bool:
    if isinstance(verify, bool):
        return verify
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:
        raise InputError(
            "the certificates to trust cannot be read", why=error.strerror or str(error), where=verify,
            hint="a file of certificates in PEM form",
        ) from error  # fmt: skip


def _of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _base_url(text: str) -> httpx.URL:
    """The base of an address as people write it: ``gpu7:30000``, with or without scheme and ``/metrics``."""
    stripped = text.strip()
    hint = "for instance http://gpu7:30000"
    try:
        url = httpx.URL(stripped if "://" in stripped else f"http://{stripped}")
        plain = not any(map(str.isspace, stripped)) and not url.query and not url.fragment
        valid = plain and url.scheme in ("http", "https") and bool(url.host)
        port = url.port
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise InputError(f"{redact_text(text)!r} is not an address", why=str(error), hint=hint) from None
    if not valid or port == 0:
        raise InputError(f"{redact_text(text)!r} is not the address of a server", hint=hint)
    return url.copy_with(path=url.path.rstrip("/").removesuffix("/metrics").rstrip("/") or "/")


def _cause(error: httpx.HTTPError) -> str:
    """What the system said, without the layers around it."""
    cause: Any = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__
    return str(cause) or str(error) or type(error).__name__
