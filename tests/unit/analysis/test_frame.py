from __future__ import annotations

from typing import Any

import pytest

from analysis.frame import BATCH, FIRST, GRAPHLESS, IDLE, NOTHING_RUNNING, PREFILL, window_frame
from analysis.thresholds import Thresholds
from collector.domain.windows import Window


def windows(*changes: dict[str, Any]) -> list[Window]:
    """Windows a second apart, alike but for the changes."""
    plain: dict[str, Any] = {
        "seconds": 1.0,
        "running_requests": 4.0,
        "verify_steps": 160.0,
        "accepted_tokens": 160.0,
        "generation_throughput": 320.0,
        "printed_length": 2.0,
        "graph": True,
    }
    return [Window(i, i + 1, 1000.0 + i, **{**plain, **change}) for i, change in enumerate(changes)]


def reasons(engine: str, rows: list[Window], **options: Any) -> list[str]:
    return window_frame(engine, rows, Thresholds(), **options)["left_out"].tolist()


def test_the_first_line_of_each_rank_is_left_out_where_the_engine_prints_no_counts() -> None:
    rows = [row._replace(unit=unit) for row in windows({}, {}, {}) for unit in ("DP0", "DP1")]
    frame = window_frame("sglang", rows, Thresholds())
    assert frame["left_out"].tolist() == [FIRST, FIRST, "", "", "", ""]
    assert frame["counted"].tolist() == [False, False, True, True, True, True]
    assert frame["block"].tolist() == [0, 0, 1, 1, 2, 2]


def test_counts_are_kept_where_the_engine_prints_them() -> None:
    frame = window_frame("vllm", windows({}, {"seconds": 50.0}, {}, {}), Thresholds())
    assert frame["counted"].all()
    assert frame["steady"].tolist() == [True, False, True, True]


def test_a_window_after_a_pause_is_left_out() -> None:
    assert reasons("sglang", windows({}, {}, {"seconds": 3.5}, {}, {})) == [FIRST, "", IDLE, "", ""]


def test_a_clock_three_times_the_median_still_counts() -> None:
    assert reasons("sglang", windows({}, {}, {"seconds": 3.0}, {}, {}))[2] == ""


def test_prefill_and_a_changed_batch_keep_acceptance_and_lose_throughput() -> None:
    frame = window_frame("sglang", windows({}, {"prefills": 1}, {"running_requests": 6.0}, {}), Thresholds())
    assert frame["left_out"].tolist() == [FIRST, PREFILL, BATCH, BATCH]
    assert frame["counted"].tolist() == [False, True, True, True]
    assert not frame["steady"].any()


def test_nothing_running_weighs_nothing() -> None:
    rows = windows({}, {"running_requests": 0.0, "verify_steps": 0.0, "accepted_tokens": 0.0}, {})
    frame = window_frame("sglang", rows, Thresholds())
    assert frame["left_out"].tolist()[1] == NOTHING_RUNNING
    assert frame["acceptance_length"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(("on_cpu", "expected"), [(False, GRAPHLESS), (True, "")])
def test_a_step_without_a_graph_is_slow_on_a_gpu_only(on_cpu: bool, expected: str) -> None:
    assert reasons("sglang", windows({}, {}, {"graph": False}, {}), on_cpu=on_cpu)[2] == expected


def test_a_server_without_any_graph_is_judged_by_what_it_has() -> None:
    assert reasons("sglang", windows({"graph": False}, {"graph": False}, {"graph": False})) == [FIRST, "", ""]


def test_a_printed_nan_is_not_a_missing_figure() -> None:
    frame = window_frame(
        "sglang", windows({}, {"printed_length": float("nan")}, {"printed_length": None}), Thresholds()
    )
    assert frame["printed_nan"].tolist() == [False, True, False]


def test_no_windows_give_an_empty_frame_with_all_columns() -> None:
    frame = window_frame("sglang", [], Thresholds())
    assert frame.empty
    assert {"counted", "steady", "left_out", "block", "acceptance_length"} <= set(frame.columns)
