"""Wiring: the target's hidden states are lost on a code path."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class StatesLostOnPath(Cause):
    """This release or code path drops the hidden states.

    The draft is trained and configured well, and the engine hands it nothing, stale states or
    states of another norm: after a refactor, on the path of multimodal targets, or because two
    runners differ. A draft that was good on one release and worthless on the next is the sign.
    """

    id = "states-lost-on-path"
    kind = Kind.WIRING
    reports = (
        "sgl-project/SpecForge#310",
        "sgl-project/sglang#13904",
        "vllm-project/vllm#14464",
        "vllm-project/vllm#42764",
    )
    explains = LOW_ACCEPTANCE
    changes = (("release", STRONG),)

    def applies(self, facts: Facts) -> bool:
        """Drafts that read hidden states."""
        return facts.reads_hidden_states

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """From good to nothing, and paths that lost states before."""
        if facts.lost and facts.earlier_was_better:
            yield favours(STRONG, "the same draft went from good to nothing", "ACC003")
        elif facts.lost:
            yield favours(CLEAR, "as little is accepted as without hidden states")
        if facts.multimodal:
            yield favours(
                CLEAR, "multimodal targets take a path of their own, which lost the states before (SGLang 0.5.5)"
            )
        if facts.first_position_fails:
            yield favours(HINT, "already the first draft is accepted too rarely", "ACC005")
        if facts.later_positions_fail:
            yield opposes(STRONG, "the first draft is good, so states arrive", "ACC005")
        if facts.works_in_part:
            yield opposes(STRONG, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Another release."""
        release = facts.run.record.engine_version or facts.run.releases
        return Experiment(
            f"Serve the same draft with the same flags and prompts on a release other than this one ({release})",
            (compare(facts, "OTHER_RELEASE_LOG"),),
            {
                "acceptance returns": "the release drops the states on this path; stay on the other one and report it",
                "acceptance stays low": "the fault moves with the draft: layers, checkpoint or prompt format",
            },
        )
