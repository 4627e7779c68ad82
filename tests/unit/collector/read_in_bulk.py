"""A log read as arrays and line by line, compared."""

import pytest

from collector.bundle import joined
from collector.formats import blocks as blocks_module
from collector.formats.base import ReadOptions
from collector.formats.reader import LogReader
from collector.formats.sglang import session as sglang_session
from collector.formats.vllm import bulk as vllm_bulk
from collector.formats.vllm import session as vllm_session

NEVER = 1 << 60


def read(engine, data, *, bulk, size=1 << 20, columns=False):
    with pytest.MonkeyPatch.context() as patch:
        for module in (sglang_session, vllm_session, blocks_module):
            patch.setattr(module, "LARGE", 1 if bulk else NEVER)
        patch.setattr(vllm_bulk, "BEGINNING", 0)
        reader = LogReader(ReadOptions("log"), engine)
        parts = []
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])
            parts += reader.take(columns=columns)
        reader.finish()
        parts += reader.take(columns=columns)
        if columns:
            for part in parts:
                part.run.windows += [row for chunk in part.windows for row in chunk.rows()]
                part.run.prefills += [row for chunk in part.prefills for row in chunk.rows()]
        runs = joined(parts)
        for run in runs:
            run.windows.sort()
            run.prefills.sort()
        return runs, reader.summary()


def told(runs):
    """Everything of the runs, so that NaN equals NaN."""
    return [
        repr((run.windows, run.prefills, run.events, run.arguments, run.release_range, run.started_at, run.ended_at))
        for run in runs
    ]


def assert_same(engine, data, size=1 << 20):
    slow, slow_reading = read(engine, data, bulk=False, size=size)
    fast, fast_reading = read(engine, data, bulk=True, size=size)
    assert told(fast) == told(slow)
    assert fast_reading == slow_reading
    as_columns, reading = read(engine, data, bulk=True, size=size, columns=True)
    assert told(as_columns) == told(slow)
    assert reading == slow_reading
