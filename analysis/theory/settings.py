"""Every threshold of the theory, with its unit and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds that a user may set; the defaults are measured or published.

    Attributes:
        printed_rounding: engines print two decimals, so a length or rate is known to 0.005.
        position_rounding: per-position shares are printed to three decimals.
        healthy_factors: share of promised drafts that a healthy deployment delivers at depth
            1 to 7 (even depths interpolated). Source: public per-position acceptance traces of
            Llama-3.1-8B with EAGLE drafts, GSM8K, CNN, ShareGPT, InstructCoder (arXiv 2601.11580);
            the lowest of the four data sets, rounded.
        unknown_depth: the depth whose healthy factor stands in where the depth is not known.
        mild_temperature: up to this sampling temperature ``mild_temperature_factor`` holds.
        mild_temperature_factor, full_temperature_factor: share of accepted drafts kept when
            sampling at up to ``mild_temperature``, and at temperature 1. Source: nebius draft
            model cards, seven drafts each, and DeepSeek MTP.
        tolerance: how far below a healthy deployment one may fall before it counts as divergent.
        confidence: coverage that every interval aims at.
        minimum_windows: fewer windows than this are judged with the conservative interval.
        minimum_requests: fewer requests than this make the request-level interval approximate.
        assumed_design_effect, assumed_request_spread: what the conservative interval assumes:
            variance over binomial, and standard deviation of accepted per step between requests.
            Source: the traces named above (worst usual case; chat at b = 1 is beyond it).
        request_spread_share, request_length_dispersion: where requests outlast many windows, the
            interval is at least what requests alone would make it: their spread as a share of
            accepted per step, and one plus the squared variation of their lengths. Source: the
            traces (spread 0.13 to 0.33 of the mean) and the coverage study of the theory page.
        replica_margin: a replica below this share of its siblings is worth a word.
        false_discovery_rate: Benjamini-Hochberg q for replicas.
        drift_cap, drift_allowance, drift_relative_allowance, drift_threshold: the block CUSUM
            (z cap, K, K relative to the mean over sigma, h). Source: resampled traces, no alarm
            in 132,000 blocks.
        drift_largest_allowance: K stays at or below this; a quieter baseline is taken to spread
            more than it did, since an allowance near the z cap would make the detector blind.
        drift_block_requests: request-equivalents pooled into one block.
        drift_steps_per_request: steps of a request where the mean is unknown (long-tailed chat).
        drift_baseline_blocks: blocks that make the baseline.
        drift_autocorrelation_cap: lag-1 autocorrelation beyond this is not believed.
        drift_load_tolerance: blocks whose load differs by more than this share from the baseline's
            say nothing about throughput at equal load.
        drift_dating_penalty: PELT's penalty in units of log(n) times the variance.
        usual_cost_dense, usual_cost_experts: step cost at depth k as (intercept, slope per
            position): the middle of published cases of the class. An assumption, shown as one.
        usual_cost_depth_cap: depths beyond this are priced as this.
        depth_extension: how many positions beyond the measured ones may be extrapolated.
        depth_indifference: relative speed-up below which the smaller of two depths is better.
    """

    printed_rounding: float = 0.005
    position_rounding: float = 0.0005
    healthy_factors: tuple[float, ...] = (0.96, 0.92, 0.87, 0.84, 0.82, 0.80, 0.78)
    unknown_depth: int = 5
    mild_temperature: float = 0.7
    mild_temperature_factor: float = 0.9
    full_temperature_factor: float = 0.83
    tolerance: float = 0.9
    confidence: float = 0.95
    minimum_windows: int = 12
    minimum_requests: int = 10
    assumed_design_effect: float = 25.0
    assumed_request_spread: float = 0.5
    request_spread_share: float = 0.3
    request_length_dispersion: float = 1.9
    replica_margin: float = 0.95
    false_discovery_rate: float = 0.10
    drift_cap: float = 3.0
    drift_allowance: float = 0.75
    drift_relative_allowance: float = 0.10
    drift_largest_allowance: float = 1.5
    drift_threshold: float = 8.0
    drift_block_requests: float = 20.0
    drift_steps_per_request: float = 260.0
    drift_baseline_blocks: int = 50
    drift_autocorrelation_cap: float = 0.6
    drift_load_tolerance: float = 0.20
    drift_dating_penalty: float = 3.0
    usual_cost_dense: tuple[float, float] = (1.15, 0.07)
    usual_cost_experts: tuple[float, float] = (1.45, 0.11)
    usual_cost_depth_cap: float = 8.0
    depth_extension: int = 2
    depth_indifference: float = 0.03


DEFAULTS: Final = Settings()
"""The settings where nobody set any."""
