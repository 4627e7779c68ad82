"""What causes may ask about a judged run: symptoms, findings, figures, configuration, differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analysis import words
from analysis.differences import argument_differences
from analysis.printed import usual_definition
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Finding, Severity
from collector.domain.runs import Role

if TYPE_CHECKING:
    from analysis.case import Case
    from analysis.figures import Pooled
    from analysis.traffic import MixShift
    from analysis.view import RunView


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
    DEARER = "a step takes longer than in an earlier run"
    WASTE = "more is drafted than pays"
    LOAD = "requests wait"
    SCHEDULE = "nothing is drafted at times"
    INACTIVE = "nothing is drafted"
    OVERRIDDEN = "something else runs than was asked for"
    REFUSED = "the engine refuses to start"
    CONTRADICTED = "figures contradict each other"
    RARE = "drafts are rarely made"


_BY_RULE: Final = {
    "ACC001": Symptom.ACCEPTANCE,
    "ACC002": Symptom.NEAR_ZERO,
    "ACC003": Symptom.REGRESSED,
    "ACC005": Symptom.ACCEPTANCE,
    "ACC006": Symptom.CONTEXT,
    "ACC007": Symptom.OUTLIER,
    "ACC008": Symptom.RARE,
    "DRF003": Symptom.ACCEPTANCE,
    "FLG001": Symptom.OVERRIDDEN,
    "FLG006": Symptom.INACTIVE,
    "FLG009": Symptom.REFUSED,
    "MEA002": Symptom.CONTRADICTED,
    "MEA003": Symptom.CONTRADICTED,
    "PAY001": Symptom.SLOW,
    "PAY003": Symptom.WASTE,
    "PAY004": Symptom.LOAD,
    "PAY006": Symptom.SCHEDULE,
    "PAY007": Symptom.COST,
}
LOW_ACCEPTANCE: Final = frozenset({Symptom.ACCEPTANCE, Symptom.NEAR_ZERO, Symptom.REGRESSED})
"""Symptoms that any fault of draft, wiring or traffic may show."""
EXPENSIVE: Final = frozenset({Symptom.COST, Symptom.SLOW, Symptom.DEARER})
"""Symptoms that any fault of cost or load may show."""
CLEARLY_DEARER: Final = 0.10
"""Rise of the step's time over an earlier run at equal depth and load that is a symptom. Ratio; the practical allowance."""
MATTERING_SHARE: Final = 0.25
"""Share of the loss from which the step cost counts as a symptom of its own. Ratio."""
CLEAR_DRIFT: Final = 0.30
"""Share of the accepted drafts that a run must lose on its way to have a symptom. Ratio; healthy simulated runs reach 0.25."""
LOST: Final = 0.30
"""Share of the promised drafts that wiring faults stay below. Ratio; theory section 2.7: 0.00 to 0.2."""
PARTLY_KEPT: Final = 0.70
"""Share that other traffic stays below. Ratio; theory section 2.7: 0.29 to 0.37, sampling keeps more."""
HIDDEN_STATE_METHODS: Final = frozenset(
    {"eagle", "eagle3", "mtp", "medusa", "dflash", "dspark", "hydra", "mlp_speculator"}
)
"""Methods whose draft reads hidden states of the target."""
SEVERAL_LAYER_METHODS: Final = frozenset({"eagle3", "dflash", "dspark"})
"""Those of them that read several layers, by ids."""
LARGER_BATCH: Final = 2.0
"""How far large batches must exceed small ones to be compared. Ratio."""
COPYING_METHODS: Final = ("ngram", "suffix", "lookahead", "lookup")
"""How the names of methods begin that copy drafts from the text."""


