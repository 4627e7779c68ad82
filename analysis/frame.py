"""Windows as a frame, and which of them count.

A window can be misleading: the first line of a process has its start-up inside the clock, the
first after a pause the pause, a line with a prefill the prompt. This module marks them; nothing
is deleted, so pages can show what was left out and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from analysis.thresholds import Thresholds
from collector.domain.windows import Origin, Window

FIRST: Final = "first window: start-up and waiting inside its clock"
IDLE: Final = "first window after idle: the pause is inside its clock"
PREFILL: Final = "prefill inside its clock"
BATCH: Final = "the number of running requests changed by more than a fifth"
GRAPHLESS: Final = "decoded without a captured graph"
NOTHING_RUNNING: Final = "nothing was running"
SINCE_START: Final = "all since the start of the process in one window; the later ones tell how it is now"

SCRAPED: Final = frozenset({Origin.COUNTERS, Origin.GAUGES})
"""Origins of windows between two scrapes."""

SLOT: Final = "slot "
"""How units begin whose windows are whole requests (llama.cpp): a long one is no pause."""

COUNTED_BY_ENGINE: Final = frozenset({"vllm", "llamacpp", "tensorrt-llm"})
"""Engines that print counts: every count is kept for acceptance."""


@pd.option_context("mode.string_storage", "python")  # few texts, looked at singly: pyarrow, where there, takes longer
def window_frame(
    engine: str, windows: Sequence[Window], thresholds: Thresholds, *, on_cpu: bool = False
) -> pd.DataFrame:
    """All windows of one run, one row each, in order of time.

    Columns: the fields of :class:`Window`, and
        acceptance_length (float): 1 + accepted / verify steps, NaN where unknown;
        counted (bool): stands for acceptance;
        steady (bool): stands for throughput and step time;
        left_out (str): why it does not stand for one of them, "" if it stands for both;
        printed_nan (bool): the engine printed a length that is not a number;
        block (int): windows of several units at one instant share a block.
    """
    frame = pd.DataFrame(windows, columns=list(Window._fields))
    frame["printed_nan"] = [
        window.printed_length is not None and window.printed_length != window.printed_length for window in windows
    ]
    numeric = [
        "seconds",
        "running_requests",
        "waiting_requests",
        "verify_steps",
        "accepted_tokens",
        "drafted_tokens",
        "generated_tokens",
        "generation_throughput",
        "printed_length",
        "printed_rate",
        "tokens_in_use",
        "kv_cache_usage",
    ]
    frame[numeric] = frame[numeric].apply(pd.to_numeric)
    frame = frame.sort_values(["at", "position"], kind="stable", ignore_index=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        frame["acceptance_length"] = 1 + frame["accepted_tokens"] / frame["verify_steps"].where(
            frame["verify_steps"] > 0
        )
    counted, steady, reasons = _select(engine, frame, thresholds, on_cpu=on_cpu)
    frame["counted"], frame["steady"], frame["left_out"] = counted, steady, reasons
    frame["block"] = _blocks(frame["unit"])
    return frame


def _select(
    engine: str, frame: pd.DataFrame, thresholds: Thresholds, *, on_cpu: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = len(frame)
    counted = np.ones(size, dtype=bool)
    steady = np.ones(size, dtype=bool)
    reasons = np.full(size, "", dtype=object)

    def leave_out(where: np.ndarray, reason: str, *, everywhere: bool) -> None:
        reasons[where & (reasons == "")] = reason
        steady[where] = False
        if everywhere:
            counted[where] = False

    own_clock = engine not in COUNTED_BY_ENGINE
    running = frame["running_requests"].to_numpy(dtype=float)
    leave_out(running == 0, NOTHING_RUNNING, everywhere=own_clock)
    graph_known = frame["graph"].notna()
    graph = frame["graph"].where(graph_known, other=True).to_numpy(dtype=bool)
    if not on_cpu and graph.any():
        leave_out(~graph, GRAPHLESS, everywhere=False)
    seconds = frame["seconds"].to_numpy(dtype=float)
    prefills = frame["prefills"].to_numpy(dtype=float)
    log = (frame["origin"] == Origin.LOG).to_numpy()
    for unit, rows in frame.groupby("unit", sort=False).groups.items():
        if str(unit).startswith(SLOT):
            continue
        index = np.asarray(rows)
        index = index[log[index]]
        if index.size == 0:
            continue
        of_unit = np.zeros(size, dtype=bool)
        if own_clock:
            of_unit[index[0]] = True
            leave_out(of_unit, FIRST, everywhere=True)
        clock = seconds[index]
        known = clock[1:][np.isfinite(clock[1:])] if clock.size > 1 else clock[np.isfinite(clock)]
        if known.size:
            idle = np.zeros(size, dtype=bool)
            idle[index] = clock > thresholds.idle_factor * np.median(known)
            leave_out(idle, IDLE, everywhere=own_clock)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.abs(np.diff(running[index])) / np.maximum(running[index][:-1], 1)
        jumped = np.zeros(size, dtype=bool)
        jumped[index[1:]] = change > thresholds.steady_batch_change
        leave_out(jumped, BATCH, everywhere=False)
    scraped = frame["origin"].isin(SCRAPED).to_numpy()
    leave_out(~scraped & (prefills > 0), PREFILL, everywhere=False)
    leave_out(_partly_idle(frame, scraped, thresholds), IDLE, everywhere=False)
    counted_steps = (frame["origin"] == Origin.COUNTERS).to_numpy() & frame["verify_steps"].gt(0).to_numpy()
    whole_life = counted_steps & np.isnan(seconds)
    if (counted_steps & ~whole_life).sum() >= thresholds.few_windows * max(1, frame["unit"].nunique()):
        leave_out(whole_life, SINCE_START, everywhere=True)
    return counted, steady, reasons


def _partly_idle(frame: pd.DataFrame, scraped: np.ndarray, thresholds: Thresholds) -> np.ndarray:
    """Scraped windows with a pause inside: a step seems to take far longer than it usually does. Shape (n,), bool.

    Scrapes come at our times, not after so many steps, so their length says nothing; and at usual
    intervals prompts lie in each of them.
    """
    length = frame["acceptance_length"].fillna(frame["printed_length"]).fillna(1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (frame["seconds"] * frame["running_requests"] * length / frame["generated_tokens"]).to_numpy(dtype=float)
    known: np.ndarray = scraped & np.isfinite(step) & (step > 0)
    if known.any():
        known &= step > thresholds.idle_factor * np.median(step[known])
    return known


def _blocks(units: pd.Series) -> np.ndarray:
    """Number the blocks: a new one begins when a unit comes round again."""
    blocks = np.zeros(len(units), dtype=np.int64)
    seen: set[str] = set()
    block = 0
    for row, unit in enumerate(units):
        if unit in seen:
            block += 1
            seen = set()
        seen.add(unit)
        blocks[row] = block
    return blocks
