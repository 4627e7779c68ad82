from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select

from collector.domain.arguments import UNSEEN, Arguments
from collector.domain.errors import StorageError, UnknownName
from collector.domain.evidence import Evidence
from collector.domain.findings import Question, State, Verdict
from collector.domain.runs import Event, Reading, RunRecord, UnreadShape
from collector.domain.series import SeriesSample
from collector.domain.windows import Coded, Columns, CountsAt, Origin, Partial, PrefillWindow, Window
from collector.storage.drafts import list_drafts
from collector.storage.engine import Database
from collector.storage.findings import Judgement, save_judgement
from collector.storage.packing import pack_counts, pack_rows, unpack_counts
from collector.storage.runs import (
    RunFilter,
    list_runs,
    load_arguments,
    load_run,
    load_stored,
    save_arguments,
    save_run,
)
from collector.storage.sources import Checkpoint, add_source, find_sources, load_readings, save_progress, source_at
from collector.storage.tables import METADATA
from collector.storage.windows import append_series, append_window_columns, append_windows, load_series, load_windows
from tests.storage.strategies import RECORD, records, windows

EXAMPLES = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextmanager
def undone(database: Database) -> Iterator[Connection]:
    """A transaction that leaves nothing behind."""
    with database.engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


def counts(connection: Connection) -> dict[str, int]:
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in METADATA.sorted_tables
    }


