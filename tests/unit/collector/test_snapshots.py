"""Scrapes that were kept in files: alone since the start, together for what lies between, beside a log."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis import diagnose
from collector.bundle import BundleOptions, read_bundle
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.domain.runs import Bundle
from collector.domain.windows import Origin
from collector.sources.snapshots import holds_metrics, read_snapshot, read_together

TESTS = Path(__file__).parents[2]
METRICS = TESTS / "golden" / "metrics"
LOGS = TESTS / "golden" / "logs"
LAUNCH = 'vllm serve /models/tiny-target --speculative-config \'{"method": "eagle3", "num_speculative_tokens": 3}\'\n'


def snapshots(name: str) -> list[Path]:
    return sorted((METRICS / name).glob("metrics-*.prom.gz"))


def put(folder: Path, recording: str, **names: int) -> Path:
    """Kept scrapes of a recording under the names that people give them; ``_`` stands for the dot."""
    files = snapshots(recording)
    for name, number in names.items():
        (folder / name.replace("__", ".")).write_bytes(gzip.decompress(files[number].read_bytes()))
    return folder


def judged(bundle: Bundle) -> Any:
    assert not bundle.problems
    return diagnose(bundle)


def notes_of(bundle: Bundle, source: str) -> str:
    return " ".join(next(reading.notes for reading in bundle.readings if reading.source == source))


# ---- one, two, many


def test_one_scrape_tells_of_everything_since_the_start(tmp_path: Path) -> None:
    bundle = read_bundle([put(tmp_path, "vllm/eagle3", metrics__prom=-1)])
    (window,) = bundle.subject.windows
    assert (window.verify_steps, window.accepted_tokens, window.drafted_tokens) == (17459, 21828, 52377)
    assert window.accepted_at == (11412, 6568, 3848)
    assert window.origin is Origin.COUNTERS
    assert "since the start" in notes_of(bundle, "metrics.prom")
    assert bundle.subject.engine == "vllm"
    assert bundle.subject.started_at == pytest.approx(1795973697.79)


def test_latencies_come_from_the_engines_histograms(tmp_path: Path) -> None:
    bundle = read_bundle([put(tmp_path, "vllm/eagle3", metrics_before__prom=2, metrics__prom=-1)])
    figures = judged(bundle).subject.quantities
    first = figures["time_to_first_token_seconds"]
    assert first.value == pytest.approx(0.0273, abs=0.002)
    assert "p99" in first.note
    assert figures["time_per_output_token_seconds"].value == pytest.approx(0.0064, abs=0.001)
    assert "inter_token_latency_seconds" not in figures


def test_two_scrapes_tell_of_the_interval_between_them(tmp_path: Path) -> None:
    bundle = read_bundle([put(tmp_path, "vllm/eagle3", metrics_before__prom=2, metrics__prom=-1)])
    (window,) = bundle.subject.windows
    assert window.verify_steps == 17459 - 1250 - 1269
    assert window.generated_tokens == 39264 - 2858 - 2902
    assert "no speed is known" in notes_of(bundle, "metrics.prom")
    assert window.seconds is None
    assert judged(bundle).subject.value("generation_throughput") is None


def test_names_that_tell_the_time_give_a_clock(tmp_path: Path) -> None:
    for file in snapshots("vllm/eagle3")[1:7]:
        shutil.copy(file, tmp_path)
    bundle = read_bundle([tmp_path])
    windows = bundle.subject.windows
    assert [round(window.seconds or 0, 1) for window in windows] == [10.2, 10.3, 10.0, 10.0, 10.0]
    assert judged(bundle).subject.value("generation_throughput") == pytest.approx(36145 / 50.55, rel=0.01)
    assert bundle.subject.ended_at == 1795973782.184


@pytest.mark.parametrize(
    "names", [("a__prom", "b__prom"), ("b__prom", "a__prom"), ("metrics-1__prom", "metrics-2__prom")]
)
def test_without_names_that_tell_the_earlier_one_has_the_lower_counters(tmp_path: Path, names: tuple[str, str]) -> None:
    (window,) = read_bundle([put(tmp_path, "vllm/eagle3", **{names[0]: -1, names[1]: 2})]).subject.windows
    assert window.verify_steps == 17459 - 1250 - 1269
    assert window.seconds is None  # 1 and 2 are no instants


def test_options_name_the_files(tmp_path: Path) -> None:
    put(tmp_path, "llamacpp/draft-near", early__txt=1, late__txt=-1)
    (tmp_path / "metrics.prom").write_text("not looked at\n")
    options = BundleOptions(metrics=tmp_path / "late.txt", metrics_before=tmp_path / "early.txt")
    (window,) = read_bundle([], options).subject.windows
    assert (window.verify_steps, window.accepted_tokens) == (336 - 85, 786 - 196)
    alone = BundleOptions(metrics=tmp_path / "late.txt")
    (window,) = read_bundle([], alone).subject.windows
    assert window.verify_steps == 336


def test_a_scrape_is_known_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, "sglang/0.5.23-eagle3", scrape=-1)
    bundle = read_bundle([tmp_path / "scrape"])
    assert bundle.subject.engine == "sglang"
    assert bundle.subject.windows[0].verify_steps == 1507


def test_metrics_of_a_trainer_are_not_taken_for_those_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"loss": 0.4, "note": "of a training run"}')
    put(tmp_path, "vllm/ngram", metrics__prom=-1)
    bundle = read_bundle([tmp_path])
    assert not bundle.problems
    assert bundle.subject.windows[0].verify_steps == 1818


# ---- processes


def test_scrapes_of_two_processes_are_not_subtracted(tmp_path: Path) -> None:
    put(tmp_path, "vllm/ngram", metrics_before__prom=-1)
    put(tmp_path, "vllm/eagle3", metrics__prom=-1)
    bundle = read_bundle([tmp_path])
    (window,) = bundle.subject.windows
    assert window.verify_steps == 17459
    assert "of different processes" in notes_of(bundle, "metrics.prom")


def test_a_reset_inside_one_process_is_a_finding_and_no_negative_count(tmp_path: Path) -> None:
    put(tmp_path, "vllm/eagle3", metrics_before__prom=4, metrics__prom=2)
    bundle = read_bundle([tmp_path])
    assert all((window.verify_steps or 0) >= 0 for window in bundle.subject.windows)
    (event,) = bundle.subject.events_of("counter-reset")
    assert event.evidence.source == "metrics.prom"


def test_metrics_of_two_engines_for_one_run_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "vllm/eagle3", metrics__prom=-1)
    put(tmp_path, "llamacpp/draft-near", metrics_before__prom=1)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    bundle = read_bundle([tmp_path])
    assert any("different engines" in problem for problem in bundle.problems)
    assert not bundle.subject.windows


# ---- with a launch command, a log, another run


def test_a_launch_command_and_one_scrape_are_one_run(tmp_path: Path) -> None:
    put(tmp_path, "vllm/eagle3", metrics__prom=-1)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    diagnosis = judged(read_bundle([tmp_path]))
    assert diagnosis.subject.method == "eagle3"
    depth = diagnosis.subject.arguments["speculative_config.num_speculative_tokens"]
    assert (depth.requested, depth.effective) == (3, 3)
    assert diagnosis.subject.value("acceptance_length") == pytest.approx(1 + 21828 / 17459)
    assert diagnosis.subject.record.source == "metrics.prom"
    evidence = diagnosis.subject.window_evidence(0)
    assert evidence.text.startswith("vllm:spec_decode_num_accepted_tokens_total")


def test_a_server_that_was_asked_to_draft_and_counts_no_drafts_does_not(tmp_path: Path) -> None:
    put(tmp_path, "vllm/baseline", metrics__prom=-1)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    diagnosis = judged(read_bundle([tmp_path]))
    assert diagnosis.subject.method is None
    assert "FLG006" in {finding.rule for finding in diagnosis.findings}


def test_a_launch_command_of_another_engine_is_told_and_left_out(tmp_path: Path) -> None:
    put(tmp_path, "llamacpp/draft-near", metrics__prom=-1)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    bundle = read_bundle([tmp_path])
    assert any("launches vllm" in problem for problem in bundle.problems)
    assert bundle.subject.engine == "llamacpp"


@pytest.fixture
def with_log(tmp_path: Path) -> Path:
    shutil.copy(next((LOGS / "vllm").glob("*eagle3/log.txt*")), tmp_path)
    return put(tmp_path, "vllm/eagle3", metrics__prom=-1)


def test_a_log_and_its_metrics_are_never_summed(with_log: Path) -> None:
    bundle = read_bundle([with_log])
    log = [window for window in bundle.subject.windows if window.origin is Origin.LOG]
    assert sum(window.verify_steps or 0 for window in log) > 10_000
    subject = judged(bundle).subject
    assert subject.pooled.origin is Origin.COUNTERS
    assert (subject.pooled.verify_steps, subject.pooled.accepted_tokens) == (17459, 21828)


def test_one_scrape_beside_a_log_takes_none_of_its_windows_away(with_log: Path) -> None:
    """The counts are the scrape's; how they vary, and the speed, are still told by the log."""
    both = judged(read_bundle([with_log])).subject
    (with_log / "metrics.prom").unlink()
    alone = judged(read_bundle([with_log])).subject
    assert both.pooled.windows == alone.pooled.windows > 1
    assert both.pooled.interval.half == pytest.approx(alone.pooled.interval.half)
    assert both.value("generation_throughput") == alone.value("generation_throughput")
    assert both.record.prefills == alone.record.prefills


