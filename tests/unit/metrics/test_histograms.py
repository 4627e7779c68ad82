"""Latencies out of histograms, against a direct count of what was observed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.metrics import engines
from collector.metrics.exposition import Sample
from collector.metrics.histograms import latencies
from tests.unit.theory.repeated import checks

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, math.inf)
NAMES = {"time_to_first_token_seconds": "ttft"}


def histogram(observed: list[float], name: str = "ttft", **labels: str) -> list[Sample]:
    return [
        *(
            Sample(f"{name}_bucket", {**labels, "le": "+Inf" if math.isinf(bound) else str(bound)}, float(sum(o <= bound for o in observed)))
            for bound in BOUNDS
        ),
        Sample(f"{name}_sum", labels, math.fsum(observed)),
        Sample(f"{name}_count", labels, float(len(observed))),
    ]  # fmt: skip


def bucket_of(value: float) -> tuple[float, float]:
    high = next(bound for bound in BOUNDS if value <= bound)
    below = [bound for bound in BOUNDS if bound < high]
    return (below[-1] if below else 0.0), high


@checks
@given(st.lists(st.floats(0.001, 10.0), min_size=1, max_size=200))
def test_quantiles_lie_in_the_bucket_that_holds_them_and_the_mean_is_exact(observed):
    found = latencies(NAMES, histogram(observed))["time_to_first_token_seconds"]
    assert found.mean == pytest.approx(sum(observed) / len(observed))
    for share, value in ((0.5, found.p50), (0.9, found.p90), (0.99, found.p99)):
        true = sorted(observed)[max(0, math.ceil(share * len(observed)) - 1)]
        low, high = bucket_of(true)
        if math.isinf(high):
            assert value is None
        else:
            assert low <= value <= high


@checks
@given(st.lists(st.floats(0.001, 10.0), max_size=50), st.lists(st.floats(0.001, 10.0), min_size=1, max_size=50))
def test_what_lies_between_two_scrapes_is_what_was_observed_then(before, between):
    found = latencies(NAMES, histogram(before + between), histogram(before))["time_to_first_token_seconds"]
    alone = latencies(NAMES, histogram(between))["time_to_first_token_seconds"]
    assert found.mean == pytest.approx(alone.mean)
    for label in ("p50", "p90", "p99"):
        assert getattr(found, label) == (
            None if getattr(alone, label) is None else pytest.approx(getattr(alone, label))
        )


def test_series_of_several_engines_are_one_distribution():
    both = latencies(NAMES, histogram([0.2] * 10, engine="0") + histogram([0.4] * 10, engine="1"))
    assert both["time_to_first_token_seconds"].mean == pytest.approx(0.3)
    assert both["time_to_first_token_seconds"].p50 == pytest.approx(0.25)


def test_a_bound_that_is_no_number_is_left_out():
    whole = histogram([0.2, 0.3, 0.7])
    assert latencies(NAMES, [*whole, Sample("ttft_bucket", {"le": ":0.0"}, 3.0)]) == latencies(NAMES, whole)


def test_nothing_observed_is_no_latency():
    assert latencies(NAMES, histogram([])) == {}
    assert latencies(NAMES, histogram([0.2]), histogram([0.2])) == {}
    assert latencies(NAMES, []) == {}


def test_what_counts_steps_is_not_taken_for_tokens():
    """vLLM observes its inter-token latency once a step: with drafts it grows while tokens come faster."""
    vllm = next(engine for engine in engines() if engine.engine == "vllm")
    assert "inter_token_latency_seconds" not in vllm.latency_names
    for engine in engines():
        assert {f"{name}_bucket" for name in engine.latency_names.values()} <= engine.sample_names
