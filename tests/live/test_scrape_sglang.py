"""Recorded SGLang servers, replayed over HTTP and scraped into a database."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analysis.drafting import Drafting
from analysis.figures import load_quantities, pooled_acceptance
from analysis.frame import SINCE_START
from analysis.runner import diagnose
from collector.domain.errors import SourceError
from collector.domain.redaction import MASK
from collector.domain.runs import RunRecord
from collector.domain.windows import Origin, Window
from collector.ingest import ingest, load_for_judgement
from collector.scraping import SERIES_SECONDS, Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database
from collector.storage.runs import list_runs, load_run
from collector.storage.scrapes import last_scrape
from collector.storage.windows import load_series
from tests.live.conftest import Watched, scrape_all
from tests.live.replay import RECORDINGS, Recording, Replay, replay

LOGS = Path(__file__).parents[1] / "golden" / "logs" / "sglang"
SPECULATING = tuple(name for name in RECORDINGS if "baseline" not in name)
COUNTED = tuple(name for name in SPECULATING if name.startswith(("0.5.19", "0.5.23")))
Scraped = Callable[[str], Watched]
ONE_PROCESS = tuple(name for name in SPECULATING if "restarts" not in name)

WARM_UP_TOKENS = 8
"""Of the launcher's own request, which no answer was kept of."""
UNSEEN_LINE = 40 * 8
"""Steps that a mean since start can be behind: a decode line at 8 running requests."""


@contextmanager
def watching(database: Database, served: Replay, **options: Any) -> Iterator[Watch]:
    with Endpoint(served.url, **options) as endpoint:
        yield Watch(database, Scraper(endpoint, clock=served.clock))


def run_of(database: Database, run_id: int) -> RunRecord:
    with database.reading() as connection:
        return load_run(connection, run_id)


@dataclass
class Acceptance:
    steps: float
    accepted: float

    @property
    def length(self) -> float:
        return 1 + self.accepted / self.steps


def acceptance(windows: list[Window], origin: Origin) -> Acceptance | None:
    chosen = [window for window in windows if window.origin is origin and window.verify_steps]
    steps = sum(window.verify_steps for window in chosen)
    return Acceptance(steps, sum(window.accepted_tokens for window in chosen)) if steps else None


def last_counter(served: Replay, name: str, **labels: str) -> float:
    from collector.metrics.exposition import parse_exposition

    samples = parse_exposition(served.snapshots[-1][1], wanted={name})
    return sum(s.value for s in samples if labels.items() <= s.labels.items())


# ---- what a recording must come to


@pytest.mark.parametrize("name", RECORDINGS)
def test_release_and_effective_arguments_are_the_engines_own(watched: Scraped, name: str) -> None:
    recording, record = Recording(name), watched(name).records[-1]
    info = recording.info_at(recording.snapshots[-1][0])
    assert str(record.engine_version) == recording.truth["release"]
    for flag in (
        "speculative_algorithm",
        "speculative_num_steps",
        "speculative_num_draft_tokens",
        "max_running_requests",
    ):
        assert record.arguments[flag].effective == info[flag]
        assert record.arguments[flag].effective_evidence.text.startswith(f'"{flag}": ')
    assert "internal_states" not in record.arguments
    assert "version" not in record.arguments


@pytest.mark.parametrize(
    ("name", "asked", "runs"),
    [("0.5.9-override-draft-tokens", 16, 2), ("0.5.11-override-draft-tokens", 16, 2), ("0.5.23-eagle3", 4, 4)],
)
def test_two_tokens_are_verified_where_sixteen_were_asked_for(
    watched: Scraped, name: str, asked: int, runs: int
) -> None:
    (record,) = watched(name).records
    argument = record.arguments["speculative_num_draft_tokens"]
    assert argument.effective == runs
    if record.launch is not None:  # only later releases say how they were launched
        assert argument.requested == asked
        assert record.launch.requested["speculative_num_steps"] == 3


@pytest.mark.parametrize("name", ONE_PROCESS)
def test_one_scrape_gives_the_steps_since_the_start(sqlite_database: Database, name: str) -> None:
    """The engine's own total, against the answers to all requests."""
    with replay(name, only=slice(-1, None)) as served:
        stored = scrape_all(sqlite_database, served)[0]
    windows = run_of(sqlite_database, stored.run_id).windows
    truth = served.recording.sums(before=True)
    found = acceptance(windows, Origin.COUNTERS)
    assert stored.since_start
    assert all(window.seconds is None and window.generation_throughput is None for window in windows)
    lost = UNSEEN_LINE if name not in COUNTED else WARM_UP_TOKENS
    assert abs(found.steps - truth.steps) <= max(lost * 0.1, WARM_UP_TOKENS) + 0.02 * truth.steps
    early = 0.05 if name.startswith("0.4.6") else 0.02  # counts up to 2% more steps than its requests do
    assert truth.lowest - early <= found.length <= truth.highest + 0.03


