"""The tables. Style and retention: ``docs/decisions/0001-schema.md`` and ``0004-tiers.md``.

Samples hold instants as seconds since 1970, exactly as read; everything else has times with zone.
They are clustered by run and time, because every page asks for a run's windows by time. Windows of
logs (``decode_samples``, ``prefill_samples``) are known by their place in their source; those of
watched engines (``live_samples``) by target, time and unit, with roll-ups by minute and by hour, of
each run and of each group of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    text,
)

from collector.storage.types import Instant, Json, SeenJson, Text

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = BigInteger().with_variant(Integer, "sqlite")
"""A surrogate key; SQLite numbers rows by itself only under the plain name INTEGER."""

POINTS_TO: Final = "points to"
"""In the ``info`` of columns that hold the ids of another table without a foreign key: that table's name."""


def _reference(name: str, target: str, *, on_delete: str = "CASCADE", **options: Any) -> Column[int]:
    return Column(name, Key, ForeignKey(f"{target}.id", ondelete=on_delete), **options)


def _loose_reference(name: str, target: str) -> Column[int]:
    """The id of a row elsewhere in a table whose rows come by the million: no foreign key.

    PostgreSQL looks up each one for each row, which takes ten times as long as storing it. ``draftscope db check``
    looks instead; who deletes what such rows belong to deletes them as well.
    """
    return Column(name, Key, nullable=False, info={POINTS_TO: target})


def _names(name: str, *, comment: str) -> Table:
    """Names that other tables hold as numbers."""
    return Table(
        name,
        METADATA,
        Column("id", Key, primary_key=True),
        Column("name", Text, nullable=False, unique=True, comment=comment),
    )


def _partitioned(name: str, *columns: Column[Any], key: Sequence[str], by: str, comment: str) -> Table:
    """A table of watched engines, which is cut by time: partitions on PostgreSQL, no row ids on SQLite."""
    return Table(
        name,
        METADATA,
        *columns,
        PrimaryKeyConstraint(*key),
        comment=comment,
        sqlite_with_rowid=False,
        postgresql_partition_by=f"RANGE ({by})",
    )


GAUGES: Final = (
    "running_requests",
    "waiting_requests",
    "tokens_in_use",
    "kv_cache_usage",
    "generation_throughput",
)
"""Figures whose windows have a mean; roll-ups keep their sum, lowest and highest value."""
COUNTS: Final = ("seconds", "verify_steps", "accepted_tokens", "drafted_tokens", "generated_tokens")
"""Figures of windows that add up."""


def _rollup(name: str, owner: Column[int], *, comment: str) -> Table:
    """Windows of one stretch of time added up; those that know different figures stay apart (``shape``)."""
    gauges = (name + end for name in GAUGES for end in ("", "_low", "_high"))
    return _partitioned(
        name,
        owner,
        Column("bucket", BigInteger, nullable=False, comment="its beginning, seconds since 1970"),
        Column("shape", SmallInteger, nullable=False, comment="what is known of its windows (collector.storage.tiers)"),
        Column("windows", Integer, nullable=False, comment="how many were added up"),
        Column("last_at", Double, nullable=False, comment="instant of the last one"),
        *(Column(column, Double) for column in COUNTS),
        Column("acceptance_low", Double, comment="acceptance length of the lowest window"),
        Column("acceptance_high", Double),
        *(Column(column, Double) for column in gauges),
        Column("prefills", Integer, nullable=False),
        Column("new_tokens", Double),
        Column("cached_tokens", Double),
        Column("accepted_at", LargeBinary, comment="counts by position, packed (collector.storage.packing)"),
        key=(owner.name, "bucket", "shape"),
        by="bucket",
        comment=comment,
    )


MODEL_CONFIGS: Final = Table(
    "model_configs",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True, comment="digest of the document"),
    Column("source", Text, nullable=False),
    Column("document", Json, nullable=False, comment="config.json as read, and where its keys stand"),
)

DRAFTS: Final = Table(
    "drafts",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True, comment="digest of name and config: one checkpoint"),
    Column("name", Text, nullable=False, comment="path or repository as the launch states it; empty if unknown"),
    _reference("config_id", "model_configs", on_delete="SET NULL"),
    Column("config_digest", String(32), index=True, comment="digest of the config's document alone"),
    Column("weights_digest", Text, comment="digest of the weights, where their storage states it"),
    Column("registered_at", Instant, comment="NULL: known from runs only, so no other run takes its figures"),
)

