"""Runs: storing what was read about them, loading them back, and listing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Row, Select, String, and_, cast, func, insert, or_, select, update

from collector.domain.arguments import UNSEEN, Argument, Arguments, LaunchCommand
from collector.domain.deployments import Serving
from collector.domain.errors import UnknownName
from collector.domain.evidence import Evidence
from collector.domain.findings import Question, State, Verdict
from collector.domain.results import BenchmarkRow, Latency
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import Window
from collector.storage.bulk import digest_of, insert_or_keep
from collector.storage.documents import from_document, to_document
from collector.storage.drafts import (
    load_config,
    load_draft_config,
    load_validation,
    save_config,
    save_draft,
    save_validation,
)
from collector.storage.lines import load_lines, save_lines
from collector.storage.live import Fineness
from collector.storage.requests import append_requests, load_requests
from collector.storage.sources import attach_source
from collector.storage.tables import ARGUMENTS, JUDGEMENTS, RUN_EVENTS, RUN_SOURCES, RUNS, VERDICTS
from collector.storage.types import dump_json, load_json
from collector.storage.windows import append_prefills, append_windows, load_samples

NOWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]", "127.0.0.1", "::1", "localhost", "*"})  # noqa: S104 - names, not a bind
"""Hosts that name no machine: addresses to listen on, and a machine's word for itself."""

_LARGE: Final = frozenset({"launch", "results", "latencies"})
"""Columns that no list shows."""
_LISTED: Final = [column for column in RUNS.c if column.name not in _LARGE]

KEPT_SUMMARIES: Final = 1_000
"""Summaries of judgements held in memory, about 20 kB each."""

SAME_START_SECONDS: Final = 1.0
"""Two readings of one process's start differ by less."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run as a list shows it: no windows, no arguments.

    ``verdicts``, ``headline`` and ``summary`` are those of the last judgement, empty where there was none.
    """

    id: int
    engine: str
    engine_version: Release | None
    release_range: ReleaseRange
    serving: Serving
    deployment: str | None
    host: str
    port: int | None
    source: str
    started_at: float | None
    ended_at: float | None
    labels: Mapping[str, str]
    sample: bool
    judged_at: float | None = None
    headline: str = ""
    verdicts: Mapping[Question, Verdict] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; what is ``None`` or empty does not restrict.

    ``text`` is looked for in models, deployment, host and source; ``verdict`` is a question and its state.
    """

    engine: str | None = None
    method: str | None = None
    deployment: str | None = None
    sample: bool | None = None
    verdict: tuple[Question, State] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, the latest first; ``following`` continues where they end, ``None`` at the last page."""

    runs: tuple[StoredRun, ...]
    following: str | None


# -- storing --------------------------------------------------------------------------------------


def save_run(
    connection: Connection,
    record: RunRecord,
    *,
    source_id: int,
    ordinal: int = 0,
    run_id: int | None = None,
    deployment: str | None = None,
    sample: bool = False,
    provisional: bool = False,
    at: float,
) -> int:
    """Store everything a record holds, or add it to the run it belongs to; returns the run's id.

    A run is identified by host, port and start where the host names a machine, else by its place
    in its source (``ordinal``), unless the caller knows it (``run_id``). What is known stays known:
    unseen values erase nothing, windows and events that are stored already are left as they are.
    ``provisional`` events hold only because the source ended there. ``at`` is the present instant.
    """
    if run_id is None:
        identity = run_identity(record, source_id, ordinal)
        run_id = _find_or_add(connection, record, identity, sample=sample, at=at)
    attach_source(connection, run_id, source_id, ordinal=ordinal)
    save_arguments(connection, run_id, record.arguments)
    _save_events(connection, run_id, source_id, record.events, provisional=provisional)
    append_windows(connection, run_id, source_id, record.windows)
    append_prefills(connection, run_id, source_id, record.prefills)
    append_requests(connection, run_id, source_id, record.requests)
    _update_run(connection, run_id, record, deployment=deployment)
    return run_id


def run_identity(record: RunRecord, source_id: int, ordinal: int) -> str:
    """What makes two records the same run, as a digest."""
    if record.host not in NOWHERE and record.started_at is not None:
        return digest_of(record.engine, record.host, record.port, f"{record.started_at:.2f}")
    return digest_of(record.engine, "source", source_id, ordinal)


