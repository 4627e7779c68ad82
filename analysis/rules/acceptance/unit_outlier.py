"""ACC007: one rank, engine, slot or replica differs from its siblings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.figures import Pooled
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.theory.replicas import ReplicaFigures, ReplicaVerdict, compare_replicas
from analysis.view import RunView
from analysis.watching import among_siblings
from collector.domain.findings import Finding, Question, Severity
from collector.domain.runs import Watched

_FIX: Final = (
    "Compare its start-up lines and draft checkpoint with a sibling's, then restart it.",
    "Still behind after a restart: move it to another host.",
)
_VERIFY: Final = ("Route the same prompts to it and to a sibling at temperature 0.",)


class OneUnitOutlier(Rule):
    """One rank, engine, slot or replica accepts fewer drafts than its siblings.

    Why it matters:
        All share model, draft and traffic, so a difference is a fault of that unit: a bad GPU, a
        stale checkpoint, a cache that is fed wrongly. The mean over the fleet hides it.

    How to fix:
        Compare its start-up lines and checkpoint with a sibling's, restart it, and move it to
        another host if it stays behind.

    Example:
        Engine 4 at length 2.97 where the others show 3.34.

    Source:
        Theory section 4.5: leave-one-out pool, margin 0.95, false discovery rate 10%. A watched run is
        compared with the other runs of its fleet over the last half hour, and stays behind until it is within the margin.
    """

    id, name = "ACC007", "one-unit-outlier"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING

    def check(self, speculating: RunView, watched: Watched | None) -> Outcome:
        """Each unit against the pool of the others; a watched run against its siblings over the last half hour."""
        units = speculating.unit_pooled
        verdict = None if watched is None else among_siblings(watched)
        if len(units) < 2 and verdict is None:
            raise cannot_look("there is one unit only")
        if watched is not None and verdict is not None and verdict.outlier:
            yield self._among_siblings(speculating, watched, verdict)
        yield from self._among_units(speculating, units)

    def _among_siblings(self, speculating: RunView, watched: Watched, verdict: ReplicaVerdict) -> Finding:
        return self.finding(
            f"This replica accepts {words.percent(1 - verdict.share)} fewer drafts than its siblings",
            f"Length {words.length(1 + verdict.accepted_per_step)} over the last half hour against "
            f"{words.length(1 + verdict.siblings)} of the others of {watched.fleet}, beyond chance "
            f"(p = {verdict.p_value:.2g} of {len(watched.recent)} runs compared).",
            values={
                "unit": watched.place,
                **speculating.figures(*ACCEPTANCE_VALUES),
                "acceptance_length": 1 + verdict.accepted_per_step,
                "siblings_acceptance_length": 1 + verdict.siblings,
                "p_value": verdict.p_value,
            },
            fix=_FIX,
            verify=_VERIFY,
        )

    def _among_units(self, speculating: RunView, units: Mapping[str, Pooled]) -> Outcome:
        figures = {name: ReplicaFigures(pooled.interval, pooled.verify_steps) for name, pooled in units.items()}
        for verdict in compare_replicas(figures):
            if not verdict.outlier:
                continue
            pooled = units[verdict.unit]
            quantities = speculating.units[verdict.unit]
            yield self.finding(
                f"{verdict.unit} accepts {words.percent(1 - verdict.share)} fewer drafts than its siblings",
                f"Length {words.length(pooled.length)} against {words.length(1 + verdict.siblings)} of the others, beyond chance "
                f"(p = {verdict.p_value:.2g} of {len(units)} units compared).",
                scope=verdict.unit,
                values={
                    "unit": verdict.unit,
                    **{key: quantities[key].value for key in ACCEPTANCE_VALUES if key in quantities},
                    "siblings_acceptance_length": 1 + verdict.siblings,
                    "p_value": verdict.p_value,
                },
                evidence=[],
                fix=_FIX,
                verify=_VERIFY,
            )
