"""Runs rules on a case, one after the other, and keeps what comes of each."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from analysis.base import CannotLook, Rule
from analysis.case import Case
from collector.domain.findings import Finding, RuleCrash, RuledOut, Skipped


@dataclass(slots=True)
class Outcomes:
    """What rules said: findings, worst first, and everything else in the order of the rules."""

    findings: tuple[Finding, ...] = ()
    ruled_out: list[RuledOut] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    crashes: list[RuleCrash] = field(default_factory=list)


def outcomes(case: Case, rules: Sequence[Rule]) -> Outcomes:
    """Run rules on a case, which learns their findings; a fault in the predictions is a crash of its own."""
    found = Outcomes()
    for rule in in_order(rules):
        outcome = run_rule(rule, case)
        if isinstance(outcome, Skipped):
            found.skipped.append(outcome)
        elif isinstance(outcome, RuleCrash):
            found.crashes.append(outcome)
        else:
            case.add(item for item in outcome if isinstance(item, Finding))
            found.ruled_out += [item for item in outcome if isinstance(item, RuledOut)]
    found.crashes += [
        RuleCrash("resolve", f"prediction-of-{view.role}-arguments", view.prediction_fault)
        for view in case.views
        if view.prediction_fault
    ]
    found.findings = tuple(sorted(case.findings, key=lambda item: (-item.severity, item.rule, item.scope)))
    return found


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
