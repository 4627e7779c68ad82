"""What causes may ask about a judged run: symptoms, findings, figures, configuration, differences."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analysis.differences import argument_differences
from collector.domain.findings import Finding, Severity
from collector.domain.runs import Role

if TYPE_CHECKING:
    from analysis.case import Case


class Symptom(StrEnum):
    """What is wrong, before anybody says why."""

    ACCEPTANCE = "drafts are accepted too rarely"
    NEAR_ZERO = "practically no draft is accepted"
    REGRESSED = "acceptance fell against an earlier run"
    DRIFTED = "acceptance fell during the run"
    CONTEXT = "acceptance falls with the context"
    OUTLIER = "one unit lags behind"
    COST = "a step costs too much"
    SLOW = "speculation is slower than none"
    WASTE = "too much is drafted"
    LOAD = "requests wait"
    INACTIVE = "nothing is drafted"
    OVERRIDDEN = "something else runs than was asked for"
    REFUSED = "the engine refuses to start"
    CONTRADICTED = "figures contradict each other"
    RARE = "drafts are rarely made"


_BY_RULE: Final = {
    "ACC001": Symptom.ACCEPTANCE,
    "ACC002": Symptom.NEAR_ZERO,
    "ACC003": Symptom.REGRESSED,
    "ACC004": Symptom.DRIFTED,
    "ACC005": Symptom.ACCEPTANCE,
    "ACC006": Symptom.CONTEXT,
    "ACC007": Symptom.OUTLIER,
    "ACC008": Symptom.RARE,
    "PAY001": Symptom.SLOW,
    "PAY003": Symptom.WASTE,
    "PAY004": Symptom.LOAD,
    "PAY007": Symptom.COST,
    "FLG001": Symptom.OVERRIDDEN,
    "FLG006": Symptom.INACTIVE,
    "FLG009": Symptom.REFUSED,
    "MEA002": Symptom.CONTRADICTED,
    "MEA003": Symptom.CONTRADICTED,
}
LOW_ACCEPTANCE: Final = frozenset({Symptom.ACCEPTANCE, Symptom.NEAR_ZERO, Symptom.REGRESSED})
"""Symptoms that any fault of draft, wiring or traffic may show."""
MATTERING_SHARE: Final = 0.25
"""Share of the loss from which the step cost counts as a symptom of its own. Ratio."""
SHARED_HEADS: Final = frozenset({"eagle", "eagle3", "mtp", "medusa", "dflash", "dspark", "hydra"})
"""Methods whose draft reads hidden states of the target."""


class Facts:
    """A judged case, in the words causes ask in."""

    def __init__(self, case: Case, findings: Sequence[Finding]) -> None:
        """``findings`` are all of the diagnosis."""
        self.case = case
        self.run = case.run
        self._by_rule: dict[str, Finding] = {}
        for finding in findings:
            if finding.scope not in (Role.PREVIOUS, Role.BASELINE):
                self._by_rule.setdefault(finding.rule, finding)

    def finding(self, rule: str) -> Finding | None:
        """The finding of a rule, if it fired."""
        return self._by_rule.get(rule)

    def fired(self, *rules: str) -> bool:
        """Whether one of these rules fired."""
        return any(rule in self._by_rule for rule in rules)

    @cached_property
    def symptoms(self) -> frozenset[Symptom]:
        """What is wrong; notes (severity info) are no symptoms, but for a step cost that is a mattering share of the loss."""
        found = {
            _BY_RULE[rule]
            for rule, finding in self._by_rule.items()
            if rule in _BY_RULE and finding.severity >= Severity.WARNING
        }
        cost = self.finding("PAY002")
        share = self.case.payoff_or_none.loss_share_step_cost if self.case.payoff_or_none is not None else None
        if cost is not None and (cost.severity >= Severity.WARNING or (share or 0.0) >= MATTERING_SHARE):
            found.add(Symptom.COST)
        return frozenset(found)

    @property
    def low_acceptance(self) -> bool:
        """Whether acceptance is low by any measure."""
        return bool(self.symptoms & LOW_ACCEPTANCE)

    @property
    def near_zero(self) -> bool:
        """Whether practically nothing is accepted."""
        return Symptom.NEAR_ZERO in self.symptoms

    # -- configuration -------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """The method's name, "" where none is known."""
        return self.run.method or ""

    @property
    def ngram(self) -> bool:
        """Whether drafts come from the text itself."""
        return self.method.startswith("ngram") or self.method in ("suffix", "lookahead")

    @property
    def reads_hidden_states(self) -> bool:
        """Whether the draft is fed hidden states of the target."""
        return self.method in SHARED_HEADS

    def flag(self, name: str) -> Any:
        """What runs of a flag, ``None`` where it is not known."""
        return self.run.arguments.value(name)

    @cached_property
    def differences(self) -> list[str]:
        """What differs from the earlier run, in words."""
        previous = next((view for view in self.case.views if view.role is Role.PREVIOUS), None)
        return argument_differences(previous, self.run) if previous is not None else []

    def differs(self, *words: str) -> bool:
        """Whether one of these words stands in a difference from the earlier run."""
        return any(word in text for text in self.differences for word in words)

    @property
    def earlier_was_better(self) -> bool:
        """Whether the same deployment accepted more before."""
        return self.fired("ACC003")

    # -- figures -------------------------------------------------------------------------------

    def value(self, key: str) -> float | None:
        """A quantity of the run."""
        return self.run.value(key)

    @property
    def retained(self) -> float | None:
        """Share kept of what validation promises."""
        return self.value("retained_share")

    @property
    def prefix(self) -> tuple[float, ...]:
        """Shares of steps by accepted position, where counted."""
        return self.run.pooled.prefix if self.run.pooled is not None else ()

    @property
    def cliff_position(self) -> int | None:
        """The position at which acceptance breaks off, ``None`` where it does not."""
        cliff = self.finding("ACC005")
        return int(cliff.values["position"]) if cliff is not None else None

    @property
    def temperature(self) -> float | None:
        """Temperature of the traffic, if stated."""
        return self.run.record.temperature

    @property
    def experts(self) -> bool:
        """Whether the target is known to be a mixture of experts."""
        return self.case.mixture_of_experts is True

    @property
    def running(self) -> float | None:
        """Mean running requests."""
        return self.value("running_requests")
