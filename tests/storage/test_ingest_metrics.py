"""Kept scrapes in the database: one run with its log, once, whatever is repeated."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from analysis.runner import diagnose
from collector.bundle import BundleOptions, read_bundle
from collector.domain.windows import Origin
from collector.ingest import ingest, load_for_judgement
from collector.storage.engine import Database
from collector.storage.runs import list_runs, load_run
from collector.storage.windows import load_series

GOLDEN = Path(__file__).parents[1] / "golden"
SCRAPES = sorted((GOLDEN / "metrics" / "vllm" / "eagle3").glob("metrics-*"))


def kept(number: int, file: Path) -> Path:
    file.write_bytes(gzip.decompress(SCRAPES[number].read_bytes()))
    return file


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    folder.mkdir()
    shutil.copy(GOLDEN / "logs" / "vllm" / "eagle3" / "log.txt", folder)
    kept(-1, folder / "metrics.prom")
    return folder


def test_a_log_and_its_scrape_are_one_run_judged_as_from_the_files(database: Database, bundle: Path) -> None:
    (run_id,) = ingest(database, [bundle]).run_ids
    with database.reading() as connection:
        stored = diagnose(load_for_judgement(connection, run_id)).subject
    read = diagnose(read_bundle([bundle])).subject
    assert stored.pooled.origin is Origin.COUNTERS
    for key in ("acceptance_length", "verify_steps", "drafted_tokens", "generation_throughput", "draft_coverage"):
        assert stored.value(key) == pytest.approx(read.value(key))
    depth = stored.record.arguments["speculative_config.num_speculative_tokens"]
    assert depth.effective == 3


def test_repeating_and_newer_scrapes_take_the_place_of_older_ones(database: Database, bundle: Path) -> None:
    kept(3, bundle / "metrics.prom")
    for number in (3, 3, -1, -1):
        kept(number, bundle / "metrics.prom")
        (run_id,) = ingest(database, [bundle]).run_ids
    with database.reading() as connection:
        windows = load_run(connection, run_id).windows
        assert len(list_runs(connection).runs) == 1
    counted = [window for window in windows if window.origin is Origin.COUNTERS]
    assert [window.verify_steps for window in counted] == [17459]
    log = [window for window in windows if window.origin is Origin.LOG]
    assert len(log) == len([w for w in read_bundle([bundle]).subject.windows if w.origin is Origin.LOG])


def test_scrapes_without_a_log_are_a_run_with_their_histograms(database: Database, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        kept(-1, tmp_path / folder / "metrics.prom")
    first, second = ingest(database, [tmp_path / "a", tmp_path / "b"]).run_ids
    assert first != second  # files of one name in different folders
    with database.reading() as connection:
        record = load_run(connection, first)
        series = load_series(connection, first, "vllm:inter_token_latency_seconds_count")
    assert [window.verify_steps for window in record.windows] == [17459]
    assert [sample.value for sample in series] == [17459]
    assert record.engine == "vllm"


def test_options_name_two_scrapes(database: Database, tmp_path: Path) -> None:
    options = BundleOptions(metrics=kept(-1, tmp_path / "now"), metrics_before=kept(2, tmp_path / "then"))
    (run_id,) = ingest(database, [], options).run_ids
    with database.reading() as connection:
        (window,) = load_run(connection, run_id).windows
    assert window.verify_steps == 17459 - 1250 - 1269
