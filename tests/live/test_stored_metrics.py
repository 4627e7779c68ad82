"""Samples that real Prometheus and VictoriaMetrics hold end in the database as direct scraping would have put them there."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector.domain.errors import InputError, SourceError
from collector.domain.runs import RunRecord
from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.prometheus import LARGEST_ANSWER
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.runs import list_runs, load_run
from collector.stored_metrics import SETTLED_SECONDS, StoredMetrics
from tests.live.recorded import Recorded
from tests.live.replay import QuietHandler, Recording, serve
from tests.live.stores import Snapshots, free_port, labelled, prometheus, victoria_metrics

RECORDINGS = {
    "vllm/eagle3": "gpu1:8000",
    "llamacpp/draft-near": "gpu2:8080",
    "sglang/0.5.19-eagle3": "gpu3:30000",
    "sglang/0.5.11-eagle3-dp2": "gpu4:30000",
    "sglang/0.5.11-restarts": "gpu5:30000",
}
COUNTED = ("vllm/eagle3", "llamacpp/draft-near", "sglang/0.5.19-eagle3")
STORES = [
    pytest.param("prometheus", marks=pytest.mark.needs("promtool")),
    pytest.param("victoria-metrics", marks=pytest.mark.needs("victoria-metrics")),
]


def snapshots(name: str) -> Snapshots:
    engine, _, folder = name.partition("/")
    return Recording(folder).snapshots if engine == "sglang" else Recorded(name).snapshots


FIRST = min(snapshots(name)[0][0] for name in RECORDINGS)
LAST = max(snapshots(name)[-1][0] for name in RECORDINGS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """The address of a store by its kind. It holds all recordings; llama.cpp's twice, as two collectors saw it."""
    known: dict[str, str] = {}
    samples = []
    for name, instance in RECORDINGS.items():
        engine = name.partition("/")[0]
        samples += labelled(snapshots(name), job=engine, instance=instance, engine=engine)  # collides with vLLM's own
    later = [(at + 0.007, body) for at, body in snapshots("llamacpp/draft-near")]
    samples += labelled(later, job="llamacpp-too", instance="gpu2:8080", engine="llamacpp")
    samples += labelled([(FIRST, b"process_start_time_seconds 5\nup 1\n")], job="node", instance="gpu1:9100")
    with ExitStack() as stack:

        def address(kind: str) -> str:
            if kind not in known:
                start = {"prometheus": prometheus, "victoria-metrics": victoria_metrics}[kind]
                known[kind] = stack.enter_context(start(tmp_path_factory.mktemp("store") / kind, samples))
            return known[kind]

        yield address


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@contextmanager
def reading(
    database: Database, url: str, select: str = "", *, now: float = LAST, **options: Any
) -> Iterator[StoredMetrics]:
    with Endpoint(url, largest=LARGEST_ANSWER, **options) as endpoint:
        yield StoredMetrics(
            database, endpoint, select, since_seconds=now - FIRST + 60, now=lambda: now + SETTLED_SECONDS + 0.01
        )


def read_all(stored: StoredMetrics) -> int:
    """How many scrapes were stored of all that is there."""
    before = stored.scrapes
    while stored.step():
        pass
    return stored.scrapes - before


@contextmanager
def scraping(database: Database, name: str) -> Iterator[Watch]:
    """Scrapes a server that answers nothing but its metrics."""
    left = iter(snapshots(name))
    present = 0.0

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            nonlocal present
            if self.path != "/metrics":
                self.send(404, "text/plain", b"")
                return
            present, body = next(left)
            self.send(200, "text/plain", body)

    with serve(Handler) as url, Endpoint(url) as endpoint:
        yield Watch(database, Scraper(endpoint, clock=lambda: present))


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[object]]:
    """What direct scraping makes of a recording."""

    def by_name(name: str) -> list[object]:
        with (
            open_database(f"sqlite:///{tmp_path_factory.mktemp('scraped') / 'runs.db'}") as database,
            scraping(database, name) as watch,
        ):
            for _ in snapshots(name):
                watch.take()
            return figures(database)

    return by_name


