"""ACC008: high rate, little coverage."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.figures import Pooled
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity


class DraftsRarelyMade(Rule):
    """Drafts are accepted often, and hardly any are made.

    Why it matters:
        A high acceptance rate looks like success while most target passes have no draft at
        all, so the server gains almost nothing.

    How to fix:
        Loosen what keeps the draft from drafting: n-gram sizes and windows, a probability floor
        (`p-min`), a minimum number of drafts. N-gram methods need text that repeats itself.

    Example:
        92% of the drafted tokens accepted, and drafts in 6% of the passes: 1.05 tokens a pass.

    Source:
        Theory section 1.2: report coverage, or the length over steps with a draft overstates
        the gain.
    """

    id, name = "ACC008", "drafts-rarely-made"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, acceptance: Pooled, thresholds: Thresholds) -> Outcome:
        """Coverage against acceptance, once enough passes were made."""
        coverage, rate = speculating.value("draft_coverage"), speculating.value("draft_acceptance_rate")
        if coverage is None:
            raise cannot_look("how many passes had no draft is not known", "--metrics FILE")
        passes = acceptance.verify_steps / coverage if coverage else 0.0
        drafted = speculating.value("drafted_tokens") or 0.0
        rare = coverage < thresholds.rare_coverage or (passes > 0 and drafted / passes < thresholds.rare_coverage)
        if not rare or rate is None or rate < thresholds.rare_acceptance or passes < thresholds.rare_passes:
            return
        per_pass = speculating.value("tokens_per_target_pass") or 1.0
        yield self.finding(
            f"Drafts in {words.percent(coverage)} of the passes only: {words.length(per_pass)} tokens a pass",
            f"{words.percent(rate)} of the drafted tokens are accepted, but most of {words.count(passes)} passes had no draft.",
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "draft_coverage": coverage,
                "tokens_per_target_pass": per_pass,
            },
            evidence=speculating.first_and_last,
            fix=[
                "Loosen what keeps the draft from drafting: n-gram sizes, probability floor (p-min), minimum drafts.",
                "N-gram drafts need text that repeats itself: use a trained draft for other traffic.",
            ],
            verify=["Watch tokens a pass, not the acceptance rate, while changing one setting at a time."],
        )
