"""Wiring: this code path or release drops the hidden states."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class StatesLostOnPath(Cause):
    """This release or code path drops the hidden states."""

    id, title = "states-lost-on-path", "This release or code path drops the hidden states"
    kind = Kind.WIRING
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            not facts.reads_hidden_states, f"method {facts.method} reads no hidden states", -DECISIVE, refutes=True
        )
        yield from when(
            facts.earlier_was_better and facts.differs("release"),
            "the same draft was better on another release (ACC003)",
            STRONG,
        )
        yield from when(
            facts.earlier_was_better and facts.near_zero, "from good to nothing with the same draft", STRONG
        )
        multimodal = facts.run.record.target_config
        vision = multimodal is not None and any(key in multimodal.raw for key in ("vision_config", "audio_config"))
        named = str(facts.flag("model_path") or facts.flag("model") or "").lower()
        yield from when(
            vision or "-vl" in named,
            "multimodal targets have a path of their own, which lost the states before (SGLang 0.5.5)",
            CLEAR,
        )
        yield from when(facts.near_zero, "practically nothing is accepted", HINT)
        overlap = facts.finding("FLG003")
        yield from when(
            overlap is not None and overlap.severity.word != "info",
            "two-batch overlap is on, and its path skips the capture (FLG003)",
            STRONG,
        )
        yield from when(
            facts.flag("enable_two_batch_overlap") is False,
            "two-batch overlap is off, so its path is not the one",
            -HINT,
        )
        yield from when(facts.fired("ACC006", "ACC007"), "it works in part of the traffic or units", -CLEAR)
        yield from when(
            (facts.cliff_position or 0) > 1,
            "the first position is good, so states arrive (ACC005)",
            -STRONG,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        release = facts.run.record.engine_version or facts.run.releases
        return Experiment(
            f"Serve the same draft on another release than {release} with the same flags, then: draftscope compare BEFORE AFTER",
            {
                "acceptance returns": "the release drops the states on this path; stay on the other one and report it",
                "acceptance stays low": "the fault moves with the draft: layers, checkpoint or prompt format",
            },
        )
