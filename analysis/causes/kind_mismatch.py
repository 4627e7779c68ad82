"""Wiring: the method does not fit the kind of draft."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, establishes, favours, refutes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom
from collector.domain.findings import Severity


class DraftKindMismatch(Cause):
    """The method does not fit the kind of draft that was loaded.

    An EAGLE-3 head started as EAGLE loads and runs without an error, is fed one state instead of
    three, and accepts about half as often. Other mismatches of width end at the start.
    """

    id = "draft-kind-mismatch"
    kind = Kind.WIRING
    reports = ("vllm-project/vllm-ascend#13665",)
    explains = LOW_ACCEPTANCE | {Symptom.REFUSED}

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What was loaded against the method."""
        mismatch = facts.finding("DRF003")
        if mismatch is not None and mismatch.severity is Severity.CRITICAL:
            yield establishes(mismatch.title, mismatch.rule)
        elif mismatch is not None:
            yield favours(STRONG, mismatch.title, mismatch.rule)
        elif self._known(facts):
            yield refutes("method and loaded draft agree")

    def applies(self, facts: Facts) -> bool:
        """Where something says what was loaded."""
        return facts.fired("DRF003") or self._known(facts)

    @staticmethod
    def _known(facts: Facts) -> bool:
        declared = facts.draft_config is not None and bool(facts.draft_config.architectures)
        loaded = any(event.values.get("type") for event in facts.run.record.events_of("weights-loaded"))
        return not facts.copies and (declared or loaded)

    def experiment(self, facts: Facts) -> Experiment:
        """The other method."""
        option = "--speculative-algorithm EAGLE3" if facts.engine == "sglang" else "METHOD_OF_THE_DRAFT"
        return Experiment(
            "Start with the method the draft was trained for and look at the first windows",
            (relaunch(facts, option), compare(facts, "OTHER_METHOD_LOG")),
            {"acceptance about doubles": "this was it", "nothing changes": "method and draft fitted already"},
        )
