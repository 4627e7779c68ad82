"""Wiring: prefill and decode are split, and the states of the prompt do not arrive."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class StatesNotTransferred(Cause):
    """The prefill side does not hand its hidden states to the decode side."""

    id, title = "states-not-transferred", "The prefill side does not hand its hidden states to the decode side"
    kind = Kind.WIRING
    reports = 2
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        split = (
            facts.flag("disaggregation_mode") not in (None, "null", "") or facts.flag("kv_transfer_config") is not None
        )
        yield from when(not split, "prefill and decode are not split here", -DECISIVE, refutes=True)
        yield from when(split, "prefill and decode run on different servers", STRONG)
        yield from when(split and facts.earlier_was_better, "the unsplit server accepted more (ACC003)", STRONG)
        yield from when(
            not facts.reads_hidden_states, f"method {facts.method} reads no hidden states", -DECISIVE, refutes=True
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Serve the same draft on one unsplit server with the same prompts, then: draftscope compare UNSPLIT SPLIT",
            {
                "unsplit is clearly better": "the transfer loses the states; use a release that sends them",
                "both alike": "the split is not the reason",
            },
        )
