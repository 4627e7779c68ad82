"""Pods and containers: as targets, and their logs, from small servers that answer as the documented APIs do."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from collector.domain.errors import InputError, SourceError
from collector.log_writer import Owner
from collector.sources import docker as docker_module
from collector.sources.discovery import Group
from collector.sources.docker import Docker
from collector.sources.kubernetes import Kubernetes
from collector.sources.stamped import entries_of
from collector.storage.engine import Database, open_database
from collector.streamed_logs import StreamedLogs
from dashboard.feeds.containers import DockerSource, KubernetesSource
from dashboard.settings import load_settings
from dashboard.targets import Target, find_all
from tests.live.replay import QuietHandler, serve
from tests.live.test_loki import RESTARTS, list_all, of_file, read_all, runs

assert of_file  # a fixture
ROOT = Path(__file__).parents[2]
SECOND = 10**9
BEGIN = 1_795_000_000 * SECOND


def stamped(at: int) -> str:
    return f"{datetime.fromtimestamp(at // SECOND, UTC):%Y-%m-%dT%H:%M:%S}.{at % SECOND:09d}Z"


def lines_of(text: str, step: int = 7_654_321) -> list[tuple[int, str]]:
    return [(BEGIN + number * step, line) for number, line in enumerate(text.splitlines())]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


def find_none(platform: Docker | Kubernetes) -> None:
    with closing(platform):
        platform.groups()


# ---- Docker


@dataclass
class Host:
    """A Docker host: its containers as the API lists them, and what each wrote (instant, stream, line)."""

    containers: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    terminal: bool = False
    address: str = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/containers/json":
            (label,) = json.loads(asked["filters"])["label"]
            name, _, value = label.partition("=")
            found = [
                item
                for item in self.containers
                if name in item["Labels"] and value in ("", item["Labels"][name])
                if asked["all"] == "1" or item["State"] == "running"
            ]
            return 200, json.dumps(found).encode()
        number = parts.path.split("/")[2]
        if number not in self.written:
            return 404, json.dumps({"message": f"No such container: {number}"}).encode()
        seconds, _, nanos = asked["since"].partition(".")
        since = int(seconds) * SECOND + int(nanos)
        body = b""
        for at, stream, line in self.written[number]:
            if at >= since:
                text = f"{stamped(at)} {line}\n".encode()
                body += text if self.terminal else bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text
        return 200, body


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    found = Host()

    class Handler(QuietHandler):
        disable_nagle_algorithm = False  # there is none on such a socket

        def address_string(self) -> str:
            return "unix"

        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            status, body = found.answer(self.path)
            self.send(status, "application/json", body)

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True
        block_on_close = False

    with Server(str(tmp_path / "docker.sock"), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        found.address = f"unix://{tmp_path}/docker.sock"
        yield found
        server.shutdown()
        thread.join()


def container(number: str, ports: list[dict[str, Any]], networks: dict[str, str], **labels: str) -> dict[str, Any]:
    return {
        "Id": number * 64, "Names": [f"/engine-{number}"], "State": "running", "Ports": ports,
        "Labels": {"engine": "vllm", **{name.replace("_", "."): text for name, text in labels.items()}},
        "NetworkSettings": {"Networks": {name: {"IPAddress": address} for name, address in networks.items()}},
    }  # fmt: skip


def port(private: int, public: int | None = None, ip: str = "0.0.0.0") -> dict[str, Any]:
    given = {} if public is None else {"PublicPort": public, "IP": ip}
    return {"PrivatePort": private, "Type": "tcp", **given}


def test_containers_of_a_label_are_targets(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host.address)
    host.containers = [
        container("1", [port(8000, 18000)], {"bridge": "172.17.0.2"}, com_docker_compose_service="chat"),
        container("2", [port(9000), port(8000)], {"bridge": "172.17.0.3"}),
        container("3", [port(8000, 18001, "::1")], {}),
        container("4", [], {"host": ""}, draftscope_port="30000"),
        container("5", [], {"bridge": "172.17.0.6"}),  # nothing says where it listens
        {**container("6", [port(8000)], {"bridge": "172.17.0.7"}), "State": "exited"},
        {**container("7", [port(8000)], {"bridge": "172.17.0.8"}), "Labels": {"other": "x"}},
    ]
    found, problems = find_all([Target(docker="engine=vllm", labels={"team": "search"})])
    assert not problems
    assert [(item.address, item.labels) for item in found] == [
        ("http://127.0.0.1:18000", {"container": "engine-1", "service": "chat", "team": "search"}),
        ("http://172.17.0.3:8000", {"container": "engine-2", "team": "search"}),
        ("http://[::1]:18001", {"container": "engine-3", "team": "search"}),
        ("http://127.0.0.1:30000", {"container": "engine-4", "team": "search"}),
    ]
    assert [item.address for item in find_all([Target(docker="engine", port=9000)])[0]][1] == "http://172.17.0.3:9000"


@pytest.mark.parametrize("terminal", [False, True])
def test_what_a_container_writes_gives_the_rows_of_the_file(
    host: Host,
    database: Database,
    tmp_path: Path,
    of_file: Callable[[str], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
) -> None:
    monkeypatch.setattr(docker_module, "LARGEST_ANSWER", 20_000)
    host.terminal = terminal
    host.containers = [{**container("1", [], {}), "State": "exited"}]
    everything = [(at, 1 + number % 2, line) for number, (at, line) in enumerate(lines_of(RESTARTS))]
    for count in (100, 250, len(everything)):
        host.written = {"1" * 64: everything[:count]}
        logs = StreamedLogs(Owner(database, lambda: 2e9), tmp_path / "streams", Docker("engine=vllm", host.address))
        with closing(logs):
            read_all(logs)
    assert runs(database) == of_file(RESTARTS)
    assert all(run.labels == {"container": "engine-1"} for run in list_all(database))


def test_a_docker_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not answer") as raised:
        find_none(Docker("engine", f"unix://{tmp_path}/none.sock"))
    assert "group docker" in raised.value.hint
    with pytest.raises(InputError, match="no Docker host"):
        Docker("engine", "gpu7")


# ---- Kubernetes


@dataclass
class Cluster:
    """A cluster: its pods as the API lists them, and what each wrote (instant, line)."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    token: str = "t0ken"
    now: float = 2e9
    url: str = ""

    def answer(self, path: str, authorization: str | None) -> tuple[int, Any]:
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if authorization != f"Bearer {self.token}":
            return 403, {"kind": "Status", "message": "forbidden"}
        words = parts.path.strip("/").split("/")
        if words[-1] == "pods":
            name, _, value = asked["labelSelector"].partition("=")
            namespace = words[3] if "namespaces" in words else ""
            found = [
                pod
                for pod in self.pods
                if pod["metadata"]["labels"].get(name) == value and namespace in ("", pod["metadata"]["namespace"])
            ]
            return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found}
        pod = words[5]
        if pod not in self.written:
            return 400, {"kind": "Status", "message": "container is waiting to start"}
        ago = asked.get("sinceSeconds")
        since = 0 if ago is None else int((self.now - int(ago)) * SECOND)
        text = "".join(f"{stamped(at)} {line}\n" for at, line in self.written[pod] if at >= since)
        return 200, text[: int(asked["limitBytes"])].encode()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    found = Cluster()

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            status, body = found.answer(self.path, self.headers.get("Authorization"))
            plain = isinstance(body, bytes)
            self.send(
                status, "text/plain" if plain else "application/json", body if plain else json.dumps(body).encode()
            )

    with serve(Handler) as found.url:
        write_config(tmp_path, found)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        yield found


