"""The four verdict tiles: question, state, one figure, one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collector.domain.findings import Question, State
from dashboard.pages import figures
from dashboard.pages.figures import Figure
from dashboard.store import RunReport

QUESTIONS: Final[Mapping[Question, str]] = {
    Question.CONFIG: "Is it running what was asked for?",
    Question.ACCEPTANCE: "Are drafts accepted as often as they should be?",
    Question.PAYOFF: "Does it pay?",
    Question.DATA: "Can the figures be trusted?",
}
STATES: Final[Mapping[State, str]] = {
    State.OK: "OK",
    State.PROBLEM: "Problem",
    State.CANNOT_TELL: "Cannot tell",
    State.NOT_APPLICABLE: "Does not apply",
}
MARKS: Final[Mapping[Question, str]] = {
    Question.CONFIG: "Runs what was asked",
    Question.ACCEPTANCE: "Drafts accepted",
    Question.PAYOFF: "Pays",
    Question.DATA: "Figures trusted",
}
"""Short names for rows that show marks alone."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One verdict. ``figure`` is ``None`` where none is known: a hatched block stands in its place."""

    question: str
    state: str
    figure: Figure | None
    beside: str
    why: str
    provide: str


def tiles(report: RunReport) -> tuple[Tile, ...]:
    """The tiles in the order of the questions."""
    makers = {
        Question.CONFIG: _config,
        Question.ACCEPTANCE: _acceptance,
        Question.PAYOFF: _payoff,
        Question.DATA: _data,
    }
    made = []
    for question, words in QUESTIONS.items():
        verdict = report.document["verdicts"][question.value]
        state = State(verdict["state"])
        figure, beside = makers[question](report)
        if state is State.CANNOT_TELL:
            beside = f"{figure.value}{f' {beside}' if beside else ''}, nothing to hold it against" if figure else beside
            figure = None
        elif state is State.NOT_APPLICABLE:
            figure, beside = Figure("none"), "nothing drafted"
        made.append(Tile(words, state.value, figure, beside, verdict["summary"], verdict.get("provide", "")))
    return tuple(made)


def _config(report: RunReport) -> tuple[Figure | None, str]:
    """What runs instead of what was asked, else how many flags run as asked."""
    for finding in report.document["findings"]:
        values = finding["values"]
        overridden = finding["rule"].startswith("FLG") and finding["severity"] != "info"
        if overridden and figures.is_number(values.get("effective")) and "requested" in values:
            return Figure(figures.words("effective", values["effective"])), (
                f"{values['flag']}, {figures.words('requested', values['requested'])} asked"
            )
    arguments = report.subject["arguments"].values()
    asked = [
        argument for argument in arguments if "requested" in argument and {"effective", "predicted"} & set(argument)
    ]
    if not asked:
        return None, "flags asked and running"
    same = sum(argument["requested"] == argument.get("effective", argument.get("predicted")) for argument in asked)
    return Figure(f"{same} of {len(asked)}"), "flags run as asked"


def _acceptance(report: RunReport) -> tuple[Figure | None, str]:
    figure = figures.figure("acceptance_length", report.quantity("acceptance_length"))
    most = report.number("max_acceptance_length")
    return figure, f"of {most:g} tokens" if figure and most is not None else "acceptance length"


def _payoff(report: RunReport) -> tuple[Figure | None, str]:
    speedup = figures.figure("speedup", report.quantity("speedup"))
    if speedup is not None:
        return speedup, ""
    throughput = figures.figure("generation_throughput", report.quantity("generation_throughput"))
    return throughput, throughput.unit if throughput else "speed-up"


def _data(report: RunReport) -> tuple[Figure | None, str]:
    length = report.quantity("acceptance_length")
    windows = length.get("windows") if length else None
    if length is None or windows is None:
        return None, "windows with counts or lengths"
    steps = length.get("verify_steps")
    rest = f", {figures.plural(round(steps), 'step')}" if steps else ""
    return Figure(figures.count(windows)), f"{'window' if windows == 1 else 'windows'}{rest}"
