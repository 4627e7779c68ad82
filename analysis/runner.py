"""Runs the catalogue on a case and adds up what comes of it."""

from __future__ import annotations

from analysis.base import catalogue
from analysis.case import Case
from analysis.causes.facts import Facts
from analysis.causes.weighing import weigh
from analysis.diagnosis import Diagnosis
from analysis.known_faults import matched
from analysis.outcomes import outcomes
from analysis.summary import headline, next_steps
from analysis.thresholds import Thresholds
from analysis.verdicts import verdicts
from collector.domain.runs import Bundle


def diagnose(bundle: Bundle, thresholds: Thresholds | None = None) -> Diagnosis:
    """Judge a bundle with every rule.

    The result holds typed findings and, in its runs, pandas frames of the windows.
    """
    case = Case(bundle, thresholds)
    found = outcomes(case, catalogue())
    findings = found.findings
    answers = verdicts(case, findings)
    facts = Facts(case, findings)
    faults = matched(facts)
    differential = weigh(facts, faults)
    case.run.rules_by_flag = {
        str(item.values["flag"]): item.rule for item in reversed(findings) if item.values.get("flag") is not None
    }
    return Diagnosis(
        headline=headline(case, answers, findings),
        next_steps=next_steps(findings, answers),
        verdicts=answers,
        runs=case.views,
        findings=findings,
        ruled_out=tuple(found.ruled_out),
        skipped=tuple(found.skipped),
        crashes=(*found.crashes, *differential.crashes),
        readings=tuple(bundle.readings),
        payoff=case.payoff_or_none,
        watched=case.watched,
        published=case.published if case.run.pooled is not None else None,
        causes=differential.causes,
        refuted_causes=differential.ruled_out,
        known_faults=faults,
    )
