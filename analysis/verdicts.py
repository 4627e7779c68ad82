"""The four verdicts: what each question needs, and its answer in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis import words
from analysis.case import Case
from collector.domain.findings import Finding, Question, Severity, State, Verdict
from collector.domain.runs import Role

OTHER_RUNS = frozenset({Role.PREVIOUS.value, Role.BASELINE.value})


def verdicts(case: Case, findings: Sequence[Finding]) -> Mapping[Question, Verdict]:
    """Answer each question from the findings, else from what is known, else say what is missing."""
    answers = {}
    for question in Question:
        against = [
            finding
            for finding in findings
            if finding.severity >= Severity.WARNING
            and finding.scope not in OTHER_RUNS
            and question_of(finding.rule) is question
        ]
        if against:
            worst = max(against, key=lambda finding: finding.severity)
            more = f" And {words.plural(len(against) - 1, 'more finding')}." if len(against) > 1 else ""
            answers[question] = Verdict(question, State.PROBLEM, f"{worst.title}.{more}")
        elif not_speculating(case) and question in (Question.ACCEPTANCE, Question.PAYOFF):
            answers[question] = Verdict(question, State.NOT_APPLICABLE, "This run does not speculate.")
        else:
            answers[question] = _ANSWER[question](case)
    return answers


def not_speculating(case: Case) -> bool:
    """Whether it is known that the run does not speculate."""
    return case.run.method is None and case.run.drafting.known


def question_of(rule_id: str) -> Question:
    """The question a rule belongs to, by the family in its id."""
    return _FAMILY[rule_id[:3]]


_FAMILY = {
    "FLG": Question.CONFIG,
    "DRF": Question.CONFIG,
    "ACC": Question.ACCEPTANCE,
    "PAY": Question.PAYOFF,
    "MEA": Question.DATA,
}


def _config(case: Case) -> Verdict:
    args = case.run.arguments
    if args.any_requested and (args.any_effective or case.run.resolution is not None):
        if _layers_in_doubt(case):
            return Verdict(
                Question.CONFIG,
                State.CANNOT_TELL,
                "The flags run as asked. Whether the draft is fed the layers it was trained on cannot be told: "
                "two configs of one draft name different ones.",
                "the layers of the draft's training settings",
            )
        asked = sum(argument.requested_seen for argument in args.values())
        how = (
            "seen in the engine's own argument line"
            if args.any_effective
            else "predicted; the engine's argument line was not seen"
        )
        return Verdict(
            Question.CONFIG,
            State.OK,
            f"{words.plural(asked, 'flag')} asked for, none that matters runs differently ({how}).",
        )
    if args.any_effective:
        return Verdict(
            Question.CONFIG,
            State.CANNOT_TELL,
            "What runs is known; what was asked for is not, so changes cannot be seen.",
            "--launch FILE",
        )
    if args.any_requested:
        return Verdict(
            Question.CONFIG,
            State.CANNOT_TELL,
            "What was asked for is known; what runs is not.",
            "a log that begins at the start of the server",
        )
    return Verdict(
        Question.CONFIG,
        State.CANNOT_TELL,
        "Neither the launch command nor the engine's argument line was seen.",
        "--launch FILE",
    )


def _layers_in_doubt(case: Case) -> bool:
    """Whether the draft's configs of two runs name different layers, and nothing says which is right."""
    named = [item.values for item in case.findings if item.rule == "DRF001"]
    return any(values["previous_ids"] not in (None, values["draft_ids"]) for values in named)