def test_the_log_of_another_engine_keeps_its_run_to_itself(with_log: Path) -> None:
    put(with_log, "llamacpp/draft-near", metrics__prom=-1)
    bundle = read_bundle([with_log])
    assert any("is of llama.cpp" in problem for problem in bundle.problems)
    assert all(window.origin is Origin.LOG for window in bundle.subject.windows)


def test_a_baseline_may_be_a_pair_of_scrapes(tmp_path: Path) -> None:
    for role, recording, numbers in (("", "vllm/eagle3", (5, 6)), ("baseline_", "vllm/baseline", (2, 3))):
        for number in numbers:
            shutil.copy(snapshots(recording)[number], tmp_path / f"{role}{snapshots(recording)[number].name}")
    bundle = read_bundle([tmp_path])
    assert bundle.baseline is not None
    assert bundle.baseline.windows[0].generation_throughput == pytest.approx(736.2, abs=0.1)
    assert judged(bundle).runs[1].method is None


# ---- what cannot be used


@pytest.mark.parametrize(
    ("body", "error", "what"),
    [
        (b"", UnreadableInput, "not the metrics of an engine"),
        (b"up 1\n", UnreadableInput, "not the metrics of an engine"),
        (b"vllm:num_requests_runn", MalformedInput, "cut off"),
        (b"vllm:num_requests_running oh\n", MalformedInput, "cannot be read"),
        (b'# HELP vllm:x y\nvllm:lora_requests_info{a="b"} 1.0\n', UnreadableInput, "no metrics of vLLM"),
    ],
    ids=["empty", "other", "cut", "no value", "nothing wanted"],
)
def test_what_is_no_scrape_is_refused(tmp_path: Path, body: bytes, error: type[InputError], what: str) -> None:
    file = tmp_path / "metrics.prom"
    file.write_bytes(body)
    with pytest.raises(error, match=what):
        read_snapshot(file, "metrics.prom")


