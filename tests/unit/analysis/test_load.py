"""Load of servers, also where windows are whole requests of slots."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.figures import load_quantities
from analysis.frame import window_frame
from analysis.thresholds import Thresholds
from collector.domain.windows import Window


def request(slot: int, ends: float, seconds: float, tokens: int) -> Window:
    return Window(
        int(ends * 10),
        int(ends * 10),
        ends,
        unit=f"slot {slot}",
        seconds=seconds,
        running_requests=1,
        generated_tokens=tokens,
        generation_throughput=tokens / seconds,
        verify_steps=tokens / 2,
        accepted_tokens=tokens / 2,
    )


@pytest.mark.parametrize(
    ("requests", "throughput", "running"),
    [
        ([request(0, 10.0, 10.0, 100), request(1, 10.0, 10.0, 200)], 30.0, 2.0),
        ([request(0, 10.0, 10.0, 100), request(1, 20.0, 10.0, 100)], 10.0, 1.0),
        ([request(0, 10.0, 10.0, 100), request(0, 50.0, 10.0, 100)], 10.0, 1.0),
        ([request(0, 10.0, 10.0, 100), request(1, 15.0, 10.0, 100), request(0, 12.0, 2.0, 100)], 20.0, 22 / 15),
    ],
    ids=["side by side", "by turns", "with a pause", "partly side by side"],
)
def test_tokens_are_divided_by_the_time_in_which_any_slot_was_busy(requests, throughput, running):
    figures = load_quantities(window_frame("llamacpp", requests, Thresholds()))
    assert figures["generation_throughput"].value == pytest.approx(throughput)
    assert figures["running_requests"].value == pytest.approx(running)
    assert figures["step_seconds"].value > 0


def window(position: int, **known: Any) -> Window:
    return Window(position, position, 1000.0 + position, generation_throughput=100.0, generated_tokens=100, **known)


def test_a_queue_that_no_window_tells_of_is_not_taken_for_an_empty_one():
    windows = [window(n, running_requests=4) for n in range(8)]
    assert "waiting_requests" not in load_quantities(window_frame("sglang", windows, Thresholds()))
    windows += [window(8 + n, running_requests=4, waiting_requests=2) for n in range(2)]
    assert load_quantities(window_frame("sglang", windows, Thresholds()))["waiting_requests"].value == 2


def test_windows_at_whose_end_nothing_ran_tell_no_throughput():
    idle = [window(n, unit="engine 1", running_requests=0) for n in range(3)]
    assert load_quantities(window_frame("vllm", idle, Thresholds())) == {}
    busy = [window(3 + n, unit="engine 0", running_requests=4) for n in range(3)]
    figures = load_quantities(window_frame("vllm", [*idle, *busy], Thresholds()))
    assert figures["generation_throughput"].value == pytest.approx(100.0)
    assert figures["running_requests"].value == pytest.approx(4.0)


def test_a_request_that_a_log_cuts_off_tells_no_step_time():
    cut = request(0, 10.0, 10.0, 100)._replace(running_requests=None, verify_steps=None, accepted_tokens=None)
    figures = load_quantities(window_frame("llamacpp", [cut], Thresholds()))
    assert figures["generation_throughput"].value == pytest.approx(10.0)
    assert "step_seconds" not in figures
    both = load_quantities(window_frame("llamacpp", [request(0, 10.0, 10.0, 100), cut], Thresholds()))
    assert both["step_seconds"].windows == 1
