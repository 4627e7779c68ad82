"""Recorded vLLM and llama.cpp servers, replayed over HTTP and scraped into a database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from analysis.figures import load_quantities
from analysis.runner import diagnose
from collector.domain.errors import SourceError
from collector.domain.runs import RunRecord
from collector.domain.windows import Origin
from collector.ingest import load_for_judgement
from collector.scraping import Stored, Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.runs import load_run
from collector.storage.scrapes import last_scrape
from tests.live.recorded import RECORDED, Recorded, recorded

COUNTS = {
    "vllm": {
        "verify_steps": "vllm:spec_decode_num_drafts_total",
        "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
        "drafted_tokens": "vllm:spec_decode_num_draft_tokens_total",
        "generated_tokens": "vllm:generation_tokens_total",
        "prefills": "vllm:time_to_first_token_seconds_count",
    },
    "llamacpp": {
        "verify_steps": "llamacpp:spec_decode_num_drafts_total",
        "accepted_tokens": "llamacpp:spec_decode_num_accepted_tokens_total",
        "drafted_tokens": "llamacpp:spec_decode_num_draft_tokens_total",
        "generated_tokens": "llamacpp:tokens_predicted_total",
    },
}
ACCEPTED_AT = {
    "vllm": "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "llamacpp": "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
}
DRAFTING = tuple(
    name for name in RECORDED if not any(word in name for word in ("baseline", "b9093", "override-vocab-content"))
)


@dataclass(frozen=True)
class Scraped:
    """A recording that was scraped snapshot by snapshot into a database of its own."""

    served: Recorded
    database: Database
    stored: list[Stored]
    record: RunRecord


@contextmanager
def watching(database: Database, served: Recorded, **options: Any) -> Iterator[Watch]:
    with Endpoint(served.url, **options) as endpoint:
        yield Watch(database, Scraper(endpoint, clock=served.clock))


def scrape_all(database: Database, served: Recorded) -> list[Stored]:
    with watching(database, served) as watch:
        return [watch.take() for _ in served.snapshots]


def run_of(database: Database, run_id: int) -> RunRecord:
    with database.reading() as connection:
        return load_run(connection, run_id)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Scraped]]:
    """Scrapes a recording by name; its database is only to be read."""
    known: dict[str, Scraped] = {}
    with ExitStack() as stack:

        def by_name(name: str) -> Scraped:
            if name not in known:
                folder = tmp_path_factory.mktemp("scraped")
                database = stack.enter_context(open_database(f"sqlite:///{folder / 'draftscope.db'}"))
                with recorded(name) as served:
                    stored = scrape_all(database, served)
                (run_id,) = {item.run_id for item in stored}
                known[name] = Scraped(served, database, stored, run_of(database, run_id))
            return known[name]

        yield by_name


def total(record: RunRecord, field: str) -> float:
    return sum(getattr(window, field) or 0.0 for window in record.windows)


# ---- what a recording must come to


@pytest.mark.parametrize("name", RECORDED)
def test_windows_add_up_to_the_engines_own_counters(scraped: Callable[[str], Scraped], name: str) -> None:
    found = scraped(name)
    for field, metric in COUNTS[found.served.engine].items():
        assert total(found.record, field) == found.served.last(metric), field
    assert all(window.origin is Origin.COUNTERS for window in found.record.windows)


@pytest.mark.parametrize("name", DRAFTING)
def test_acceptance_by_position_is_that_of_the_engine(scraped: Callable[[str], Scraped], name: str) -> None:
    found = scraped(name)
    metric = ACCEPTED_AT[found.served.engine]
    longest = max(len(window.accepted_at or ()) for window in found.record.windows)
    for i in range(longest):
        counted = sum(window.accepted_at[i] for window in found.record.windows if window.accepted_at)
        assert counted == found.served.last(metric, position=str(i))
    for window in found.record.windows:
        assert sum(window.accepted_at or ()) == window.accepted_tokens
        assert list(window.accepted_at or ()) == sorted(window.accepted_at or (), reverse=True)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("llamacpp/")])
def test_llamacpp_counts_what_the_answers_said(scraped: Callable[[str], Scraped], name: str) -> None:
    found = scraped(name)
    truth = found.served.truth
    assert total(found.record, "generated_tokens") == truth["predicted_n"]
    if "b9093" not in name:  # counts no drafts in its metrics
        assert total(found.record, "drafted_tokens") == truth["draft_n"]
        assert total(found.record, "accepted_tokens") == truth["draft_n_accepted"]


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("vllm/")])
def test_vllm_counts_what_the_answers_said(scraped: Callable[[str], Scraped], name: str) -> None:
    found = scraped(name)
    first = found.served.at(0, "vllm:generation_tokens_total")  # a request before the load
    assert total(found.record, "generated_tokens") - first == found.served.truth["completion_tokens"]
    assert total(found.record, "prefills") == found.served.truth["requests"]


@pytest.mark.parametrize("name", DRAFTING)
def test_judged_figures_are_those_of_the_counters(scraped: Callable[[str], Scraped], name: str) -> None:
    found = scraped(name)
    names = COUNTS[found.served.engine]
    steps, accepted = found.served.last(names["verify_steps"]), found.served.last(names["accepted_tokens"])
    with found.database.reading() as connection:
        diagnosis = diagnose(load_for_judgement(connection, found.stored[0].run_id))
    value = diagnosis.subject.value
    assert value("acceptance_length") == pytest.approx(1 + accepted / steps)
    assert value("draft_acceptance_rate") == pytest.approx(accepted / found.served.last(names["drafted_tokens"]))
    rates = diagnosis.subject.quantities["acceptance_rate_at"].value
    metric = ACCEPTED_AT[found.served.engine]
    assert rates == pytest.approx([found.served.last(metric, position=str(i)) / steps for i in range(len(rates))])
    assert not {finding.rule for finding in diagnosis.findings} & {"MEA002", "MEA003", "MEA004", "FLG006"}


@pytest.mark.parametrize(
    ("name", "coverage", "tokens_per_pass"),
    [
        ("vllm/eagle3", 17459 / (17459 + 409), 39264 / (17459 + 409)),  # decode steps and prefills
        ("vllm/ngram", 1818 / (4599 + 75), 7200 / (4599 + 75)),
        ("llamacpp/draft-near", 336 / 366, 1152 / 366),
        ("llamacpp/mixed-ngram-draft", 272 / 302, 1152 / 302),
    ],
)
def test_coverage_counts_every_pass_of_the_target(
    scraped: Callable[[str], Scraped], name: str, coverage: float, tokens_per_pass: float
) -> None:
    """Tokens that were accepted behind the end of an answer are in no counter of generated tokens: 1% here."""
    found = scraped(name)
    with found.database.reading() as connection:
        value = diagnose(load_for_judgement(connection, found.stored[0].run_id)).subject.value
    assert value("draft_coverage") == pytest.approx(coverage, rel=0.03)
    assert value("draft_coverage") <= 1
    assert value("tokens_per_target_pass") == pytest.approx(tokens_per_pass, rel=0.03)


@pytest.mark.parametrize(
    ("name", "batches"),
    [("vllm/baseline", [1.0, 2.34, 4.96, 6.24]), ("vllm/eagle3", [1.0, 1.0, 2.60, 3.20, 7.38, 7.75, 3.38])],
)
def test_the_batch_is_the_mean_over_the_steps_and_not_what_ran_at_the_end(
    scraped: Callable[[str], Scraped], name: str, batches: list[float]
) -> None:
    windows = [window for window in scraped(name).record.windows if window.seconds and window.generated_tokens]
    assert [window.running_requests for window in windows] == pytest.approx(batches, abs=0.005)


def test_idle_servers_run_nothing(scraped: Callable[[str], Scraped]) -> None:
    *_, last = scraped("vllm/eagle3").record.windows
    assert (last.running_requests, last.generation_throughput, last.verify_steps) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["vllm/eagle3", "llamacpp/draft-near", "vllm/ngram"])
def test_single_scrapes_continue_where_the_last_one_ended(
    database: Database, scraped: Callable[[str], Scraped], name: str
) -> None:
    with recorded(name) as served:
        for _ in served.snapshots:
            with watching(database, served) as watch:
                run_id = watch.take().run_id
    assert run_of(database, run_id).windows == scraped(name).record.windows
    assert run_of(database, run_id).prefills == scraped(name).record.prefills


@pytest.mark.parametrize("name", RECORDED)
def test_one_scrape_gives_everything_since_the_start(sqlite_database: Database, name: str) -> None:
    with recorded(name, only=slice(-1, None)) as served:
        (stored,) = scrape_all(sqlite_database, served)
    (window,) = run_of(sqlite_database, stored.run_id).windows
    assert stored.since_start
    assert (window.seconds, window.generation_throughput, window.running_requests) == (None, None, None)
    assert window.generated_tokens == served.last(COUNTS[served.engine]["generated_tokens"])


def test_latency_histograms_are_kept_as_exposed(scraped: Callable[[str], Scraped]) -> None:
    found = scraped("vllm/eagle3")
    with found.database.reading() as connection:
        last = last_scrape(connection, found.served.url)
        assert last is not None
    for name in ("time_to_first_token", "inter_token_latency", "request_time_per_output_token", "e2e_request_latency"):
        for part in ("sum", "count", "bucket"):
            full = f"vllm:{name}_seconds_{part}"
            kept = [v for (n, _), v in zip(last.state.series.series, last.state.values, strict=True) if n == full]
            assert sum(kept) == pytest.approx(found.served.last(full))


def test_latencies_of_a_stored_run_are_those_of_its_histograms(scraped: Callable[[str], Scraped]) -> None:
    found = scraped("vllm/eagle3")
    with found.database.reading() as connection:
        quantities = diagnose(load_for_judgement(connection, found.stored[0].run_id)).subject.quantities
    observed, total = (found.served.last(f"vllm:time_to_first_token_seconds_{part}") for part in ("count", "sum"))
    assert quantities["time_to_first_token_seconds"].value == pytest.approx(total / observed)
    assert "p99" in quantities["request_latency_seconds"].note
    assert "inter_token_latency_seconds" not in quantities


# ---- what an engine says of itself


def test_vllm_tells_release_model_depth_and_cache(scraped: Callable[[str], Scraped]) -> None:
    record = scraped("vllm/eagle3").record
    assert str(record.engine_version) == "0.32.0"
    told = {
        "model": "/models/tiny-target",
        "served_model_name": "tiny",
        "max_model_len": 512,
        "speculative_config.num_speculative_tokens": 3,
        "block_size": 128,
        "enable_prefix_caching": True,
        "num_gpu_blocks": 3640,
    }
    assert {name: record.arguments[name].effective for name in told} == told
    proof = record.arguments["speculative_config.num_speculative_tokens"].effective_evidence
    assert 'position="2"' in proof.text
    assert "VLLM_SERVER_DEV_MODE" in scraped("vllm/eagle3").stored[0].scrape.notes[0]


def test_vllm_in_development_mode_tells_method_and_draft(scraped: Callable[[str], Scraped]) -> None:
    found = scraped("vllm/eagle3-mixed-temperature")
    told = {
        "speculative_config.method": "eagle3",
        "speculative_config.model": "/models/tiny-eagle3",
        "speculative_config.num_speculative_tokens": 3,
        "async_scheduling": False,
        "max_num_seqs": 16,
        "enforce_eager": True,
        "dtype": "bfloat16",
        "compilation_config.cudagraph_mode": "NONE",
        "device": "cpu",
    }
    assert {name: found.record.arguments[name].effective for name in told} == told
    assert not found.stored[0].scrape.notes


def test_a_plain_vllm_server_is_known_to_be_plain(scraped: Callable[[str], Scraped]) -> None:
    found = scraped("vllm/baseline")
    argument = found.record.arguments["speculative_config"]
    assert argument.effective is None
    assert "no vllm:spec_decode_num_drafts_total" in argument.effective_evidence.text
    with found.database.reading() as connection:
        diagnosis = diagnose(load_for_judgement(connection, found.stored[0].run_id))
    assert diagnosis.subject.method is None
    assert diagnosis.subject.drafting.known
    assert load_quantities(diagnosis.subject.frame)["generation_throughput"].value > 0


@pytest.mark.parametrize(
    ("name", "build", "told"),
    [
        ("draft-near", "b11434", {"spec_type": "draft-simple", "spec_draft_n_max": 4, "parallel": 2}),
        ("mixed-ngram-draft", "b11434", {"spec_type": "ngram-map-k,draft-simple"}),
        ("override-vocab-content", "b11434", {"spec_type": "none"}),
        ("baseline", "b11434", {"spec_type": "none"}),
        ("b9093-draft-near", None, {"spec_type": "draft-simple"}),
    ],
)
def test_llamacpp_tells_build_model_and_whether_it_drafts(
    scraped: Callable[[str], Scraped], name: str, build: str | None, told: dict[str, Any]
) -> None:
    record = scraped(f"llamacpp/{name}").record
    assert (None if record.engine_version is None else str(record.engine_version)) == build
    assert {key: record.arguments[key].effective for key in told} == told
    assert record.arguments["model"].effective == "/models/target.gguf"
    assert record.arguments["alias"].effective.endswith("target.gguf")


def test_a_build_that_counts_no_drafts_is_not_said_to_make_none(scraped: Callable[[str], Scraped]) -> None:
    found = scraped("llamacpp/b9093-draft-near")
    with found.database.reading() as connection:
        diagnosis = diagnose(load_for_judgement(connection, found.stored[0].run_id))
    assert "FLG006" not in {finding.rule for finding in diagnosis.findings}
    assert any(item.rule == "FLG006" and "counts no drafts" in item.reason for item in diagnosis.skipped)


def test_slots_are_asked_again_once_they_have_served_a_request(sqlite_database: Database) -> None:
    """Before the first request no slot says how it drafts."""

    def unused(served: Recorded) -> None:
        after, answer = served.answers["/slots"], served.answer
        before = [200, [{"id": slot["id"], "speculative": True} for slot in after[1]]]

        def told(path: str, authorization: str | None) -> tuple[int, str, bytes]:
            served.answers["/slots"] = after if served.index > 0 else before
            return answer(path, authorization)

        served.answer = told

    with recorded("llamacpp/draft-near", change=unused) as served:
        stored = scrape_all(sqlite_database, served)
    types = [item.scrape.info.arguments.value("spec_type") for item in stored]
    assert types == ["draft", *["draft-simple"] * (len(stored) - 1)]
    assert served.requests.count("/slots") == 2


# ---- restarts, keys, and what is not turned on


def test_another_token_in_llamacpps_header_is_another_process(sqlite_database: Database) -> None:
    """Its counters may have passed the old ones by the time it is looked at again."""

    def slowly(served: Recorded) -> None:
        served.snapshots = [(at + 15.0 * i, body) for i, (at, body) in enumerate(served.snapshots)]

    with recorded("llamacpp/draft-near", change=slowly) as served, watching(sqlite_database, served) as watch:
        first = [watch.take(), watch.take()]
        served.token = "86400999999"
        after = watch.take()
    assert after.restarted
    assert after.run_id not in {item.run_id for item in first}
    (window,) = run_of(sqlite_database, after.run_id).windows
    assert window.seconds is None
    assert window.verify_steps == served.at(2, COUNTS["llamacpp"]["verify_steps"])


def test_a_vllm_server_that_was_restarted_is_a_run_of_its_own(sqlite_database: Database) -> None:
    def restarted(served: Recorded) -> None:
        at, body = served.snapshots[1]
        start = next(line for line in body.split(b"\n") if line.startswith(b"process_start_time_seconds"))
        served.snapshots = [served.snapshots[2], (at + 60, body.replace(start, b"process_start_time_seconds 1.8e+09"))]

    with recorded("vllm/eagle3", change=restarted) as served:
        before, after = scrape_all(sqlite_database, served)
    assert after.restarted
    assert not after.falls
    assert run_of(sqlite_database, after.run_id).started_at == 1.8e9
    assert after.run_id != before.run_id


def test_a_vllm_server_with_a_key_is_scraped_with_it(sqlite_database: Database) -> None:
    with recorded("vllm/eagle3", api_key="s3cret") as served:
        with watching(sqlite_database, served) as watch, pytest.raises(SourceError) as raised:
            watch.take()
        assert "--api-key" in raised.value.hint
        with watching(sqlite_database, served, api_key="s3cret") as watch:
            assert watch.take().run_id
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("owner", "status", "body", "hint"),
    [
        (
            "llamacpp",
            501,
            b'{"error":{"code":501,"message":"This server does not support metrics endpoint."}}',
            "--metrics",
        ),
        ("llamacpp", 404, b"", "llama.cpp: start the server with --metrics"),
        ("sglang", 404, b"", "SGLang: start the server with --enable-metrics"),
        ("tensorrt_llm", 404, b"", "TensorRT-LLM: set return_perf_metrics: true"),
    ],
)
def test_metrics_that_are_not_turned_on_are_told_with_the_engines_own_option(
    sqlite_database: Database, owner: str, status: int, body: bytes, hint: str
) -> None:
    def without(served: Recorded) -> None:
        served.answers["/v1/models"] = (200, {"data": [{"id": "m", "owned_by": owner}]})
        answer = served.answer

        def refusing(path: str, authorization: str | None) -> tuple[int, str, bytes]:
            return (status, "application/json", body) if path == "/metrics" else answer(path, authorization)

        served.answer = refusing

    with (
        recorded("llamacpp/draft-near", change=without) as served,
        watching(sqlite_database, served) as watch,
        pytest.raises(SourceError) as raised,
    ):
        watch.take()
    assert raised.value.what == "the server exposes no metrics"
    assert hint in raised.value.hint
    assert ";" not in raised.value.hint  # of one engine alone


def test_slots_that_are_turned_off_are_told(sqlite_database: Database) -> None:
    def without(served: Recorded) -> None:
        served.answers["/slots"] = (501, {"error": {"code": 501}})

    with recorded("llamacpp/draft-near", change=without) as served, watching(sqlite_database, served) as watch:
        stored = watch.take()
    assert "--no-slots" in stored.scrape.notes[0]
    assert not stored.scrape.info.arguments.seen("spec_type")  # nothing was drafted so far


@pytest.mark.parametrize("name", ["vllm/eagle3", "llamacpp/draft-near"])
def test_only_paths_that_read_are_asked(scraped: Callable[[str], Scraped], name: str) -> None:
    served = scraped(name).served
    assert served.requests.count("/metrics") == len(served.snapshots)
    own = {"/version", "/server_info?config_format=json"} if served.engine == "vllm" else {"/props", "/slots"}
    assert set(served.requests) == {"/metrics", "/v1/models"} | own
    assert all(served.requests.count(path) == 1 for path in own)


# ---- several programs


@pytest.mark.parametrize("name", ["vllm/eagle3", "llamacpp/draft-near"])
def test_two_programs_that_watch_one_engine_count_nothing_twice(database: Database, name: str) -> None:
    chance = random.Random(7)
    with recorded(name) as served, watching(database, served) as first, watching(database, served) as second:
        for _ in served.snapshots:
            run_id = chance.choice((first, second)).take().run_id
    record = run_of(database, run_id)
    for field, metric in COUNTS[served.engine].items():
        assert total(record, field) == served.last(metric), field


def test_programs_that_scrape_at_the_same_moment_count_nothing_twice(database: Database) -> None:
    """Both ask, then both store: the slower one finds that it was overtaken and goes on from there."""
    with recorded("vllm/eagle3") as served, watching(database, served) as first, watching(database, served) as second:
        first.take()
        second.take()
        early = first.scraper.scrape()
        run_id = second.take().run_id
        first.scraper.scrape = lambda: early  # what it was told before the other one stored
        assert first.take().interval.windows == []
        run_id = second.take().run_id
    record = run_of(database, run_id)
    assert not record.events_of("counter-reset")
    windows = [window for window in record.windows if window.seconds]
    assert sum(window.verify_steps for window in windows) == served.at(
        served.index, "vllm:spec_decode_num_drafts_total"
    )
