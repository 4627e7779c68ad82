"""Traffic: another domain or language than the training data."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class DomainDiffers(Cause):
    """The traffic's domain or language was absent from the draft's training.

    Keeps about 0.37 of the accepted drafts in one published case, more where the domain is only
    rare. All units show it, every release, and it comes back with training data of that domain.
    """

    id = "domain-differs"
    kind = Kind.TRAFFIC
    reports = ("SafeAILab/EAGLE#264", "sgl-project/SpecForge#128")
    explains = LOW_ACCEPTANCE

    def applies(self, facts: Facts) -> bool:
        """Drafts that are trained."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The share kept, and what else changed."""
        if facts.lost:
            yield opposes(STRONG, "another domain leaves more (0.37 in one report)")
        elif facts.partly_kept:
            yield favours(STRONG, "as much is kept as traffic of absent domains keeps")
        if facts.first_position_fails and not facts.lost:
            yield favours(HINT, "already the first draft fails more often, as on harder text", "ACC005")
        if facts.later_positions_fail:
            yield opposes(STRONG, "harder text fails at the first draft, not after it", "ACC005")
        if facts.earlier_was_better and facts.differences:
            yield opposes(CLEAR, "the server changed since the better run", "ACC003")
        if facts.works_in_part:
            yield opposes(STRONG, "short contexts or other units do well")

    def experiment(self, facts: Facts) -> Experiment:
        """Split the traffic."""
        del facts
        return Experiment(
            "Split the log by route or language and compare acceptance of the parts",
            ("draftscope compare ROUTE_A_LOG ROUTE_B_LOG",),
            {
                "the parts differ": "train the draft on the weak part, or serve it without",
                "the parts are alike": "the domain is not the reason",
            },
        )
