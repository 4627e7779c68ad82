"""Judging stored runs, and the store that pages and API read."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from analysis.runner import diagnose
from analysis.thresholds import Thresholds
from collector.bundle import read_bundle
from collector.domain.errors import UnknownName
from collector.domain.findings import Question, State
from collector.ingest import ingest
from collector.storage.deliveries import list_deliveries
from collector.storage.engine import Database, open_database
from collector.storage.findings import FindingState, load_findings, load_outcomes
from collector.storage.runs import label_run, load_stored
from collector.storage.states import bundle_state, judged_states, run_states
from dashboard.alerts import Alerting
from dashboard.database_store import DatabaseStore
from dashboard.diagnoses import Diagnoses
from dashboard.judging import Sweep, judge_run, judge_runs
from dashboard.outbox import Outbox
from dashboard.samples import FOLDER, load_samples
from dashboard.store import row_of
from tests.out.conftest import webhook
from tests.out.receiver import Receiver
from tests.out.stored import save

FIRST, FIXED = "kimi-k25-first-run", "kimi-k25-capture-fixed"
NOBODY = Alerting()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER / FIXED, tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def kimi(database: Database, bundle: Path) -> tuple[Diagnoses, int]:
    """A database with the bundle's three runs, and the one that is judged."""
    (subject,) = ingest(database, [bundle]).subjects
    return Diagnoses(database), subject


def test_a_stored_run_is_diagnosed_as_its_files_are(kimi: tuple[Diagnoses, int], bundle: Path) -> None:
    diagnoses, subject = kimi
    stored, read = diagnoses.of(subject).diagnosis.document(), diagnose(read_bundle([bundle])).document()
    for key in ("headline", "next", "verdicts", "payoff", "skipped", "crashed"):
        assert stored[key] == read[key], key
    assert [run["quantities"] for run in stored["runs"]] == [run["quantities"] for run in read["runs"]]
    assert stored["runs"][0]["arguments"] == read["runs"][0]["arguments"]
    figures = [
        [(item["rule"], item["title"], item["values"]) for item in found["findings"]] for found in (stored, read)
    ]
    assert figures[0] == figures[1]


def test_a_judgement_is_stored_with_all_that_lists_need(kimi: tuple[Diagnoses, int]) -> None:
    diagnoses, subject = kimi
    judged = judge_runs(diagnoses, [subject], NOBODY, now=lambda: 5000.0)[subject]
    with diagnoses.database.reading() as connection:
        run = load_stored(connection, subject)
        outcomes = load_outcomes(connection, subject)
        findings = load_findings(connection, run_ids=[subject], state=FindingState.OPEN)
    assert (run.judged_at, run.headline) == (5000.0, judged.diagnosis.headline)
    assert run.verdicts == judged.diagnosis.verdicts
    assert run.verdicts[Question.PAYOFF].state is State.PROBLEM
    assert sorted(item.finding.identity for item in findings) == sorted(f.identity for f in judged.diagnosis.findings)
    assert {item.outcome for item in outcomes} >= {"found", "clear", "ruled_out", "skipped"}
    row = next(row for row in DatabaseStore(diagnoses).list_runs() if row.id == str(subject))
    assert row == row_of(judged.report)
    assert row.quantities["acceptance_length"]["value"] == pytest.approx(1.8, abs=0.005)


def test_a_run_that_nobody_judged_says_so_in_the_list(database: Database) -> None:
    with database.transaction() as connection:
        save(connection)
    (row,) = DatabaseStore(Diagnoses(database)).list_runs()
    assert {verdict.state for verdict in row.verdicts.values()} == {"cannot_tell"}
    assert (row.target, row.draft, row.method, row.findings) == ("Kimi-K2.5", "kimi-k25-eagle3", "eagle3", [])


@pytest.mark.parametrize("run_id", ["7", "", "-1", "1.0", "x", "9" * 19, "٣", "1 OR 1=1"])
def test_what_is_no_run_is_unknown(sqlite_database: Database, run_id: str) -> None:
    with pytest.raises(UnknownName, match="no run has the id"):
        DatabaseStore(Diagnoses(sqlite_database)).report(run_id)


def test_a_diagnosis_is_kept_until_its_data_changes(kimi: tuple[Diagnoses, int], bundle: Path) -> None:
    diagnoses, subject = kimi
    first = diagnoses.of(subject)
    assert diagnoses.of(subject) is first
    ingest(diagnoses.database, [bundle])  # nothing new
    assert diagnoses.of(subject) is first
    baseline = bundle / "baseline.log"
    lines = baseline.read_text(encoding="utf-8").splitlines(keepends=True)
    baseline.write_text("".join([*lines, lines[-1]]), encoding="utf-8")  # the run it is compared with goes on
    ingest(diagnoses.database, [bundle])
    second = diagnoses.of(subject)
    assert second is not first
    with diagnoses.database.transaction() as connection:
        label_run(connection, subject, {"team": "search"})
    assert diagnoses.of(subject).report.labels == {"team": "search"}


