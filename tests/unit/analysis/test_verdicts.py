"""The four verdicts: "cannot tell" never looks like "ok", and says what would decide it."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from collector.domain.findings import Question, State
from tests.rules.build import bundle

K5 = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 6,
}
HEALTHY = {"count": 30, "length": 2.9, "spread": 0.1, "throughput": 130.0, "rate": 6}
PLAIN = {"effective": {"speculative_algorithm": None}, "windows": {"count": 30, "throughput": 90.0}}


def judged(**given: Any) -> Diagnosis:
    return diagnose(bundle(given))


def state(diagnosis: Diagnosis, question: Question) -> State:
    return diagnosis.verdicts[question].state


def test_everything_given_and_well() -> None:
    diagnosis = judged(args=K5, windows=HEALTHY, validation=0.747, temperature=0.0, baseline=PLAIN)
    assert {verdict.state for verdict in diagnosis.verdicts.values()} == {State.OK}
    assert diagnosis.headline == "Speculation runs as asked, is accepted as validated, and pays."


@pytest.mark.parametrize(
    ("question", "given", "provide"),
    [
        (Question.CONFIG, {"effective": K5, "windows": HEALTHY}, "--launch"),
        (Question.ACCEPTANCE, {"args": K5, "windows": HEALTHY}, "--validation-accuracy"),
        (Question.ACCEPTANCE, {"args": K5, "validation": 0.747}, "traffic"),
        (Question.PAYOFF, {"args": K5, "windows": HEALTHY, "validation": 0.747}, "--baseline"),
        (Question.DATA, {"args": K5}, "traffic"),
    ],
)
def test_what_is_missing_is_named(question: Question, given: dict[str, Any], provide: str) -> None:
    verdict = judged(**given).verdicts[question]
    assert verdict.state is State.CANNOT_TELL
    assert provide in verdict.provide


def test_a_wide_interval_is_not_ok() -> None:
    diagnosis = judged(args=K5, windows={"count": 4, "length": 2.7, "spread": 0.6}, validation=0.747)
    assert state(diagnosis, Question.ACCEPTANCE) is State.CANNOT_TELL


def test_a_speedup_whose_interval_reaches_below_one_is_not_ok() -> None:
    windows = {"count": 30, "length": 2.4, "spread": 1.0, "throughput": 96.0}
    diagnosis = judged(args=K5, windows=windows, baseline=PLAIN)
    assert state(diagnosis, Question.PAYOFF) is State.CANNOT_TELL


def test_a_run_without_speculation_has_nothing_to_accept() -> None:
    diagnosis = judged(**PLAIN)
    assert state(diagnosis, Question.ACCEPTANCE) is State.NOT_APPLICABLE
    assert state(diagnosis, Question.PAYOFF) is State.NOT_APPLICABLE
    assert state(diagnosis, Question.DATA) is State.OK


def test_a_finding_about_another_run_does_not_turn_the_verdict() -> None:
    other = {"effective": {"speculative_algorithm": None}, "windows": {"count": 30, "throughput": 90.0, "running": 4}}
    diagnosis = judged(args=K5, windows=HEALTHY, validation=0.747, baseline=other)
    assert [finding.scope for finding in diagnosis.findings if finding.rule == "MEA008"] == ["baseline"]
    assert state(diagnosis, Question.DATA) is State.OK


def test_contradicting_figures_are_neither_accused_nor_acquitted() -> None:
    windows = {"count": 20, "length": 1.2, "running": 8, "throughput": 352.0, "every": 2.0}
    diagnosis = judged(args=K5, windows=windows, validation=0.747)
    assert state(diagnosis, Question.ACCEPTANCE) is State.CANNOT_TELL
    assert state(diagnosis, Question.DATA) is State.PROBLEM


def test_at_most_three_next_steps_each_with_its_origin() -> None:
    diagnosis = judged(
        args={**K5, "speculative_num_draft_tokens": [16, 6]}, windows={"count": 20, "length": 1.5}, validation=0.747
    )
    assert 1 <= len(diagnosis.next_steps) <= 3
    assert diagnosis.next_steps[0].endswith("(FLG001)")


def test_impossible_figures_are_reported_and_never_clipped() -> None:
    diagnosis = judged(args=K5, windows={"count": 20, "length": 7.4})
    quantities = diagnosis.document()["runs"][0]["quantities"]
    assert quantities["acceptance_length"]["value"] == pytest.approx(7.4)
    assert "conditional_acceptance_rate" not in quantities
    assert [finding.rule for finding in diagnosis.findings if finding.rule == "MEA002"]


def test_a_length_below_one_gives_no_bounds() -> None:
    diagnosis = judged(args=K5, windows={"count": 20, "length": 0.4})
    length = diagnosis.document()["runs"][0]["quantities"]["acceptance_length"]
    assert length["value"] == pytest.approx(0.4)
    assert length["high"] is None
    assert diagnosis.crashes == ()