DRAFT_VALIDATIONS: Final = Table(
    "draft_validations",
    METADATA,
    Column("id", Key, primary_key=True),
    _reference("draft_id", "drafts", nullable=False),
    Column("digest", String(32), nullable=False, comment="digest of the document"),
    Column("trainer", Text, nullable=False),
    Column("measure", String(16), nullable=False, comment="prefix, conditional, marginal or unknown"),
    Column("temperature", Double),
    Column("accuracy", Double, comment="the headline figure"),
    Column("accuracy_at", Json, nullable=False, comment="by position, the first draft first"),
    Column("document", Json, nullable=False, comment="all that was read, with its evidence"),
    UniqueConstraint("draft_id", "digest"),
)

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("identity", String(32), nullable=False, unique=True, comment="digest of what makes two runs the same"),
    Column("engine", Text, nullable=False),
    Column("engine_version", Text),
    Column("release_first", Text),
    Column("release_last", Text),
    Column("host", Text, nullable=False),
    Column("port", Integer),
    Column("started_at", Instant),
    Column("ended_at", Instant, comment="last sign of life"),
    Column("listed_at", Instant, nullable=False, comment="start, else end, else when it was first stored"),
    Column("source", Text, nullable=False),
    Column("deployment", Text, comment="the name given in settings"),
    Column("served_model", Text, nullable=False),
    Column("target_model", Text, nullable=False),
    Column("draft_model", Text, nullable=False),
    Column("method", Text, comment="empty: does not speculate; NULL: nobody said"),
    Column("parallelism", Text, nullable=False),
    Column("device", Text, nullable=False, comment="as the arguments state it"),
    Column("accelerator", Text, comment="its common name, where it is known"),
    Column("temperature", Double),
    Column("labels", Json, nullable=False),
    Column("sample", Boolean, nullable=False, comment="shipped with the product"),
    Column("launch", Json, comment="launch command, redacted"),
    Column("results", Json, nullable=False, comment="rows of benchmark tables"),
    Column("latencies", Json, nullable=False, comment="of the engine's own histograms, by quantity"),
    Column("requests_asked", Boolean, nullable=False, comment="judged by its request results, however few"),
    _reference("draft_id", "drafts", on_delete="SET NULL"),
    _reference("target_config_id", "model_configs", on_delete="SET NULL"),
    _reference("validation_id", "draft_validations", on_delete="SET NULL"),
    _reference("previous_run_id", "runs", on_delete="SET NULL", comment="only where linked explicitly"),
    _reference("baseline_run_id", "runs", on_delete="SET NULL", comment="only where linked explicitly"),
    Index(None, "listed_at", "id"),
    Index(None, "engine", "target_model", "started_at"),
)

ARGUMENTS: Final = Table(
    "arguments",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    Column("name", Text, primary_key=True),
    Column("requested", SeenJson, comment="NULL: not seen; null: stated to be unset"),
    Column("predicted", SeenJson),
    Column("effective", SeenJson),
    Column("requested_source", Text, comment="where the requested value was read, with line and text"),
    Column("requested_line", BigInteger),
    Column("requested_text", Text),
    Column("effective_source", Text, comment="where the engine states the effective value, with line and text"),
    Column("effective_line", BigInteger),
    Column("effective_text", Text),
)

