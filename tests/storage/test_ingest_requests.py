"""Responses in the database: once, whatever is repeated, and judged as from the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.runner import diagnose
from collector.bundle import BundleOptions, read_bundle
from collector.ingest import ingest, load_for_judgement
from collector.storage.engine import Database
from collector.storage.requests import count_requests
from collector.storage.runs import list_runs
from collector.storage.states import run_states

GOLDEN = Path(__file__).parents[1] / "golden"
LOG = GOLDEN / "logs" / "vllm" / "eagle3" / "log.txt"
LINES = (GOLDEN / "responses" / "vllm" / "eagle3-mixed-temperature.jsonl").read_text("utf-8").splitlines(keepends=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl"


@pytest.mark.parametrize("count", [4, 20])
def test_a_log_and_responses_that_were_asked_for_are_judged_as_from_the_files(
    database: Database, file: Path, count: int
) -> None:
    file.write_text("".join(LINES[:count]))
    options = BundleOptions(responses=(file,))
    (run_id,) = ingest(database, [LOG], options).run_ids
    with database.reading() as connection:
        stored = diagnose(load_for_judgement(connection, run_id)).document()
    read = diagnose(read_bundle([LOG], options)).document()
    assert stored["runs"][0]["requests"] == read["runs"][0]["requests"]
    assert stored["runs"][0]["requests"]["judged_by"]
    for key in ("acceptance_length", "verify_steps", "acceptance_rate_at", "draft_coverage"):
        assert stored["runs"][0]["quantities"][key] == read["runs"][0]["quantities"][key]


def test_a_growing_file_adds_what_is_new_and_a_repeated_one_nothing(database: Database, file: Path) -> None:
    counts, states = [], []
    for lines in (LINES[:5], LINES[:5], LINES, LINES[10:]):
        file.write_text("".join(lines))
        (run_id,) = ingest(database, [LOG], BundleOptions(responses=(file,))).run_ids
        with database.reading() as connection:
            counts.append(count_requests(connection, run_id))
            states.append(run_states(connection, [run_id])[run_id])
            assert len(list_runs(connection).runs) == 1
    assert counts == [5, 5, 20, 10]  # the file is what it holds now
    assert states[0] == states[1] != states[2]


def test_responses_of_two_files_are_counted_once(database: Database, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "more-responses.jsonl"
    file.write_text("".join(LINES[:12]))
    other.write_text("".join(LINES[8:]))
    (run_id,) = ingest(database, [LOG], BundleOptions(responses=(file, other))).run_ids
    with database.reading() as connection:
        assert count_requests(connection, run_id) == 20


def test_responses_alone_are_a_run(database: Database, file: Path) -> None:
    file.write_text("".join(LINES))
    (run_id,) = ingest(database, [], BundleOptions(responses=(file,))).run_ids
    with database.reading() as connection:
        run = diagnose(load_for_judgement(connection, run_id)).subject
    assert run.record.engine == "vllm"
    assert run.value("verify_steps") == sum(
        json.loads(line)["metrics"]["speculative_decoding"]["num_spec_steps"] for line in LINES
    )
