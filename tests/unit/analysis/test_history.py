"""The history of a case: what changed between runs, and which hypotheses survived."""

from __future__ import annotations

from typing import Any

from analysis.history import Judged, Offered, steps
from tests.rules.build import record

CAPTURE = Offered("capture-layers-wrong", "The draft is fed other layers than it was trained on", "likely")
EXPERTS = Offered("expert-growth", "Verifying several tokens reads more experts of the target", "possible")
CHAIN = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
    "attention_backend": "fa3",
}


def judged(run: str, args: dict[str, Any], length: tuple[float, float], **others: Any) -> Judged:
    value, half = length
    figures = {
        "acceptance_length": {
            "value": value,
            "low": value - half,
            "high": value + half,
            "windows": 20,
            "more": "ignored",
        },
        "running_requests": {"value": 8.0},
    }
    return Judged(run, record({"version": "0.5.9", "args": args}, f"{run}.log"), figures, **others)


def test_each_run_is_told_against_the_one_before() -> None:
    first = judged("1", CHAIN, (1.8, 0.05), causes=[CAPTURE, EXPERTS])
    second = judged(
        "2", CHAIN | {"attention_backend": "triton"}, (1.81, 0.05), causes=[CAPTURE], refuted=["expert-growth"]
    )
    third = judged("3", CHAIN | {"attention_backend": "triton", "speculative_num_draft_tokens": [9, 4]}, (2.4, 0.05))
    one, two = steps([first, second, third])
    assert (one.before, one.after, two.before, two.after) == ("1", "2", "2", "3")
    assert [(change.what, change.effect) for change in one.changes] == [("--attention-backend", "yes")]
    assert [(item.key, item.word) for item in one.differences] == [("acceptance_length", "no difference")]
    assert [(fate.cause.id, fate.word) for fate in one.fates] == [
        ("capture-layers-wrong", "survived"),
        ("expert-growth", "ruled out"),
    ]
    assert one.fates[0].why == "now likely"
    assert [(item.key, item.word) for item in two.differences] == [("acceptance_length", "rose")]
    assert [(fate.cause.id, fate.word) for fate in two.fates] == [("capture-layers-wrong", "gone")]


def test_a_change_that_did_not_take_effect_tries_nothing() -> None:
    before = judged("1", CHAIN, (1.8, 0.05), causes=[CAPTURE])
    after = judged("2", CHAIN | {"speculative_num_draft_tokens": [16, 4]}, (1.8, 0.05), causes=[CAPTURE])
    (step,) = steps([before, after])
    assert [(change.what, change.effect) for change in step.changes] == [("--speculative-num-draft-tokens", "no")]
    assert step.fates[0].why == "what was changed did not take effect, so nothing was tried"


def test_a_cause_that_others_pushed_out_is_weaker_not_refuted() -> None:
    before = judged("1", CHAIN, (1.8, 0.05), causes=[EXPERTS])
    (step,) = steps([before, judged("2", CHAIN, (1.8, 0.05), causes=[CAPTURE])])
    assert [(fate.cause.id, fate.word) for fate in step.fates] == [("expert-growth", "weaker")]


def test_one_run_has_no_history() -> None:
    assert steps([judged("1", CHAIN, (1.8, 0.05))]) == ()