def write_config(folder: Path, cluster: Cluster) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": cluster.url}}],
        "users": [{"name": "u", "user": {"token": cluster.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(config))


def pod(
    name: str, ip: str, ports: list[int], *, phase: str = "Running", namespace: str = "llm", **more: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "vllm"}, **more},
        "spec": {"containers": [{"name": "server", "ports": [{"containerPort": number} for number in ports]}]},
        "status": {"phase": phase, "podIP": ip or None},
    }


def test_pods_of_a_label_are_targets(cluster: Cluster) -> None:
    cluster.pods = [
        pod("a", "10.0.0.1", [8000, 9000]),
        pod("b", "fd00::2", [8000], annotations={"prometheus.io/port": "30000"}),
        pod("c", "10.0.0.3", []),  # nothing says where it listens
        pod("d", "", [8000], phase="Pending"),
        pod("e", "10.0.0.5", [8000], deletionTimestamp="2026-11-30T05:00:00Z"),
        pod("f", "10.0.0.6", [8000], namespace="other"),
        {**pod("g", "10.0.0.7", [8000]), "metadata": {"name": "g", "namespace": "llm", "labels": {}}},
    ]
    found, problems = find_all([Target(kubernetes="app=vllm", namespace="llm", labels={"team": "search"})])
    assert not problems
    assert [(item.address, item.labels["pod"]) for item in found] == [
        ("http://10.0.0.1:8000", "a"),
        ("http://[fd00::2]:30000", "b"),
    ]
    assert found[0].labels == {"namespace": "llm", "pod": "a", "team": "search"}
    everywhere, _ = find_all([Target(kubernetes="app=vllm", port=7)])
    assert [item.address for item in everywhere] == [
        f"http://{host}:7" for host in ("10.0.0.1", "[fd00::2]", "10.0.0.3", "10.0.0.6")
    ]


