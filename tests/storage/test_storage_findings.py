from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Connection

from collector.domain.arguments import Arguments
from collector.domain.errors import UnknownName
from collector.domain.evidence import Evidence
from collector.domain.findings import (
    Confidence,
    Finding,
    RivalExplanation,
    RuleCrash,
    RuledOut,
    Severity,
    Skipped,
)
from collector.domain.runs import RunRecord
from collector.storage.engine import Database
from collector.storage.findings import (
    FindingState,
    Judgement,
    RuleOutcome,
    Transitions,
    load_finding,
    load_findings,
    load_outcomes,
    save_judgement,
)
from collector.storage.lines import load_lines
from collector.storage.runs import save_run
from collector.storage.sources import source_at


def finding(rule: str = "FLG001", **changes: object) -> Finding:
    plain = Finding(
        rule=rule,
        name="draft-token-count-overridden",
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        title="16 → 2",
        why="top-k is 1",
        values={"flag": "speculative_num_draft_tokens", "requested": 16, "effective": 2, "raw": float("inf")},
        evidence=(Evidence("input.log", 3, "draft tokens"), Evidence("launch.txt", None, "--x 16")),
        fix=("ask for 2",),
        verify=("grep it",),
        ruled_out=(RivalExplanation("other-flag", "it is off"),),
    )
    return replace(plain, **changes)


def run(
    connection: Connection, start: float, *, host: str = "node-7", end: float | None = None, **changes: object
) -> int:
    stated = {"model_path": "/models/target", "speculative_algorithm": "EAGLE3"}
    record = RunRecord(
        "sglang", "input.log", host=host, port=30000, started_at=start, ended_at=end,
        arguments=Arguments().with_effective(stated, None),
    )  # fmt: skip
    record = replace(record, **changes)
    return save_run(connection, record, source_id=source_at(connection, f"{host} {start}", at=1.0), at=1.0)


def judge(connection: Connection, run_id: int, *findings: Finding, at: float, **others: object) -> Transitions:
    return save_judgement(connection, run_id, Judgement(findings=findings, **others), at=at)


def identities(items: tuple[object, ...]) -> list[tuple[str, str, str]]:
    return [item.finding.identity for item in items]


def test_a_finding_comes_back_as_it_was(database: Database) -> None:
    with database.transaction() as connection:
        (stored,) = judge(connection, run(connection, 10.0), finding(), at=5.0).opened
        assert stored.finding == finding()
        assert load_finding(connection, stored.id) == stored
        with pytest.raises(UnknownName, match="no finding has the id 99"):
            load_finding(connection, 99)


def test_a_finding_opens_goes_on_and_resolves_once_each(database: Database) -> None:
    with database.transaction() as connection:
        run_id = run(connection, 10.0)
        opened = judge(connection, run_id, finding(), at=1.0)
        assert (identities(opened.opened), opened.resolved) == ([finding().identity], ())
        worse = finding(severity=Severity.CRITICAL, evidence=(Evidence("input.log", 9, "again"),))
        graver = judge(connection, run_id, worse, at=2.0)
        assert (graver.opened, identities(graver.raised), graver.resolved) == ((), [worse.identity], ())
        assert judge(connection, run_id, worse, at=2.0) == Transitions()
        (stored,) = load_findings(connection, run_ids=[run_id])
        assert (stored.first_seen, stored.last_seen, stored.finding) == (1.0, 2.0, worse)
        gone = judge(connection, run_id, at=3.0)
        assert (gone.opened, identities(gone.resolved)) == ((), [worse.identity])
        assert gone.resolved[0].resolved_at == 3.0
        assert judge(connection, run_id, at=4.0) == Transitions()
        back = judge(connection, run_id, finding(), at=5.0)
        assert back.opened[0].id == stored.id
        assert (back.opened[0].state, back.opened[0].resolved_at) == (FindingState.OPEN, None)


@pytest.mark.parametrize(
    "blind",
    [
        {"skipped": (Skipped("FLG001", "draft-token-count-overridden", "no arguments seen"),)},
        {"crashes": (RuleCrash("FLG001", "draft-token-count-overridden", "ZeroDivisionError"),)},
    ],
)
def test_a_rule_that_could_not_look_resolves_nothing(database: Database, blind: dict[str, object]) -> None:
    with database.transaction() as connection:
        run_id = run(connection, 10.0)
        judge(connection, run_id, finding(), at=1.0)
        assert judge(connection, run_id, at=2.0, **blind) == Transitions()
        (stored,) = load_findings(connection, state=FindingState.OPEN)
        assert stored.last_seen == 1.0


def test_findings_about_different_flags_units_and_scopes_are_different(database: Database) -> None:
    several = (
        finding("FLG004", values={"flag": "a"}),
        finding("FLG004", values={"flag": "b"}),
        finding("FLG004", values={"flag": "a"}, scope="previous"),
        finding("ACC007", values={"unit": "DP0 TP0"}),
        finding("MEA002", values={}),
        finding("MEA002", values={}, title="a second one that nothing tells apart"),
    )
    with database.transaction() as connection:
        run_id = run(connection, 10.0)
        assert len(judge(connection, run_id, *several, at=1.0).opened) == 6
        assert judge(connection, run_id, *several, at=2.0) == Transitions()
        assert len(judge(connection, run_id, *several[:5], at=3.0).resolved) == 1


