"""Traffic: it became harder."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import words
from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.facts import Facts, Symptom

MOST_OF_IT = 0.5
"""Share of a fall that a changed mixture explains from which on it is the better explanation. Ratio."""


class TrafficChanged(Cause):
    """The traffic became harder; nothing is broken.

    Another route, language or kind of question in the mixture. Acceptance falls at once and on
    all units, on the same server and release, and comes back with the traffic.
    """

    id = "traffic-changed"
    kind = Kind.TRAFFIC
    reports = ("llm-d/llm-d#2074",)
    explains = frozenset({Symptom.DRIFTED, Symptom.REGRESSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """A fall within one run of one server, or with no other difference."""
        if facts.fired("ACC004"):
            yield favours(STRONG, "acceptance fell on a server that nobody restarted", "ACC004")
        if facts.earlier_was_better and facts.differences:
            yield opposes(STRONG, "the server changed between the runs", "ACC003")
        elif facts.earlier_was_better:
            yield favours(CLEAR, "no other difference of the runs is known", "ACC003")
        shift = facts.mix_shift
        if shift is not None and facts.fired("ACC003"):
            share = shift.from_mixture / (shift.from_mixture + shift.within)
            text = f"the mixture of {words.respect(shift.by)} explains {words.percent(share)} of the fall"
            yield favours(STRONG, text, "ACC003") if share >= MOST_OF_IT else opposes(CLEAR, text, "ACC003")
        if facts.near_zero:
            yield opposes(STRONG, "harder traffic alone never took everything", "ACC002")
        if facts.fired("ACC006"):
            yield opposes(STRONG, "contexts grew, which explains it better", "ACC006")
        if facts.later_positions_fail:
            yield opposes(HINT, "harder text fails at the first draft, not after it", "ACC005")

    def experiment(self, facts: Facts) -> Experiment:
        """A fixed set of prompts."""
        source = facts.run.record.source
        return Experiment(
            "Replay one fixed set of prompts now and again later; compare routes, prompt and output lengths of both stretches",
            (f"draftscope diagnose FIXED_SET_LOG --previous {source}",),
            {"the fixed set is as before": "the traffic changed", "the fixed set fell too": "the server changed"},
        )
