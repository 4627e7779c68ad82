"""MEA004: a restart or reset lies inside the interval, and was handled."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.view import RunView
from collector.domain.findings import Question, Severity
from collector.domain.windows import Origin


class CounterReset(Rule):
    """A counter fell between two scrapes: the engine restarted or reset it.

    Why it matters:
        Taken as it is, the interval would show negative or absurd counts. It was ended at the
        reset, so nothing was lost but what happened between the scrapes.

    How to fix:
        Nothing for the figures. Look why the engine restarted.

    Example:
        Drafted tokens 812,000 at 14:00, 3,100 at 14:00:15.

    Source:
        Prometheus counters start at 0 with their process.
    """

    id, name = "MEA004", "counter-reset"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, run: RunView) -> Outcome:
        """One finding for all resets of the run."""
        if not (run.frame["origin"] == Origin.COUNTERS).any():
            raise cannot_look("no scraped counters", "draftscope scrape URL")
        resets = run.record.events_of("counter-reset")
        if not resets:
            return
        yield self.finding(
            f"Counters were reset {words.plural(len(resets), 'time')}",
            "The interval of each reset was ended there and left out.",
            values={"metric": str(resets[-1].values.get("metric", "")), "resets": len(resets)},
            evidence=[event.evidence for event in resets[-3:]],
            fix=["Look at the engine's log for a restart at that time."],
            verify=["Compare process_start_time_seconds before and after."],
        )