def test_only_so_many_diagnoses_are_kept(kimi: tuple[Diagnoses, int]) -> None:
    with kimi[0].database.reading() as connection:
        runs = list(run_states(connection))
    diagnoses = Diagnoses(kimi[0].database, most_kept=2)
    made = [diagnoses.of(run) for run in runs]
    assert len(runs) == 3
    assert [diagnoses.of(run) is item for run, item in zip(runs[::-1], made[::-1], strict=True)] == [True, True, False]


def test_states_tell_runs_apart_and_see_every_change(database: Database, bundle: Path) -> None:
    log = bundle / "input.log"
    whole = log.read_text(encoding="utf-8").splitlines(keepends=True)
    seen = []
    for count in (3, len(whole) - 2, len(whole)):
        log.write_text("".join(whole[:count]), encoding="utf-8")
        (subject,) = ingest(database, [bundle]).subjects
        with database.reading() as connection:
            seen += [run_states(connection)[subject], bundle_state(connection, subject)]
    assert len(set(seen)) == 6
    with database.reading() as connection:
        states = run_states(connection)
        assert len(set(states.values())) == len(states)
        assert run_states(connection, [subject]) == {subject: states[subject]}
        assert run_states(connection, sample=True) == {}


def test_runs_that_are_compared_with_a_changed_one_are_judged_too(kimi: tuple[Diagnoses, int]) -> None:
    diagnoses, subject = kimi
    with diagnoses.database.reading() as connection:
        others = [run for run in run_states(connection) if run != subject]
    judged = judge_runs(diagnoses, others, NOBODY)
    assert next(iter(judged)) == subject
    assert set(judged) == {subject, *others}


# ---- what nobody judged


def test_the_sweep_judges_what_was_left_and_nothing_twice(kimi: tuple[Diagnoses, int]) -> None:
    sweep = Sweep(kimi[0], NOBODY)
    with kimi[0].database.reading() as connection:
        runs = list(run_states(connection))
    assert sweep.sweep() == runs
    assert sweep.sweep() == Sweep(kimi[0], NOBODY).sweep() == []


def test_the_sweep_waits_for_runs_that_are_being_written(database: Database) -> None:
    now = 10_000.0
    sweep = Sweep(Diagnoses(database), NOBODY, now=lambda: now)
    assert sweep.sweep() == []

    def grow(until: float) -> int:
        with database.transaction() as connection:
            return save(connection, ended=until)

    run = grow(1500.0)
    assert sweep.sweep() == []  # it may be in the middle of an ingest
    grow(1600.0)
    assert sweep.sweep() == []
    assert sweep.sweep() == [run]
    grow(1700.0)
    assert sweep.sweep() == []
    now += 61
    grow(1800.0)
    assert sweep.sweep() == [run]  # a live run is judged every minute


def test_a_run_that_changes_all_the_time_is_judged_for_the_first_time_within_a_minute(database: Database) -> None:
    now = 10_000.0
    sweep = Sweep(Diagnoses(database), NOBODY, now=lambda: now)
    sweep.sweep()
    judged = []
    for number in range(5):
        with database.transaction() as connection:
            run = save(connection, ended=now)
        judged.append(sweep.sweep() == [run])
        now += 15
        assert number or not judged[0]
    assert judged == [False, False, False, False, True]


def test_a_sweep_ends_in_time_and_begins_with_those_that_wait_longest(kimi: tuple[Diagnoses, int]) -> None:
    diagnoses = kimi[0]
    ticks = itertools.count(step=8)
    sweep = Sweep(diagnoses, NOBODY, spent=lambda: float(next(ticks)))
    swept: list[int] = []
    while some := sweep.sweep():
        assert len(some) == 1
        swept += some
    assert swept
    assert len(set(swept)) == len(swept)
    with diagnoses.database.reading() as connection:
        assert judged_states(connection).keys() == run_states(connection).keys()


def test_other_limits_judge_everything_anew(kimi: tuple[Diagnoses, int]) -> None:
    database = kimi[0].database
    assert len(Sweep(kimi[0], NOBODY).sweep()) == 3
    assert len(Sweep(Diagnoses(database, Thresholds(loss_speedup=0.5)), NOBODY).sweep()) == 3


def test_a_run_that_cannot_be_judged_does_not_hold_up_the_others(
    kimi: tuple[Diagnoses, int], caplog: pytest.LogCaptureFixture
) -> None:
    diagnoses, subject = kimi
    with diagnoses.database.transaction() as connection:
        connection.execute(text("UPDATE runs SET engine_version = 'no release' WHERE id = :id"), {"id": subject})
        runs = list(run_states(connection))
    sweep = Sweep(diagnoses, NOBODY)
    done = sweep.sweep()
    assert subject not in done
    assert f"run {subject} could not be judged: a fault of draftscope" in caplog.text
    assert set(done) < set(runs)
    caplog.clear()
    assert sweep.sweep() == []
    assert caplog.text == ""