@pytest.mark.parametrize("name", COUNTED)
def test_counted_intervals_add_up_to_the_answers_exactly(watched: Scraped, name: str) -> None:
    intervals = [window for item in watched(name).stored[1:] for window in item.interval.windows]
    truth = Recording(name).sums()
    found = acceptance(intervals, Origin.COUNTERS)
    assert found.steps == truth.steps
    assert found.accepted == truth.tokens - truth.requests - truth.steps
    assert truth.lowest - 1e-9 <= found.length <= truth.highest


@pytest.mark.parametrize("name", [name for name in ONE_PROCESS if name not in COUNTED])
def test_sampled_intervals_lie_where_that_many_steps_can_lie(watched: Scraped, name: str) -> None:
    """Recorded servers told their mean only at the end, so that the gauges are what remains in between."""
    width = watched(name).records[0].arguments.value("speculative_num_draft_tokens")
    intervals = [window for item in watched(name).stored[1:] for window in item.interval.windows]
    truth = Recording(name).sums()
    found = acceptance(intervals, Origin.GAUGES)
    assert 0.1 * truth.steps < found.steps < 1.2 * truth.steps
    spread = (width - 1) / 2 / math.sqrt(found.steps)  # no distribution over 0 to width - 1 spreads wider
    assert truth.lowest - 2 * spread <= found.length <= truth.highest + 2 * spread


@pytest.mark.parametrize("name", RECORDINGS)
def test_tokens_of_all_windows_are_those_of_the_last_counter(watched: Scraped, name: str) -> None:
    served, record = watched(name).served, watched(name).records[-1]
    windows = record.windows
    total = sum(window.generated_tokens or 0.0 for window in windows)
    decoded = last_counter(served, "sglang:realtime_tokens_total", mode="decode")
    if not decoded:
        finished = last_counter(served, "sglang:num_requests_total")
        decoded = last_counter(served, "sglang:generation_tokens_total") - finished
    assert total == decoded
    timed = [window for window in windows if window.seconds]
    for window in timed:
        assert window.generation_throughput == pytest.approx(window.generated_tokens / window.seconds)
    computed = last_counter(served, "sglang:realtime_tokens_total", mode="prefill_compute")
    assert sum(prefill.new_tokens for prefill in record.prefills) >= computed > 0 or name < "0.5.7"


def test_a_restart_is_a_run_of_its_own(watched: Scraped) -> None:
    scraped = watched("0.5.11-restarts")
    served, records = scraped.served, scraped.records
    assert len(records) == 3
    assert [item.restarted for item in scraped.stored].count(True) == 2
    effective = [
        (r.arguments.value("speculative_num_steps"), r.arguments.value("speculative_num_draft_tokens")) for r in records
    ]
    assert effective == [(3, 4), (1, 2), (4, 5)]
    assert [record.arguments.value("max_running_requests") for record in records] == [48, 48, 6]
    for number, record in enumerate(records):
        truth = served.recording.sums(process=number)
        assert record.windows[0].seconds is None
        assert not record.events_of("counter-reset")
        found = acceptance(record.windows, Origin.GAUGES)
        width = record.arguments.value("speculative_num_draft_tokens")
        spread = (width - 1) / 2 / math.sqrt(found.steps)
        assert truth.lowest - 2 * spread <= found.length <= truth.highest + 2 * spread
    final = acceptance(records[2].windows, Origin.COUNTERS)  # its mean was recorded after the load
    last = served.recording.sums(process=2)
    assert final.length == pytest.approx((last.lowest + last.highest) / 2, abs=0.03)
    with scraped.database.reading() as connection:
        subject = load_for_judgement(connection, scraped.run_ids[2])
    assert subject.previous.arguments.value("speculative_num_draft_tokens") == 2


