"""Engines behind TLS: a certificate of one's own authority, and engines that ask who is there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme

from collector.domain.errors import InputError, SourceError
from collector.sources.fetching import Client, Fetching
from collector.sources.http import Endpoint
from tests.live.replay import QuietHandler


class Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
        key = self.headers.get("Authorization")
        self.send(200 if key == "Bearer k3y" else 401, "text/plain", b"up 1\n")


@dataclass(frozen=True)
class Place:
    """Certificates of an authority on disk, and two servers that use them."""

    url: str
    asking_url: str
    authority: str
    certificate: str
    other_authority: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = trustme.CA(), trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    files = {name: folder / f"{name}.pem" for name in ("authority", "other", "client")}
    authority.cert_pem.write_to_path(str(files["authority"]))
    other.cert_pem.write_to_path(str(files["other"]))
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(files["client"]))
    servers = []
    for asks in (False, True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.configure_cert(context)
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            authority.configure_trust(context)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A handshake that fails is what some tests are about."""

        server = Server(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        servers.append(server)
    plain, asking = (f"https://127.0.0.1:{server.server_port}" for server in servers)
    yield Place(plain, asking, str(files["authority"]), str(files["client"]), str(files["other"]))
    for server in servers:
        server.shutdown()
        server.server_close()


def blocking(url: str, **options: Any) -> bytes:
    with Endpoint(url, timeout=10, **options) as endpoint:
        return endpoint.get("/metrics").body


def waiting(client: Client) -> Callable[..., bytes]:
    def ask(url: str, **options: Any) -> bytes:
        async def whole() -> bytes:
            async with Fetching(client) as fetching, fetching.endpoint(url, timeout=10, **options) as endpoint:
                return (await endpoint.get("/metrics")).body

        return asyncio.run(whole())

    return ask


WAYS = pytest.mark.parametrize(
    "ask", [blocking, waiting(Client.HTTPX), waiting(Client.AIOHTTP)], ids=["blocking", "httpx", "aiohttp"]
)


@WAYS
def test_an_authority_of_ones_own_is_trusted_where_it_is_given(place: Place, ask: Callable[..., bytes]) -> None:
    assert ask(place.url, api_key="k3y", verify=place.authority) == b"up 1\n"
    assert ask(place.url, api_key="k3y", verify=False) == b"up 1\n"


@WAYS
@pytest.mark.parametrize("given", ["nothing", "another"])
def test_certificates_of_others_are_not_trusted(place: Place, ask: Callable[..., bytes], given: str) -> None:
    with pytest.raises(SourceError, match="certificate is not trusted") as raised:
        ask(place.url, verify=True if given == "nothing" else place.other_authority)
    assert "ca_file" in raised.value.hint


@WAYS
def test_an_engine_that_asks_who_is_there_is_shown_a_certificate(place: Place, ask: Callable[..., bytes]) -> None:
    options = {"api_key": "k3y", "verify": place.authority}
    assert ask(place.asking_url, certificate=place.certificate, **options) == b"up 1\n"
    for _ in range(20):  # whether the refusal comes before or after the handshake is a matter of timing
        with pytest.raises(SourceError):
            ask(place.asking_url, **options)


def test_a_certificate_that_cannot_be_read_is_named(place: Place, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(InputError, match="certificate to show") as raised:
        Endpoint(place.url, certificate=str(broken))
    assert raised.value.where == str(broken)
    with pytest.raises(InputError, match="certificates to trust"):
        Endpoint(place.url, verify=str(tmp_path / "missing.pem"))


def test_a_file_that_changes_is_read_again(place: Place, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Path(place.other_authority).read_text())
    with pytest.raises(SourceError):
        blocking(place.url, verify=str(trusted))
    trusted.write_text(Path(place.authority).read_text())
    assert blocking(place.url, api_key="k3y", verify=str(trusted)) == b"up 1\n"
