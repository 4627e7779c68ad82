"""Reasons that several causes share."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, Reason, favours, opposes
from analysis.causes.facts import Facts, Symptom


def step_cost(facts: Facts) -> Iterator[Reason]:
    """Whether the step is what costs, for every cause of cost."""
    if facts.costly:
        yield favours(HINT, "a step costs clearly more than is usual", "PAY002")
    elif Symptom.SLOW in facts.symptoms and facts.low_acceptance:
        yield opposes(CLEAR, "low acceptance alone explains the loss")
