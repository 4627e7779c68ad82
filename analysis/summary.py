"""The whole answer in one sentence, and what to do first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis import words
from analysis.case import Case
from collector.domain.findings import Finding, Question, Severity, State, Verdict

BOTH_MATTER = 0.25
"""Share of the loss from which a fault counts as one of two. Ratio."""

FIRST_TO_FIX = (
    "PAY001",
    "FLG009",
    "FLG010",
    "FLG006",
    "ACC002",
    "DRF003",
    "DRF004",
    "FLG001",
    "ACC001",
    "DRF001",
    "ACC003",
    "ACC007",
    "ACC004",
    "PAY002",
)
"""Order in which findings give the next steps: stop the loss, then what is certain, then what explains."""


def headline(case: Case, answers: Mapping[Question, Verdict], findings: Sequence[Finding]) -> str:
    """One sentence for a tired engineer."""
    payoff = case.payoff_or_none
    if payoff is not None and payoff.speedup < 1 and payoff.loss_share_acceptance is not None:
        dear, rare = payoff.loss_share_step_cost or 0.0, payoff.loss_share_acceptance
        loss = f"Speculation makes this server {words.percent(1 - payoff.speedup)} slower"
        if min(dear, rare) >= BOTH_MATTER:
            return f"Two faults: drafts are accepted too rarely, and every step costs too much. {loss}."
        return f"{loss}, because {'drafts are accepted too rarely' if rare > dear else 'every step costs too much'}."
    problems = [finding for finding in findings if finding.severity >= Severity.WARNING]
    if problems:
        return f"{problems[0].title}."
    states = {verdict.state for verdict in answers.values()}
    if State.CANNOT_TELL in states:
        open_questions = [
            words_for(question) for question, verdict in answers.items() if verdict.state is State.CANNOT_TELL
        ]
        return f"Nothing wrong was found, but {words.listing(open_questions)} could not be judged."
    if states <= {State.NOT_APPLICABLE, State.OK} and State.NOT_APPLICABLE in states:
        return "This run does not speculate."
    return "Speculation runs as asked, is accepted as validated, and pays."


def words_for(question: Question) -> str:
    """A question's name inside a sentence."""
    return {
        Question.CONFIG: "configuration",
        Question.ACCEPTANCE: "acceptance",
        Question.PAYOFF: "pay-off",
        Question.DATA: "the data",
    }[question]


def next_steps(findings: Sequence[Finding], answers: Mapping[Question, Verdict]) -> tuple[str, ...]:
    """At most three things to do: from the findings first, then what would decide an open verdict."""
    ranked = sorted(
        (finding for finding in findings if finding.rule in FIRST_TO_FIX and finding.fix),
        key=lambda finding: FIRST_TO_FIX.index(finding.rule),
    )
    steps = [f"{finding.fix[0]} ({finding.rule})" for finding in ranked]
    steps += [
        f"To judge {words_for(question)}: {verdict.provide}"
        for question, verdict in answers.items()
        if verdict.state is State.CANNOT_TELL and verdict.provide
    ]
    return tuple(dict.fromkeys(steps))[:3]