def _port(stated: int | None) -> int | None:
    """A port that can be one; an argument line may state anything."""
    return stated if stated is not None and 0 < stated < 1 << 16 else None


def run_of_source(connection: Connection, source_id: int, started_at: float | None) -> int:
    """Which run of an endpoint it is that started then, as its ordinal: one that is known, or the next.

    Without a start it is the latest one.
    """
    columns = RUN_SOURCES.c
    query = (
        select(columns.ordinal, RUNS.c.started_at)
        .join_from(RUN_SOURCES, RUNS, columns.run_id == RUNS.c.id)
        .where(columns.source_id == source_id)
        .order_by(columns.ordinal.desc())
    )
    known = connection.execute(query).all()
    for row in known:
        if started_at is None or row.started_at is None or abs(row.started_at - started_at) < SAME_START_SECONDS:
            return int(row.ordinal)
    return known[0].ordinal + 1 if known else 0


def _find_or_add(connection: Connection, record: RunRecord, identity: str, *, sample: bool, at: float) -> int:
    listed_at = next(moment for moment in (record.started_at, record.ended_at, at) if moment is not None)
    serving = Serving.of(record.engine, record.arguments)
    values = {
        "identity": identity,
        "engine": record.engine,
        "host": record.host,
        "port": _port(record.port),
        "started_at": record.started_at,
        "listed_at": listed_at,
        "source": record.source,
        "labels": {},
        "results": [],
        "latencies": {},
        "requests_asked": record.requests_asked,
        "sample": sample,
        **asdict(serving),
    }
    connection.execute(insert_or_keep(connection, RUNS), values)
    return int(connection.execute(select(RUNS.c.id).where(RUNS.c.identity == identity)).scalar_one())


def _update_run(connection: Connection, run_id: int, record: RunRecord, *, deployment: str | None) -> None:
    row = _row(connection, run_id)
    serving = Serving.of(record.engine, load_arguments(connection, run_id))
    values: dict[str, Any] = {**asdict(serving), "labels": {**row.labels, **record.labels}}
    known = {
        "port": _port(record.port),
        "started_at": record.started_at,
        "temperature": record.temperature,
        "accelerator": record.device,
        "deployment": deployment,
        "engine_version": None if record.engine_version is None else str(record.engine_version),
        "launch": None if record.launch is None else to_document(record.launch),
        "results": to_document(record.results) or None,
        "latencies": to_document(record.latencies) or None,
        "requests_asked": record.requests_asked or None,
    }
    if record.release_range != ReleaseRange():
        ends = record.release_range.first, record.release_range.last
        values["release_first"], values["release_last"] = (None if end is None else str(end) for end in ends)
    values["listed_at"] = next(
        moment for moment in (record.started_at, row.started_at, record.ended_at, row.listed_at) if moment is not None
    )
    if record.ended_at is not None:
        known["ended_at"] = max(record.ended_at, row.ended_at or record.ended_at)
    if record.target_config is not None:
        known["target_config_id"] = save_config(connection, record.target_config)
    if record.draft_config is not None or record.validation is not None:
        config = record.draft_config or load_draft_config(connection, row.draft_id)
        known["draft_id"] = draft_id = save_draft(connection, serving.draft_model, config)
        if record.validation is not None:
            known["validation_id"] = save_validation(connection, draft_id, record.validation)
    values |= {name: value for name, value in known.items() if value is not None}
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(values))


def save_arguments(connection: Connection, run_id: int, arguments: Arguments) -> None:
    """Add what is known of a run's arguments; values that are unseen here stay as they are stored."""
    if not arguments:
        return
    columns = ARGUMENTS.c
    stored = {row.name: row for row in connection.execute(select(ARGUMENTS).where(columns.run_id == run_id))}
    fresh: list[dict[str, Any]] = []
    for item in arguments.values():
        values: dict[str, Any] = {name: getattr(item, name) for name in ("requested", "predicted", "effective")}
        values |= _proof_columns("requested", item.requested_evidence)
        values |= _proof_columns("effective", item.effective_evidence)
        row = stored.get(item.name)
        if row is None:
            fresh.append({"run_id": run_id, "name": item.name, **values})
            continue
        changed = {name: value for name, value in values.items() if _is_news(name, value, getattr(row, name))}
        if changed:
            connection.execute(
                update(ARGUMENTS).where(columns.run_id == run_id, columns.name == item.name).values(changed)
            )
    if fresh:
        connection.execute(insert(ARGUMENTS), fresh)


