"""The inputs of rules: the judged run, what it is compared with, and what follows from both.

A rule's ``check`` names attributes of :class:`Case` as its parameters. An attribute that cannot
be formed raises :class:`analysis.base.CannotLook` with the reason and what would supply it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

import pandas as pd

from analysis.base import cannot_look
from analysis.drafting import Drafting, assume_from, drafting_of, infer_width
from analysis.figures import (
    Pooled,
    acceptance_quantities,
    configuration_quantities,
    load_quantities,
    pooled_acceptance,
    prompt_quantities,
)
from analysis.frame import window_frame
from analysis.printed import PrintedRate, printed_rate
from analysis.promise import Promise, promise_of
from analysis.resolve import Resolution, resolve_range
from analysis.theory.depth import BestDepth, best_depth, split_step_cost
from analysis.theory.divergence import Divergence
from analysis.theory.payoff import PayOff, pay_off, usual_step_cost
from analysis.thresholds import Thresholds
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.evidence import Evidence
from collector.domain.findings import Finding
from collector.domain.quantities import Estimate
from collector.domain.runs import Bundle, Reading, Role, RunRecord
from collector.domain.versions import ReleaseRange

ALWAYS_PREDICTED = frozenset({"disable_overlap_schedule", "enable_two_batch_overlap"})
"""Flags that rules ask about even where nobody gave them and no step touches them."""


@dataclass
class RunView:
    """One run as the analysis sees it: arguments with predictions, windows as a frame, quantities.

    ``judged`` is the subject's view, from which a previous or baseline run without drafting
    arguments takes over method and depth (marked assumed).
    """

    record: RunRecord
    role: Role
    thresholds: Thresholds = field(default_factory=Thresholds)
    judged: RunView | None = None
    prediction_fault: str = ""
    rules_by_flag: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def releases(self) -> ReleaseRange:
        """The releases this run may be: the stated one, else what its lines allow."""
        version = self.record.engine_version
        return ReleaseRange(version, version) if version is not None else self.record.release_range

    @cached_property
    def resolution(self) -> Resolution | None:
        """What the engine is predicted to make of the launch command; ``None`` without one."""
        if not self.record.arguments.any_requested:
            return None
        launch = self.record.launch
        try:
            return resolve_range(
                self.record.engine,
                self.record.arguments.requested(),
                releases=self.releases,
                environment=launch.environment if launch else {},
                draft=self.record.draft_config,
                target=self.record.target_config,
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours must not hide what the engine itself said
            self.prediction_fault = f"{type(error).__name__}: {error}"
            return None

    @cached_property
    def arguments(self) -> Arguments:
        """Asked, predicted and effective arguments."""
        arguments = self.record.arguments
        if self.resolution is None:
            return arguments
        touched = {change.flag for change in self.resolution.changes} | set(arguments)
        shown = {
            name: value
            for name, value in self.resolution.effective.items()
            if name in touched or name.startswith("speculative") or name in ALWAYS_PREDICTED
        }
        return arguments.with_predicted(shown)

    @cached_property
    def on_cpu(self) -> bool:
        """Whether the engine runs without a GPU, where graphs and speeds mean something else."""
        return bool(self.arguments.value("device") == "cpu")

    @cached_property
    def drafting(self) -> Drafting:
        """Method, depth, width and branching."""
        stated = drafting_of(self.record.engine, self.arguments)
        lengths = self.frame["printed_length"].to_numpy(dtype=float)
        rates = self.frame["printed_rate"].to_numpy(dtype=float)
        if stated.known or not pd.notna(lengths).any():
            return stated
        if self.judged is not None and self.judged.drafting.method is not None:
            return assume_from(self.judged.drafting, lengths, rates)
        inferred = infer_width(lengths, rates)
        if inferred is None:
            return Drafting(known=False, method="unknown")
        width, definition = inferred
        return Drafting(
            method="unknown",
            depth=width - 1,
            width=width,
            topk=1,
            assumed=True,
            note=f"inferred from the printed pairs: rate = {definition}; taken to be a chain",
        )

    @property
    def method(self) -> str | None:
        """The method's name, ``None`` where the run does not speculate."""
        return self.drafting.method

    @property
    def depth(self) -> int | None:
        """Longest run of drafts, k."""
        return self.drafting.depth

    @property
    def width(self) -> int | None:
        """Tokens verified a step, n, the root included."""
        return self.drafting.width

    @property
    def topk(self) -> int | None:
        """Branching; 1 is a chain."""
        return self.drafting.topk

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All windows; see :func:`analysis.frame.window_frame`."""
        on_cpu = self.record.arguments.value("device") == "cpu"
        return window_frame(self.record.engine, self.record.windows, self.thresholds, on_cpu=on_cpu)

    @cached_property
    def pooled(self) -> Pooled | None:
        """Acceptance over the windows that count; ``None`` where nothing was verified."""
        return pooled_acceptance(self.frame, self.drafting)

    @cached_property
    def printed(self) -> PrintedRate | None:
        """What the engine's printed rate means here; ``None`` where it prints none."""
        return printed_rate(self.frame, self.drafting)

    @cached_property
    def unit_frames(self) -> dict[str, pd.DataFrame]:
        """The windows of each named unit, where there are several."""
        names = [name for name in self.frame["unit"].unique() if name]
        if len(names) < 2 and self.frame["unit"].nunique() < 2:
            return {}
        return {name: self.frame[self.frame["unit"] == name] for name in sorted(names, key=_natural)}

    @cached_property
    def unit_pooled(self) -> dict[str, Pooled]:
        """Acceptance of each unit that verified anything."""
        pooled = {name: pooled_acceptance(frame, self.drafting) for name, frame in self.unit_frames.items()}
        return {name: item for name, item in pooled.items() if item is not None}

    @cached_property
    def units(self) -> dict[str, dict[str, Estimate]]:
        """Quantities of each unit."""
        return {
            name: {
                **(acceptance_quantities(self.unit_pooled[name], self.drafting) if name in self.unit_pooled else {}),
                **load_quantities(frame),
            }
            for name, frame in self.unit_frames.items()
        }

    @cached_property
    def measured(self) -> dict[str, Estimate]:
        """Quantities that this run's own inputs give."""
        figures = configuration_quantities(self.drafting)
        if self.pooled is not None:
            figures |= acceptance_quantities(self.pooled, self.drafting)
        figures |= load_quantities(self.frame)
        figures |= prompt_quantities(self.record.prefills)
        if self.printed is not None and self.printed.definition is not None:
            figures["printed_rate_definition"] = Estimate(self.printed.definition)
        return figures

    @cached_property
    def quantities(self) -> dict[str, Estimate]:
        """All quantities; the case adds what follows from validation and baseline."""
        return dict(self.measured)

    def rule_of(self, flag: str) -> str | None:
        """The rule that speaks about a flag, if one does."""
        return self.rules_by_flag.get(flag)

    def window_evidence(self, row: int) -> Evidence | None:
        """The line behind one row of the frame; rebuilt from its figures where the text is no longer at hand."""
        window = self.frame.loc[row].to_dict()
        if not window["line"]:
            return None
        if self.record.line_text is not None and (text := self.record.line_text(int(window["position"]))):
            return Evidence(self.record.source, int(window["line"]), text)
        parts = [f"{label}: {window[key]:g}" for key, label in _SHOWN if window[key] == window[key]]
        unit = f" {window['unit']}" if window["unit"] else ""
        when = datetime.fromtimestamp(window["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        return Evidence(self.record.source, int(window["line"]), f"[{when}{unit}] " + ", ".join(parts))

    @property
    def first_and_last(self) -> list[Evidence | None]:
        """The lines of the first and last window that count."""
        rows = self.frame.index[self.frame["counted"] & self.frame["verify_steps"].gt(0)]
        return [self.window_evidence(int(row)) for row in rows[[0, -1]]] if len(rows) > 1 else []

    @property
    def first_and_last_plain(self) -> list[Evidence | None]:
        """The lines of the first and last steady window of a run without speculation."""
        rows = self.frame.index[self.frame["steady"] & self.frame["generation_throughput"].gt(0)]
        return [self.window_evidence(int(row)) for row in rows[[0, -1]]] if len(rows) > 1 else []

    def figures(self, *keys: str) -> dict[str, float | None]:
        """Several quantities' values by key, for the values of a finding; unknown ones are left out."""
        return {key: value for key in keys if (value := self.value(key)) is not None}

    def value(self, key: str) -> float | None:
        """The value of a numeric quantity, ``None`` if it is not known."""
        estimate = self.quantities.get(key)
        return None if estimate is None or isinstance(estimate.value, str) else float(estimate.value)


_SHOWN = (
    ("running_requests", "#running-req"),
    ("printed_length", "accept len"),
    ("printed_rate", "accept rate"),
    ("generation_throughput", "gen throughput (token/s)"),
)


def _natural(name: str) -> list[tuple[int, str]]:
    import re

    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


class Case:
    """Everything rules may read about one judged run."""

    def __init__(self, bundle: Bundle, thresholds: Thresholds | None = None) -> None:
        """Views are formed on demand; ``bundle`` is not changed."""
        self.thresholds = thresholds or Thresholds()
        self.bundle = bundle
        self.run = RunView(bundle.subject, Role.SUBJECT, self.thresholds)
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
        if self.run.frame.empty:
            raise cannot_look("no decode windows were read", "a log that covers traffic")
        return self.run.frame

    @property
    def acceptance(self) -> Pooled:
        """Pooled acceptance of the judged run."""
        _ = self.speculating
        if self.run.pooled is None:
            raise cannot_look("no window with acceptance figures was read", "a log or scrape that covers traffic")
        return self.run.pooled

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
        return promise_of(validation, self.run.depth, self.run.record.temperature)

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
    def divergence(self) -> Divergence | None:
        """The divergence test against validation; ``None`` without a promise or without acceptance."""
        if self._promise is None or self.run.pooled is None or self._promise.expected_length <= 1:
            return None
        return self._promise.test(self.run.pooled)

    # -- pay-off ------------------------------------------------------------------------------

    @property
    def mixture_of_experts(self) -> bool | None:
        """Whether the target routes to experts; ``None`` without its config."""
        target = self.run.record.target_config
        return None if target is None else target.experts is not None

    @cached_property
    def _payoff(self) -> PayOff | None:
        baseline = self._others.get(Role.BASELINE)
        pooled = self.run.pooled
        throughput = self.run.measured.get("generation_throughput")
        if baseline is None or pooled is None or throughput is None or not self.run.depth:
            return None
        plain = baseline.measured.get("generation_throughput")
        if plain is None or baseline.pooled is not None:
            return None
        moe = self.mixture_of_experts
        realistic = self._promise.realistic_length if self._promise else None
        rate, interval = float(throughput.value), pooled.interval
        return pay_off(
            length=pooled.length,
            throughput=rate,
            baseline_throughput=float(plain.value),
            depth=self.run.depth,
            realistic_length=realistic,
            usual_step_cost=None if moe is None else usual_step_cost(self.run.depth, moe),
            running=self.run.value("running_requests"),
            # At a given step cost the throughput scatters as the length does.
            throughput_half=rate * interval.half / pooled.length,
        )

    @property
    def payoff(self) -> PayOff:
        """Speed-up, step cost and what each repair would give."""
        _ = self.acceptance
        _ = self.baseline
        if self._payoff is None:
            raise cannot_look(
                "run and baseline give no comparable throughput",
                "--baseline LOG of a run without speculation under load",
            )
        return self._payoff

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
