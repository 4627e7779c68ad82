"""Wiring: two-batch overlap skips the capture of hidden states."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, STRONG, Cause, Experiment, Kind, Reason, favours, opposes, refutes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class TwoBatchOverlapSkipsCapture(Cause):
    """Two-batch overlap runs the layers in a loop that does not capture hidden states.

    Not to be mixed up with the overlap scheduler (`disable_overlap_schedule`), which moves work
    of the CPU and captures as usual.
    """

    id = "two-batch-overlap"
    kind = Kind.WIRING
    reports = ("sgl-project/sglang#7569",)
    explains = LOW_ACCEPTANCE
    changes = (("enable_two_batch_overlap", STRONG),)

    def applies(self, facts: Facts) -> bool:
        """SGLang, whose option it is."""
        return (
            facts.engine == "sglang"
            and facts.reads_hidden_states
            and facts.flag("enable_two_batch_overlap") is not None
        )

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether it is on, and whether this model's path is known to lose states."""
        if facts.flag("enable_two_batch_overlap") is False:
            proof = facts.run.arguments["enable_two_batch_overlap"].effective_evidence
            where = f" ({proof.place})" if proof is not None else ""
            yield refutes(
                f"enable_two_batch_overlap is off{where}; disable_overlap_schedule is another feature", "FLG003"
            )
            return
        finding = facts.finding("FLG003")
        if finding is not None and "does not capture" in finding.why:
            yield favours(DECISIVE, "it is on, and for this model its path skips the capture", "FLG003")
        else:
            yield favours(STRONG, "it is on, and whether its path captures is not known", "FLG003")
        if not facts.lost:
            yield opposes(STRONG, "a part of the drafts is accepted, so some states arrive")

    def experiment(self, facts: Facts) -> Experiment:
        """Without it."""
        return Experiment(
            "Start once without two-batch overlap, same draft and prompts",
            (relaunch(facts, without=("--enable-two-batch-overlap",)), compare(facts, "WITHOUT_OVERLAP_LOG")),
            {
                "acceptance returns": "its path skips the capture: leave it off while speculating",
                "no difference": "two-batch overlap is not the reason",
            },
        )