def _proof_columns(kind: str, proof: Evidence | None) -> dict[str, Any]:
    parts = (None, None, None) if proof is None else (proof.source, proof.line, proof.text)
    return dict(zip((f"{kind}_source", f"{kind}_line", f"{kind}_text"), parts, strict=True))


def _proof(row: Row[Any], kind: str) -> Evidence | None:
    source, line, text = (getattr(row, f"{kind}_{part}") for part in ("source", "line", "text"))
    return None if source is None else Evidence(source, line, text)


def _is_news(column: str, value: Any, stored: Any) -> bool:
    """Whether a value says something that is not stored; ``True`` and ``1`` differ."""
    if value is UNSEEN or (value is None and column not in ("requested", "predicted", "effective")):
        return False
    return stored is UNSEEN or dump_json(value) != dump_json(stored)


def _save_events(
    connection: Connection, run_id: int, source_id: int, events: Sequence[Event], *, provisional: bool
) -> None:
    if not events:
        return
    lines = save_lines(connection, run_id, [event.evidence for event in events])
    rows = [
        {
            "run_id": run_id,
            "source_id": source_id,
            "provisional": provisional,
            "digest": digest_of(event.kind, event.at, sorted(event.values.items()), lines[event.evidence]),
            "kind": event.kind,
            "at": event.at,
            "figures": dict(event.values),
            "line_id": lines[event.evidence],
        }
        for event in events
    ]
    connection.execute(insert_or_keep(connection, RUN_EVENTS), rows)


def extend_run(
    connection: Connection,
    run_id: int,
    source_id: int,
    events: Sequence[Event],
    *,
    ended_at: float | None,
    provisional: bool = False,
) -> None:
    """Add events and a later end to a run of which all else is stored."""
    _save_events(connection, run_id, source_id, events, provisional=provisional)
    if ended_at is not None:
        later = RUNS.c.ended_at.is_(None) | (RUNS.c.ended_at < ended_at)
        connection.execute(update(RUNS).where(RUNS.c.id == run_id, later).values(ended_at=ended_at))


def link_runs(connection: Connection, run_id: int, *, previous: int | None = None, baseline: int | None = None) -> None:
    """Say which run a run is to be compared with; ``None`` leaves the link as it is."""
    values = {"previous_run_id": previous, "baseline_run_id": baseline}
    given = {name: other for name, other in values.items() if other is not None}
    if given:
        connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(given))


def label_run(connection: Connection, run_id: int, labels: Mapping[str, str]) -> None:
    """Replace the free labels of a run."""
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(labels=dict(labels)))


# -- loading --------------------------------------------------------------------------------------


def load_run(connection: Connection, run_id: int, fineness: Fineness | None = None) -> RunRecord:
    """A run with everything that was stored about it; its ``line_text`` gives lines behind findings.

    ``fineness`` says how finely the windows of a watched run are read.

    Raises:
        UnknownName: no run has this id.
    """
    record = load_facts(connection, run_id)
    record.windows, record.prefills = load_samples(connection, run_id, fineness)
    record.requests = load_requests(connection, run_id)
    record.line_text = _stored_lines(connection, run_id, record.windows)
    return record


def _stored_lines(connection: Connection, run_id: int, windows: list[Window]) -> Callable[[int], str | None]:
    texts = {line.line: line.text for line in load_lines(connection, run_id).values() if line.line is not None}
    lines = {window.position: window.line for window in windows if window.line in texts}
    return lambda position: texts.get(lines.get(position, 0))


