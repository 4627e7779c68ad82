"""DRF008: more is drafted than the draft was trained for."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.view import RunView
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity
from collector.domain.layouts import Kind, kind_of, trained_depth


class DepthBeyondTraining(Rule):
    """The server drafts further ahead than the draft was trained to.

    Why it matters:
        Positions that the training never saw are guessed. Their acceptance falls off, while each
        of them costs a draft step and a verified token. A block drafter has no more positions
        than its block.

    How to fix:
        Draft no more tokens than the draft's config states, or use a draft that was trained
        deeper.

    Example:
        A speculators draft with `speculative_tokens: 3` served with five steps.

    Source:
        speculators `speculators_config.proposal_methods`; DFlash `block_size`, of which one
        position is the anchor; Medusa `medusa_num_heads`.
    """

    id, name = "DRF008", "draft-depth-beyond-training"
    question = Question.CONFIG
    severity = Severity.INFO
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, draft: ModelConfig, depth: int) -> Outcome:
        """The depth that runs against the one the config states."""
        stated = trained_depth(draft)
        if stated is None:
            raise cannot_look("the draft's config does not say how deep it was trained")
        trained, key = stated
        if depth <= trained:
            return
        block = kind_of(draft) in (Kind.DFLASH, Kind.MEDUSA)
        yield self.finding(
            f"{words.plural(depth, 'token')} are drafted, the draft was made for {trained}",
            "It has no positions beyond that, so they are never right."
            if block
            else "Positions beyond that were not trained; look at their acceptance before keeping them.",
            values={"draft": trained, "target": depth, "draft_depth": depth},
            evidence=[draft.evidence(key), speculating.arguments["speculative_num_steps"].effective_evidence],
            fix=[f"Draft {words.plural(trained, 'token')} a step."],
            verify=["Compare acceptance by position: it falls off behind the trained depth."],
            severity=Severity.WARNING if block else Severity.INFO,
            confidence=Confidence.HIGH if block else Confidence.MEDIUM,
        )
