"""Charts: frame to figure."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.storage.traces import Trace
from dashboard.charts import depth, over_time, positions, traces, windows
from dashboard.charts.base import MAX_POINTS, Chart, colour, finish, scatter, thin
from dashboard.charts.over_time import AcceptanceLevels
from dashboard.charts.overlays import Series, acceptance_lengths, line_of
from dashboard.pages.run import run_page
from tests.web.reports import load_windows

LEVELS = AcceptanceLevels(1.8, 1.62, 1.98, 2.86, 3.27, 2.96, 6)


@pytest.fixture
def frame() -> pd.DataFrame:
    return load_windows("kimi-subject")


def long_frame(frame: pd.DataFrame, size: int) -> pd.DataFrame:
    """A run of many windows that wave, with one deep fall and one high peak."""
    row = frame.iloc[[5]]
    long = pd.concat([row] * size, ignore_index=True)
    lengths = 1.8 + 0.1 * np.sin(np.arange(size))
    lengths[size // 3], lengths[size // 2] = 1.01, 5.5
    return long.assign(
        at=long["at"] + np.arange(size),
        acceptance_length=lengths,
        generation_throughput=30 * lengths,
        block=np.arange(size),
    )


@given(st.lists(st.floats(1, 6) | st.just(float("nan")), max_size=400), st.integers(4, 60))
def test_thinning_keeps_order_extremes_and_the_limit(values, limit):
    frame = pd.DataFrame({"at": np.arange(len(values)), "y": np.array(values, dtype=float)})
    thinned = thin(frame, "y", limit)
    assert len(thinned) <= limit
    assert thinned["at"].is_monotonic_increasing
    if frame["y"].notna().any():
        assert thinned["y"].min() == frame["y"].min()
        assert thinned["y"].max() == frame["y"].max()


def test_a_long_run_is_thinned_and_says_so(frame):
    long = long_frame(frame, 20_000)
    for chart in (
        over_time.acceptance_length(long, "input.log", LEVELS),
        over_time.throughput(long, "input.log", 54.8, 90.0),
        over_time.running_requests(long, "input.log"),
        windows.by_context(long.assign(tokens_in_use=long["at"]), LEVELS, ""),
        windows.spread(long, long, LEVELS, LEVELS, ""),
    ):
        for trace in chart.figure["data"]:
            assert len(trace["x"]) <= MAX_POINTS <= 2_000
        assert len(chart.rows) <= 2 * MAX_POINTS
    acceptance = over_time.acceptance_length(long, "input.log", LEVELS)
    assert {1.01, 5.5} <= set(acceptance.figure["data"][0]["y"])
    assert "Of 20,000 windows the lowest and the highest of each stretch are drawn." in acceptance.sentence


def test_a_gap_in_the_figures_is_null_and_never_zero(frame):
    holed = frame.assign(generation_throughput=frame["generation_throughput"].where(frame.index != 7))
    table = over_time.acceptance_length(holed, "input.log", LEVELS).rows
    assert table[6][2] == "not printed"
    assert len(over_time.throughput(holed, "input.log", None, None).figure["data"][0]["y"]) == 17


def test_without_figures_there_is_no_chart(frame):
    empty = frame.assign(acceptance_length=np.nan, generation_throughput=np.nan, running_requests=np.nan)
    assert over_time.acceptance_length(empty, "input.log", AcceptanceLevels()) is None
    assert over_time.throughput(empty, "input.log", None, None) is None
    assert over_time.running_requests(empty, "input.log") is None
    assert windows.by_batch(empty, AcceptanceLevels()) is None
    assert windows.by_context(empty, AcceptanceLevels(), "") is None
    assert windows.spread(empty, frame, LEVELS, LEVELS, "") is None


def test_acceptance_says_how_many_windows_lie_below_healthy(frame):
    every = over_time.acceptance_length(frame, "input.log", LEVELS)
    assert "Each point is one window of 40 steps. Lower than healthy in every window." in every.sentence
    some = over_time.acceptance_length(frame, "input.log", AcceptanceLevels(1.8, healthy=1.9, promised=2.1))
    assert "Lower than healthy in 13 of 18 windows." in some.sentence
    none = over_time.acceptance_length(frame, "input.log", AcceptanceLevels(1.8))
    assert "no healthy level to hold it against" in none.sentence


def test_windows_left_out_are_rings_with_their_reason(frame):
    ring = over_time.acceptance_length(frame, "input.log", LEVELS).figure["data"][1]
    assert ring["marker"]["symbol"] == "circle-open"
    assert "start-up" in ring["customdata"][0]


def test_throughput_of_several_ranks_is_their_sum(frame):
    ranks = pd.concat([frame.assign(unit="DP0 TP0"), frame.assign(unit="DP1 TP0")]).sort_values(["at", "unit"])
    both = over_time.throughput(ranks, "input.log", None, None).figure["data"][0]["y"]
    alone = over_time.throughput(frame, "input.log", None, None).figure["data"][0]["y"]
    assert both == pytest.approx([2 * y for y in alone])


def test_load_of_several_ranks_is_their_sum_and_unknown_waiting_is_not_zero(frame):
    ranks = pd.concat([frame.assign(unit="DP0 TP0"), frame.assign(unit="DP1 TP0")]).sort_values(["at", "unit"])
    assert over_time.running_requests(ranks, "input.log").figure["data"][0]["y"] == [2.0] * 19
    silent = over_time.running_requests(ranks.assign(waiting_requests=np.nan), "input.log")
    assert silent.sentence == "2 requests in every window."
    assert {row[2] for row in silent.rows} == {"not printed"}


def test_several_units_are_not_joined_by_a_line(frame):
    ranks = pd.concat([frame.assign(unit="DP0 TP0"), frame.assign(unit="DP1 TP0")])
    assert over_time.acceptance_length(ranks, "input.log", LEVELS).figure["data"][0]["mode"] == "markers"


def test_axes_name_quantity_and_unit(frame):
    for chart, title in (
        (over_time.acceptance_length(frame, "input.log", LEVELS), "acceptance length, tokens per step"),
        (over_time.throughput(frame, "input.log", 54.8, 90.0), "throughput, tok/s"),
    ):
        assert chart.figure["layout"]["yaxis"]["title"]["text"] == title
        assert chart.figure["layout"]["xaxis"]["title"]["text"] == "time on 9 April 2026, server clock"


def test_waiting_requests_are_drawn_only_where_some_wait(frame):
    assert len(over_time.running_requests(frame, "input.log").figure["data"]) == 1
    queued = over_time.running_requests(frame.assign(waiting_requests=3.0), "input.log")
    assert queued.figure["data"][1]["y"] == [3.0] * 19
    assert "Up to 3 wait." in queued.sentence


def test_by_batch_needs_two_sizes(frame):
    assert windows.by_batch(frame, LEVELS) is None
    mixed = frame.assign(running_requests=np.where(frame.index % 2, 1.0, 8.0))
    assert windows.by_batch(mixed, LEVELS).sentence == "Batches of 1 to 8 requests were seen."


def test_spread_shows_both_runs(frame):
    chart = windows.spread(frame, load_windows("kimi-previous"), LEVELS, AcceptanceLevels(1.9, 1.79, 2.01), "")
    assert [len(trace["x"]) for trace in chart.figure["data"]] == [18, 18]
    assert {row[0] for row in chart.rows} == {"this run", "the run before"}


def test_depth_curves_meet_what_was_measured():
    chart = depth.speedup_by_depth(5, 0.44899625, 2.9553267, 0.60907, 89.95)
    drafts, fixed, measured = chart.figure["data"]
    assert drafts["y"][4] == fixed["y"][4] == measured["y"][1] == pytest.approx(0.6091, abs=2e-4)
    assert (
        "Whatever the split, depth 2 to 7 does not pay. At depth 1 it lies between ×0.490 and ×1.04." in chart.sentence
    )


@pytest.mark.parametrize(
    ("rate", "cost", "speedup", "says"), [(0.1, 3.0, 0.37, "no depth pays."), (0.9, 1.2, 3.9, "depth 1 to 7 pays.")]
)
def test_depth_says_what_holds_whatever_the_split(rate, cost, speedup, says):
    assert f"Whatever the split, {says}" in depth.speedup_by_depth(5, rate, cost, speedup, None).sentence


def test_positions_beyond_the_stated_ones_say_so():
    chart = positions.accepted_at([0.7, 0.6, 0.5], [0.75, 0.7])
    assert chart.rows[2] == ("3", "50.0%", "not stated")
    assert "0.700 of steps, later ones in 0.550" in chart.sentence


def test_plotly_knows_every_property_of_every_plot(frame, kimi, first_run):
    earlier = load_windows("kimi-previous")
    pages = (run_page(kimi), run_page(first_run))
    sections = [section for page in pages for section in (page.acceptance, page.payoff)]
    charts = [getattr(section, name.name) for section in sections for name in fields(section)]
    wave = long_frame(frame, 50).assign(running_requests=np.arange(50) % 7.0, waiting_requests=3.0)
    lines = [
        Series(name, line_of(part, "acceptance_length", "counted")) for name, part in (("a", frame), ("b", earlier))
    ]
    trace = Trace("acceptance_length", "minute", 60, [60.0 * i for i in range(9)], [2.0] * 9, [1.5] * 9, [2.5] * 9)
    charts += [
        windows.by_batch(wave, LEVELS),
        over_time.running_requests(wave, "input.log"),
        positions.accepted_at([0.7, 0.6, 0.5], [0.75, 0.7]),
        acceptance_lengths(lines),
        traces.acceptance(trace, LEVELS),
        traces.throughput(trace, 90.0),
        traces.step_time(trace),
    ]
    drawn = [chart for chart in charts if isinstance(chart, Chart)]
    assert {chart.id for chart in drawn} >= {
        *("c-time", "c-positions", "c-conditional", "c-spread", "c-context", "c-batch", "c-depth", "c-throughput"),
        *("c-running", "c-lengths", "t-acceptance", "t-throughput", "t-step"),
    }  # fmt: skip
    assert all(chart.figure["data"] for chart in drawn)


@pytest.mark.parametrize(
    ("seconds", "unit", "ends"),
    [(100, "second", 100), (1_200, "minute", 20), (72_000, "hour", 20), (864_000, "day", 10)],
)
def test_runs_laid_over_each_other_begin_at_nothing_and_end_where_they_ended(frame, seconds, unit, ends):
    long = long_frame(frame, 3_000)
    long = long.assign(at=np.linspace(1e9, 1e9 + seconds, len(long)))
    chart = acceptance_lengths([Series(name, line_of(long, "acceptance_length", "counted")) for name in ("a", "b")])
    for trace in chart.figure["data"]:
        assert trace["x"][0] == 0
        assert trace["x"][-1] == pytest.approx(ends, rel=1e-3)
    assert chart.figure["layout"]["xaxis"]["title"]["text"] == f"{unit}s since the first window"
    assert chart.header[1] == unit.capitalize()
    assert float(chart.rows[-1][1]) == pytest.approx(ends, rel=0.05)


def test_a_misspelt_property_or_token_is_refused():
    with pytest.raises(ValueError, match="colour"):
        scatter(marker={"colour": colour("measured")})
    with pytest.raises(ValueError, match="titel"):
        finish([], {"titel": ""})
    with pytest.raises(ValueError, match="no token"):
        colour("meassured")


def trace_of(at, value, low=None, high=None, width=60):
    return Trace("acceptance_length", "minute", width, at, value, low or value, high or value)


def test_a_trace_has_the_band_of_its_windows_and_breaks_where_nothing_was_seen():
    at = [0.0, 60.0, 120.0, 180.0, 3600.0, 3660.0]
    chart = traces.acceptance(trace_of(at, [2.0] * 6, [1.5, 1.2, 1.5, 1.5, 1.5, 1.5], [2.5] * 6), AcceptanceLevels())
    lowest, highest, later, _, mean = chart.figure["data"]
    assert lowest["y"] == [1.5, 1.2, 1.5, 1.5]
    assert later["x"] == ["1970-01-01 01:00:00", "1970-01-01 01:01:00"]
    assert highest["fill"] == "tonexty"
    assert mean["y"] == [2.0, 2.0, 2.0, 2.0, None, 2.0, 2.0]
    assert chart.sentence == "Each point is 1 minute. 2.00 throughout."
    assert chart.rows[1] == ("1 Jan, 00:01", "2.00", "1.20", "2.50")


def test_a_trace_without_lowest_and_highest_has_no_band():
    chart = traces.step_time(Trace("step_seconds", "hour", 21600, [0.0, 21600.0], [0.02, 0.03], [None] * 2, [None] * 2))
    assert [trace["name"] for trace in chart.figure["data"]] == ["mean"]
    assert chart.sentence == "Each point is 6 hours. Between 20.0 and 30.0 ms, 30.0 at the end."
    assert chart.header == ("Time", "Mean, ms")
    assert traces.throughput(Trace("generation_throughput", "", 0, [], [], [], []), None) is None