def load_facts(connection: Connection, run_id: int) -> RunRecord:
    """A run without its windows, prefill batches and request results.

    Raises:
        UnknownName: no run has this id.
    """
    row = _row(connection, run_id)
    return RunRecord(
        engine=row.engine,
        source=row.source,
        engine_version=_release(row.engine_version),
        release_range=ReleaseRange(_release(row.release_first), _release(row.release_last)),
        started_at=row.started_at,
        ended_at=row.ended_at,
        host=row.host,
        port=row.port,
        arguments=load_arguments(connection, run_id),
        launch=None if row.launch is None else from_document(LaunchCommand, row.launch),
        events=_load_events(connection, run_id),
        results=[from_document(BenchmarkRow, document) for document in row.results],
        latencies={key: from_document(Latency, document) for key, document in row.latencies.items()},
        requests_asked=row.requests_asked,
        draft_config=load_draft_config(connection, row.draft_id),
        target_config=load_config(connection, row.target_config_id),
        validation=load_validation(connection, row.validation_id),
        temperature=row.temperature,
        device=row.accelerator,
        labels=row.labels,
    )


def load_arguments(connection: Connection, run_id: int) -> Arguments:
    """The arguments of a run by name."""
    rows = connection.execute(select(ARGUMENTS).where(ARGUMENTS.c.run_id == run_id).order_by(ARGUMENTS.c.name))
    return Arguments(
        {
            row.name: Argument(
                row.name,
                row.requested,
                row.predicted,
                row.effective,
                _proof(row, "requested"),
                _proof(row, "effective"),
            )
            for row in rows
        }
    )


def _load_events(connection: Connection, run_id: int) -> list[Event]:
    lines = load_lines(connection, run_id)
    rows = connection.execute(select(RUN_EVENTS).where(RUN_EVENTS.c.run_id == run_id).order_by(RUN_EVENTS.c.id))
    return [Event(row.kind, lines[row.line_id], row.at, row.figures) for row in rows]


def load_events(connection: Connection, kinds: Collection[str], *, since: float) -> list[tuple[int, Event]]:
    """Events of these kinds of all runs since an instant, with their runs, the latest first."""
    events = RUN_EVENTS.c
    query = select(RUN_EVENTS).where(events.kind.in_(kinds), events.at >= since).order_by(events.at.desc())
    rows = connection.execute(query).all()
    lines = {run_id: load_lines(connection, run_id) for run_id in {row.run_id for row in rows}}
    return [(row.run_id, Event(row.kind, lines[row.run_id][row.line_id], row.at, row.figures)) for row in rows]


def _row(connection: Connection, run_id: int, columns: Sequence[Column[Any]] | None = None) -> Row[Any]:
    """A run's row, whole or these columns of it."""
    row = connection.execute(select(*(columns or RUNS.c)).where(RUNS.c.id == run_id)).one_or_none()
    if row is None:
        raise _unknown(run_id)
    return row


def _unknown(run_id: int) -> UnknownName:
    return UnknownName(f"no run has the id {run_id}", hint="draftscope runs list shows them")


@lru_cache(maxsize=256)
def _release(text: str | None) -> Release | None:
    """Many runs are of few releases."""
    return None if text is None else Release.parse(text)


# -- listing --------------------------------------------------------------------------------------


def list_runs(
    connection: Connection, chosen: RunFilter | None = None, *, limit: int = 50, following: str | None = None
) -> RunPage:
    """Runs, the latest first. ``following`` is that of the page before.

    Raises:
        UnknownName: ``following`` is not from here.
    """
    columns = RUNS.c
    query = _chosen(select(*_LISTED), chosen or RunFilter())
    if following is not None:
        moment, last_id = _position(following)
        query = query.where(or_(columns.listed_at < moment, and_(columns.listed_at == moment, columns.id < last_id)))
    rows = connection.execute(query.order_by(columns.listed_at.desc(), columns.id.desc()).limit(limit + 1)).all()
    shown = rows[:limit]
    more = f"{shown[-1].listed_at!r}:{shown[-1].id}" if len(rows) > limit else None
    return RunPage(tuple(_judged(connection, shown)), more)


def load_stored(connection: Connection, run_id: int) -> StoredRun:
    """One run as a list shows it.

    Raises:
        UnknownName: no run has this id.
    """
    return next(iter(_judged(connection, [_row(connection, run_id, _LISTED)])))