class Facts:
    """A judged case, in the words causes ask in."""

    def __init__(self, case: Case, findings: Sequence[Finding]) -> None:
        """``findings`` are all of the diagnosis."""
        self.case = case
        self.run = case.run
        self._of_other_runs = {
            finding.rule: finding for finding in findings if finding.scope in (Role.PREVIOUS, Role.BASELINE)
        }
        self._by_rule: dict[str, Finding] = {}
        for finding in findings:
            if finding.scope not in (Role.PREVIOUS, Role.BASELINE):
                self._by_rule.setdefault(finding.rule, finding)

    # -- findings ------------------------------------------------------------------------------

    def finding(self, rule: str) -> Finding | None:
        """The finding of a rule, if it fired."""
        return self._by_rule.get(rule)

    def finding_about_others(self, rule: str) -> Finding | None:
        """The finding of a rule about the runs it is compared with."""
        return self._of_other_runs.get(rule)

    def fired(self, *rules: str) -> bool:
        """Whether one of these rules fired."""
        return any(rule in self._by_rule for rule in rules)

    def serious(self, rule: str) -> bool:
        """Whether a rule fired with more than a note."""
        finding = self._by_rule.get(rule)
        return finding is not None and finding.severity >= Severity.WARNING

    @cached_property
    def symptoms(self) -> frozenset[Symptom]:
        """What is wrong. Notes are no symptoms, but for a step cost or printed rate that matters all the same."""
        found = {symptom for rule, symptom in _BY_RULE.items() if self.serious(rule)}
        drift = self.finding("ACC004")
        if drift is not None and drift.values["lost_share"] >= CLEAR_DRIFT:
            found.add(Symptom.DRIFTED)
        payoff = self.case.payoff_or_none
        share = payoff.loss_share_step_cost if payoff is not None else None
        if self.serious("PAY002") or (self.fired("PAY002") and (share or 0.0) >= MATTERING_SHARE):
            found.add(Symptom.COST)
        if self.printed_otherwise:
            found.add(Symptom.CONTRADICTED)
        if self.earlier_was_cheaper:
            found.add(Symptom.DEARER)
        return frozenset(found)

    @property
    def low_acceptance(self) -> bool:
        """Whether acceptance is low by any measure."""
        return bool(self.symptoms & LOW_ACCEPTANCE)

    @property
    def near_zero(self) -> bool:
        """Whether practically nothing is accepted."""
        return self.fired("ACC002")

    @property
    def costly(self) -> bool:
        """Whether a step costs too much."""
        return Symptom.COST in self.symptoms

    @property
    def works_in_part(self) -> bool:
        """Whether it works in one part of the traffic or of the units."""
        return self.fired("ACC006") or (self.fired("ACC007") and not self.low_acceptance)

    # -- configuration -------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self.run.record.engine

    @property
    def method(self) -> str:
        """The method's name, "" where none is known."""
        return self.run.method or ""

    @property
    def copies(self) -> bool:
        """Whether drafts are copied from the text, so that there is no draft model."""
        return self.method.startswith(COPYING_METHODS)

    @property
    def reads_hidden_states(self) -> bool:
        """Whether the draft is, or may be, fed hidden states of the target."""
        return self.method in HIDDEN_STATE_METHODS or self.method == "unknown"

    @property
    def reads_layers_by_id(self) -> bool:
        """Whether the draft is fed several layers of the target."""
        return self.method in SEVERAL_LAYER_METHODS

    def flag(self, name: str) -> Any:
        """What runs of a flag, ``None`` where it is not known."""
        return self.run.arguments.value(name)

    def count(self, *names: str) -> int:
        """The first of these flags that is a number, 1 where none is."""
        values = (self.flag(name) for name in names)
        return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), 1)

    @property
    def draft_config(self) -> ModelConfig | None:
        """The draft's config, where it was given."""
        return self.run.record.draft_config

    @property
    def target_config(self) -> ModelConfig | None:
        """The target's config, where it was given."""
        return self.run.record.target_config

    @property
    def target_name(self) -> str:
        """The target's path or name in lower case, "" where it is not known."""
        names = (self.flag(name) for name in ("model_path", "model", "model_tag", "served_model_name"))
        return next((name.lower() for name in names if isinstance(name, str)), "")

    @property
    def multimodal(self) -> bool:
        """Whether the target also takes images or sound."""
        target = self.target_config
        stated = target is not None and any(key in target.raw for key in ("vision_config", "audio_config"))
        return stated or any(mark in self.target_name for mark in ("-vl", "vision", "omni"))

    @property
    def split_prefill(self) -> bool:
        """Whether prefill and decode run on different servers."""
        mode = self.flag("disaggregation_mode")
        return mode not in (None, "null", "", "None") or bool(self.flag("kv_transfer_config"))

    @cached_property
    def announcements(self) -> list[str]:
        """What the engine said about settings that it changed."""
        return [event.evidence.text.strip() for event in self.run.record.events_of("announcement")]

    @property
    def experts(self) -> bool:
        """Whether the target is known to be a mixture of experts."""
        return self.case.mixture_of_experts is True

    @property
    def temperature(self) -> float | None:
        """Temperature of the traffic, if stated; the highest where there are several."""
        return max(self.run.temperatures, default=None)

    @property
    def cost_of_sampling(self) -> tuple[Pooled, Pooled] | None:
        """Acceptance of the greedy requests and of those that sample most, where request results tell both."""
        return self.run.traffic.greedy_and_sampled if self.run.traffic is not None else None

    @cached_property
    def mix_shift(self) -> MixShift | None:
        """What the mixture of traffic does to the fall since the earlier run, where request results of both tell."""
        before = self.previous.traffic if self.previous is not None else None
        now = self.run.traffic
        return now.shift_from(before) if now is not None and before is not None else None

    # -- other runs ----------------------------------------------------------------------------

    def _view(self, role: Role) -> RunView | None:
        return next((view for view in self.case.views if view.role is role), None)

    @cached_property
    def previous(self) -> RunView | None:
        """The earlier run."""
        return self._view(Role.PREVIOUS)

    @cached_property
    def baseline(self) -> RunView | None:
        """The run without speculation."""
        return self._view(Role.BASELINE)

    @cached_property
    def differences(self) -> list[str]:
        """What differs from the earlier run, in words."""
        return argument_differences(self.previous, self.run) if self.previous is not None else []

    def changed(self, name: str) -> list[str]:
        """The differences of a flag, or of what is named by a word: ``release``, ``draft config``."""
        return [text for text in self.differences if f"{text} ".startswith((f"{words.flag(name)} ", f"{name} "))]

    @property
    def earlier_was_better(self) -> bool:
        """Whether the same deployment accepted more before."""
        return self.fired("ACC003")

    @cached_property
    def earlier_was_cheaper(self) -> bool:
        """Whether a step took clearly less time in the earlier run, at equal depth and load."""
        if self.previous is None or self.previous.depth != self.run.depth:
            return False
        loads = self.previous.value("running_requests"), self.running
        steps = self.previous.quantities.get("step_seconds"), self.run.quantities.get("step_seconds")
        if not loads[0] or not loads[1] or steps[0] is None or steps[1] is None:
            return False
        if abs(loads[1] / loads[0] - 1) > self.case.thresholds.load_difference:
            return False
        rose = float(steps[1].value) - float(steps[0].value)
        noise = math.hypot(steps[0].half or 0.0, steps[1].half or 0.0)
        return rose > max(noise, CLEARLY_DEARER * float(steps[0].value))

    @cached_property
    def accepted_alike(self) -> bool:
        """Whether the earlier run accepted as much at the same depth, within both intervals."""
        before, now = (self.previous.pooled if self.previous is not None else None), self.run.pooled
        if self.previous is None or before is None or now is None or self.previous.depth != self.run.depth:
            return False
        noise = math.hypot(before.interval.half, now.interval.half)
        return math.isfinite(noise) and abs(before.accepted_per_step - now.accepted_per_step) <= noise

    @cached_property
    def cost_alike(self) -> bool:
        """Whether a step took as long in the earlier run, within the practical allowance."""
        steps = (self.previous.value("step_seconds") if self.previous is not None else None), self.value("step_seconds")
        return steps[0] is not None and steps[1] is not None and abs(steps[1] / steps[0] - 1) <= CLEARLY_DEARER

    # -- figures -------------------------------------------------------------------------------

    def value(self, key: str) -> float | None:
        """A quantity of the run."""
        return self.run.value(key)

    @cached_property
    def kept(self) -> float | None:
        """Share of the accepted drafts kept, of what validation promises or else of the earlier run."""
        promised = self.value("retained_share")
        if promised is not None and self.fired("ACC001"):
            return promised
        fell = self.finding("ACC003")
        return 1 - float(fell.values["lost_share"]) if fell is not None else promised

    @property
    def lost(self) -> bool:
        """Whether so little is kept as only faults of wiring or loading leave."""
        return self.near_zero or (self.kept is not None and self.kept < LOST)

    @property
    def partly_kept(self) -> bool:
        """Whether as much is kept as other traffic leaves."""
        return not self.lost and self.kept is not None and self.kept < PARTLY_KEPT

    @property
    def counted_positions(self) -> tuple[float, ...]:
        """Shares of steps by accepted position, where counted."""
        return self.run.pooled.prefix if self.run.pooled is not None else ()

    @property
    def cliff_position(self) -> int | None:
        """The position at which acceptance breaks off, ``None`` where it does not."""
        cliff = self.finding("ACC005")
        return int(cliff.values["position"]) if cliff is not None else None

    @property
    def first_position_fails(self) -> bool:
        """Whether already the first draft is accepted far less often than validated."""
        return self.cliff_position == 1

    @property
    def later_positions_fail(self) -> bool:
        """Whether acceptance breaks off after a good first draft."""
        return (self.cliff_position or 0) > 1

    @property
    def running(self) -> float | None:
        """Mean running requests of a unit."""
        return self.value("running_requests")

    @property
    def verified_at_once(self) -> float | None:
        """Tokens in one verification: running requests times width."""
        return self.running * self.run.width if self.running is not None and self.run.width else None

    @property
    def printed_otherwise(self) -> bool:
        """Whether the printed rate follows another formula than the release that the log is of."""
        printed = self.run.printed
        if printed is None or printed.definition is None:
            return False
        usual = usual_definition(self.engine, self.run.record.engine_version)
        return bool(self.run.record.events_of("release-contradicted")) or (
            usual is not None and usual not in printed.ties
        )

    @cached_property
    def lost_at_large_batch(self) -> float | None:
        """Share of the accepted drafts lost from small to large batches, 0 where none is beyond chance; ``None`` where unknown."""
        if not self.run.record.windows:
            return None
        frame = self.run.frame
        rows = frame[frame["counted"] & frame["verify_steps"].gt(0) & frame["running_requests"].gt(0)]
        if len(rows) < 2 * self.case.thresholds.few_windows:
            return None
        small = rows["running_requests"] <= rows["running_requests"].quantile(1 / 3)
        large = rows["running_requests"] >= rows["running_requests"].quantile(2 / 3)
        if rows["running_requests"][large].median() < LARGER_BATCH * rows["running_requests"][small].median():
            return None
        here = [rows["accepted_tokens"][part].sum() / rows["verify_steps"][part].sum() for part in (small, large)]
        fell = 1 - here[1] / here[0] if here[0] > 0 else 0.0
        return float(fell) if fell >= self.case.thresholds.regression_share else 0.0