SOURCES: Final = Table(
    "sources",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("path", Text, nullable=False, comment="path or address it was last read under"),
    Column("name", Text, nullable=False, comment="what evidence calls it"),
    Column("head_digest", String(32), nullable=False, comment="digest of the first head_length bytes"),
    Column("head_length", Integer, nullable=False),
    Column("tail_digest", String(32), nullable=False, comment="digest of the last bytes before byte_offset"),
    Column("byte_offset", BigInteger, nullable=False, comment="everything before it is stored"),
    Column(
        "firm_offset", BigInteger, nullable=False, comment="what lies behind it may read otherwise once more follows"
    ),
    Column("complete", Boolean, nullable=False, comment="read to the end it had at read_at"),
    Column("options", String(32), nullable=False, comment="digest of what was stated about it when it was read"),
    Column("role", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("lines", BigInteger, nullable=False),
    Column("engine_lines", BigInteger, nullable=False),
    Column("understood", BigInteger, nullable=False),
    Column("unread", BigInteger, nullable=False),
    Column("torn_samples", BigInteger, nullable=False),
    Column("oversize_lines", BigInteger, nullable=False),
    Column("unread_shapes", Json, nullable=False),
    Column("notes", Json, nullable=False),
    Column("read_at", Instant, nullable=False),
    Index(None, "path"),
    Index(None, "head_digest"),
)

SCRAPE_SERIES: Final = Table(
    "scrape_series",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("document", Json, nullable=False, comment="name and labels of each series, in the order of a page"),
    comment="series of a page that is scraped; replicas of one release share them",
)

SCRAPE_STATES: Final = Table(
    "scrape_states",
    METADATA,
    _reference("source_id", "sources", primary_key=True),
    _reference("run_id", "runs", nullable=False, index=True),
    Column("at", Double, nullable=False, comment="instant at which the next window begins"),
    _reference("series_id", "scrape_series", nullable=False, on_delete="RESTRICT"),
    Column("figures", LargeBinary, nullable=False, comment="the value of each series, packed"),
    Column("counted", Json, nullable=False, comment="verify steps and accepted tokens that were counted, by unit"),
    comment="where the last scrape of an engine ended",
)

RUN_SOURCES: Final = Table(
    "run_sources",
    METADATA,
    _reference("source_id", "sources", primary_key=True),
    Column("ordinal", Integer, primary_key=True, comment="first, second, ... run in this source, from 0"),
    _reference("run_id", "runs", nullable=False, index=True),
)

SOURCE_LINES: Final = Table(
    "source_lines",
    METADATA,
    Column("id", Key, primary_key=True),
    _reference("run_id", "runs", nullable=False),
    Column("digest", String(32), nullable=False, comment="digest of source, line and text"),
    Column("source", Text, nullable=False),
    Column("line", BigInteger),
    Column("text", Text, nullable=False),
    UniqueConstraint("run_id", "digest"),
)

RUN_EVENTS: Final = Table(
    "run_events",
    METADATA,
    Column("id", Key, primary_key=True),
    _reference("run_id", "runs", nullable=False),
    _reference("source_id", "sources", nullable=False),
    Column("digest", String(32), nullable=False, comment="digest of the whole event"),
    Column("provisional", Boolean, nullable=False, comment="holds only because the source ended here"),
    Column("kind", Text, nullable=False),
    Column("at", Double),
    Column("figures", Json, nullable=False),
    _reference("line_id", "source_lines", nullable=False, index=True),
    UniqueConstraint("run_id", "digest"),
)

UNITS: Final = _names("units", comment="rank, engine or slot as the engine names it")

DECODE_SAMPLES: Final = Table(
    "decode_samples",
    METADATA,
    _loose_reference("run_id", "runs"),
    _loose_reference("source_id", "sources"),
    Column("position", BigInteger, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    _loose_reference("unit_id", "units"),
    Column("seconds", Double),
    Column("running_requests", Double),
    Column("waiting_requests", Double),
    Column("verify_steps", Double),
    Column("accepted_tokens", Double),
    Column("drafted_tokens", Double),
    Column("generated_tokens", Double),
    Column("generation_throughput", Double),
    Column("printed_length", Double),
    Column("printed_rate", Double),
    Column("tokens_in_use", Double),
    Column("kv_cache_usage", Double),
    Column("graph", Boolean),
    Column("prefills", Integer, nullable=False),
    Column("accepted_at", LargeBinary, comment="counts by position, packed (collector.storage.packing)"),
    Column("origin", SmallInteger, nullable=False, comment="0 requests, 1 counters, 2 log, 3 gauges"),
    PrimaryKeyConstraint("run_id", "at", "unit_id", "source_id", "position"),
    sqlite_with_rowid=False,
)

PREFILL_SAMPLES: Final = Table(
    "prefill_samples",
    METADATA,
    _loose_reference("run_id", "runs"),
    _loose_reference("source_id", "sources"),
    Column("position", BigInteger, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    _loose_reference("unit_id", "units"),
    Column("new_tokens", Double, nullable=False),
    Column("cached_tokens", Double, nullable=False),
    PrimaryKeyConstraint("run_id", "at", "unit_id", "source_id", "position"),
    sqlite_with_rowid=False,
)

REQUEST_RESULTS: Final = Table(
    "request_results",
    METADATA,
    _loose_reference("run_id", "runs"),
    Column("key", String(32), nullable=False, comment="digest of the engine's id of the response, else of all it says"),
    _loose_reference("source_id", "sources"),
    Column("line", BigInteger, nullable=False),
    Column("at", Double),
    Column("route", Text, nullable=False),
    Column("temperature", Double),
    Column("prompt_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("verify_steps", BigInteger),
    Column("accepted_tokens", BigInteger),
    Column("drafted_tokens", BigInteger),
    Column("histogram", LargeBinary, comment="steps by accepted tokens, packed (collector.storage.packing)"),
    Column("depth", BigInteger),
    Column("latency_seconds", Double),
    Column("first_token_seconds", Double),
    Column("token_seconds", Double),
    PrimaryKeyConstraint("run_id", "key"),
    sqlite_with_rowid=False,
)

LIVE_STREAMS: Final = Table(
    "live_streams",
    METADATA,
    Column("id", Key, primary_key=True),
    _reference("run_id", "runs", nullable=False),
    _reference("source_id", "sources", nullable=False),
    _reference("unit_id", "units", nullable=False, on_delete="RESTRICT"),
    UniqueConstraint("run_id", "source_id", "unit_id"),
    comment="what is watched: a unit of a run at an address",
)

LIVE_SAMPLES: Final = _partitioned(
    "live_samples",
    _loose_reference("stream_id", "live_streams"),
    Column("at", Double, nullable=False),
    Column("place", BigInteger, nullable=False, comment="its position less its instant in milliseconds, mostly 0"),
    Column("figures", LargeBinary, nullable=False, comment="window and prompts, packed (collector.storage.packing)"),
    key=("stream_id", "at", "place"),
    by="at",
    comment="windows of watched engines",
)

MINUTE_SAMPLES: Final = _rollup(
    "minute_samples", _loose_reference("stream_id", "live_streams"), comment="live_samples by minute"
)
HOUR_SAMPLES: Final = _rollup(
    "hour_samples", _loose_reference("stream_id", "live_streams"), comment="live_samples by hour"
)
FLEET_MINUTE_SAMPLES: Final = _rollup(
    "fleet_minute_samples", _loose_reference("group_id", "run_groups"), comment="minute_samples of all runs of a group"
)
FLEET_HOUR_SAMPLES: Final = _rollup(
    "fleet_hour_samples", _loose_reference("group_id", "run_groups"), comment="hour_samples of all runs of a group"
)

GROUPS: Final = _names("run_groups", comment="the deployment's name, else what its runs serve")

RUN_DETECTORS: Final = Table(
    "run_detectors",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    _reference("group_id", "run_groups", nullable=False, index=True),
    Column("bucket", BigInteger, nullable=False, comment="the last minute that was taken in, seconds since 1970"),
    Column("state", Json, nullable=False, comment="where the detectors stand (analysis.watching)"),
    Column("recent", Json, nullable=False, comment="acceptance of late, to compare the fleet's runs by"),
    comment="what is watched for changes in a run while it is scraped",
)

FLEET_DETECTORS: Final = Table(
    "fleet_detectors",
    METADATA,
    _reference("group_id", "run_groups", primary_key=True),
    Column("bucket", BigInteger, nullable=False, comment="the last minute that was taken in, seconds since 1970"),
    Column("state", Json, nullable=False, comment="where the detectors stand (analysis.watching)"),
    comment="the same of all runs of a group together",
)

LEASES: Final = Table(
    "leases",
    METADATA,
    Column("name", String(32), primary_key=True, comment="what only one process may do at a time"),
    Column(
        "token", BigInteger, nullable=False, comment="grows with every holder; who holds an older one may not write"
    ),
    Column("holder", Text, nullable=False, comment="host and process"),
    Column("renewed_at", Instant, nullable=False, comment="last sign of life, by the server's clock"),
)

SERIES: Final = Table(
    "series",
    METADATA,
    Column("id", Key, primary_key=True),
    _reference("run_id", "runs", nullable=False),
    Column("digest", String(32), nullable=False, comment="digest of name and labels"),
    Column("name", Text, nullable=False),
    Column("labels", Json, nullable=False),
    UniqueConstraint("run_id", "digest"),
)

SERIES_SAMPLES: Final = Table(
    "series_samples",
    METADATA,
    _loose_reference("series_id", "series"),
    Column("at", Double, nullable=False),
    Column("value", Double, nullable=False),
    PrimaryKeyConstraint("series_id", "at"),
    sqlite_with_rowid=False,
)

JUDGEMENTS: Final = Table(
    "judgements",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    Column("judged_at", Instant, nullable=False),
    Column("state", String(32), nullable=False, comment="digest of the run's data and of the limits it was judged by"),
    Column("headline", Text, nullable=False),
    Column("summary", Json, nullable=False, comment="figures for lists of runs, as in the diagnosis document"),
)

REPORTS: Final = Table(
    "reports",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    Column("state", String(32), nullable=False, comment="digest of all that it rests on"),
    Column("step", Json, comment="what led to this run from the one before it, for histories"),
    Column("content", LargeBinary, nullable=False, comment="what pages show of the run, packed; it can be made again"),
)

VERDICTS: Final = Table(
    "verdicts",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    Column("question", String(16), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("summary", Text, nullable=False),
    Column("provide", Text, nullable=False),
)

RULE_OUTCOMES: Final = Table(
    "rule_outcomes",
    METADATA,
    _reference("run_id", "runs", primary_key=True),
    Column("rule", String(16), primary_key=True),
    Column("outcome", String(16), primary_key=True),
    Column("name", Text, nullable=False),
    Column("reason", Text, nullable=False, comment="why it was ruled out, skipped, or how it failed"),
    Column("provide", Text, nullable=False),
    Column("evidence", Json, nullable=False),
    CheckConstraint("outcome IN ('found', 'clear', 'ruled_out', 'skipped', 'crashed')", name="outcome"),
)

FINDINGS: Final = Table(
    "findings",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("fingerprint", String(32), nullable=False, unique=True, comment="digest of run, rule, scope and subject"),
    _reference("run_id", "runs", nullable=False, index=True),
    Column("rule", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("severity", SmallInteger, nullable=False, comment="1 info, 2 warning, 3 critical"),
    Column("confidence", SmallInteger, nullable=False, comment="1 low, 2 medium, 3 high"),
    Column("scope", Text, nullable=False),
    Column("about", Text, nullable=False, comment="the flag, unit or metric it is about"),
    Column("title", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("figures", Json, nullable=False),
    Column("fix", Json, nullable=False),
    Column("verify", Json, nullable=False),
    Column("ruled_out", Json, nullable=False),
    Column("state", String(8), nullable=False),
    Column("first_seen", Instant, nullable=False),
    Column("last_seen", Instant, nullable=False),
    Column("resolved_at", Instant),
    CheckConstraint("state IN ('open', 'resolved')", name="state"),
    Index(
        "ix_findings_open",
        "severity",
        "last_seen",
        sqlite_where=text("state = 'open'"),
        postgresql_where=text("state = 'open'"),
    ),
)

FINDING_EVIDENCE: Final = Table(
    "finding_evidence",
    METADATA,
    _reference("finding_id", "findings", primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    _reference("line_id", "source_lines", nullable=False, index=True),
)

ALERT_CHANNELS: Final = Table(
    "alert_channels",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("last_success", Instant),
    Column("last_failure", Instant),
    Column("last_error", Text, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("paused_until", Instant, comment="nothing is sent before"),
)

ALERT_SILENCES: Final = Table(
    "alert_silences",
    METADATA,
    Column("id", Key, primary_key=True),
    Column("rule", Text, nullable=False, comment="a pattern, as the next three; empty: everything"),
    Column("deployment", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("comment", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False, index=True),
)

ALERT_DELIVERIES: Final = Table(
    "alert_deliveries",
    METADATA,
    Column("id", Key, primary_key=True),
    Column(
        "message_id",
        String(32),
        nullable=False,
        index=True,
        comment="the same at every attempt, and for all that travel together",
    ),
    Column("channel", Text, ForeignKey("alert_channels.name", ondelete="CASCADE"), nullable=False),
    _reference("finding_id", "findings", on_delete="SET NULL"),
    Column("subject", String(32), nullable=False, comment="messages of one subject are sent in their order"),
    Column("event", Text, nullable=False, comment="what happened, as the payload says"),
    Column("payload", Json, nullable=False),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("next_try", Instant, nullable=False),
    Column("tried_at", Instant, comment="when the latest attempt began"),
    Column("finished_at", Instant),
    Column("last_error", Text, nullable=False),
    Column("answer", Text, nullable=False, comment="what the receiver said when it accepted"),
    CheckConstraint("status IN ('held', 'pending', 'sent', 'failed', 'dropped')", name="status"),
    Index(None, "subject", "channel"),
    Index(None, "channel", "tried_at"),
    Index(
        "ix_alert_deliveries_due",
        "next_try",
        sqlite_where=text("status IN ('held', 'pending')"),
        postgresql_where=text("status IN ('held', 'pending')"),
    ),
)
