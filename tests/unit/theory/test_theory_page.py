"""The theory page states the figures that the code uses."""

from __future__ import annotations

from pathlib import Path

from analysis.theory.payoff import PUBLISHED_COSTS
from analysis.theory.rates import RateDefinition
from analysis.theory.settings import DEFAULTS

PAGE = (Path(__file__).parents[3] / "docs" / "theory.md").read_text()


def test_the_page_names_every_rate_definition():
    for definition in RateDefinition:
        assert f"| `{definition}` |" in PAGE


def test_the_page_shows_the_healthy_factors_and_the_usual_costs():
    shown = " | ".join(f"{factor:.2f}".lstrip("0") for factor in DEFAULTS.healthy_factors)
    assert f"| f_k | {shown} |" in PAGE
    for intercept, slope in (DEFAULTS.usual_cost_dense, DEFAULTS.usual_cost_experts):
        assert f"`{intercept} + {slope} k`" in PAGE


def test_the_page_lists_every_published_cost():
    rows = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}
    for case in PUBLISHED_COSTS:
        row = next(line for name, line in rows.items() if name.startswith(case.model))
        if case.model == "Llama-3.1-8B":
            row = rows["Llama-3.1-8B, vLLM"]
        assert f"{case.ratio:.2f} ({case.depth})" in row
        assert f"| {case.batch} |" in row