def test_a_broken_scrape_does_not_hide_the_rest(with_log: Path) -> None:
    (with_log / "metrics.prom").write_bytes(b"vllm:num_requests_runn")
    bundle = read_bundle([with_log])
    assert any("cut off" in problem for problem in bundle.problems)
    assert bundle.subject.windows


def test_a_scrape_alone_that_is_broken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "metrics.prom").write_bytes(b"vllm:num_requests_runn")
    with pytest.raises(InputError, match="cut off"):
        read_bundle([tmp_path])


def test_when_a_file_was_written_is_no_clock(tmp_path: Path) -> None:
    """Copies are written at any time: their ages say nothing of what lay between the scrapes."""
    put(tmp_path, "vllm/eagle3", a__prom=2, b__prom=-1)
    os.utime(tmp_path / "a.prom", (1_700_000_000, 1_700_000_000))
    os.utime(tmp_path / "b.prom", (1_700_000_001, 1_700_000_001))
    kept = read_together([read_snapshot(tmp_path / name, name) for name in ("b.prom", "a.prom")])
    assert [window.seconds for window in kept.windows] == [None]
    assert kept.ended_at is None


def test_packed_scrapes_are_scrapes(tmp_path: Path) -> None:
    shutil.copy(snapshots("vllm/ngram")[-1], tmp_path / "metrics.prom.gz")
    assert read_bundle([tmp_path]).subject.windows[0].verify_steps == 1818
    assert holds_metrics(gzip.decompress(snapshots("vllm/ngram")[-1].read_bytes()))