def canonical(record: RunRecord) -> dict[str, str]:
    """Every field in a form in which NaN equals NaN and the order of names does not matter."""

    def plain(value: object) -> object:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return repr(float(value) + 0.0)  # PostgreSQL has no -0.0 in JSON
        if isinstance(value, Window) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return tuple(plain(item) for item in value)
        if isinstance(value, Arguments):
            value = value.by_name
        if isinstance(value, dict):
            return sorted((str(key), repr(plain(item))) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if hasattr(value, "__dataclass_fields__"):
            return [(name, plain(getattr(value, name))) for name in value.__dataclass_fields__]
        return value

    return {field.name: repr(plain(getattr(record, field.name))) for field in fields(record) if field.compare}


def store(connection: Connection, record: RunRecord, *, name: str = "input.log", **options: object) -> int:
    source = source_at(connection, name, at=1.0)
    return save_run(connection, record, source_id=source, at=2.0, **options)


def test_every_field_of_records_and_windows_is_made_up() -> None:
    """What the strategies leave out is not tested."""
    assert set(RECORD) == {field.name for field in fields(RunRecord)} - {"line_text"}
    assert {field.name for field in fields(Event)} == {"kind", "evidence", "at", "values"}
    assert set(PrefillWindow._fields) == {"position", "line", "at", "unit", "new_tokens", "cached_tokens"}


@EXAMPLES
@given(record=records())
def test_a_run_comes_back_as_it_was(database: Database, record: RunRecord) -> None:
    with undone(database) as connection:
        run_id = store(connection, record)
        assert canonical(load_run(connection, run_id)) == canonical(record)


@EXAMPLES
@given(record=records())
def test_storing_twice_adds_nothing(database: Database, record: RunRecord) -> None:
    with undone(database) as connection:
        run_id = store(connection, record)
        once = counts(connection)
        assert store(connection, record) == run_id
        assert counts(connection) == once
        assert canonical(load_run(connection, run_id)) == canonical(record)


@pytest.mark.parametrize(
    "value", [2.31e-307, 1.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, 2**60, 2**80, None, True, "1.0", ""]
)
def test_arguments_keep_their_type_and_every_digit(database: Database, value: object) -> None:
    with undone(database) as connection:
        run_id = store(
            connection, RunRecord("sglang", "input.log", arguments=Arguments().with_effective({"mem": value}, None))
        )
        read = load_arguments(connection, run_id)["mem"].effective
        assert (type(read), repr(read)) == (type(value), repr(value))


@EXAMPLES
@given(record=records(), cut=st.integers(0, 12))
def test_a_run_stored_in_parts_is_the_run_stored_at_once(database: Database, record: RunRecord, cut: int) -> None:
    first = replace(record, windows=record.windows[:cut], events=record.events[:1], prefills=[])
    rest = replace(record, windows=record.windows[cut:], events=record.events[1:])
    with undone(database) as connection:
        run_id = store(connection, first)
        assert store(connection, rest) == run_id
        assert canonical(load_run(connection, run_id)) == canonical(record)


def test_many_windows_take_the_copying_path(database: Database) -> None:
    made = [
        Window(position, position, 1.5 * position, "TP0", printed_length=math.nan if position % 7 == 0 else 2.5,
               accepted_at=(300.0, 20.0, 1.0), graph=position % 2 == 0)
        for position in range(1000)
    ]  # fmt: skip
    with database.transaction() as connection:
        run_id = store(connection, RunRecord("sglang", "input.log"))
        source = source_at(connection, "input.log", at=1.0)
        assert append_windows(connection, run_id, source, made[:600]) == 600
        assert append_windows(connection, run_id, source, made[400:]) == 400
        assert append_windows(connection, run_id, source, made) == 0
    with database.reading() as connection:
        assert repr(load_windows(connection, [run_id])[run_id]) == repr(made)
        between = load_windows(connection, [run_id], since=15.0, until=30.0)[run_id]
        assert [window.position for window in between] == list(range(10, 21))


@pytest.mark.parametrize("count", [1, 39, 40, 99, 100, 199, 200, 601])
def test_windows_in_arrays_are_stored_as_the_same_windows_in_rows(database: Database, count: int) -> None:
    number = np.arange(count)
    unsaid = np.where(number % 3 == 1, np.nan, number % 2)
    values = {
        "position": number * 100,
        "line": number + 1,
        "at": 1.7e9 + number / 3,
        "unit": Coded(["DP0", "DP1"], number % 2),
        "running_requests": number.astype(np.float64),
        "printed_rate": Partial(unsaid / 7),
        "accepted_tokens": Partial(unsaid, int),
        "graph": Partial(unsaid, bool),
        "prefills": number % 5,
        "origin": Origin.LOG,
    }
    columns = Columns(Window, count, tuple(values.get(name) for name in Window._fields))
    with undone(database) as connection:
        run_id = store(connection, RunRecord("sglang", "input.log"))
        source = source_at(connection, "input.log", at=1.0)
        assert append_window_columns(connection, run_id, source, columns.part(slice(0, count // 2))) == count // 2
        assert append_window_columns(connection, run_id, source, columns) == count - count // 2
        loaded = load_windows(connection, [run_id])[run_id]
    assert loaded == columns.rows()
    assert [window.graph for window in loaded[:3]] == [False, None, False][:count]
    assert all(isinstance(window.position, int) for window in loaded)


@given(made=windows())
@settings(max_examples=50)
def test_packed_counts_come_back(made: list[Window]) -> None:
    for window in made:
        assert repr(unpack_counts(pack_counts(window.accepted_at))) == repr(window.accepted_at)


COUNT = st.one_of(
    st.integers(0, 300), st.integers(0, 1 << 54), st.sampled_from([255, 256, 65_536, 1 << 32, math.inf, -1, 0.5])
)


@given(st.lists(st.lists(COUNT.map(float), max_size=4), min_size=1, max_size=20))
def test_rows_of_an_array_are_packed_as_each_is(rows: list[list[float]]) -> None:
    counts = np.full((len(rows), 4), np.nan)
    for number, row in enumerate(rows):
        counts[number, : len(row)] = row
    column = CountsAt(counts)
    assert column.tolist() == [tuple(row) or None for row in rows]
    assert pack_rows(column[1:].counts) == [pack_counts(one) for one in column.tolist()[1:]]


def test_whole_counts_take_a_byte_each() -> None:
    assert len(pack_counts((120.0, 60.0, 7.0, 0.0)) or b"") == 5


def test_text_that_postgresql_cannot_hold_is_replaced_alike_everywhere(database: Database) -> None:
    event = Event("crashed", Evidence("a\0b.log", 3, "torn \udcff line\0"), values={"na\0me": ["\ud800"]})
    record = RunRecord("sglang", "a\0b.log", events=[event], windows=[Window(0, 1, 2.0, "TP\0 0")])
    with database.transaction() as connection:
        run_id = store(connection, record)
        loaded = load_run(connection, run_id)
    assert loaded.source == "a␀b.log"
    assert loaded.events[0].evidence.text == "torn ? line␀"
    assert loaded.events[0].values == {"na␀me": ["?"]}
    assert loaded.windows[0].unit == "TP␀ 0"


def test_not_seen_differs_from_seen_as_unset(database: Database) -> None:
    arguments = Arguments().updated("stated", requested=None).updated("silent", effective=3)
    with database.transaction() as connection:
        run_id = store(connection, RunRecord("sglang", "input.log", arguments=arguments))
        loaded = load_arguments(connection, run_id)
        assert loaded["stated"].requested is None
        assert loaded["silent"].requested is UNSEEN
        save_arguments(connection, run_id, Arguments().updated("stated", effective=True, predicted=1))
        merged = load_arguments(connection, run_id)["stated"]
    assert (merged.requested, merged.predicted, merged.effective) == (None, 1, True)


def test_what_is_known_stays_known(database: Database) -> None:
    known = RunRecord("sglang", "input.log", started_at=100.0, ended_at=900.0, temperature=0.5, labels={"team": "a"})
    with database.transaction() as connection:
        run_id = store(connection, known, deployment="chat")
        later = RunRecord("sglang", "input.log", started_at=100.0, ended_at=500.0, labels={"route": "b"})
        assert store(connection, later) == run_id
        loaded = load_run(connection, run_id)
        assert load_stored(connection, run_id).deployment == "chat"
    assert (loaded.ended_at, loaded.temperature, loaded.labels) == (900.0, 0.5, {"team": "a", "route": "b"})


def test_a_run_on_a_named_host_is_one_run_whoever_tells_of_it(database: Database) -> None:
    with database.transaction() as connection:
        named = RunRecord("sglang", "a", started_at=100.0, host="node-7", port=30000)
        assert store(connection, named, name="a") == store(connection, replace(named, source="b"), name="b")
        # An address to listen on names no machine: two files may well be two replicas.
        anyone = replace(named, host="0.0.0.0")
        assert store(connection, anyone, name="a", ordinal=1) != store(connection, anyone, name="b", ordinal=1)


def test_an_unknown_run_is_named(database: Database) -> None:
    with database.reading() as connection, pytest.raises(UnknownName, match="no run has the id 7"):
        load_run(connection, 7)


def test_runs_are_listed_page_by_page_latest_first(database: Database) -> None:
    with database.transaction() as connection:
        ids = [
            store(connection, RunRecord("sglang", f"{number}.log", started_at=1000.0 - number // 2), ordinal=number)
            for number in range(7)
        ]
        expected = sorted(ids, key=lambda run_id: (1000.0 - ids.index(run_id) // 2, run_id), reverse=True)
        seen: list[int] = []
        following = None
        while True:
            page = list_runs(connection, limit=3, following=following)
            seen += [run.id for run in page.runs]
            following = page.following
            if following is None:
                break
    assert seen == expected


def test_runs_are_chosen_by_what_they_are(database: Database) -> None:
    def record(name: str, algorithm: str | None) -> RunRecord:
        stated = {"speculative_algorithm": algorithm, "model_path": f"/models/{name}"}
        return RunRecord("sglang", f"{name}.log", arguments=Arguments().with_effective(stated, None))

    with database.transaction() as connection:
        plain = store(connection, record("Plain_1", None), ordinal=0)
        eagle = store(connection, record("drafty", "EAGLE3"), ordinal=1, sample=True, deployment="chat")
        verdict = Verdict(Question.PAYOFF, State.PROBLEM, "slower", "")
        save_judgement(connection, eagle, Judgement("It does not pay", (verdict,), summary={"tau": 1.8}), at=5.0)

        def chosen(**options: object) -> list[int]:
            return [run.id for run in list_runs(connection, RunFilter(**options)).runs]

        assert chosen(method="") == [plain]
        assert chosen(method="eagle3") == chosen(sample=True) == chosen(deployment="chat") == [eagle]
        assert chosen(verdict=(Question.PAYOFF, State.PROBLEM)) == [eagle]
        assert chosen(verdict=(Question.PAYOFF, State.OK)) == []
        assert chosen(text="plain_") == [plain]
        assert chosen(text="%") == []
        assert set(chosen(engine="sglang")) == {plain, eagle}
        stored = load_stored(connection, eagle)
    assert (stored.headline, stored.summary, stored.judged_at) == ("It does not pay", {"tau": 1.8}, 5.0)
    assert stored.verdicts == {Question.PAYOFF: verdict}
    assert stored.serving.target_model == "/models/drafty"


@pytest.mark.parametrize("origin", Origin)
def test_every_origin_comes_back(database: Database, origin: Origin) -> None:
    with database.transaction() as connection:
        record = RunRecord("sglang", "input.log", windows=[Window(0, 1, 2.0, origin=origin)])
        assert load_run(connection, store(connection, record)) == record


def test_series_are_kept_by_name_and_labels(database: Database) -> None:
    samples = [
        SeriesSample("queue", {"rank": str(rank)}, float(at), value)
        for rank in (0, 1)
        for at, value in ((10, 1.0), (20, math.inf), (30, math.nan))
    ]
    with database.transaction() as connection:
        run_id = store(connection, RunRecord("sglang", "http://node:30000/metrics"))
        assert append_series(connection, run_id, samples) == 6
        assert append_series(connection, run_id, [*samples, SeriesSample("other", {}, 1.0, 2.0)]) == 1
        assert repr(load_series(connection, run_id, "queue")) == repr(samples)
        assert [sample.at for sample in load_series(connection, run_id, "queue", since=20.0)] == [20, 30, 20, 30]


def test_a_source_keeps_its_checkpoint_and_reading(database: Database) -> None:
    reading = Reading(
        "input.log", "subject", "log", lines=9, engine_lines=8, understood=5, unread=3, torn_samples=1, oversize_lines=1,
        unread_shapes=(UnreadShape("Foo #", 3, Evidence("input.log", 4, "Foo 12")),), notes=("cut",),
    )  # fmt: skip
    checkpoint = Checkpoint(1234, 1200, True, "aa", 1000, "bb", "cc")
    with database.transaction() as connection:
        source = add_source(connection, "/logs/input.log", reading, at=1.0)
        run_id = save_run(connection, RunRecord("sglang", "input.log"), source_id=source, at=2.0)
        save_progress(connection, source, checkpoint, reading, path="/logs/input.log", at=3.0)
    with database.reading() as connection:
        (stored,) = find_sources(connection, "/logs/input.log")
        assert (stored.id, stored.checkpoint, stored.reading) == (source, checkpoint, reading)
        assert load_readings(connection, run_id) == [reading]


def test_a_checkpoint_of_one_draft_is_one_draft(database: Database) -> None:
    from collector.domain.drafts import ModelConfig, Validation

    config, first, second = ModelConfig("config.json", {"layers": 1}), Validation(0.7), Validation(0.75)
    with database.transaction() as connection:
        for ordinal, validation in enumerate((first, second, first)):
            record = RunRecord("sglang", "input.log", draft_config=config, validation=validation)
            store(connection, record, ordinal=ordinal)
        (draft,) = list_drafts(connection)
    assert (draft.config, draft.validations) == (config, (first, second))


def test_a_port_that_cannot_be_one_is_left_out(database: Database) -> None:
    with database.transaction() as connection:
        for ordinal, port in enumerate((0, -1, 65536, 10**30)):
            run_id = store(connection, RunRecord("sglang", "input.log", port=port), ordinal=ordinal)
            assert load_run(connection, run_id).port is None


@pytest.mark.parametrize("others", [1, 500])
def test_a_failed_unit_of_work_leaves_nothing(database: Database, others: int) -> None:
    def store_one_good_and_one_bad() -> None:
        with database.transaction() as connection:
            store(connection, RunRecord("sglang", "input.log", windows=[Window(0, 1, 5.0)]))
            bad = Window(9000, 1, None)  # type: ignore[arg-type]
            many = [Window(position, 1, 5.0) for position in range(others)]
            store(connection, RunRecord("sglang", "input.log", windows=[*many, bad]))

    with pytest.raises(StorageError, match="refused"):
        store_one_good_and_one_bad()
    with database.reading() as connection:
        assert set(counts(connection).values()) == {0}
