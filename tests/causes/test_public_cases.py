"""What is offered for situations that people met: the established cause leads, and nothing else is called certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.case import Case
from analysis.causes.commands import at_depth
from analysis.causes.facts import Facts
from analysis.causes.weighing import NONE_OF_THESE
from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from collector.bundle import BundleOptions, read_bundle
from collector.domain.runs import Bundle, RunRecord
from collector.domain.versions import Release

CASES = Path(__file__).parent.parent / "cases"

LEADING = {
    "kimi-k25-capture-fixed": {"capture-layers-wrong"},
    "kimi-k25-first-run": {"flag-overridden"},
    "pd-mtp-lower-accept": {"states-not-transferred"},
    "qwen25vl-aux-states-lost": {"states-lost-on-path"},
    "dp-attention-accept-drop": {"parallel-path-faulty"},
    "qwen3-moe-slower": {"verify-too-wide", "expert-growth"},
}
"""Causes of which one must be among the first two."""
CERTAIN = {"kimi-k25-first-run": {"flag-overridden"}, "qwen25vl-aux-states-lost": {"flag-overridden"}}
"""What the inputs establish by themselves."""
TRAPS = {
    "kimi-k25-capture-fixed": {"definition-misread", "draft-length-policy", "two-batch-overlap", "capacity-limited"},
    "pd-mtp-lower-accept": {"draft-untrained-or-wrong", "flag-overridden"},
    "qwen25vl-aux-states-lost": {"draft-untrained-or-wrong", "definition-misread"},
    "dp-attention-accept-drop": {"faulty-unit", "definition-misread"},
    "qwen3-moe-slower": {"draft-length-policy", "draft-untrained-or-wrong"},
}
"""Wrong conclusions that each situation tempts to."""
NOTHING_WRONG = {"qwen3-8b-tp2-warmup", "tbo-with-mtp"}


def judged(name: str) -> Diagnosis:
    diagnosis = diagnose(read_bundle([CASES / name], BundleOptions()))
    assert diagnosis.crashes == ()
    return diagnosis


@pytest.mark.parametrize("name", LEADING)
def test_the_cause_is_among_the_first_two(name: str) -> None:
    causes = [cause for cause in judged(name).causes if cause.id != NONE_OF_THESE]
    ids = [cause.id for cause in causes]
    assert LEADING[name] & set(ids[:2]), ids
    assert not TRAPS.get(name, set()) & set(ids[:3]), ids
    assert {cause.id for cause in causes if cause.established} == CERTAIN.get(name, set())


@pytest.mark.parametrize("name", sorted(NOTHING_WRONG))
def test_nothing_is_offered_where_nothing_is_wrong(name: str) -> None:
    assert judged(name).causes == ()


def test_kimi_has_two_faults_and_the_suspicion_is_refuted() -> None:
    diagnosis = judged("kimi-k25-capture-fixed")
    by_id = {cause.id: cause for cause in diagnosis.causes}
    ids = " | ".join(reason.text for reason in by_id["capture-layers-wrong"].reasons_for)
    assert "adds one to each id" in ids
    assert "0.5.13 and later: ids as given, cannot run" in ids
    assert by_id["expert-growth"].kind == "cost"
    overlap = next(cause for cause in diagnosis.refuted_causes if cause.id == "two-batch-overlap")
    assert "enable_two_batch_overlap is off (input.log:3); disable_overlap_schedule is another feature" in [
        reason.text for reason in overlap.reasons_against
    ]
    experiment = diagnosis.causes[0].experiment
    assert experiment is not None
    assert "[-1, 2, 30]" in experiment.what
    assert "[2, 30, 58]" in experiment.what
    assert experiment.commands[0].startswith("SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server")
    assert "draftscope diagnose REPLAY_LOG --validation-accuracy 0.747 --temperature 0" in experiment.commands
    shallow = by_id["draft-step-expensive"].experiment
    assert shallow is not None
    assert (
        "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2" in shallow.commands[0]
    )
    assert shallow.commands[0].count("--speculative-num-steps") == 1


@pytest.mark.parametrize(
    ("engine", "release", "command"),
    [
        ("llamacpp", "b11434", "llama-server OPTIONS --spec-draft-n-max 1"),
        ("llamacpp", "b8672", "llama-server OPTIONS --draft-max 1"),
        ("tensorrt-llm", "1.2.0", "LAUNCH_COMMAND  # max_draft_len in its options file: 1"),
        ("", None, "LAUNCH_COMMAND  # draft depth: 1"),
    ],
)
def test_the_experiment_at_another_depth_is_written_for_the_engine(
    engine: str, release: str | None, command: str
) -> None:
    record = RunRecord(engine, "log", Release.parse(release) if release else None)
    facts = Facts(Case(Bundle(record)), ())
    assert at_depth(facts, 1) == command