def test_a_restart_continues_what_it_still_has_and_resolves_the_rest(database: Database) -> None:
    kept, cured, unseen = finding("FLG001"), finding("ACC001", values={}), finding("PAY001", values={})
    with database.transaction() as connection:
        first = run(connection, 10.0, end=90.0)
        judge(connection, first, kept, cured, unseen, at=50.0)
        second = run(connection, 100.0)
        skipped = (Skipped("PAY001", "slower-than-baseline", "no baseline"),)
        transitions = judge(connection, second, kept, at=110.0, skipped=skipped)
        assert transitions.opened == ()
        assert identities(transitions.resolved) == [cured.identity]
        still_open = load_findings(connection, state=FindingState.OPEN)
        assert {(item.run_id, item.finding.rule, item.first_seen) for item in still_open} == {
            (second, "FLG001", 50.0),
            (first, "PAY001", 50.0),
        }


def test_judging_a_replaced_run_again_changes_nothing_that_is_open(database: Database) -> None:
    with database.transaction() as connection:
        first, second = run(connection, 10.0, end=90.0), run(connection, 100.0)
        judge(connection, second, finding(), at=110.0)
        assert judge(connection, first, finding(), finding("ACC001", values={}), at=120.0) == Transitions()
        assert [item.run_id for item in load_findings(connection, state=FindingState.OPEN)] == [second]
        assert len(load_findings(connection, run_ids=[first], state=FindingState.RESOLVED)) == 2


def test_replicas_on_other_hosts_have_findings_of_their_own(database: Database) -> None:
    with database.transaction() as connection:
        one, other = run(connection, 10.0, host="node-1"), run(connection, 20.0, host="node-2")
        assert len(judge(connection, one, finding(), at=30.0).opened) == 1
        assert len(judge(connection, other, finding(), at=31.0).opened) == 1
        assert len(judge(connection, one, at=32.0).resolved) == 1
        assert [item.run_id for item in load_findings(connection, state=FindingState.OPEN)] == [other]


def test_logs_without_a_host_follow_one_another_within_their_deployment(database: Database) -> None:
    with database.transaction() as connection:
        first = run(connection, 10.0, host="0.0.0.0", end=90.0)
        judge(connection, first, finding(), at=1000.0)
        overlapping = run(connection, 50.0, host="0.0.0.0", end=95.0)
        assert len(judge(connection, overlapping, finding(), at=1001.0).opened) == 1
        following = run(connection, 100.0, host="0.0.0.0", end=200.0)
        assert judge(connection, following, finding(), at=1002.0).opened == ()
        assert [item.run_id for item in load_findings(connection, state=FindingState.OPEN)] == [following]


def test_lines_are_kept_as_long_as_a_finding_rests_on_them(database: Database) -> None:
    with database.transaction() as connection:
        run_id = run(connection, 10.0)
        judge(connection, run_id, finding(), at=1.0)
        judge(connection, run_id, finding(evidence=(Evidence("input.log", 9, "another"),)), at=2.0)
        assert set(load_lines(connection, run_id).values()) == {Evidence("input.log", 9, "another")}
        judge(connection, run_id, at=3.0)  # resolved findings keep their evidence
        assert len(load_lines(connection, run_id)) == 1


def test_every_rule_leaves_an_outcome_and_the_last_judgement_counts(database: Database) -> None:
    with database.transaction() as connection:
        run_id = run(connection, 10.0)
        judge(connection, run_id, at=1.0, clear=(("MEA001", "metric-definition-note"),))
        judge(
            connection, run_id, finding(), finding(values={"flag": "other"}), at=2.0,
            clear=(("ACC001", "acceptance-below-validation"),),
            skipped=(Skipped("PAY001", "slower-than-baseline", "no baseline", "--baseline LOG"),),
            ruled_out=(RuledOut("FLG003", "two-batch-overlap-bypassed", "it is off", (Evidence("input.log", 2, "x"),)),),
            crashes=(RuleCrash("MEA002", "metric-invalid", "KeyError"),),
        )  # fmt: skip
        assert load_outcomes(connection, run_id) == [
            RuleOutcome("ACC001", "acceptance-below-validation", "clear"),
            RuleOutcome("FLG001", "draft-token-count-overridden", "found"),
            RuleOutcome(
                "FLG003", "two-batch-overlap-bypassed", "ruled_out", "it is off", "", (Evidence("input.log", 2, "x"),)
            ),
            RuleOutcome("MEA002", "metric-invalid", "crashed", "KeyError"),
            RuleOutcome("PAY001", "slower-than-baseline", "skipped", "no baseline", "--baseline LOG"),
        ]
