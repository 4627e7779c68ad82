"""Draft: the checkpoint is undertrained, or another one."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import words
from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch, replay
from analysis.causes.facts import LOW_ACCEPTANCE, Facts

UNDERTRAINED = (0.25, 0.60)
"""Conditional acceptance of drafts that saw little data. Ratios; theory section 2.7."""


class DraftUntrainedOrWrong(Cause):
    """The checkpoint is undertrained, or not the one that was validated.

    Small training sets reach about 0.4 at the first position, less at later ones. Judged by the
    figures alone it looks like other traffic; the validation of this very checkpoint decides.
    """

    id = "draft-untrained-or-wrong"
    kind = Kind.DRAFT
    reports = ("sgl-project/SpecForge#128", "NickL77/BaldEagle#17", "SafeAILab/EAGLE#264")
    explains = LOW_ACCEPTANCE
    changes = (
        ("speculative_draft_model_path", STRONG),
        ("speculative_config.model", STRONG),
        ("spec_draft_model", STRONG),
    )

    def applies(self, facts: Facts) -> bool:
        """Drafts that are trained."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """How much is accepted, and what the same draft did before."""
        if facts.earlier_was_better and not any(facts.changed(name) for name, _ in self.changes):
            yield opposes(STRONG, "the same draft was better before", "ACC003")
        if facts.partly_kept:
            yield favours(STRONG, "as much is kept as little training leaves")
        if facts.fired("ACC001"):
            yield opposes(CLEAR, "its validation promises far more, if it is of this checkpoint", "ACC001")
        if facts.near_zero:
            yield opposes(CLEAR, "even little training gives 0.4 at the first position", "ACC002")
        rate = facts.value("conditional_acceptance_rate")
        low, high = UNDERTRAINED
        if rate is not None and low < rate < high and not facts.earlier_was_better:
            yield favours(HINT, f"a conditional acceptance of {words.rate(rate)} is what little training gives")
        if facts.works_in_part:
            yield opposes(CLEAR, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Compare digests."""
        return Experiment(
            "Compare the digest of the served weights with the validated ones, then replay the validation prompts at temperature 0",
            ("sha256sum DRAFT/*.safetensors", relaunch(facts), replay(facts), compare(facts, "REPLAY_LOG")),
            {
                "digests differ": "another checkpoint is served",
                "the replay matches validation": "the draft is fine, and the traffic differs",
                "the replay is low too": "wiring, not training: the same weights were better offline",
            },
        )
