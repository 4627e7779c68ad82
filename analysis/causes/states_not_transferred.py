"""Wiring: with prefill and decode apart, hidden states are not handed over."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class StatesNotTransferred(Cause):
    """The prefill side does not hand its hidden states to the decode side.

    The decode server then starts every draft from random or missing states of the prompt. What
    it adds itself is right, so a part of the drafts is accepted, fewer than on one server.
    """

    id = "states-not-transferred"
    kind = Kind.WIRING
    reports = ("sgl-project/sglang#7927", "sgl-project/sglang#7242", "vllm-project/vllm-ascend#13665")
    explains = LOW_ACCEPTANCE
    changes = (("disaggregation_mode", DECISIVE), ("kv_transfer_config", DECISIVE))

    def applies(self, facts: Facts) -> bool:
        """Prefill and decode on different servers, drafts that read states or a cache of the prompt."""
        return facts.split_prefill and not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The split itself."""
        yield favours(STRONG, "prefill and decode run on different servers")
        if facts.earlier_was_better:
            yield favours(CLEAR, "the deployment accepted more before", "ACC003")
        if facts.works_in_part:
            yield opposes(STRONG, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """One server."""
        split = (
            "--disaggregation-mode",
            "--disaggregation-transfer-backend",
            "--disaggregation-ib-device",
            "--kv-transfer-config",
        )
        return Experiment(
            "Serve the same draft and prompts on one server that does both",
            (relaunch(facts, without=split), compare(facts, "ONE_SERVER_LOG")),
            {
                "one server is clearly better": "the transfer loses the states; use a release that sends them",
                "both alike": "the split is not the reason",
            },
        )