def records(database: Database, instance: str = "") -> list[RunRecord]:
    with database.reading() as connection:
        runs = list_runs(connection, limit=100).runs
        wanted = [run for run in runs if not instance or f"{run.host}:{run.port}" == instance]
        return [load_run(connection, run.id) for run in sorted(wanted, key=lambda run: run.started_at or 0)]


def figures(database: Database, instance: str = "") -> list[object]:
    """Everything about runs but where they were read."""
    return [
        (
            run.engine,
            run.started_at,
            run.ended_at,
            run.windows,
            run.prefills,
            run.latencies,
            {name: argument.effective for name, argument in run.arguments.items()},
            [(event.kind, event.at, event.values) for event in run.events],
        )
        for run in records(database, instance)
    ]


def counts(database: Database, instance: str) -> tuple[float, ...]:
    windows = [window for run in records(database, instance) for window in run.windows]
    names = ("verify_steps", "accepted_tokens", "drafted_tokens", "generated_tokens")
    return tuple(sum(getattr(window, name) or 0 for window in windows) for name in names)


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", RECORDINGS)
def test_what_prometheus_holds_ends_as_if_it_had_been_scraped_here(
    stores: Callable[[str], str], database: Database, scraped: Callable[[str], list[object]], name: str
) -> None:
    instance = RECORDINGS[name]
    with reading(database, stores("prometheus"), f'{{instance="{instance}"}}') as stored:
        assert read_all(stored) == len(snapshots(name))
        assert read_all(stored) == 0
    assert figures(database, instance) == scraped(name)


@pytest.mark.needs("victoria-metrics")
def test_victoria_metrics_rounds_and_gives_the_same_counts(
    stores: Callable[[str], str], database: Database, scraped: Callable[[str], list[object]], tmp_path: Path
) -> None:
    with reading(database, stores("victoria-metrics")) as stored:
        read_all(stored)
    for name in COUNTED:
        with open_database(f"sqlite:///{tmp_path / 'direct.db'}") as direct:
            with scraping(direct, name) as watch:
                for _ in snapshots(name):
                    watch.take()
            assert counts(database, RECORDINGS[name]) == pytest.approx(counts(direct, ""), rel=1e-11)
        (tmp_path / "direct.db").unlink()


@pytest.mark.parametrize("kind", STORES)
def test_a_whole_fleet_is_read_at_once_and_each_process_is_a_run(
    stores: Callable[[str], str], database: Database, kind: str
) -> None:
    with reading(database, stores(kind)) as stored:
        assert read_all(stored) == sum(len(snapshots(name)) for name in RECORDINGS)
        told = list(stored.problems.values())
    assert sorted({f"{run.host}:{run.port}" for run in records(database)}) == sorted(RECORDINGS.values())
    assert len(records(database, "gpu5:30000")) == 3  # it was restarted twice
    assert [run.labels for run in records(database, "gpu1:8000")] == [{"job": "vllm"}]
    assert {window.unit for window in records(database, "gpu4:30000")[0].windows} == {"DP0", "DP1"}
    assert len(told) == 1
    assert "http://gpu2:8080 is told of more than once (job=llamacpp, job=llamacpp-too)" in told[0]


@pytest.mark.needs("promtool")
def test_a_restart_goes_on_where_the_last_one_ended(
    stores: Callable[[str], str], database: Database, scraped: Callable[[str], list[object]]
) -> None:
    name = "vllm/eagle3"
    for at, _ in snapshots(name)[2::3]:
        with reading(database, stores("prometheus"), '{job="vllm"}', now=at) as stored:
            read_all(stored)
    with reading(database, stores("prometheus"), '{job="vllm"}') as stored:
        read_all(stored)
    assert figures(database) == scraped(name)


