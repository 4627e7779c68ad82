"""ACC002: practically every draft is rejected."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.figures import Pooled
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, RivalExplanation, Severity


class AcceptanceNearZero(Rule):
    """Practically every draft is rejected.

    Why it matters:
        The server pays for drafting and verifying and gains nothing. No draft that was trained
        at all behaves like this on its own traffic, so something is broken.

    How to fix:
        Look at what feeds the draft: hidden states dropped on this code path or release,
        wrong layers, a checkpoint whose weight names did not match, a wrong vocabulary map.

    Example:
        EAGLE-3 on a multimodal target whose release dropped the hidden states: length 1.04 of 5.

    Source:
        Theory section 2.7; 0.10 accepted per step over 200 steps.
    """

    id, name = "ACC002", "acceptance-near-zero"
    question = Question.ACCEPTANCE
    severity = Severity.CRITICAL

    def check(self, speculating: RunView, acceptance: Pooled, thresholds: Thresholds, case: Case) -> Outcome:
        """Accepted per step against the floor; n-gram drafts may be empty by nature."""
        if (
            acceptance.verify_steps < thresholds.near_zero_steps
            or acceptance.accepted_per_step > thresholds.near_zero_accepted
        ):
            return
        ngram = (speculating.method or "").startswith("ngram")
        before = case.earlier_accepted_per_step
        was_better = before is not None and before > 2 * thresholds.near_zero_accepted
        severity = Severity.WARNING if ngram and not was_better else Severity.CRITICAL
        printed = speculating.printed
        rivals = []
        if printed is not None and printed.definition is not None and printed.definition.startswith("length"):
            rivals.append(
                RivalExplanation(
                    f"The printed accept rate {printed.rate:.2f}",
                    "counts the target's own token; it never falls to 0, however bad the draft",
                )
            )
        fix = [
            "Check which layers feed the draft and whether this release's code path captures them (DRF001).",
            "Check the start of the log for skipped or missing draft weights.",
        ]
        if was_better:
            fix.insert(
                0,
                "The same draft was better before: go back to the earlier release or flags, then change one thing at a time.",
            )
        if ngram:
            fix = ["N-gram drafts need text that repeats itself: turn speculation off for this traffic."]
        yield self.finding(
            f"Practically every draft is rejected: length {words.length(acceptance.length)}",
            f"{words.count(acceptance.accepted_tokens)} drafts accepted in {words.plural(acceptance.verify_steps, 'step')}; "
            "a length of 1.00 is what no draft at all would give.",
            values=speculating.figures(*ACCEPTANCE_VALUES, "verify_steps"),
            evidence=speculating.first_and_last,
            fix=fix,
            verify=["Run the draft's validation prompts at temperature 0: a working draft accepts most first tokens."],
            severity=severity,
            ruled_out=rivals,
        )
