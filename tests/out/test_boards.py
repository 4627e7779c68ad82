"""The boards for Grafana: as described, on metrics that exist, and with data in every panel."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.exposition import generate_latest

from collector.domain.findings import Severity
from collector.storage.deliveries import enqueue, save_channel
from collector.storage.engine import Database, open_database
from collector.storage.runs import extend_run
from dashboard.collecting import TargetState
from dashboard.exporter.endpoint import Exporter
from tests.live.stores import Snapshots, labelled, prometheus
from tests.out.monitoring import BOARDS, DEPLOY, ROOT, known_names, names_in, queries
from tests.out.stored import finding, judge, save

GRAFANA = DEPLOY / "grafana"
RECORDED = {
    "sglang": ("0.5.23-eagle3", "0.5.11-eagle3-dp2"),
    "vllm": ("eagle3",),
    "llamacpp": ("draft-near",),
}
CHOSEN = {"datasource": "prometheus", "deployment": ".*", "replica": "gpu1:30000", "instance": ".*"}
STEP, SCRAPES = 60.0, 15


def filled_in(query: str) -> str:
    """A query as Grafana sends it."""
    query = query.replace("$__rate_interval", "10m")
    return re.sub(r"\$\{?(\w+)\}?", lambda found: CHOSEN[found[1]], query)


def judged(database: Database, run: int, turn: int, at: float) -> None:
    """A judgement in which everything is known; counters grow with the turns."""
    steps = 100.0 * turn
    figures = {
        "acceptance_length": 1.8, "max_acceptance_length": 6, "expected_acceptance_length": 3.27,
        "realistic_acceptance_length": 2.86, "break_even_acceptance_length": 2.96, "retained_share": 0.353,
        "draft_acceptance_rate": 0.16, "conditional_acceptance_rate": 0.449, "draft_depth": 5, "verify_width": 6,
        "verify_steps": steps, "drafted_tokens": 5 * steps, "accepted_tokens": 0.8 * steps,
        "generated_tokens": 1.8 * steps, "generation_throughput": 54.8, "step_seconds": 0.03, "running_requests": 1.0,
        "speedup": 0.609, "step_cost_ratio": 2.96, "acceptance_rate_at": [0.45, 0.2],
        "conditional_acceptance_rate_at": [0.45, 0.44],
    }  # fmt: skip
    summary = {
        "method": "eagle3",
        "quantities": {key: {"value": value} for key, value in figures.items()},
        "baseline_throughput": 89.9,
        "overridden": 3,
        "changed": 1,
        "drift": {"statistic": 0.4, "threshold": 8.0, "drifted": False, "onset": None},
    }
    with database.transaction() as connection:
        extend_run(connection, run, 1, [], ended_at=at)
        judge(connection, run, finding("PAY001", Severity.CRITICAL), at=at, summary=summary)


def exported(database: Database, now: float) -> Snapshots:
    """What the exporter said until now of two replicas that are judged all the time."""
    at = [now - STEP * SCRAPES]
    state = TargetState("http://gpu1:30000")
    exporter = Exporter(database, targets=lambda: [state], clock=lambda: at[0])
    with database.transaction() as connection:
        runs = [save(connection, host=host, deployment="chat", started=at[0], ended=at[0]) for host in ("gpu1", "gpu2")]
        save_channel(connection, "ops", "webhook")
        enqueue(connection, "ops", "opened", {}, at=at[0])
    snapshots = []
    for turn in range(SCRAPES):
        at[0] += STEP
        for run in runs:
            judged(database, run, turn, at[0])
        state.scrapes, state.last_success_at = turn + 1, at[0]
        body = exporter.exposition(generate_latest)
        # Nothing was ingested from a log, so no line of one was read either.
        snapshots.append((at[0], body.replace(b"draftscope_engine_lines 0.0", b"draftscope_engine_lines 100.0")))
    return snapshots


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], list[object]]]:
    """The result of a query in a Prometheus that holds what engines and the exporter said, at the end of its recording."""
    folder = tmp_path_factory.mktemp("boards")
    samples = []
    ends = {}
    for engine, names in RECORDED.items():
        for name in names:
            files = sorted((ROOT / "tests" / "golden" / "metrics" / engine / name).glob("metrics-*.prom.gz"))
            read = [
                (int(re.findall(r"\d+", path.name)[0]) / 1000, gzip.decompress(path.read_bytes())) for path in files
            ]
            samples += labelled(read, job=engine, instance=name)
            ends.setdefault(engine, read[-1][0])
    ends["draftscope"] = ends["vllm"]
    with open_database(f"sqlite:///{folder / 'draftscope.db'}") as database:
        samples += labelled(exported(database, ends["draftscope"]), job="draftscope", instance="draftscope:8787")
    with prometheus(folder / "prometheus", samples) as url, httpx.Client(base_url=url, timeout=60) as client:

        def ask(query: str) -> list[object]:
            engine = next((name for name in RECORDED if f"{name}:" in query), "draftscope")
            answer = client.get("/api/v1/query", params={"query": query, "time": f"{ends[engine]:.3f}"}).json()
            assert answer["status"] == "success", answer
            return answer["data"]["result"]

        yield ask


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_panel_shows_data(asked: Callable[[str], list[object]], path: Path) -> None:
    empty = [(title, query) for title, query in queries(path) if not asked(filled_in(query))]
    assert empty == []


def test_boards_are_as_described() -> None:
    described = runpy.run_path(str(GRAFANA / "generate.py"))
    texts = {f"{board.uid}.json": described["text_of"](board) for board in described["ALL"]}
    assert {path.name: path.read_text(encoding="utf-8") for path in BOARDS} == texts
    assert set(texts) == {
        "draftscope-fleet.json", "draftscope-run.json", "engine-sglang.json", "engine-vllm.json", "engine-llamacpp.json",
    }  # fmt: skip


def test_boards_speak_of_metrics_that_exist() -> None:
    known = known_names()
    unknown = {(path.stem, title): names_in(query) - known for path in BOARDS for title, query in queries(path)}
    assert {panel: names for panel, names in unknown.items() if names} == {}


@pytest.mark.needs("promtool")
def test_every_query_can_be_read(tmp_path: Path) -> None:
    found = [filled_in(query) for path in BOARDS for _, query in queries(path)]
    assert len(found) > 80
    rules = [{"record": f"q{number}", "expr": query} for number, query in enumerate(found)]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "queries.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_have_their_place_and_titles_of_their_own() -> None:
    for path in BOARDS:
        board = json.loads(path.read_text(encoding="utf-8"))
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in board["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells)), path.name
        assert max(x for x, _ in cells) < 24
        titles = [panel["title"] for panel in board["panels"]]
        assert len(titles) == len(set(titles)), path.name
        assert all(panel["description"].endswith(".") for panel in board["panels"])


def test_grafana_is_told_where_boards_and_sources_are() -> None:
    sources = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "draftscope.yml").read_text())["datasources"]
    assert {source["type"] for source in sources} == {"prometheus", "loki", "alertmanager"}
    (provider,) = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "draftscope.yml").read_text())["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert f"./deploy/grafana/boards:{provider['options']['path']}:ro" in compose["services"]["grafana"]["volumes"]
