"""Runs the catalogue on a case and adds up what comes of it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence

from analysis.base import CannotLook, Rule, catalogue
from analysis.case import Case
from analysis.causes.facts import Facts
from analysis.causes.weighing import weigh
from analysis.diagnosis import Diagnosis
from analysis.summary import headline, next_steps
from analysis.thresholds import Thresholds
from analysis.verdicts import verdicts
from collector.domain.findings import Finding, RuleCrash, RuledOut, Skipped
from collector.domain.runs import Bundle


def diagnose(bundle: Bundle, thresholds: Thresholds | None = None) -> Diagnosis:
    """Judge a bundle with every rule.

    The result holds typed findings and, in its runs, pandas frames of the windows.
    """
    case = Case(bundle, thresholds)
    ruled_out: list[RuledOut] = []
    skipped: list[Skipped] = []
    crashes: list[RuleCrash] = []
    for rule in in_order(catalogue()):
        outcome = run_rule(rule, case)
        if isinstance(outcome, Skipped):
            skipped.append(outcome)
        elif isinstance(outcome, RuleCrash):
            crashes.append(outcome)
        else:
            case.add(item for item in outcome if isinstance(item, Finding))
            ruled_out += [item for item in outcome if isinstance(item, RuledOut)]
    crashes += [
        RuleCrash("resolve", f"prediction-of-{view.role}-arguments", view.prediction_fault)
        for view in case.views
        if view.prediction_fault
    ]
    findings = tuple(sorted(case.findings, key=lambda item: (-item.severity, item.rule, item.scope)))
    answers = verdicts(case, findings)
    differential = weigh(Facts(case, findings))
    crashes += differential.crashes
    case.run.rules_by_flag = {
        str(item.values["flag"]): item.rule for item in reversed(findings) if item.values.get("flag") is not None
    }
    return Diagnosis(
        headline=headline(case, answers, findings),
        next_steps=next_steps(findings, answers),
        verdicts=answers,
        runs=case.views,
        findings=findings,
        ruled_out=tuple(ruled_out),
        skipped=tuple(skipped),
        crashes=tuple(crashes),
        readings=tuple(bundle.readings),
        payoff=case.payoff_or_none,
        causes=differential.causes,
        refuted_causes=differential.ruled_out,
    )


def in_order(rules: Sequence[Rule]) -> list[Rule]:
    """Rules by id, each after those whose findings it needs."""
    by_id = {rule.id: rule for rule in rules}
    ordered: dict[str, Rule] = {}

    def place(rule: Rule) -> None:
        if rule.id in ordered:
            return
        for needed in rule.needs:
            if needed in by_id:
                place(by_id[needed])
        ordered[rule.id] = rule

    for rule in rules:
        place(rule)
    return list(ordered.values())


def run_rule(rule: Rule, case: Case) -> list[Finding | RuledOut] | Skipped | RuleCrash:
    """One rule's outcome: what it says, or why it could not look, or how it failed."""
    try:
        given = {}
        for name, parameter in inspect.signature(rule.check).parameters.items():
            try:
                given[name] = getattr(case, name)
            except CannotLook:
                if parameter.default is inspect.Parameter.empty:
                    raise
        return list(rule.check(**given))
    except CannotLook as outcome:
        return Skipped(rule.id, rule.name, outcome.missing.reason, outcome.missing.provide)
    except Exception as error:  # noqa: BLE001 - a crash in one rule is reported, and the others go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        return RuleCrash(rule.id, rule.name, f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})")