def test_what_a_pod_writes_gives_the_rows_of_the_file(
    cluster: Cluster,
    database: Database,
    tmp_path: Path,
    of_file: Callable[[str], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("collector.sources.kubernetes.LARGEST_ANSWER", 20_000)
    cluster.pods = [pod("a", "10.0.0.1", []), pod("b", "", [], phase="Pending")]
    everything = lines_of(RESTARTS, 234_567_891)
    cluster.now = everything[-1][0] / SECOND + 60
    for count in (100, 250, len(everything)):
        cluster.written = {"a": everything[:count]}
        pods = Kubernetes("app=vllm", namespace="llm", now=lambda: cluster.now)
        logs = StreamedLogs(Owner(database, lambda: cluster.now), tmp_path / "streams", pods)
        with closing(logs):
            read_all(logs)
    assert runs(database) == of_file(RESTARTS)
    labels = {"namespace": "llm", "pod": "a", "container": "server"}
    assert all(run.labels == labels for run in list_all(database))


def test_a_cluster_that_refuses_or_is_not_there_is_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.token = "another"
    with pytest.raises(SourceError, match="refuses this account") as raised:
        find_none(Kubernetes("app=vllm"))
    assert "pods/log" in raised.value.hint
    cluster.url = "http://127.0.0.1:1"
    write_config(tmp_path, cluster)
    with pytest.raises(SourceError, match="does not answer"):
        find_none(Kubernetes("app=vllm"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InputError, match="how the cluster is reached") as unreached:
        Kubernetes("app=vllm")
    assert "KUBECONFIG" in unreached.value.hint
    with pytest.raises(InputError, match="how the cluster is reached"):
        Kubernetes("app=vllm", context="nowhere")


def test_a_missing_client_is_named(tmp_path: Path) -> None:
    (tmp_path / "draftscope.toml").write_text('[[targets]]\nkubernetes = "app=vllm"\n')
    program = "import sys; sys.modules['kubernetes'] = None; from dashboard.cli import main; main(['targets', 'test'])"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path, env=environ
    )
    assert done.returncode == 2
    assert 'pip install "draftscope[kubernetes]"' in done.stderr


# ---- what both share


def test_instants_are_read_to_the_nanosecond_and_half_lines_are_left() -> None:
    text = b"2026-11-30T05:00:00.123456789Z one\n2026-11-30T06:00:01+01:00 two\n2026-11-30T05:00:02.5Z thr"
    first, second = entries_of(text)
    assert first == (1796014800_123456789, b"one")
    assert second == (1796014801_000000000, b"two")
    assert entries_of(b"nothing of the kind\n") == []


def test_sources_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "draftscope.toml").write_text(
        '[[sources]]\nkind = "docker"\nselect = "engine=vllm"\nhost = "tcp://gpu7:2375"\n'
        '[[sources]]\nkind = "kubernetes"\nselect = "app=vllm"\nnamespace = "llm"\ncontainer = "server"\n'
    )
    one, two = load_settings(tmp_path / "draftscope.toml", {}).sources
    assert one == DockerSource(select="engine=vllm", host="tcp://gpu7:2375")
    assert two == KubernetesSource(select="app=vllm", namespace="llm", container="server")
    (tmp_path / "draftscope.toml").write_text('[[sources]]\nkind = "docker"\nselect = " "\n')
    with pytest.raises(InputError, match="select is empty"):
        load_settings(tmp_path / "draftscope.toml", {})


def test_a_group_says_where_and_what(host: Host) -> None:
    host.containers = [container("1", [port(8000, 18000)], {})]
    with closing(Docker("engine", host.address)) as containers:
        found = containers.groups()
    assert found == [Group(("http://127.0.0.1:18000",), {"container": "engine-1"})]