def latest_run(
    connection: Connection, *, engine: str | None = None, deployment: str | None = None, labels: Mapping[str, str]
) -> int | None:
    """The latest run, no sample, of an engine and deployment that bears these labels; ``None`` where there is none."""
    chosen = RunFilter(engine=engine, deployment=deployment, sample=False)
    query = _chosen(select(RUNS.c.id, RUNS.c.labels), chosen).order_by(RUNS.c.listed_at.desc(), RUNS.c.id.desc())
    wanted = labels.items()
    return next((row.id for row in connection.execute(query) if wanted <= dict(row.labels).items()), None)


def load_stored_runs(connection: Connection, run_ids: Sequence[int]) -> list[StoredRun]:
    """Runs as a list shows them, the latest first; ids that do not exist are left out."""
    query = select(*_LISTED).where(RUNS.c.id.in_(run_ids)).order_by(RUNS.c.listed_at.desc(), RUNS.c.id.desc())
    return list(_judged(connection, connection.execute(query).all()))


def earliest_first(connection: Connection, run_ids: Sequence[int]) -> list[int]:
    """These runs in the order in which they began.

    Raises:
        UnknownName: no run has one of these ids.
    """
    query = select(RUNS.c.id).where(RUNS.c.id.in_(run_ids)).order_by(RUNS.c.listed_at, RUNS.c.id)
    found = list(connection.execute(query).scalars())
    for run_id in run_ids:
        if run_id not in found:
            raise _unknown(run_id)
    return found


def _chosen(query: Select[Any], chosen: RunFilter) -> Select[Any]:
    columns = RUNS.c
    for name in ("engine", "method", "deployment", "sample"):
        value = getattr(chosen, name)
        if value is not None:
            query = query.where(columns[name] == value)
    if chosen.text:
        places = (columns.served_model, columns.target_model, columns.draft_model, columns.deployment, columns.host,
                  columns.source)  # fmt: skip
        query = query.where(
            or_(*(func.lower(place).contains(chosen.text.lower(), autoescape=True) for place in places))
        )
    if chosen.verdict is not None:
        question, state = chosen.verdict
        judged = select(VERDICTS.c.run_id).where(VERDICTS.c.question == question.value, VERDICTS.c.state == state.value)
        query = query.where(columns.id.in_(judged))
    return query


def _position(following: str) -> tuple[float, int]:
    moment, _, last_id = following.partition(":")
    try:
        return float(moment), int(last_id)
    except ValueError:
        raise UnknownName(f"no page continues at {following!r}", hint="leave it out for the first page") from None


@lru_cache(maxsize=KEPT_SUMMARIES)
def _summary(text: str) -> Mapping[str, Any]:
    """A summary from its text, by which it is kept: reading it takes longer than all else of a list."""
    return load_json(text)  # type: ignore[no-any-return]


def _judged(connection: Connection, rows: Iterable[Row[Any]]) -> Iterable[StoredRun]:
    rows = list(rows)
    ids = [row.id for row in rows]
    said, made = VERDICTS.c, JUDGEMENTS.c
    verdicts: dict[int, dict[Question, Verdict]] = {}
    columns = said.run_id, said.question, said.state, said.summary, said.provide
    for run_id, name, state, *words in connection.execute(select(*columns).where(said.run_id.in_(ids))):
        question = Question(name)
        verdicts.setdefault(run_id, {})[question] = Verdict(question, State(state), *words)
    text = cast(made.summary, String).label("summary")
    query = select(made.run_id, made.judged_at, made.headline, text).where(made.run_id.in_(ids))
    judgements = {row.run_id: row for row in connection.execute(query)}
    for row in rows:
        judgement = judgements.get(row.id)
        known = verdicts.get(row.id, {})
        yield StoredRun(
            id=row.id,
            engine=row.engine,
            engine_version=_release(row.engine_version),
            release_range=ReleaseRange(_release(row.release_first), _release(row.release_last)),
            serving=Serving(**{name: getattr(row, name) for name in Serving.__slots__}),
            deployment=row.deployment,
            host=row.host,
            port=row.port,
            source=row.source,
            started_at=row.started_at,
            ended_at=row.ended_at,
            labels=row.labels,
            sample=row.sample,
            judged_at=judgement.judged_at if judgement else None,
            headline=judgement.headline if judgement else "",
            verdicts={question: known[question] for question in Question if question in known},
            summary=_summary(judgement.summary) if judgement else {},
        )
