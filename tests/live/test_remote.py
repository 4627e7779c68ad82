"""Files of other machines: over ssh from a real server that is known or not, from a local S3, and over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import boto3
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from collector.domain.errors import DraftscopeError, SourceError, UnreadableInput
from collector.sources.remote import address_of, bring
from collector.storage.engine import open_database
from collector.storage.runs import list_runs
from dashboard.cli import main
from tests.live.replay import QuietHandler, serve

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "golden" / "logs" / "sglang" / "0.5.11-restarts" / "log.txt"
TEXT = GOLDEN.read_bytes()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key of its own and nobody known."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(folder / ".ssh" / "id_ed25519")
    asyncssh.read_private_key(folder / ".ssh" / "id_ed25519").write_public_key(folder / "authorized")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@contextmanager
def ssh_server(home: Path, root: Path) -> Iterator[int]:
    """A server that lets the key of the home in, and shows the files below a folder; yields its port."""
    loop = asyncio.new_event_loop()
    key = asyncssh.generate_private_key("ssh-ed25519")
    (home / "host.pub").write_bytes(key.export_public_key())

    connections: list[asyncssh.SSHServerConnection] = []

    class Server(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            connections.append(conn)

    def files(channel: Any) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=str(root).encode())

    async def start() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[key], authorized_client_keys=str(home / "authorized"),
            sftp_factory=files, server_factory=Server,
        )  # fmt: skip

    acceptor = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield acceptor.get_port()
    finally:

        async def stop() -> None:
            acceptor.close()
            await acceptor.wait_closed()
            for connection in connections:
                connection.abort()
                await connection.wait_closed()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "served" / "var" / "log"
    folder.mkdir(parents=True)
    (folder / "server.log").write_bytes(TEXT)
    (folder / "server.log.gz").write_bytes(gzip.compress(TEXT))
    (folder / "notes.md").write_text("nothing")
    return folder


@pytest.fixture
def ssh(home: Path, logs: Path) -> Iterator[str]:
    """The address of a server that is known."""
    with ssh_server(home, logs.parents[1]) as port:
        known = f"[127.0.0.1]:{port} {(home / 'host.pub').read_text()}"
        (home / ".ssh" / "known_hosts").write_text(known)
        yield f"ssh://engineer@127.0.0.1:{port}"


def brought(address: str, tmp_path: Path) -> dict[str, bytes]:
    """The copies by what they are copies of."""
    folder = tmp_path / "copies"
    folder.mkdir()
    return {name: copy.read_bytes() for copy, name in bring(address, folder).items()}


def test_a_file_a_folder_and_a_pattern_over_ssh(ssh: str, tmp_path: Path) -> None:
    assert brought(f"{ssh}/var/log/server.log", tmp_path) == {f"{ssh}/var/log/server.log": TEXT}
    (tmp_path / "copies").rename(tmp_path / "first")
    assert set(brought(f"{ssh}/var/log", tmp_path)) == {
        f"{ssh}/var/log/{name}" for name in ("notes.md", "server.log", "server.log.gz")
    }
    (tmp_path / "copies").rename(tmp_path / "second")
    assert set(brought(f"{ssh}/var/log/*.log", tmp_path)) == {f"{ssh}/var/log/server.log"}


def test_a_machine_that_is_not_known_is_refused(home: Path, logs: Path, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with ssh_server(home, logs.parents[1]) as port:
        address = f"ssh://engineer@127.0.0.1:{port}/var/log/server.log"
        for known in ("", f"[127.0.0.1]:{port} {other}"):
            (home / ".ssh" / "known_hosts").write_text(known)
            with pytest.raises(SourceError, match="key of this machine is not known") as raised:
                bring(address, tmp_path)
            assert "known_hosts" in raised.value.hint
    assert not list(tmp_path.glob("*.log"))


def test_what_cannot_be_had_over_ssh_is_told(ssh: str, home: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="no such file"):
        bring(f"{ssh}/var/log/none.log", tmp_path)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(home / ".ssh" / "id_ed25519")
    with pytest.raises(UnreadableInput, match="may not be read") as raised:
        bring(f"{ssh}/var/log/server.log", tmp_path)
    assert raised.value.hint == "check user and key"


def test_ingest_over_ssh_is_that_of_the_file_and_safe_to_repeat(
    ssh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.chdir(tmp_path)
    address = f"{ssh}/var/log/server.log"
    for told in ("3 runs", "known already, nothing new"):
        with pytest.raises(SystemExit) as ended:
            main(["ingest", address])
        assert ended.value.code == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert told in printed
        assert f"{address}: read" in printed
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as database, database.reading() as connection:
        runs = list_runs(connection, limit=10).runs
    assert [run.source for run in runs] == [address] * 3


def test_diagnose_quotes_lines_of_a_file_over_ssh(ssh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diagnose", f"{ssh}/var/log/server.log", "--format", "json"])
    assert f'"{ssh}/var/log/server.log"' in capsys.readouterr().out


# ---- S3


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-key")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="logs")
    yield client
    server.stop()


def test_files_of_a_bucket(s3: Any, tmp_path: Path) -> None:
    for name in ("a/server.log", "a/config.json", "b/other.log"):
        s3.put_object(Bucket="logs", Key=name, Body=TEXT if name == "a/server.log" else b"{}")
    assert brought("s3://logs/a/server.log", tmp_path) == {"s3://logs/a/server.log": TEXT}
    (tmp_path / "copies").rename(tmp_path / "first")
    assert set(brought("s3://logs/a", tmp_path)) == {"s3://logs/a/server.log", "s3://logs/a/config.json"}
    with pytest.raises(UnreadableInput, match="no such file"):
        bring("s3://logs/none.log", tmp_path)
    with pytest.raises(DraftscopeError):
        bring("s3://no-bucket/none.log", tmp_path)


# ---- HTTP, and what is missing


def test_files_over_http_as_they_are(tmp_path: Path) -> None:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            if self.path == "/logs/server.log.gz?token=s3cret":
                self.send(200, "application/gzip", gzip.compress(TEXT, mtime=0))
            else:
                self.send(404, "text/plain", b"")

    with serve(Handler) as url:
        ((copy, _name),) = bring(f"{url}/logs/server.log.gz?token=s3cret", tmp_path).items()
        assert copy.name == "server.log.gz"
        assert copy.read_bytes() == gzip.compress(TEXT, mtime=0)
        with pytest.raises(UnreadableInput, match="cannot be had") as raised:
            bring(f"{url}/none.log", tmp_path)
        assert "404" in raised.value.why
    with pytest.raises(SourceError, match="cannot be had"):
        bring("http://127.0.0.1:1/a.log", tmp_path)


@pytest.mark.parametrize(("address", "module", "extra"), [("ssh://a/b", "sshfs", "ssh"), ("s3://a/b", "s3fs", "s3")])
def test_a_missing_extra_is_named(address: str, module: str, extra: str, tmp_path: Path) -> None:
    program = (
        f"import sys\nsys.modules[{module!r}] = None\nfrom dashboard.cli import main\nmain(['diagnose', {address!r}])\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environ,
    )
    assert done.returncode == 2
    assert f'pip install "draftscope[{extra}]"' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("ssh://u@h/var/log/a.log", "ssh://u@h/var/log/a.log"),
        ("s3://bucket/a b.log", "s3://bucket/a b.log"),
        ("https://h:8/a?b=c", "https://h:8/a?b=c"),
        ("server.log", None),
        ("/ssh:/a", None),
        ("ftp://a/b", None),
        ("-", None),
    ],
)
def test_addresses_and_paths_are_told_apart(path: str, address: str | None) -> None:
    assert address_of(Path(path)) == address


def test_what_is_elsewhere_cannot_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ingest", "--follow", "ssh://h/a.log"])
    assert ended.value.code == 2
    assert "cannot be followed" in capsys.readouterr().err
