"""Every known fault against a run that it is about, and one that it is not about.

A file an engine, an entry a fault: ``given`` as in ``tests/rules/build.py``, ``standing``
(``affects``, ``may`` or ``fixed``), and ``silent``: what is laid over ``given`` to make the fault
not matter. ``release`` is laid over it for the run of another release, which has ``then``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.causes.weighing import known_causes
from analysis.known_faults import KnownFault, Standing, known_faults
from analysis.known_faults.base import engines, parse
from analysis.runner import diagnose
from tests.rules.build import bundle

HERE = Path(__file__).parent
STANDINGS = {"affects": Standing.AFFECTS, "may": Standing.MAY_AFFECT, "fixed": Standing.FIXED}


def entries(engine: str) -> dict[str, dict[str, Any]]:
    path = HERE / f"{engine.replace('-', '_')}.yaml"
    cases: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: case for name, case in cases.items() if not name.startswith("_")}


def all_faults() -> Iterator[Any]:
    for engine in engines():
        for fault in known_faults(engine):
            yield pytest.param(fault, id=fault.id)


def laid_over(given: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(given)
    for key, value in patch.items():
        old = merged.get(key)
        merged[key] = laid_over(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def standing(fault: KnownFault, given: Mapping[str, Any]) -> Standing | None:
    diagnosis = diagnose(bundle({"engine": fault.engine, **given}))
    assert diagnosis.crashes == ()
    return next((one.standing for one in diagnosis.known_faults if one.fault.id == fault.id), None)


@pytest.mark.parametrize("fault", list(all_faults()))
def test_fault(fault: KnownFault) -> None:
    case = entries(fault.engine)[fault.id]
    assert standing(fault, case["given"]) is STANDINGS[case["standing"]]
    assert standing(fault, laid_over(case["given"], case["silent"])) is None
    if "release" in case:
        assert standing(fault, laid_over(case["given"], case["release"])) is STANDINGS[case["then"]]


def test_there_are_enough_and_each_has_its_case() -> None:
    ids = [fault.id for engine in engines() for fault in known_faults(engine)]
    assert len(ids) >= 40
    assert len(ids) == len(set(ids))
    for engine in engines():
        assert {fault.id for fault in known_faults(engine)} == set(entries(engine))


@pytest.mark.parametrize("fault", list(all_faults()))
def test_fault_is_complete(fault: KnownFault) -> None:
    assert fault.id.startswith(fault.engine)
    assert not fault.cause or fault.cause in {cause.id for cause in known_causes()}
    assert not fault.title.endswith(".")
    assert fault.symptom.endswith((".", '".'))
    assert fault.workaround.endswith(".")
    assert fault.link
    assert fault.source
    if fault.fixed_in is not None and fault.releases.last is not None:
        assert fault.fixed_in not in fault.releases


def test_a_matched_fault_raises_its_cause() -> None:
    given = entries("vllm")["vllm-gemma4-mtp-near-zero"]["given"]
    causes = diagnose(bundle({"engine": "vllm", **given})).causes
    reasons = [reason.text for reason in causes[0].reasons_for]
    assert causes[0].id == "draft-misloaded"
    assert any("known upstream" in text and "vllm-project/vllm#41789" in text for text in reasons)
    assert not causes[0].established


def test_an_engine_without_a_file_has_none() -> None:
    assert known_faults("another-engine") == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"colour": "red"}, "unknown"),
        ({"when": {}}, "conditions are empty"),
        ({"when": {"symptoms": ["tired"]}}, "no symptom"),
        ({"when": {"flags": {"a": {"near": 1}}}}, "no test"),
        ({"releases": "soon"}, "not a release"),
    ],
)
def test_a_wrong_entry_is_refused(change: dict[str, Any], says: str) -> None:
    entry = {
        "id": "x-1",
        "title": "t",
        "releases": "*",
        "when": {"methods": ["eagle"]},
        "symptom": "s.",
        "workaround": "w.",
        "link": "l",
        "source": "s",
    }
    assert parse("x", entry).id == "x-1"
    with pytest.raises(ValueError, match=says):
        parse("x", entry | change)
