"""Logs of the benchmark, with decoys, torn lines and bytes that are no text, are read to the last figure."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """The modules of the benchmark, which are scripts."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("made_logs"), importlib.import_module("ingest")
    for name in ("made_logs", "ingest"):
        del sys.modules[name]


@pytest.mark.parametrize("share", [0.15, 0.03])
@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_what_is_read_is_what_was_made(benchmark, tmp_path, engine, share):
    made_logs, script = benchmark
    log = made_logs.LOGS[engine](3, share)
    log.write(tmp_path / "server.log", 2_500_000)
    found = script.parse(tmp_path / "server.log")
    assert log.truth["torn"] > 0
    assert len(found) > 6
    assert found == {name: log.truth[name] for name in found}