def _acceptance(case: Case) -> Verdict:
    pooled = case.run.pooled
    rate = case.run.value("draft_acceptance_rate")
    if pooled is None and rate is not None:
        return Verdict(
            Question.ACCEPTANCE,
            State.CANNOT_TELL,
            f"{words.percent(rate)} of the drafted tokens are accepted; in how many steps is not known, and so not the length.",
            "the server's log, or its metrics",
        )
    if pooled is None:
        return Verdict(
            Question.ACCEPTANCE,
            State.CANNOT_TELL,
            "No window with acceptance figures was read.",
            "a log or scrape that covers traffic",
        )
    shown = f"Length {words.length(pooled.length)} {words.interval(*pooled.length_ends)}"
    if case.run.depth is not None:
        shown += f" of {case.run.depth + 1}"
    if case.contradictions:
        return Verdict(
            Question.ACCEPTANCE,
            State.CANNOT_TELL,
            f"{shown}, but the figures contradict each other: {case.contradictions[0].title}.",
            "the depth that runs, or request-level counts",
        )
    test = case.divergence
    if test is None:
        return Verdict(
            Question.ACCEPTANCE,
            State.CANNOT_TELL,
            f"{shown}. Without validation figures nothing says how much it should be{_context(case)}.",
            "--validation-accuracy X or --training FILE",
        )
    kept = words.percent(test.retained_share)
    if test.verdict == "consistent":
        return Verdict(
            Question.ACCEPTANCE, State.OK, f"{shown}: {kept} of what validation promises, as a healthy server delivers."
        )
    needed = (
        f"{test.windows_needed} {pooled.each}s decide it"
        if test.windows_needed is not None
        else f"more {pooled.each}s under steady load"
    )
    return Verdict(
        Question.ACCEPTANCE,
        State.CANNOT_TELL,
        f"{shown}: {kept} of what validation promises, but the interval leaves it open{_context(case)}.",
        needed,
    )


def _context(case: Case) -> str:
    """What others have published, to hold it beside; it decides nothing."""
    return f"; {case.published.words}" if case.published is not None else ""


def _payoff(case: Case) -> Verdict:
    payoff = case.payoff_or_none
    if payoff is None:
        both = case.throughputs
        if both is not None:  # what is slower is a finding
            pair = f"{words.speed(both.speculative)} against {words.speed(both.plain)} without"
            pair = words.factor(both.ratio) if both.relative else f"{pair}: {words.factor(both.ratio)}"
            if both.ratio > 1:
                return Verdict(Question.PAYOFF, State.OK, f"It pays: {pair}.")
            return Verdict(
                Question.PAYOFF, State.CANNOT_TELL, f"{pair}: a difference this small may be chance.", "more windows"
            )
        reason = (
            "No throughput under speculation was read."
            if "generation_throughput" not in case.run.measured
            else "No run without speculation."
        )
        return Verdict(Question.PAYOFF, State.CANNOT_TELL, reason, "--baseline LOG")
    if not payoff.baseline_comparable:
        return Verdict(
            Question.PAYOFF,
            State.CANNOT_TELL,
            f"The step cost comes out at {words.significant(payoff.step_cost_ratio)} plain steps, which is impossible: "
            "the baseline ran under another load.",
            "--baseline LOG at the same number of running requests",
        )
    pair = f"{words.speed(payoff.throughput)} against {words.speed(payoff.baseline_throughput)} without: {words.factor(payoff.speedup)}"
    if payoff.speedup_low is not None and payoff.speedup_low < 1:
        return Verdict(
            Question.PAYOFF,
            State.CANNOT_TELL,
            f"{pair}, but the interval reaches below x1.",
            "more windows under steady load",
        )
    return Verdict(Question.PAYOFF, State.OK, f"It pays: {pair}.")


def _data(case: Case) -> Verdict:
    frame, traffic = case.run.frame, case.run.traffic
    requests = ""
    if traffic is not None and traffic.stand and traffic.pooled is not None:
        requests = words.plural(traffic.pooled.windows, "request")
    if frame.empty and requests:
        return Verdict(Question.DATA, State.OK, f"{requests} read; nothing contradicts.")
    if frame.empty or not (frame["verify_steps"].gt(0) | frame["generation_throughput"].gt(0)).any():
        return Verdict(
            Question.DATA,
            State.CANNOT_TELL,
            "No source with counts or lengths was read.",
            "a log or scrape that covers traffic",
        )
    counted = int(frame["counted"].sum())
    out = len(frame) - counted
    left = f", {out} left out" if out else ""
    read = f"{words.plural(len(frame), 'window')} read{left}" + (f", and {requests}" if requests else "")
    return Verdict(Question.DATA, State.OK, f"{read}; nothing contradicts.")


_ANSWER = {
    Question.CONFIG: _config,
    Question.ACCEPTANCE: _acceptance,
    Question.PAYOFF: _payoff,
    Question.DATA: _data,
}