@pytest.mark.needs("promtool")
def test_what_was_scraped_here_before_is_not_counted_again(
    tmp_path: Path, database: Database, scraped: Callable[[str], list[object]]
) -> None:
    name = "llamacpp/draft-near"
    with scraping(database, name) as watch:
        address = watch.scraper.endpoint.address.removeprefix("http://")
        watch.take()
        watch.take()
    samples = labelled(snapshots(name), job="llamacpp", instance=address)
    with prometheus(tmp_path / "store", samples) as url, reading(database, url) as stored:
        assert read_all(stored) == len(snapshots(name)) - 2
    assert figures(database) == scraped(name)


@pytest.mark.needs("promtool")
def test_a_store_that_gives_little_at_once_is_asked_for_parts(
    tmp_path: Path, database: Database, scraped: Callable[[str], list[object]]
) -> None:
    name = "vllm/eagle3"
    spread = [(FIRST + 60 * number, body) for number, (_, body) in enumerate(snapshots(name))]
    samples = labelled(spread, job="vllm", instance="gpu1:8000")
    with (
        prometheus(tmp_path / "store", samples, "--query.max-samples=300") as url,
        reading(database, url, now=spread[-1][0]) as stored,
    ):
        assert read_all(stored) == len(spread)
    assert sum(window.verify_steps or 0 for window in records(database)[0].windows) == Recorded(name).last(
        "vllm:spec_decode_num_drafts_total"
    )


@pytest.mark.needs("promtool")
def test_tenant_and_key_go_with_every_question(stores: Callable[[str], str], database: Database) -> None:
    behind = stores("prometheus")
    wanted = {"X-Scope-OrgID": "team-a", "Authorization": "Bearer k3y"}

    class Gate(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            if any(self.headers.get(name) != text for name, text in wanted.items()):
                self.send(401, "text/plain", b"no org id")
                return
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = urllib.request.Request(behind + self.path, body, {"Content-Type": self.headers["Content-Type"]})
            with urllib.request.urlopen(request) as answer:
                self.send(answer.status, "application/json", answer.read())

    with serve(Gate) as url:
        with reading(database, url) as stored, pytest.raises(SourceError, match="wants to know who asks") as raised:
            read_all(stored)
        assert "tenant" in raised.value.hint
        with reading(database, url, api_key="k3y", headers={"X-Scope-OrgID": "team-a"}) as stored:
            assert read_all(stored) > 0


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    ("path", "select", "words"),
    [
        ("", '{job=~"["}', "refuses the question"),
        ("/elsewhere", "", "no Prometheus API"),
    ],
)
def test_what_a_store_does_not_take_is_told_in_its_words(
    stores: Callable[[str], str], database: Database, path: str, select: str, words: str
) -> None:
    with (
        reading(database, stores("prometheus") + path, select) as stored,
        pytest.raises(SourceError, match=words) as raised,
    ):
        read_all(stored)
    assert raised.value.why
    assert raised.value.hint


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"", b"{}", b'{"status":"success","data":{"resultType":"vector"}}']
)
def test_what_is_no_store_is_told(database: Database, body: bytes) -> None:
    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send(200, "text/html", body)

    with serve(Handler) as url, reading(database, url) as stored, pytest.raises(SourceError, match=r"API|another form"):
        read_all(stored)
    assert not records(database)


def test_a_store_that_is_down_is_told_and_nothing_is_lost(database: Database) -> None:
    with (
        reading(database, f"http://127.0.0.1:{free_port()}") as stored,
        pytest.raises(SourceError, match="nothing answers"),
    ):
        read_all(stored)


@pytest.mark.parametrize("text", ["up", "vllm:num_requests_running{}", "{job}", "rate(x[5m])"])
def test_a_selector_is_made_of_matchers(database: Database, text: str) -> None:
    with pytest.raises(InputError, match="is not a selector") as raised, reading(database, "http://127.0.0.1:1", text):
        pass
    assert raised.value.hint
