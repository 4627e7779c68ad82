"""Engines whose acceptance falls and recovers while they are watched: what is found, when it opens and when it ends."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from analysis.watching import drift_in
from collector.domain.arguments import Arguments
from collector.domain.evidence import Evidence
from collector.domain.runs import RunRecord
from collector.domain.windows import Origin, Window
from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.detectors import fleet_standing, group_of, load_watched, run_standing
from collector.storage.engine import Database
from collector.storage.findings import FindingState, StoredFinding, load_findings
from collector.storage.limits import Retention
from collector.storage.live import Seen, append_live
from collector.storage.retention import let_go
from collector.storage.runs import save_run
from collector.storage.sources import source_at
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import judge_run
from dashboard.watching import take_in
from tests.live.replay import QuietHandler, serve

START = 1_790_000_040.0
INTERVAL = 15.0
DEPTH = 3
MINUTE = 60


@dataclass
class Engine:
    """A vLLM whose clock we set: 24 requests run, 20 steps a second each; ``rate`` is how likely a draft is accepted."""

    rate: float = 0.7
    at: float = START
    url: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(5))
    drafts: int = 0
    accepted: list[int] = field(default_factory=lambda: [0] * DEPTH)

    def go_on(self, seconds: float = INTERVAL) -> None:
        self.at += seconds
        steps = int(24 * 20 * seconds)
        self.drafts += steps
        rate = self.rate * (1 + 0.03 * self.random.gauss(0, 1))
        for position in range(DEPTH):
            self.accepted[position] += int(steps * rate ** (position + 1))

    def page(self) -> bytes:
        own = 'engine="0",model_name="m"'
        accepted = sum(self.accepted)
        series = {
            "num_requests_running": 24.0, "num_requests_waiting": 0.0, "kv_cache_usage_perc": 0.4,
            "generation_tokens_total": float(self.drafts + accepted), "prompt_tokens_total": float(self.drafts),
            "spec_decode_num_drafts_total": float(self.drafts),
            "spec_decode_num_draft_tokens_total": float(DEPTH * self.drafts),
            "spec_decode_num_accepted_tokens_total": float(accepted),
        }  # fmt: skip
        lines = [f"process_start_time_seconds {START - 60}"]
        lines += [f"vllm:{name}{{{own}}} {value}" for name, value in series.items()]
        lines += [
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{own},position="{position}"}} {float(count)}'
            for position, count in enumerate(self.accepted)
        ]
        return ("\n".join(lines) + "\n").encode()


@contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    documents = {
        "/v1/models": {"data": [{"id": "m", "owned_by": "vllm"}]},
        "/version": {"version": "0.11.0"},
    }

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            if self.path == "/metrics":
                self.send(200, "text/plain; version=0.0.4", engine.page())
            elif self.path in documents:
                self.send(200, "application/json", json.dumps(documents[self.path]).encode())
            else:
                self.send(404, "application/json", b"{}")

    with serve(Handler) as engine.url:
        yield engine


def drift_findings(database: Database, run_ids: Sequence[int] | None = None) -> list[StoredFinding]:
    with database.reading() as connection:
        found = load_findings(connection, run_ids=run_ids)
    return [item for item in found if item.finding.rule == "ACC004"]


def test_a_fall_is_found_while_it_lasts_and_ends_with_it(database: Database) -> None:
    engine = Engine()
    with running(engine), Endpoint(engine.url) as endpoint:
        watch = Watch(database, Scraper(endpoint, clock=lambda: engine.at), deployment="chat")

        def go_on(minutes: int, *, judged_every: int = 3) -> None:
            for minute in range(minutes):
                for _ in range(round(MINUTE / INTERVAL)):
                    engine.go_on()
                    run_id = watch.take().run_id
                if minute % judged_every == judged_every - 1:  # by a program that has just started
                    assert judge_run(Diagnoses(database), run_id, Alerting(), now=lambda: engine.at) is not None

        go_on(63, judged_every=21)
        assert drift_findings(database) == []
        fell_at = engine.at
        engine.rate = 0.45
        go_on(12)
        (found,) = drift_findings(database)
        assert found.state is FindingState.OPEN
        assert found.finding.scope == "run"
        assert fell_at < found.first_seen <= fell_at + 10 * MINUTE
        values = found.finding.values
        assert values["onset"] == pytest.approx(fell_at, abs=2 * MINUTE)
        assert values["previous"] == pytest.approx(1 + 0.7 + 0.7**2 + 0.7**3, rel=0.03)
        assert values["last"] == pytest.approx(1 + 0.45 + 0.45**2 + 0.45**3, rel=0.03)

        engine.rate = 0.7
        go_on(3)  # not at once
        assert [item.state for item in drift_findings(database)] == [FindingState.OPEN]
        assert drift_findings(database)[0].finding.values["last"] > 2
        go_on(12)
        (ended,) = drift_findings(database)
        assert (ended.id, ended.state) == (found.id, FindingState.RESOLVED)
        assert ended.resolved_at is not None
        assert ended.first_seen == found.first_seen


# ---- stored minutes


@dataclass
class Replica:
    """A run whose windows are stored without being scraped."""

    run_id: int
    source_id: int
    random: random.Random
    rate: Callable[[int], float]

    def windows(self, minutes: range) -> Iterator[Window]:
        for minute in minutes:
            for quarter in range(4):
                at = START + MINUTE * minute + INTERVAL * quarter + self.run_id
                steps = 7_200.0
                rate = self.rate(minute) * (1 + 0.03 * self.random.gauss(0, 1))
                accepted = math.floor(steps * (rate + rate**2 + rate**3))
                yield Window(
                    round(at * 1000), 0, at, "", INTERVAL, 24.0, 0.0, steps, float(accepted), DEPTH * steps, steps + accepted,
                    (steps + accepted) / INTERVAL, origin=Origin.COUNTERS,
                )  # fmt: skip


def replicas(database: Database, rates: Sequence[Callable[[int], float]], depths: Sequence[int] = ()) -> list[Replica]:
    made = []
    for number, rate in enumerate(rates):
        arguments = Arguments().with_effective(
            {
                "method": "eagle3",
                "num_speculative_tokens": depths[number] if depths else DEPTH,
                "served_model_name": "m",
            },
            Evidence("a", 1, "b"),
        )
        with database.transaction() as connection:
            source = source_at(connection, f"http://gpu{number}:8000", at=START)
            record = RunRecord(
                "vllm", f"http://gpu{number}:8000/metrics", host=f"gpu{number}", port=8000, started_at=START - 1,
                arguments=arguments,
            )  # fmt: skip
            run_id = save_run(connection, record, source_id=source, deployment="chat", at=START)
        made.append(Replica(run_id, source, random.Random(number), rate))
    return made


def go_on(database: Database, fleet: Sequence[Replica], minutes: range) -> None:
    seen = [Seen(one.run_id, one.source_id, list(one.windows(minutes)), ()) for one in fleet]
    with database.transaction() as connection:
        append_live(connection, seen)


def judge(database: Database, fleet: Sequence[Replica], at: float) -> dict[int, list[tuple[str, str]]]:
    """Judge all, those again that were judged before others were taken in; what of acceptance over time is open on each."""
    for one in fleet:
        take_in(database, one.run_id)
    for one in fleet:
        judge_run(Diagnoses(database), one.run_id, Alerting(), now=lambda: at)
    with database.reading() as connection:
        found = load_findings(connection, state=FindingState.OPEN)
    return {
        one.run_id: sorted(
            (item.finding.rule, item.finding.scope)
            for item in found
            if item.run_id == one.run_id and item.finding.rule in ("ACC004", "ACC007")
        )
        for one in fleet
    }


def steady(_minute: int) -> float:
    return 0.7


def falling(minute: int) -> float:
    return 0.5 if 60 <= minute < 95 else 0.7


def test_one_replica_that_falls_is_told_from_the_traffic_of_its_fleet(database: Database) -> None:
    fleet = replicas(database, [steady, steady, steady, steady, falling])
    go_on(database, fleet, range(60))
    assert set(map(tuple, judge(database, fleet, START).values())) == {()}
    go_on(database, fleet, range(60, 95))
    sound, fallen = fleet[:-1], fleet[-1]
    open_now = judge(database, fleet, START + 95 * MINUTE)
    assert open_now[fallen.run_id] == [("ACC004", "run"), ("ACC007", "run")]
    assert all(open_now[one.run_id] == [] for one in sound)
    with database.reading() as connection:
        found = {item.finding.rule: item.finding for item in load_findings(connection, run_ids=[fallen.run_id])}
    assert "The fleet as a whole did not fall" in found["ACC004"].why
    assert found["ACC007"].values["unit"] == "gpu4:8000"
    assert found["ACC007"].values["siblings_acceptance_length"] > found["ACC007"].values["acceptance_length"]
    diagnosis = Diagnoses(database).of(fallen.run_id).diagnosis
    assert [step[-8:] for step in diagnosis.next_steps][:2] == ["(ACC007)", "(ACC004)"]
    assert any(
        cause.experiment.what.startswith("Restart this replica and")
        for cause in diagnosis.causes
        if cause.id == "faulty-unit"
    )

    go_on(database, fleet, range(95, 150))
    assert set(map(tuple, judge(database, fleet, START + 150 * MINUTE).values())) == {()}


def test_a_fleet_that_falls_for_one_replica_points_at_it(database: Database) -> None:
    fleet = replicas(database, [steady, falling])
    for minutes in (range(60), range(60, 95)):
        go_on(database, fleet, minutes)
        open_now = judge(database, fleet, START + 95 * MINUTE)
    assert ("ACC004", "fleet") in open_now[fleet[0].run_id] + open_now[fleet[1].run_id]
    with database.reading() as connection:
        found = [item.finding for item in load_findings(connection) if item.finding.rule == "ACC004"]
    said = {item.scope: item.why for item in found}
    assert "this run is far below its siblings (ACC007)" in said["run"]
    assert "Look first at gpu1:8000, far below the others (ACC007)." in said["fleet"]


def test_replicas_that_draft_otherwise_are_not_compared(database: Database) -> None:
    fleet = replicas(database, [steady, steady, steady, lambda _minute: 0.5], [3, 3, 3, 2])
    go_on(database, fleet, range(40))
    assert set(map(tuple, judge(database, fleet, START + 40 * MINUTE).values())) == {()}
    with database.reading() as connection:
        assert len(load_watched(connection, fleet[0].run_id).recent) == 4


def test_a_fall_of_the_whole_fleet_is_told_once_for_the_fleet(database: Database) -> None:
    fleet = replicas(database, [falling, falling, falling])
    for minutes in (range(60), range(60, 80)):
        go_on(database, fleet, minutes)
        found = judge(database, fleet, START)
    first, *others = fleet
    assert found[first.run_id] == [("ACC004", "fleet"), ("ACC004", "run")]
    assert all(found[one.run_id] == [("ACC004", "run")] for one in others)


def test_detectors_go_on_where_they_stood_whatever_was_let_go(database: Database) -> None:
    """Judged every minute, or days later when raw windows and then minutes are gone: the same."""
    fleet = replicas(database, [falling, falling])
    often, seldom = fleet
    go_on(database, [seldom], range(75))
    for minute in range(75):
        go_on(database, [often], range(minute, minute + 1))
        if minute % 5 == 4:
            take_in(database, often.run_id)
    let_go(database, Retention(), now=START + 4 * 86_400)  # raw windows
    with database.reading() as connection:
        standing = run_standing(connection, often.run_id)
    take_in(database, seldom.run_id)
    with database.reading() as connection:
        others = run_standing(connection, seldom.run_id)
    assert standing is not None
    assert others is not None
    assert standing.bucket == others.bucket
    for state in (standing.state, others.state):
        drift = drift_in(state)
        assert drift is not None
        assert drift.drifted
        assert drift.onset == pytest.approx(START + 60 * MINUTE, abs=2 * MINUTE)
    let_go(database, Retention(), now=START + 20 * 86_400)  # minutes as well
    take_in(database, often.run_id)
    with database.reading() as connection:
        assert run_standing(connection, often.run_id) == standing


def test_a_fleet_whose_runs_were_all_replaced_is_learnt_anew(database: Database) -> None:
    """A new draft, say: what was normal before is not any more."""
    before = replicas(database, [steady, steady])
    go_on(database, before, range(60))
    judge(database, before, START)
    after = [
        Replica(_next_run(database, one), one.source_id, random.Random(one.run_id), lambda _minute: 0.5)
        for one in before
    ]
    go_on(database, after, range(90, 160))
    found = judge(database, after, START)
    assert set(map(tuple, found.values())) == {()}
    with database.reading() as connection:
        fleet = fleet_standing(connection, group_of(connection, after[0].run_id))
        watched = load_watched(connection, after[0].run_id)
    assert fleet is not None
    assert set(fleet.state["members"]) <= {one.run_id for one in after}
    drift = drift_in(fleet.state)
    assert drift is not None
    assert drift.normal == pytest.approx(
        0.5 + 0.5**2 + 0.5**3, rel=0.05
    )  # the last minutes of those before count as well
    assert watched is not None
    assert sorted(watched.recent) == ["gpu0:8000", "gpu1:8000"]


def _next_run(database: Database, replica: Replica) -> int:
    with database.transaction() as connection:
        number = replica.run_id
        record = RunRecord(
            "vllm", f"http://next{number}", host=f"gpu{number - 1}", port=8000, started_at=START + 85 * MINUTE
        )
        return save_run(connection, record, source_id=replica.source_id, ordinal=1, deployment="chat", at=START)
