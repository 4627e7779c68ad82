"""Every cause against its case file, and what every cause must have.

A case file is named after its cause. Each case has ``given`` as in ``tests/rules/build.py`` and says
where the cause must stand: ``place`` (1: first, 2: among the first two, ...), ``absent: true`` or
``ruled_out: true``. ``says`` is in its reasons, ``certain`` whether it is established, ``not_before``
another cause that must not stand before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.causes.base import REPORTS, Cause, Kind
from analysis.causes.facts import Facts
from analysis.causes.weighing import LISTED, NONE_OF_THESE, UNEXPLAINED_WEIGHT, known_causes
from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from tests.rules.build import bundle

HERE = Path(__file__).parent
PLACES = {"place", "absent", "ruled_out"}


def case_files() -> dict[str, dict[str, Any]]:
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.yaml"))}


def all_cases() -> Iterator[Any]:
    for cause, cases in case_files().items():
        for name, case in cases.items():
            if isinstance(case, dict) and "given" in case:
                yield pytest.param(cause, case, id=f"{cause}-{name}")


def order(diagnosis: Diagnosis) -> list[str]:
    return [cause.id for cause in diagnosis.causes if cause.id != NONE_OF_THESE]


@pytest.mark.parametrize(("cause", "case"), list(all_cases()))
def test_case(cause: str, case: dict[str, Any]) -> None:
    diagnosis = diagnose(bundle(case["given"]))
    assert diagnosis.crashes == ()
    listed = order(diagnosis)
    if "place" in case:
        assert cause in listed[: case["place"]], f"{listed} {sorted(f.rule for f in diagnosis.findings)}"
        one = next(item for item in diagnosis.causes if item.id == cause)
        assert one.established == case.get("certain", False)
        assert case.get("says", "") in " | ".join(reason.text for reason in one.reasons_for)
    elif case.get("ruled_out"):
        one = next((item for item in diagnosis.refuted_causes if item.id == cause), None)
        assert one is not None, f"{listed} {[item.id for item in diagnosis.refuted_causes]}"
        assert case.get("says", "") in " | ".join(reason.text for reason in one.reasons_against)
    else:
        assert cause not in listed, listed
        assert any(finding.severity.word != "info" for finding in diagnosis.findings), "nothing is wrong in this case"


def test_every_cause_has_a_case_file_and_every_file_a_cause() -> None:
    assert {cause.id for cause in known_causes()} == set(case_files())


@pytest.mark.parametrize("cause", known_causes(), ids=lambda cause: cause.id)
def test_cause_is_complete(cause: Cause) -> None:
    title, _, rest = cause.description.partition("\n\n")
    assert "\n" not in title
    assert title.endswith(".")
    assert len(rest.split()) > 15, "says how it comes about and shows"
    assert isinstance(cause.kind, Kind)
    assert cause.explains
    assert len(set(cause.reports)) == len(cause.reports)
    cases = [case for case in case_files()[cause.id].values() if isinstance(case, dict) and "given" in case]
    assert any(case.get("place", 9) <= 2 for case in cases), "no case where it is among the first two"
    assert any("place" not in case for case in cases), "no case where it is not offered or ruled out"
    assert all(PLACES & set(case) for case in cases)


def test_priors_follow_the_reports() -> None:
    causes = sorted(known_causes(), key=lambda cause: len(cause.reports))
    priors = [cause.prior() for cause in causes]
    assert priors == sorted(priors)
    assert len({report for cause in causes for report in cause.reports}) <= REPORTS


def test_nothing_wrong_offers_nothing() -> None:
    given = {
        "args": {
            "speculative_algorithm": "EAGLE3",
            "speculative_num_steps": 3,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4,
        },
        "validation": 0.7,
        "windows": {"count": 30, "length": 2.35, "spread": 0.1, "rate": 4},
    }
    diagnosis = diagnose(bundle(given))
    assert diagnosis.causes == ()
    assert diagnosis.refuted_causes == ()


def test_none_of_these_closes_an_open_list_and_marks_what_nothing_explains() -> None:
    given = {
        "args": {
            "speculative_algorithm": "EAGLE3",
            "speculative_num_steps": 5,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": [16, 6],
        },
        "validation": 0.747,
        "windows": {"count": 21, "length": 1.8, "spread": 0.15, "rate": 6},
    }
    causes = diagnose(bundle(given)).causes
    assert len(causes) <= LISTED + 1
    assert causes[-1].id == NONE_OF_THESE
    assert causes[-1].weight == UNEXPLAINED_WEIGHT
    assert not causes[-1].established
    assert all(cause.weight > UNEXPLAINED_WEIGHT for cause in causes[:-1])


def test_a_certain_cause_that_explains_everything_leaves_nothing_open() -> None:
    given = {
        "args": {
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": "/d",
            "speculative_num_draft_tokens": [16, 2],
            "speculative_num_steps": 1,
        }
    }
    assert [cause.id for cause in diagnose(bundle(given)).causes] == ["flag-overridden"]


def test_a_crashing_cause_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.causes.undertrained import DraftUntrainedOrWrong

    def broken(self: Cause, facts: Facts) -> Iterator[Any]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(DraftUntrainedOrWrong, "weigh", broken)
    diagnosis = diagnose(bundle(case_files()["capture-layers-wrong"]["leads-where-the-engine-guesses"]["given"]))
    assert [crash.name for crash in diagnosis.crashes] == ["draft-untrained-or-wrong"]
    assert "planted" in diagnosis.crashes[0].error
    assert order(diagnosis)[0] == "capture-layers-wrong"


def test_weighing_is_deterministic() -> None:
    given = case_files()["capture-layers-wrong"]["leads-where-the-engine-guesses"]["given"]
    first, second = (diagnose(bundle(given)).document()["causes"] for _ in range(2))
    assert first == second