def test_data_parallel_ranks_are_units(watched: Scraped) -> None:
    served, (record,) = watched("0.5.11-eagle3-dp2").served, watched("0.5.11-eagle3-dp2").records
    assert {window.unit for window in record.windows} == {"DP0", "DP1"}
    for rank in ("0", "1"):
        own = [window for window in record.windows if window.unit == f"DP{rank}"]
        tokens = sum(window.generated_tokens or 0.0 for window in own)
        assert tokens == last_counter(served, "sglang:realtime_tokens_total", mode="decode", dp_rank=rank)
    total = acceptance(record.windows, Origin.COUNTERS)
    truth = served.recording.sums(before=True)
    assert total.steps == pytest.approx(truth.steps, rel=0.03)
    assert truth.lowest - 0.02 <= total.length <= truth.highest + 0.03


def test_what_is_idle_runs_nothing_whatever_the_gauge_says(watched: Scraped) -> None:
    """The gauge of 0.5.11 says 2 running and 58 tok/s for 30 s after the last request."""
    stale = [item for item in watched("0.5.11-eagle3-retract").stored if item.interval.windows[0].generated_tokens == 0]
    assert len(stale) >= 4
    for item in stale:
        window = item.interval.windows[0]
        assert (window.running_requests, window.generation_throughput, window.verify_steps) in (
            (0.0, 0.0, None),
            (0.0, 0.0, 0.0),
        )


@pytest.mark.parametrize("name", ["0.5.11-restarts", "0.5.23-eagle3", "0.5.11-eagle3-dp2"])
def test_single_scrapes_continue_where_the_last_one_ended(database: Database, watched: Scraped, name: str) -> None:
    singles = []
    with replay(name) as served:
        for _ in served.snapshots:
            with watching(database, served) as watch:
                singles.append(watch.take())
    for record, run_id in zip(watched(name).records, dict.fromkeys(item.run_id for item in singles), strict=True):
        assert run_of(database, run_id).windows == record.windows
        assert run_of(database, run_id).prefills == record.prefills


def test_the_baseline_has_throughput_and_no_acceptance(watched: Scraped) -> None:
    windows = watched("0.5.9-baseline").records[0].windows
    assert all(window.verify_steps is None and window.printed_length is None for window in windows)
    busy = [window.running_requests for window in windows if window.generated_tokens and window.seconds]
    assert max(busy) == pytest.approx(8, abs=0.3)  # eight clients
    assert min(busy) >= 0.9


def test_latency_histograms_are_kept_as_exposed(watched: Scraped) -> None:
    scraped = watched("0.5.23-eagle3")
    with scraped.database.reading() as connection:
        last = last_scrape(connection, scraped.served.url)
    assert last is not None
    for name in ("time_to_first_token", "inter_token_latency", "e2e_request_latency"):
        for part in ("sum", "count", "bucket"):
            full = f"sglang:{name}_seconds_{part}"
            kept = [v for (n, _), v in zip(last.state.series.series, last.state.values, strict=True) if n == full]
            assert sum(kept) == pytest.approx(last_counter(scraped.served, full))


def test_series_are_kept_now_and_then(watched: Scraped) -> None:
    scraped = watched("0.5.23-eagle3")
    with scraped.database.reading() as connection:
        series = load_series(connection, scraped.run_ids[0], "sglang:generation_tokens_total")
    instants = [sample.at for sample in series]
    assert all(later - earlier >= SERIES_SECONDS for earlier, later in pairwise(instants))
    assert instants[-1] + SERIES_SECONDS > scraped.served.snapshots[-1][0]
    exposed = dict(scraped.served.snapshots)
    assert all(f"}} {sample.value:.1f}".encode() in exposed[sample.at] for sample in series)


# ---- one run from two sources


@pytest.mark.parametrize("name", ["0.5.9-eagle3", "0.5.23-eagle3"])
def test_log_and_metrics_of_one_process_are_one_run_and_never_summed(
    database: Database, tmp_path: Path, name: str
) -> None:
    log = tmp_path / "server.log"
    shutil.copy(LOGS / name / "log.txt", log)
    (of_log,) = ingest(database, [log]).run_ids
    with database.reading() as connection:
        alone = diagnose(load_for_judgement(connection, of_log))
    with replay(name) as served:
        stored = scrape_all(database, served)
    assert {item.run_id for item in stored} == {of_log}
    with database.reading() as connection:
        assert len(list_runs(connection).runs) == 1
        both = diagnose(load_for_judgement(connection, of_log))
    record = run_of(database, of_log)
    counted = acceptance(record.windows, Origin.COUNTERS)
    assert both.subject.pooled.verify_steps == counted.steps
    assert both.subject.pooled.length == pytest.approx(counted.length)
    assert alone.subject.pooled.origin is Origin.LOG
    assert alone.subject.pooled.length == pytest.approx(counted.length, abs=0.08)
    assert record.started_at is not None


