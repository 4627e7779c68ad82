"""Wiring: the draft is fed other layers than it was trained on."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class CaptureLayersWrong(Cause):
    """The draft is fed other layers than it was trained on."""

    id, title = "capture-layers-wrong", "The draft is fed other layers than it was trained on"
    kind = Kind.WIRING
    reports = 5
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            not facts.reads_hidden_states or facts.method not in ("eagle3", "dflash", "dspark"),
            f"method {facts.method} names no layers",
            -DECISIVE,
            refutes=not facts.reads_hidden_states,
        )
        capture = facts.finding("DRF001")
        undeclared = facts.finding("DRF002")
        changed = capture is not None and capture.values["previous_ids"] not in (None, capture.values["draft_ids"])
        yield from when(changed, "two configs of one draft name different layers (DRF001)", STRONG)
        readings = (
            {str(item["outputs"]) for item in capture.values["readings"] if not item["impossible"]}
            if capture
            else set()
        )
        yield from when(len(readings) > 1, "the releases this may be shift the ids differently (DRF001)", CLEAR)
        ids = (capture.values["draft_ids"] if capture else None) or []
        yield from when(any(i < 0 for i in ids), "an id of -1 is honoured only where the release adds one", CLEAR)
        yield from when(
            undeclared is not None,
            "the draft names no layers; the engine guesses (DRF002)",
            STRONG if facts.near_zero else CLEAR,
        )
        yield from when(
            facts.near_zero, "practically nothing is accepted, as with wrong layers in public reports", HINT
        )
        retained = facts.retained
        yield from when(
            retained is not None and retained < 0.5 and not facts.near_zero,
            "half or more of the promised drafts are lost",
            HINT,
        )
        yield from when(
            (facts.cliff_position or 0) > 1,
            "the first position is good, so the target's states arrive (ACC005)",
            -STRONG,
        )
        yield from when(facts.fired("ACC006"), "short contexts are fine (ACC006)", -STRONG)
        yield from when(facts.fired("ACC007") and not facts.low_acceptance, "only one unit is affected", -STRONG)
        yield from when(
            facts.earlier_was_better and not changed and not facts.differs("release"),
            "the same config was better before",
            -CLEAR,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Run the validation prompts at temperature 0 once with each set of layer ids, then: draftscope compare RUN_A RUN_B",
            {
                "one set matches training": "these are the layers; write them into the draft's config.json",
                "both stay low": "the layers are not the (only) fault; look at states lost on the path and at the checkpoint",
                "both match training": "the wiring is right and the traffic differs from the validation data",
            },
        )
