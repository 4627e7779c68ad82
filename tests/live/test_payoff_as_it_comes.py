"""Capacity, prefix reuse, schedules and graphs (PAY004 to PAY007), judged from the live metrics of an engine alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database
from collector.storage.findings import FindingState, load_findings
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import judge_run
from tests.live.replay import QuietHandler, serve

START = 1_790_000_000.0
INTERVAL = 15.0
RULES = ("PAY004", "PAY005", "PAY006", "PAY007")
LENGTH = 2.5


@dataclass(frozen=True)
class Load:
    """What happens on an SGLang of one rank: 20 passes a second, ``graphless`` of them without a captured graph."""

    running: int = 24
    waiting: int = 0
    cache_usage: float = 0.5
    cached_share: float = 0.6
    graphless: float = 0.0
    drafts: bool = True
    passes_per_second: int = 20


@dataclass
class Engine:
    """Counters of one process, and what it says of its arguments."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    started: float = START
    at: float = START
    load: Load = field(default_factory=Load)
    counters: dict[str, float] = field(default_factory=dict)
    url: str = ""

    def restart(self) -> None:
        self.started = self.at = self.at + 60
        self.counters = {}

    def go_on(self) -> None:
        self.at += INTERVAL
        load = self.load
        passes = INTERVAL * load.passes_per_second
        steps = passes * load.running if load.drafts else 0.0
        tokens = passes * load.running * (LENGTH if load.drafts else 1.0)
        prompts = 40_000.0
        for name, by in {
            'realtime_tokens_total{R,mode="decode"}': tokens,
            'realtime_tokens_total{R,mode="prefill_compute"}': prompts * (1 - load.cached_share),
            'realtime_tokens_total{R,mode="prefill_cache"}': prompts * load.cached_share,
            'cuda_graph_passes_total{R,mode="decode_full"}': passes * (1 - load.graphless),
            'cuda_graph_passes_total{R,mode="decode_none"}': passes * load.graphless,
            "spec_verify_calls_total{M}": steps,
            "generation_tokens_total{M}": tokens,
            "num_requests_total{M}": 0.0,
        }.items():
            self.counters[name] = self.counters.get(name, 0.0) + by

    def page(self) -> bytes:
        load = self.load
        gauges = {"num_running_reqs": load.running, "num_queue_reqs": load.waiting, "token_usage": load.cache_usage,
                  "spec_accept_length": LENGTH, "is_cuda_graph": float(load.graphless < 1)}  # fmt: skip
        lines = [f"process_start_time_seconds {self.started}"]
        lines += [f"sglang:{name}{{R}} {float(value)}" for name, value in gauges.items()]
        lines += [f"sglang:{name} {value}" for name, value in self.counters.items()]
        model = 'model_name="m"'
        rank = f'engine_type="unified",{model},pp_rank="0",tp_rank="0"'
        return ("\n".join(lines).replace("{R", "{" + rank).replace("{M", "{" + model) + "\n").encode()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4", self.page()
        stated = {
            "version": "0.5.23", "speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4, "served_model_name": "m", "model_path": "m", "device": "cuda",
            "max_running_requests": 48, "internal_states": [{}], **self.arguments,
        }  # fmt: skip
        documents = {"/v1/models": {"data": [{"id": "m", "owned_by": "sglang"}]}, "/server_info": stated}
        return (200 if path in documents else 404), "application/json", json.dumps(documents.get(path, {})).encode()


@contextmanager
def watching(database: Database, engine: Engine) -> Iterator[Watch]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            self.send(*engine.answer(self.path))

    with serve(Handler) as url, Endpoint(url) as endpoint:
        yield Watch(database, Scraper(endpoint, clock=lambda: engine.at), deployment="chat")


def go_on(watch: Watch, engine: Engine, *loads: Load, windows: int = 20) -> set[str]:
    """Scrape and judge; the rules of pay-off that have an open finding on the run then."""
    run_id = 0
    for number in range(windows):
        engine.load = loads[number % len(loads)]
        engine.go_on()
        run_id = watch.take().run_id
    assert judge_run(Diagnoses(watch.database), run_id, Alerting(), now=lambda: engine.at) is not None
    with watch.database.reading() as connection:
        found = load_findings(connection, run_ids=[run_id], state=FindingState.OPEN)
    return {item.finding.rule for item in found if item.finding.rule in RULES}


USUAL = Load()
SLOWER = replace(USUAL, drafts=False, passes_per_second=35)


@pytest.mark.parametrize(
    ("loads", "arguments", "expected"),
    [
        ([USUAL], {}, set()),
        ([replace(USUAL, running=48, waiting=12)], {}, {"PAY004"}),
        ([replace(USUAL, waiting=12, cache_usage=0.95)], {}, {"PAY004"}),
        ([replace(USUAL, waiting=12)], {}, set()),  # neither full nor at the limit
        ([replace(USUAL, running=48, cache_usage=0.95)], {}, set()),  # nobody waits
        ([replace(USUAL, running=48, waiting=12), *[replace(USUAL, running=48)] * 3], {}, set()),  # seldom
        ([replace(USUAL, graphless=1.0)], {}, {"PAY007"}),
        ([replace(USUAL, graphless=1.0), *[USUAL] * 4], {}, {"PAY007"}),
        ([replace(USUAL, graphless=0.1)], {}, set()),  # a pass now and then
        ([replace(USUAL, graphless=1.0)], {"device": "cpu"}, set()),
        ([SLOWER, USUAL, USUAL], {"speculative_adaptive": True}, {"PAY006"}),
        ([SLOWER, USUAL, USUAL], {}, set()),  # no schedule
        ([replace(SLOWER, passes_per_second=50), USUAL, USUAL], {"speculative_adaptive": True}, set()),  # as fast
    ],
    ids=["usual", "at the limit", "cache full", "a queue alone", "full without a queue", "a queue now and then",
         "no graphs", "no graphs at times", "a pass without", "no graphs on a cpu", "schedule", "no schedule",
         "schedule that costs nothing"],
)  # fmt: skip
def test_live_metrics_alone_tell(
    sqlite_database: Database, loads: list[Load], arguments: dict[str, Any], expected: set[str]
) -> None:
    engine = Engine(arguments)
    with watching(sqlite_database, engine) as watch:
        assert go_on(watch, engine, *loads) == expected


@pytest.mark.parametrize(("now", "expected"), [(0.1, {"PAY005"}), (0.5, set())])
def test_prompts_that_the_cache_served_before_are_told_after_a_restart(
    sqlite_database: Database, now: float, expected: set[str]
) -> None:
    engine = Engine()
    with watching(sqlite_database, engine) as watch:
        assert go_on(watch, engine, USUAL) == set()
        engine.restart()
        assert go_on(watch, engine, replace(USUAL, cached_share=now)) == expected


def test_a_queue_that_empties_ends_its_finding(database: Database) -> None:
    engine = Engine()
    with watching(database, engine) as watch:
        assert go_on(watch, engine, USUAL) == set()
        full = replace(USUAL, running=48, waiting=12)
        assert go_on(watch, engine, full, windows=30) == {"PAY004"}
        assert go_on(watch, engine, USUAL, windows=30) == set()
        with database.reading() as connection:
            (ended,) = [item for item in load_findings(connection) if item.finding.rule == "PAY004"]
        assert ended.state is FindingState.RESOLVED
        assert go_on(watch, engine, full, windows=60) == {"PAY004"}
        with database.reading() as connection:
            (again,) = [item for item in load_findings(connection) if item.finding.rule == "PAY004"]
        assert (again.id, again.first_seen) == (ended.id, ended.first_seen)
