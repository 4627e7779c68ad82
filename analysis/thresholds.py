"""The limits at which rules speak, each with its unit and origin, and each settable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Named limits of the rules.

    Attributes:
        idle_factor: a window whose own clock exceeds this many times the median began before
            the load did. Ratio. Origin: reference rules, "which windows count".
        steady_batch_change: largest change of running requests between neighbours in a steady
            stretch. Ratio. Origin: theory section 5.2.
        few_windows: windows an interval needs. Count. Origin: theory section 4.3.
        near_zero_accepted: accepted drafts per step at or below which acceptance is near zero.
            Tokens per step. Origin: bug reports, theory section 2.7 (0.00 to 0.2 of the promised).
        near_zero_steps: verify steps that must stand behind it. Count.
        regression_share: smallest loss against an earlier run that is worth a finding. Ratio of
            accepted per step. Origin: theory section 4.6 (10% is the practical allowance).
        loss_speedup, critical_speedup: speed-ups at or below which speculation is slower, and
            clearly so. Ratio. Origin: noise of public benchmark tables, about 5%.
        step_cost_factor: step cost over the usual one that is called high. Ratio. Origin: the
            scatter of the published step costs, theory section 5.2.
        load_difference: largest difference of running requests between comparable runs. Ratio.
        unread_share: share of unread engine lines that is worth a note. Ratio.
        shallow_width: verify width at or below which a draft is used at its shallowest. Tokens.
        drift_windows: windows a drift within a log takes to be seen. Count. Origin: reference rules.
        cliff_factor: conditional acceptance against the position before, below which it breaks off. Ratio.
        cliff_reach: share of steps that must reach a position for it to be judged. Ratio.
        context_ratio: how far long contexts must exceed short ones to be compared. Ratio.
        context_retained: share of accepted drafts that long contexts must lose less than. Ratio.
        context_significance: largest p-value of the rank correlation with the context.
        rare_coverage, rare_acceptance, rare_passes: coverage below which drafts are rarely made, at
            least this acceptance, over at least so many passes. Ratio, ratio, count.
        wasteful_drafted, wasteful_rate: drafted tokens a step from which, and accepted share below
            which, a draft is wasteful. Tokens, ratio. Origin: theory section 2.6.
        better_depth_gain: speed-up of a shorter draft over this one that is worth a finding. Ratio.
        queue_share, cache_full: share of windows with a queue, and cache usage, that mean that
            capacity is the limit. Ratios.
        reuse_loss: fall of the cached share of prompts that is a collapse. Difference of ratios.
        schedule_idle_share, schedule_loss: share of windows without drafts, and their loss of
            throughput, at which a schedule costs. Ratios.
        graphless_share: share of windows without a captured graph that matters. Ratio.
    """

    idle_factor: float = 3.0
    steady_batch_change: float = 0.20
    few_windows: int = 12
    near_zero_accepted: float = 0.10
    near_zero_steps: float = 200
    regression_share: float = 0.10
    loss_speedup: float = 0.95
    critical_speedup: float = 0.80
    step_cost_factor: float = 1.25
    load_difference: float = 0.20
    unread_share: float = 0.02
    shallow_width: int = 2
    drift_windows: int = 36
    cliff_factor: float = 0.6
    cliff_reach: float = 0.10
    context_ratio: float = 2.0
    context_retained: float = 0.7
    context_significance: float = 0.01
    rare_coverage: float = 0.5
    rare_acceptance: float = 0.5
    rare_passes: float = 50
    wasteful_drafted: float = 16
    wasteful_rate: float = 0.10
    better_depth_gain: float = 1.05
    queue_share: float = 0.5
    cache_full: float = 0.90
    reuse_loss: float = 0.20
    schedule_idle_share: float = 0.20
    schedule_loss: float = 0.10
    graphless_share: float = 0.10