def test_other_processes_on_the_port_are_other_runs(sqlite_database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    shutil.copy(LOGS / "0.5.11-eagle3" / "log.txt", log)
    (of_log,) = ingest(sqlite_database, [log]).run_ids
    with replay("0.5.11-override-draft-tokens") as served:
        assert of_log not in {item.run_id for item in scrape_all(sqlite_database, served)}


# ---- judged


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_scraped_run_can_be_judged(watched: Scraped, name: str) -> None:
    for run_id in watched(name).run_ids:
        with watched(name).database.reading() as connection:
            diagnosis = diagnose(load_for_judgement(connection, run_id))
        assert diagnosis.judged
        rules = {finding.rule for finding in diagnosis.findings}
        assert not rules & {"MEA002", "MEA003", "MEA004", "ACC001", "ACC002"}
        if name in SPECULATING:
            assert diagnosis.subject.method in ("eagle", "eagle3", "ngram")


def test_since_start_steps_back_once_later_windows_tell_how_it_is(watched: Scraped) -> None:
    (record,) = watched("0.5.23-eagle3").records
    assert SINCE_START not in set(framed(record.windows)["left_out"])
    later = [window for window in record.windows if window.seconds]
    many = [
        window._replace(at=window.at + 1_000 * k, position=window.position + k) for k in range(1, 4) for window in later
    ]
    frame = framed([*record.windows, *many])
    assert set(frame.loc[frame["seconds"].isna(), "left_out"]) == {SINCE_START}


@pytest.mark.parametrize(
    ("origins", "best"),
    [
        ([Origin.GAUGES], Origin.GAUGES),
        ([Origin.GAUGES, Origin.LOG], Origin.LOG),
        ([Origin.LOG, Origin.GAUGES, Origin.COUNTERS], Origin.COUNTERS),
        ([Origin.COUNTERS, Origin.REQUESTS], Origin.REQUESTS),
    ],
)
def test_acceptance_comes_from_the_best_source_alone(origins: list[Origin], best: Origin) -> None:
    windows = [
        Window(number, 0, 15.0 * number, seconds=15.0, running_requests=2.0, verify_steps=100.0 + number,
               accepted_tokens=50.0, generation_throughput=10.0, origin=origins[number % len(origins)])
        for number in range(24)
    ]  # fmt: skip
    pooled = pooled_acceptance(framed(windows), Drafting(method="eagle3", known=True, depth=3, width=4))
    chosen = [window for window in windows if window.origin is best]
    if best is Origin.LOG:
        chosen = chosen[1:]  # the first line of a process does not count
    assert pooled.origin is best
    assert pooled.verify_steps == sum(window.verify_steps for window in chosen)


def test_throughput_of_sampled_windows_counts_as_that_of_counted_ones() -> None:
    windows = [
        Window(n, 0, 15.0 * n, seconds=15.0, running_requests=2.0, generated_tokens=150.0 * (1 + n % 2),
               generation_throughput=10.0 * (1 + n % 2), origin=(Origin.COUNTERS, Origin.GAUGES)[n % 2])
        for n in range(10)
    ]  # fmt: skip
    assert load_quantities(framed(windows))["generation_throughput"].value == pytest.approx(15.0)


def test_a_scraped_window_with_a_long_pause_inside_says_nothing_of_the_speed() -> None:
    busy = [
        Window(n, 0, 15.0 * n, seconds=15.0, running_requests=4.0, generated_tokens=900.0, generation_throughput=60.0,
               prefills=3, origin=Origin.COUNTERS)
        for n in range(6)
    ]  # fmt: skip
    paused = busy[3]._replace(generated_tokens=60.0, generation_throughput=4.0)
    frame = framed([*busy[:3], paused, *busy[4:]])
    assert list(frame["steady"]) == [True, True, True, False, True, True]
    assert frame["counted"].all()
    assert load_quantities(frame)["generation_throughput"].value == pytest.approx(60.0)


def framed(windows: list[Window]) -> Any:
    from analysis.frame import window_frame
    from analysis.thresholds import Thresholds

    return window_frame("sglang", windows, Thresholds(), on_cpu=True)


# ---- what is asked of the engine


@pytest.mark.parametrize(
    "name", ["0.4.6.post5-eagle3", "0.5.3.post3-eagle3-beta-spec", "0.5.9-eagle3", "0.5.23-eagle3"]
)
def test_only_paths_that_read_are_asked(watched: Scraped, name: str) -> None:
    served = watched(name).served
    assert {method for method, _ in served.requests} == {"GET"}
    paths = [path for _, path in served.requests]
    assert set(paths) <= {"/v1/models", "/metrics", "/server_info", "/get_server_info"}
    assert paths.count("/v1/models") == 1  # says who it is
    old = served.recording.truth["info_path"] == "/get_server_info"
    assert paths.count("/server_info" if old else "/get_server_info") == (1 if old else 0)
    assert paths.count("/metrics") == len(served.snapshots)
    if name in COUNTED:  # counts its steps itself: asked once
        assert paths.count("/server_info") == 1


def test_the_served_name_comes_from_the_list_of_models_where_arguments_do_not_state_it(
    sqlite_database: Database,
) -> None:
    def nameless(info: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in info.items() if key != "served_model_name"}

    with replay("0.5.9-eagle3", only=slice(-1, None), change_info=nameless) as served:
        run_id = scrape_all(sqlite_database, served)[0].run_id
    assert run_of(sqlite_database, run_id).arguments.value("served_model_name") == "tiny"
    assert ("GET", "/v1/models") in served.requests


def test_a_key_is_asked_for_used_and_never_stored(sqlite_database: Database) -> None:
    secret = "correct-horse-battery"

    def keyed(info: dict[str, Any]) -> dict[str, Any]:
        return {
            **info,
            "api_key": secret,
            "admin_api_key": secret,
            "launch_command": f"--model-path m --api-key {secret}",
        }

    with replay("0.5.23-eagle3", api_key=secret, change_info=keyed) as served:
        with watching(sqlite_database, served) as watch, pytest.raises(SourceError) as raised:
            watch.take()
        assert "--api-key" in raised.value.hint
        with watching(sqlite_database, served, api_key="wrong") as watch, pytest.raises(SourceError):
            watch.take()
        with watching(sqlite_database, served, api_key=secret) as watch:
            stored = watch.take()
    record = run_of(sqlite_database, stored.run_id)
    assert record.arguments["api_key"].effective == MASK
    assert record.arguments["api_key"].requested == MASK
    with sqlite_database.reading() as connection:
        dump = "\n".join(connection.connection.driver_connection.iterdump())
    assert secret not in dump
    assert "api_key" in dump


# ---- resets


def test_counters_that_fall_in_one_process_are_an_event_and_no_window(sqlite_database: Database) -> None:
    with replay("0.5.23-eagle3") as served:
        times = [at for at, _ in served.snapshots]
        bodies = [body for _, body in served.snapshots]
        served.snapshots = list(zip(times, [*bodies[:3], *bodies[1:5]], strict=True))
        stored = scrape_all(sqlite_database, served)
    assert len({item.run_id for item in stored}) == 1
    record = run_of(sqlite_database, stored[0].run_id)
    (event,) = record.events_of("counter-reset")
    assert event.values["before"] > event.values["after"]
    assert stored[3].falls
    assert not stored[3].interval.windows
    assert all(window.verify_steps >= 0 and window.generated_tokens >= 0 for window in record.windows)
    with sqlite_database.reading() as connection:
        rules = {finding.rule for finding in diagnose(load_for_judgement(connection, stored[0].run_id)).findings}
    assert "MEA004" in rules


def test_the_start_of_the_process_is_taken_where_it_is_exposed(sqlite_database: Database) -> None:
    def started(body: bytes, at: float) -> bytes:
        return body + f"process_start_time_seconds {at}\n".encode()

    with replay("0.5.23-eagle3") as served:
        first, later = served.snapshots[:3], served.snapshots[3:]
        served.snapshots = [(at, started(body, 1795976531.5)) for at, body in first]
        served.snapshots += [(at, started(body, 1795976641.25)) for at, body in later]  # another, that counted more
        stored = scrape_all(sqlite_database, served)
    assert [item.restarted for item in stored] == [False, False, False, True, False, False, False]
    starts = [run_of(sqlite_database, run_id).started_at for run_id in dict.fromkeys(item.run_id for item in stored)]
    assert starts == [1795976531.5, 1795976641.25]


def test_recordings_are_complete() -> None:
    assert len(RECORDINGS) >= 18
    assert all(len(Recording(name).snapshots) >= 4 for name in RECORDINGS)