def test_a_judgement_of_data_that_changed_meanwhile_is_not_stored(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_database.transaction() as connection:
        run = save(connection)
    diagnoses = Diagnoses(sqlite_database)
    busy = iter(range(1600, 10_000))
    judge = diagnoses.of

    def while_it_is_written(run_id: int) -> object:
        judged = judge(run_id)
        with sqlite_database.transaction() as connection:
            save(connection, ended=float(next(busy)))
        return judged

    monkeypatch.setattr(diagnoses, "of", while_it_is_written)
    assert judge_run(diagnoses, run, NOBODY) is None
    with sqlite_database.reading() as connection:
        assert judged_states(connection) == {}


# ---- samples


def test_samples_are_marked_and_judged_and_loading_them_again_changes_nothing(sqlite_database: Database) -> None:
    runs = load_samples(sqlite_database)
    assert load_samples(sqlite_database) == runs
    rows = DatabaseStore(Diagnoses(sqlite_database)).list_runs()
    assert len(rows) == len(runs) == 4
    assert all(row.sample for row in rows)
    assert any("Two faults" in row.headline for row in rows)


# ---- end to end


@pytest.fixture
def served(database_url: str) -> Iterator[Database]:
    with open_database(database_url, migrate=True) as database:
        yield database


def test_from_a_log_to_a_signed_message_and_back(served: Database, receiver_of: Callable[..., Receiver]) -> None:
    receiver = receiver_of()
    channel = webhook(receiver)
    alerting = Alerting((channel,), "https://draftscope.example.org")

    async def empty() -> None:
        outbox = Outbox(served, [channel])
        while await outbox.send_due():
            pass
        await outbox.close()

    def told_after(name: str) -> dict[tuple[str, str, str], Any]:
        """What is told once a bundle came in, by type, rule and file of the run."""
        before = len(receiver.got)
        report = ingest(served, [FOLDER / name], deployment="kimi-prod", labels={"team": "search"})
        judge_runs(Diagnoses(served), report.run_ids, alerting)
        asyncio.run(empty())
        told = [
            (message["type"], message["data"]) for got in receiver.got[before:] for message in [json.loads(got.body)]
        ]
        return {(kind, data["finding"]["rule"], data["run"]["source"]): data for kind, data in told}

    overridden = told_after(FIRST)["finding.opened", "FLG001", "input.log"]
    assert (overridden["deployment"], overridden["labels"]) == ("kimi-prod", {"team": "search"})
    assert overridden["finding"]["values"] | {"requested": 16, "effective": 2} == overridden["finding"]["values"]
    assert (overridden["cause"]["id"], overridden["cause"]["standing"]) == ("flag-overridden", "certain")
    assert overridden["link"].endswith(f"/runs/{overridden['run']['id']}#FLG001")

    later = told_after(FIXED)
    assert later["finding.resolved", "FLG001", "input.log"]["key"] == overridden["key"]
    assert later["finding.resolved", "FLG001", "input.log"]["cause"] is None
    assert later["finding.opened", "ACC001", "input.log"]["finding"]["severity"] in ("warning", "critical")
    assert later["finding.opened", "ACC001", "input.log"]["cause"]["id"] == "capture-layers-wrong"
    assert told_after(FIXED) == {}
    with served.reading() as connection:
        assert {message.attempts for message in list_deliveries(connection)} == {1}


def test_a_run_knows_its_history_and_what_became_of_the_hypotheses(database: Database) -> None:
    (first,) = (report := ingest(database, [FOLDER / FIRST], deployment="kimi-prod")).subjects
    judge_runs(Diagnoses(database), report.run_ids, NOBODY)
    store = DatabaseStore(Diagnoses(database))
    assert [entry.id for entry in store.report(str(first)).history] == []
    (second,) = (report := ingest(database, [FOLDER / FIXED], deployment="kimi-prod")).subjects
    judge_runs(Diagnoses(database), report.run_ids, NOBODY)
    history = store.report(str(second)).history
    assert history[-1].id == str(second)
    assert history[0].step is None
    step = history[-1].step
    assert step is not None
    assert [(change.what, change.effect) for change in step.changes] == [("draft layer ids", "yes")]
    words = {item.key: item.word for item in step.differences}
    assert (words["acceptance_length"], words["generation_throughput"], words["step_seconds"]) == (
        "no difference",
        "rose",
        "fell",
    )
    assert [(fate.cause.id, fate.word) for fate in step.fates] == [("draft-step-expensive", "survived")]
    with database.reading() as connection:
        assert load_stored(connection, second).summary["causes"][0]["id"] == "capture-layers-wrong"
