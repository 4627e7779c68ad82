"""Answers of an engine's HTTP endpoints: bounded in time and size, with errors a person can act on."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
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


class Server:
    """One server by its base address, and how it is asked. Only reads; never follows a redirection.

    ``address`` names it in evidence and in the database, without user or password.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        largest: int = LARGEST_BODY,
        verify: bool | str = True,
        certificate: str = "",
        certificate_key: str = "",
    ) -> None:
        """Prepare for requests; nothing is sent yet.

        ``headers`` are sent with every request, ``largest`` is how many bytes an answer may have;
        ``verify`` is whether the server's certificate is checked, or the file of certificates to trust. ``certificate``
        and ``certificate_key`` are files that show the server who asks; the key may stand in the first one.

        Raises:
            InputError: the address is none, the key cannot be sent, or certificates cannot be read.
        """
        base = _base_url(url)
        self.timeout = timeout
        self.largest = largest
        self.host = base.host
        self.port = base.port or {"http": 80, "https": 443}[base.scheme]
        self.address = str(base.copy_with(username=None, password=None)).rstrip("/")
        self.headers = {
            "User-Agent": "draftscope",
            "Accept": "text/plain;version=0.0.4, */*;q=0.5",
            "Accept-Encoding": "identity",
            **_sendable(headers or {}),
        }
        if api_key:
            self.headers |= _sendable({"Authorization": f"Bearer {api_key}"}, "the API key")
        self.auth = (base.username, base.password) if base.username else None
        self.tls = _tls(verify, certificate, certificate_key)

    def url(self, path: str) -> str:
        """The address of a path."""
        return self.address + path

    # ---- what can go wrong, in words

    def too_slow(self, url: str) -> TooSlow:
        """It took longer than the time limit."""
        return TooSlow(
            f"no complete answer within {self.timeout:g} s",
            why="the server hangs, is overloaded, or cannot be reached",
            where=url,
            hint="look whether it serves requests; --timeout waits longer",
        )

    def too_large(self, url: str) -> TooLarge:
        """It is larger than an answer may be."""
        return TooLarge(
            f"the answer is larger than {self.largest >> 20} MiB",
            why="no engine's metrics are",
            where=url,
            hint="check that the address is that of an inference engine",
        )

    @staticmethod
    def failed(url: str, error: Exception, *, connecting: bool = False, broke_off: bool = False) -> SourceError:
        """The request failed: while ``connecting``, in the middle of the answer, or else."""
        if _of_certificate(error):
            return SourceError(
                "the server's certificate is not trusted", why=_cause(error), where=url,
                hint="give the certificates to trust (ca_file in the settings)",
            )  # fmt: skip
        if _of_tls(error):
            return SourceError(
                "the encrypted connection was refused", why=_cause(error), where=url,
                hint="a server that asks who is there: certificate_file in the settings; one without TLS: http://",
            )  # fmt: skip
        if connecting:
            return SourceError(
                "nothing answers at this address", why=_cause(error), where=url,
                hint="check host and port, and that the server has finished starting",
            )  # fmt: skip
        if broke_off:
            return SourceError("the answer broke off", why=_cause(error), where=url, hint="look at the server's log")
        return SourceError("the request failed", why=_cause(error), where=url, hint="look at the server's log")


class Endpoint(Server):
    """A server that is asked one path after the other, each time waiting for the answer."""

    def __init__(self, url: str, **options: Any) -> None:
        """Prepare for requests; nothing is sent yet. Options and errors are those of :class:`Server`."""
        super().__init__(url, **options)
        self._client = httpx.Client(
            headers=self.headers, auth=self.auth, timeout=self.timeout, trust_env=False, verify=self.tls
        )

    def get(self, path: str, form: Mapping[str, str] | None = None) -> Answer:
        """Ask for one path; a ``form`` is posted, for questions that are too long for an address.

        Raises:
            SourceError: nothing answers, not in time, too much, or only in part.
        """
        url = self.url(path)
        deadline = time.monotonic() + self.timeout
        try:
            with self._client.stream("GET" if form is None else "POST", url, data=form) as response:
                return Answer(url, response.status_code, self._body(response, deadline), response.headers)
        except (httpx.HTTPError, ssl.SSLError) as error:  # a refusal after the handshake comes as it is
            raise of_httpx(self, url, error) from error

    def _body(self, response: httpx.Response, deadline: float) -> bytes:
        """The body; httpx bounds each wait, this the whole, so that a trickle ends as well."""
        parts: list[bytes] = []
        size = 0
        for part in response.iter_raw():
            size += len(part)
            if size > self.largest:
                raise self.too_large(str(response.url))
            if time.monotonic() > deadline:
                raise self.too_slow(str(response.url))
            parts.append(part)
        return b"".join(parts)

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


def of_httpx(server: Server, url: str, error: httpx.HTTPError | ssl.SSLError) -> SourceError:
    """What httpx ran into."""
    if isinstance(error, httpx.TimeoutException):
        return server.too_slow(url)
    connecting, broke_off = isinstance(error, httpx.ConnectError), isinstance(error, httpx.RemoteProtocolError)
    return server.failed(url, error, connecting=connecting, broke_off=broke_off)


def _tls(verify: bool | str, certificate: str, certificate_key: str) -> ssl.SSLContext:
    """How to set up TLS."""
    files = tuple(name for name in (verify if isinstance(verify, str) else "", certificate, certificate_key) if name)
    return _contexts(verify, certificate, certificate_key, tuple(_changed_at(name) for name in files))


def _changed_at(file: str) -> int:
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0  # the error comes where it is read


@lru_cache(maxsize=64)
def _contexts(verify: bool | str, certificate: str, certificate_key: str, _stamps: tuple[int, ...]) -> ssl.SSLContext:
    """One context for all servers that are asked alike, read again when its files change: it takes long to set up."""
    reading = verify if isinstance(verify, str) else ""
    try:
        context = ssl.create_default_context(cafile=reading or None)
        if verify is False:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            reading = certificate
            context.load_cert_chain(certificate, certificate_key or None)
    except (OSError, ValueError) as error:
        trusted = reading != certificate
        raise InputError(
            "the certificates to trust cannot be read" if trusted else "the certificate to show cannot be read",
            why=getattr(error, "strerror", None) or str(error), where=reading,
            hint="a file of certificates in PEM form" + ("" if trusted else ", and its key in certificate_key_file"),
        ) from error  # fmt: skip
    return context


def _of_certificate(error: BaseException | None) -> bool:
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _of_tls(error: BaseException | None) -> bool:
    return any(isinstance(cause, ssl.SSLError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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


def _cause(error: Exception) -> str:
    """What the system said, without the layers around it."""
    *_, cause = _causes(error)
    return str(cause) or str(error) or type(error).__name__
