"""ACC007: one rank, engine, slot or replica differs from its siblings."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.theory.replicas import ReplicaFigures, compare_replicas
from analysis.view import RunView
from collector.domain.findings import Question, Severity


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
        Theory section 4.5: leave-one-out pool, margin 0.95, false discovery rate 10%.
    """

    id, name = "ACC007", "one-unit-outlier"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING

    def check(self, speculating: RunView) -> Outcome:
        """Each unit against the pool of the others."""
        units = speculating.unit_pooled
        if len(units) < 2:
            raise cannot_look("there is one unit only")
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
                fix=[
                    "Compare its start-up lines and draft checkpoint with a sibling's, then restart it.",
                    "Still behind after a restart: move it to another host.",
                ],
                verify=["Route the same prompts to it and to a sibling at temperature 0."],
            )
