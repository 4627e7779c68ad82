"""The inputs of rules: the judged run, what it is compared with, and what follows from both.

A rule's ``check`` names attributes of :class:`Case` as its parameters. An attribute that cannot
be formed raises :class:`analysis.base.CannotLook` with the reason and what would supply it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from analysis.base import cannot_look
from analysis.benchmarks import with_windows_of_rows
from analysis.contradictions import Contradiction, contradictions
from analysis.plain import Throughputs, throughputs
from analysis.resolve import Resolution
from analysis.theory.depth import BestDepth, best_depth, split_step_cost
from analysis.theory.payoff import PayOff, pay_off, usual_step_cost
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Finding
from collector.domain.quantities import Estimate
from collector.domain.runs import Bundle, Reading, Role, RunRecord, Watched

if TYPE_CHECKING:
    import pandas as pd

    from analysis.figures import Pooled
    from analysis.printed import PrintedRate
    from analysis.promise import Promise
    from analysis.published import PublishedRange
    from analysis.theory.divergence import Divergence
    from analysis.watching import Drift


class Case:
    """Everything rules may read about one judged run."""

    def __init__(self, bundle: Bundle, thresholds: Thresholds | None = None) -> None:
        """Views are formed on demand; ``bundle`` is not changed."""
        self.thresholds = thresholds or Thresholds()
        self.bundle = bundle
        self.run = RunView(with_windows_of_rows(bundle.subject), Role.SUBJECT, self.thresholds)
        self._others = {
            role: RunView(record, role, self.thresholds, judged=self.run)
            for role, record in ((Role.PREVIOUS, bundle.previous), (Role.BASELINE, bundle.baseline))
            if record is not None
        }
        self._findings: list[Finding] = []
        self._derive()

    # -- runs ---------------------------------------------------------------------------------

    @property
    def views(self) -> tuple[RunView, ...]:
        """The judged run first, then the others."""
        return (self.run, *self._others.values())

    @property
    def speculating(self) -> RunView:
        """The judged run, if it speculates."""
        if self.run.method is None:
            if self.run.drafting.known:
                raise cannot_look("the run does not speculate")
            raise cannot_look("whether the run speculates is not known", "--launch FILE")
        return self.run

    @property
    def previous(self) -> RunView:
        """The earlier run of the same deployment."""
        view = self._others.get(Role.PREVIOUS)
        if view is None:
            raise cannot_look("no earlier run to compare with", "--previous LOG")
        return view

    @property
    def baseline(self) -> RunView:
        """The run without speculation."""
        view = self._others.get(Role.BASELINE)
        if view is None:
            raise cannot_look("no run without speculation", "--baseline LOG")
        return view

    # -- arguments and models -----------------------------------------------------------------

    @property
    def args(self) -> Arguments:
        """Arguments of the judged run, with predictions."""
        if not self.run.arguments:
            raise cannot_look("neither the launch command nor the engine's argument line was seen", "--launch FILE")
        return self.run.arguments

    @property
    def compared_args(self) -> Arguments:
        """Arguments of which some were asked for and some are known to run or predicted."""
        args = self.args
        if not args.any_requested:
            raise cannot_look("the launch command is not known", "--launch FILE")
        if not args.any_effective and self.run.resolution is None:
            raise cannot_look("what the engine runs with was not seen", "a log that begins at the start of the server")
        return args

    @property
    def resolution(self) -> Resolution:
        """What the engine is predicted to make of the command."""
        if self.run.resolution is None:
            raise cannot_look("the launch command is not known", "--launch FILE")
        return self.run.resolution

    @property
    def draft(self) -> ModelConfig:
        """The draft's config.json."""
        if self.run.record.draft_config is None:
            raise cannot_look("the draft's config.json was not given", "--draft-config FILE")
        return self.run.record.draft_config

    @property
    def target(self) -> ModelConfig:
        """The target's config.json."""
        if self.run.record.target_config is None:
            raise cannot_look("the target's config.json was not given", "--target-config FILE")
        return self.run.record.target_config

    @property
    def events(self) -> RunRecord:
        """The judged run's record, for its events."""
        return self.run.record

    @property
    def readings(self) -> Sequence[Reading]:
        """What was made of each source of the judged run."""
        readings = [reading for reading in self.bundle.readings if reading.engine_lines or reading.torn_samples]
        if not readings:
            raise cannot_look("no engine log was read", "a log of the server")
        return readings

    # -- acceptance ---------------------------------------------------------------------------

    @property
    def windows(self) -> pd.DataFrame:
        """All windows of the judged run."""
        if not self.run.record.windows:
            raise cannot_look("no decode windows were read", "a log that covers traffic")
        return self.run.frame

    @property
    def pooled(self) -> Pooled:
        """Pooled acceptance of the judged run, contradicted or not."""
        _ = self.speculating
        if self.run.pooled is None:
            raise cannot_look("no window with acceptance figures was read", "a log or scrape that covers traffic")
        return self.run.pooled

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """Figures of the judged run that contradict each other."""
        return contradictions(self.run) if self.run.method is not None else []

    @property
    def acceptance(self) -> Pooled:
        """Pooled acceptance, where the figures do not contradict each other."""
        pooled = self.pooled
        if self.contradictions:
            raise cannot_look(f"the figures contradict each other: {self.contradictions[0].title} (MEA003)")
        return pooled

    @property
    def watched(self) -> Watched | None:
        """Where the detectors of the judged run and of its fleet stand; ``None`` for a run that is not watched."""
        return self.bundle.watched

    @cached_property
    def drift(self) -> Drift | None:
        """Whether acceptance drifts away from what is normal; ``None`` while that is not known."""
        from analysis.drifting import acceptance_drift

        return acceptance_drift(self.run, self.watched)

    @property
    def depth(self) -> int:
        """Draft depth of the judged run."""
        if self.run.depth is None:
            raise cannot_look("the draft depth is not known", "--launch FILE")
        return self.run.depth

    @property
    def printed(self) -> PrintedRate:
        """What the printed rate means."""
        if self.run.printed is None:
            raise cannot_look("the engine prints no accept rate here")
        return self.run.printed

    @cached_property
    def _promise(self) -> Promise | None:
        validation = self.run.record.validation
        if validation is None or not self.run.depth:
            return None
        from analysis.promise import promise_of

        return promise_of(validation, self.run.depth, self.run.temperatures)

    @property
    def promise(self) -> Promise:
        """What the validation figures imply at this depth."""
        if self.run.record.validation is None:
            raise cannot_look("no validation figure of the draft", "--validation-accuracy X or --training FILE")
        if self._promise is None:
            raise cannot_look("the draft depth is not known", "--launch FILE")
        return self._promise

    @property
    def earlier_accepted_per_step(self) -> float | None:
        """Accepted per step of the earlier run, ``None`` without one."""
        view = self._others.get(Role.PREVIOUS)
        return view.pooled.accepted_per_step if view is not None and view.pooled is not None else None

    @property
    def earlier_draft(self) -> ModelConfig | None:
        """The draft's config in the earlier run, ``None`` where it is not known."""
        view = self._others.get(Role.PREVIOUS)
        return view.record.draft_config if view is not None else None

    @property
    def case(self) -> Case:
        """The case itself, for rules with optional inputs."""
        return self

    @cached_property
    def published(self) -> PublishedRange | None:
        """What others have published for this method and depth, as context."""
        from analysis.published import nearest, task_kind

        drafting = self.run.drafting
        method = "mtp" if drafting.one_module else drafting.method
        tasks = {task_kind(row.dataset) for row in self.run.record.results if row.speculating}
        return nearest(method, self.run.depth, tasks.pop() if len(tasks) == 1 else "", chain=drafting.chain)

    @cached_property
    def divergence(self) -> Divergence | None:
        """The divergence test against validation; ``None`` without a promise or without acceptance."""
        if self._promise is None or self.run.pooled is None or self._promise.expected_length <= 1:
            return None
        if self.contradictions:
            return None
        return self._promise.test(self.run.pooled)

    # -- pay-off ------------------------------------------------------------------------------

    @property
    def mixture_of_experts(self) -> bool | None:
        """Whether the target routes to experts; ``None`` without its config."""
        target = self.run.record.target_config
        return None if target is None else target.experts is not None

    @cached_property
    def throughputs(self) -> Throughputs | None:
        """Throughput with and without drafts at equal load, from a run or a table; ``None`` where one is not known."""
        baseline = self._others.get(Role.BASELINE)
        return throughputs(self.run, baseline, self.thresholds.few_windows, self.thresholds.load_difference)

    @cached_property
    def _payoff(self) -> PayOff | None:
        pooled, both = self.run.pooled, self.throughputs
        length = pooled.length if pooled is not None else both.length if both is not None else None
        if both is None or length is None or not self.run.depth:
            return None
        moe = self.mixture_of_experts
        return pay_off(
            length=length,
            throughput=both.speculative,
            baseline_throughput=both.plain,
            depth=self.run.depth,
            realistic_length=self._promise.realistic_length if self._promise else None,
            usual_step_cost=None if moe is None else usual_step_cost(self.run.depth, moe),
            running=None if both.relative else self.run.value("running_requests"),
            throughput_half=both.half,
            baseline_half=both.plain_half,
        )

    @property
    def payoff(self) -> PayOff:
        """Speed-up, step cost and what each repair would give."""
        _ = self.speculating
        if self._payoff is None:
            if Role.BASELINE not in self._others:
                raise cannot_look("no run without speculation", "--baseline LOG")
            raise cannot_look(
                "run and baseline give no comparable throughput",
                "--baseline LOG of a run without speculation under load",
            )
        return self._payoff

    @property
    def gain(self) -> Throughputs:
        """Throughput with and without drafts, also where length or depth are missing that tell what a step costs."""
        if self.throughputs is None:
            _ = self.payoff  # says what is missing
        assert self.throughputs is not None
        return self.throughputs

    @cached_property
    def best_depth(self) -> BestDepth | None:
        """The depth that would pay most; ``None`` where acceptance or step cost is not known.

        Positions are the counted ones, else those that one constant acceptance implies. The step
        cost is split by the slope of the target's class; without a baseline it is the usual one.
        """
        pooled, depth = self.run.pooled, self.run.depth
        rate = self.run.value("conditional_acceptance_rate")
        moe = self.mixture_of_experts
        if pooled is None or not depth or rate is None or (self._payoff is None and moe is None):
            return None
        prefix = pooled.prefix[:depth] or tuple(rate**i for i in range(1, depth + 1))
        ratio = self._payoff.step_cost_ratio if self._payoff else usual_step_cost(depth, moe is not False)
        slope = usual_step_cost(2, moe is not False) - usual_step_cost(1, moe is not False)
        verify_cost, draft_cost = split_step_cost(ratio, depth, slope)
        return best_depth(prefix, draft_cost, verify_cost, current=depth, longest=depth)

    @property
    def payoff_or_none(self) -> PayOff | None:
        """The same, ``None`` where it cannot be formed."""
        return self._payoff

    # -- findings so far ----------------------------------------------------------------------

    @property
    def findings(self) -> Sequence[Finding]:
        """Findings of the rules that ran before (those a rule ``needs``)."""
        return self._findings

    def add(self, findings: Iterable[Finding]) -> None:
        """Make findings visible to the rules that follow."""
        self._findings.extend(findings)

    def _derive(self) -> None:
        """Quantities that follow from validation and baseline."""
        quantities = self.run.quantities
        if self._promise is not None:
            quantities |= self._promise.quantities(self.run.pooled)
        payoff = self._payoff
        if payoff is None:
            if self.throughputs is not None and self.run.method is not None:
                quantities["speedup"] = Estimate(self.throughputs.ratio)
            return
        quantities["speedup"] = Estimate(payoff.speedup, payoff.speedup_low, payoff.speedup_high)
        quantities["step_cost_ratio"] = Estimate(payoff.step_cost_ratio)
        quantities["break_even_acceptance_length"] = Estimate(payoff.break_even_length)
        if self.best_depth is not None:
            quantities["best_draft_depth"] = Estimate(self.best_depth.depth, note="draft cost by class, assumed")
        if payoff.break_even_rate is not None:
            quantities["break_even_conditional_acceptance_rate"] = Estimate(payoff.break_even_rate)
        if payoff.loss_share_acceptance is not None:
            assumed = "against an assumed usual step cost"
            quantities["loss_share_acceptance"] = Estimate(payoff.loss_share_acceptance, note=assumed)
            quantities["loss_share_step_cost"] = Estimate(payoff.loss_share_step_cost, note=assumed)
