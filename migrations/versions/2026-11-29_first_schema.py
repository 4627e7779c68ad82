"""The first schema: runs with their arguments, sources and windows; judgements and findings; alerts.

Why: docs/decisions/0001-schema.md.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
INSTANT = sa.String(27).with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "alert_channels",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("last_success", INSTANT, nullable=True),
        sa.Column("last_failure", INSTANT, nullable=True),
        sa.Column("last_error", sa.String(), nullable=False),
        sa.Column("failures_in_a_row", sa.Integer(), nullable=False),
        sa.Column("paused_until", INSTANT, nullable=True, comment="nothing is sent before"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_alert_channels")),
    )
    op.create_table(
        "alert_silences",
        sa.Column("id", KEY, nullable=False),
        sa.Column("rule", sa.String(), nullable=False, comment="a pattern, as the next three; empty: everything"),
        sa.Column("deployment", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("ends_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_silences")),
    )
    op.create_index(op.f("ix_alert_silences_ends_at"), "alert_silences", ["ends_at"], unique=False)
    op.create_table(
        "model_configs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of the document"),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("document", JSON, nullable=False, comment="config.json as read, and where its keys stand"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_configs")),
        sa.UniqueConstraint("digest", name=op.f("uq_model_configs_digest")),
    )
    op.create_table(
        "sources",
        sa.Column("id", KEY, nullable=False),
        sa.Column("path", sa.String(), nullable=False, comment="path or address it was last read under"),
        sa.Column("name", sa.String(), nullable=False, comment="what evidence calls it"),
        sa.Column("head_digest", sa.String(length=32), nullable=False, comment="digest of the first head_length bytes"),
        sa.Column("head_length", sa.Integer(), nullable=False),
        sa.Column(
            "tail_digest", sa.String(length=32), nullable=False, comment="digest of the last bytes before byte_offset"
        ),
        sa.Column("byte_offset", sa.BigInteger(), nullable=False, comment="everything before it is stored"),
        sa.Column(
            "firm_offset",
            sa.BigInteger(),
            nullable=False,
            comment="what lies behind it may read otherwise once more follows",
        ),
        sa.Column("complete", sa.Boolean(), nullable=False, comment="read to the end it had at read_at"),
        sa.Column(
            "options",
            sa.String(length=32),
            nullable=False,
            comment="digest of what was stated about it when it was read",
        ),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("engine_lines", sa.BigInteger(), nullable=False),
        sa.Column("understood", sa.BigInteger(), nullable=False),
        sa.Column("unread", sa.BigInteger(), nullable=False),
        sa.Column("torn_samples", sa.BigInteger(), nullable=False),
        sa.Column("oversize_lines", sa.BigInteger(), nullable=False),
        sa.Column("unread_shapes", JSON, nullable=False),
        sa.Column("notes", JSON, nullable=False),
        sa.Column("read_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
    )
    op.create_index(op.f("ix_sources_head_digest"), "sources", ["head_digest"], unique=False)
    op.create_index(op.f("ix_sources_path"), "sources", ["path"], unique=False)
    op.create_table(
        "units",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False, comment="rank, engine or slot as the engine names it"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_units")),
        sa.UniqueConstraint("name", name=op.f("uq_units_name")),
    )
    op.create_table(
        "drafts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of name and config: one checkpoint"),
        sa.Column(
            "name", sa.String(), nullable=False, comment="path or repository as the launch states it; empty if unknown"
        ),
        sa.Column("config_id", KEY, nullable=True),
        sa.Column(
            "config_digest", sa.String(length=32), nullable=True, comment="digest of the config's document alone"
        ),
        sa.Column(
            "weights_digest", sa.String(), nullable=True, comment="digest of the weights, where their storage states it"
        ),
        sa.Column(
            "registered_at",
            INSTANT,
            nullable=True,
            comment="NULL: known from runs only, so no other run takes its figures",
        ),
        sa.ForeignKeyConstraint(
            ["config_id"], ["model_configs.id"], name=op.f("fk_drafts_config_id_model_configs"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
        sa.UniqueConstraint("digest", name=op.f("uq_drafts_digest")),
    )
    op.create_index(op.f("ix_drafts_config_digest"), "drafts", ["config_digest"], unique=False)
    op.create_table(
        "draft_validations",
        sa.Column("id", KEY, nullable=False),
        sa.Column("draft_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of the document"),
        sa.Column("trainer", sa.String(), nullable=False),
        sa.Column("measure", sa.String(length=16), nullable=False, comment="prefix, conditional, marginal or unknown"),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("accuracy", sa.Double(), nullable=True, comment="the headline figure"),
        sa.Column("accuracy_at", JSON, nullable=False, comment="by position, the first draft first"),
        sa.Column("document", JSON, nullable=False, comment="all that was read, with its evidence"),
        sa.ForeignKeyConstraint(
            ["draft_id"], ["drafts.id"], name=op.f("fk_draft_validations_draft_id_drafts"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_draft_validations")),
        sa.UniqueConstraint("draft_id", "digest", name=op.f("uq_draft_validations_draft_id_digest")),
    )
    op.create_table(
        "runs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("identity", sa.String(length=32), nullable=False, comment="digest of what makes two runs the same"),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("engine_version", sa.String(), nullable=True),
        sa.Column("release_first", sa.String(), nullable=True),
        sa.Column("release_last", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("ended_at", INSTANT, nullable=True, comment="last sign of life"),
        sa.Column("listed_at", INSTANT, nullable=False, comment="start, else end, else when it was first stored"),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("deployment", sa.String(), nullable=True, comment="the name given in settings"),
        sa.Column("served_model", sa.String(), nullable=False),
        sa.Column("target_model", sa.String(), nullable=False),
        sa.Column("draft_model", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=True, comment="empty: does not speculate; NULL: nobody said"),
        sa.Column("parallelism", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False, comment="as the arguments state it"),
        sa.Column("accelerator", sa.String(), nullable=True, comment="its common name, where it is known"),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("sample", sa.Boolean(), nullable=False, comment="shipped with the product"),
        sa.Column("launch", JSON, nullable=True, comment="launch command, redacted"),
        sa.Column("results", JSON, nullable=False, comment="rows of benchmark tables"),
        sa.Column("latencies", JSON, nullable=False, comment="of the engine's own histograms, by quantity"),
        sa.Column("requests_asked", sa.Boolean(), nullable=False, comment="judged by its request results, however few"),
        sa.Column("draft_id", KEY, nullable=True),
        sa.Column("target_config_id", KEY, nullable=True),
        sa.Column("validation_id", KEY, nullable=True),
        sa.Column("previous_run_id", KEY, nullable=True, comment="only where linked explicitly"),
        sa.Column("baseline_run_id", KEY, nullable=True, comment="only where linked explicitly"),
        sa.ForeignKeyConstraint(
            ["baseline_run_id"], ["runs.id"], name=op.f("fk_runs_baseline_run_id_runs"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["draft_id"], ["drafts.id"], name=op.f("fk_runs_draft_id_drafts"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["previous_run_id"], ["runs.id"], name=op.f("fk_runs_previous_run_id_runs"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["target_config_id"],
            ["model_configs.id"],
            name=op.f("fk_runs_target_config_id_model_configs"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["validation_id"],
            ["draft_validations.id"],
            name=op.f("fk_runs_validation_id_draft_validations"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("identity", name=op.f("uq_runs_identity")),
    )
    op.create_index(
        op.f("ix_runs_engine_target_model_started_at"), "runs", ["engine", "target_model", "started_at"], unique=False
    )
    op.create_index(op.f("ix_runs_listed_at_id"), "runs", ["listed_at", "id"], unique=False)
    op.create_table(
        "arguments",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("requested", sa.String(), nullable=True, comment="NULL: not seen; null: stated to be unset"),
        sa.Column("predicted", sa.String(), nullable=True),
        sa.Column("effective", sa.String(), nullable=True),
        sa.Column(
            "requested_source",
            sa.String(),
            nullable=True,
            comment="where the requested value was read, with line and text",
        ),
        sa.Column("requested_line", sa.BigInteger(), nullable=True),
        sa.Column("requested_text", sa.String(), nullable=True),
        sa.Column(
            "effective_source",
            sa.String(),
            nullable=True,
            comment="where the engine states the effective value, with line and text",
        ),
        sa.Column("effective_line", sa.BigInteger(), nullable=True),
        sa.Column("effective_text", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_arguments_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_arguments")),
    )
    op.create_table(
        "decode_samples",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("unit_id", KEY, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("verify_steps", sa.Double(), nullable=True),
        sa.Column("accepted_tokens", sa.Double(), nullable=True),
        sa.Column("drafted_tokens", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("generation_throughput", sa.Double(), nullable=True),
        sa.Column("printed_length", sa.Double(), nullable=True),
        sa.Column("printed_rate", sa.Double(), nullable=True),
        sa.Column("tokens_in_use", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage", sa.Double(), nullable=True),
        sa.Column("graph", sa.Boolean(), nullable=True),
        sa.Column("prefills", sa.Integer(), nullable=False),
        sa.Column(
            "accepted_at",
            sa.LargeBinary(),
            nullable=True,
            comment="counts by position, packed (collector.storage.packing)",
        ),
        sa.Column("origin", sa.SmallInteger(), nullable=False, comment="0 requests, 1 counters, 2 log, 3 gauges"),
        sa.PrimaryKeyConstraint("run_id", "at", "unit_id", "source_id", "position", name=op.f("pk_decode_samples")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "findings",
        sa.Column("id", KEY, nullable=False),
        sa.Column(
            "fingerprint", sa.String(length=32), nullable=False, comment="digest of run, rule, scope and subject"
        ),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("rule", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False, comment="1 info, 2 warning, 3 critical"),
        sa.Column("confidence", sa.SmallInteger(), nullable=False, comment="1 low, 2 medium, 3 high"),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False, comment="the flag, unit or metric it is about"),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("fix", JSON, nullable=False),
        sa.Column("verify", JSON, nullable=False),
        sa.Column("ruled_out", JSON, nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("first_seen", INSTANT, nullable=False),
        sa.Column("last_seen", INSTANT, nullable=False),
        sa.Column("resolved_at", INSTANT, nullable=True),
        sa.CheckConstraint("state IN ('open', 'resolved')", name=op.f("ck_findings_state")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_findings_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_findings_fingerprint")),
    )
    op.create_index(
        "ix_findings_open",
        "findings",
        ["severity", "last_seen"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(op.f("ix_findings_run_id"), "findings", ["run_id"], unique=False)
    op.create_table(
        "judgements",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("judged_at", INSTANT, nullable=False),
        sa.Column(
            "state",
            sa.String(length=32),
            nullable=False,
            comment="digest of the run's data and of the limits it was judged by",
        ),
        sa.Column("headline", sa.String(), nullable=False),
        sa.Column("summary", JSON, nullable=False, comment="figures for lists of runs, as in the diagnosis document"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_judgements_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_judgements")),
    )
    op.create_table(
        "prefill_samples",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("unit_id", KEY, nullable=False),
        sa.Column("new_tokens", sa.Double(), nullable=False),
        sa.Column("cached_tokens", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "at", "unit_id", "source_id", "position", name=op.f("pk_prefill_samples")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "request_results",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column(
            "key",
            sa.String(length=32),
            nullable=False,
            comment="digest of the engine's id of the response, else of all it says",
        ),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("route", sa.String(), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("verify_steps", sa.BigInteger(), nullable=True),
        sa.Column("accepted_tokens", sa.BigInteger(), nullable=True),
        sa.Column("drafted_tokens", sa.BigInteger(), nullable=True),
        sa.Column(
            "histogram",
            sa.LargeBinary(),
            nullable=True,
            comment="steps by accepted tokens, packed (collector.storage.packing)",
        ),
        sa.Column("depth", sa.BigInteger(), nullable=True),
        sa.Column("latency_seconds", sa.Double(), nullable=True),
        sa.Column("first_token_seconds", sa.Double(), nullable=True),
        sa.Column("token_seconds", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "key", name=op.f("pk_request_results")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rule_outcomes",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("rule", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False, comment="why it was ruled out, skipped, or how it failed"),
        sa.Column("provide", sa.String(), nullable=False),
        sa.Column("evidence", JSON, nullable=False),
        sa.CheckConstraint(
            "outcome IN ('found', 'clear', 'ruled_out', 'skipped', 'crashed')", name=op.f("ck_rule_outcomes_outcome")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_rule_outcomes_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "rule", "outcome", name=op.f("pk_rule_outcomes")),
    )
    op.create_table(
        "run_sources",
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False, comment="first, second, ... run in this source, from 0"),
        sa.Column("run_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_sources_run_id_runs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_run_sources_source_id_sources"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "ordinal", name=op.f("pk_run_sources")),
    )
    op.create_index(op.f("ix_run_sources_run_id"), "run_sources", ["run_id"], unique=False)
    op.create_table(
        "series",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of name and labels"),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_series_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("run_id", "digest", name=op.f("uq_series_run_id_digest")),
    )
    op.create_table(
        "source_lines",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of source, line and text"),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_source_lines_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_lines")),
        sa.UniqueConstraint("run_id", "digest", name=op.f("uq_source_lines_run_id_digest")),
    )
    op.create_table(
        "verdicts",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("question", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("summary", sa.String(), nullable=False),
        sa.Column("provide", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_verdicts_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "question", name=op.f("pk_verdicts")),
    )
    op.create_table(
        "alert_deliveries",
        sa.Column("id", KEY, nullable=False),
        sa.Column(
            "message_id",
            sa.String(length=32),
            nullable=False,
            comment="the same at every attempt, and for all that travel together",
        ),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("finding_id", KEY, nullable=True),
        sa.Column(
            "subject", sa.String(length=32), nullable=False, comment="messages of one subject are sent in their order"
        ),
        sa.Column("event", sa.String(), nullable=False, comment="what happened, as the payload says"),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("next_try", INSTANT, nullable=False),
        sa.Column("tried_at", INSTANT, nullable=True, comment="when the latest attempt began"),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("last_error", sa.String(), nullable=False),
        sa.Column("answer", sa.String(), nullable=False, comment="what the receiver said when it accepted"),
        sa.CheckConstraint(
            "status IN ('held', 'pending', 'sent', 'failed', 'dropped')", name=op.f("ck_alert_deliveries_status")
        ),
        sa.ForeignKeyConstraint(
            ["channel"],
            ["alert_channels.name"],
            name=op.f("fk_alert_deliveries_channel_alert_channels"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["finding_id"], ["findings.id"], name=op.f("fk_alert_deliveries_finding_id_findings"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_deliveries")),
    )
    op.create_index(op.f("ix_alert_deliveries_message_id"), "alert_deliveries", ["message_id"], unique=False)
    op.create_index(
        op.f("ix_alert_deliveries_channel_tried_at"), "alert_deliveries", ["channel", "tried_at"], unique=False
    )
    op.create_index(
        "ix_alert_deliveries_due",
        "alert_deliveries",
        ["next_try"],
        unique=False,
        sqlite_where=sa.text("status IN ('held', 'pending')"),
        postgresql_where=sa.text("status IN ('held', 'pending')"),
    )
    op.create_index(
        op.f("ix_alert_deliveries_subject_channel"), "alert_deliveries", ["subject", "channel"], unique=False
    )
    op.create_table(
        "finding_evidence",
        sa.Column("finding_id", KEY, nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("line_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["finding_id"], ["findings.id"], name=op.f("fk_finding_evidence_finding_id_findings"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["line_id"], ["source_lines.id"], name=op.f("fk_finding_evidence_line_id_source_lines"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("finding_id", "ordinal", name=op.f("pk_finding_evidence")),
    )
    op.create_index(op.f("ix_finding_evidence_line_id"), "finding_evidence", ["line_id"], unique=False)
    op.create_table(
        "run_events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False, comment="digest of the whole event"),
        sa.Column("provisional", sa.Boolean(), nullable=False, comment="holds only because the source ended here"),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("line_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["line_id"], ["source_lines.id"], name=op.f("fk_run_events_line_id_source_lines"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_events_run_id_runs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_run_events_source_id_sources"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_events")),
        sa.UniqueConstraint("run_id", "digest", name=op.f("uq_run_events_run_id_digest")),
    )
    op.create_index(op.f("ix_run_events_line_id"), "run_events", ["line_id"], unique=False)
    op.create_table(
        "scrape_series",
        sa.Column("id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("document", JSON, nullable=False, comment="name and labels of each series, in the order of a page"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scrape_series")),
        sa.UniqueConstraint("digest", name=op.f("uq_scrape_series_digest")),
        comment="series of a page that is scraped; replicas of one release share them",
    )
    op.create_table(
        "scrape_states",
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False, comment="instant at which the next window begins"),
        sa.Column("series_id", KEY, nullable=False),
        sa.Column("figures", sa.LargeBinary(), nullable=False, comment="the value of each series, packed"),
        sa.Column(
            "counted", JSON, nullable=False, comment="verify steps and accepted tokens that were counted, by unit"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_scrape_states_source_id_sources"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_scrape_states_run_id_runs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["scrape_series.id"],
            name=op.f("fk_scrape_states_series_id_scrape_series"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_scrape_states")),
        comment="where the last scrape of an engine ended",
    )
    op.create_index(op.f("ix_scrape_states_run_id"), "scrape_states", ["run_id"], unique=False)
    op.create_table(
        "series_samples",
        sa.Column("series_id", KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", "at", name=op.f("pk_series_samples")),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "live_streams",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("unit_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_live_streams_run_id_runs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_live_streams_source_id_sources"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["unit_id"], ["units.id"], name=op.f("fk_live_streams_unit_id_units"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_live_streams")),
        sa.UniqueConstraint("run_id", "source_id", "unit_id", name=op.f("uq_live_streams_run_id_source_id_unit_id")),
        comment="what is watched: a unit of a run at an address",
    )
    op.create_table(
        "live_samples",
        sa.Column("stream_id", KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column(
            "place", sa.BigInteger(), nullable=False, comment="its position less its instant in milliseconds, mostly 0"
        ),
        sa.Column(
            "figures",
            sa.LargeBinary(),
            nullable=False,
            comment="window and prompts, packed (collector.storage.packing)",
        ),
        sa.PrimaryKeyConstraint("stream_id", "at", "place", name=op.f("pk_live_samples")),
        comment="windows of watched engines",
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (at)",
    )
    op.create_table(
        "minute_samples",
        sa.Column("stream_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment="its beginning, seconds since 1970"),
        sa.Column(
            "shape", sa.SmallInteger(), nullable=False, comment="what is known of its windows (collector.storage.tiers)"
        ),
        sa.Column("windows", sa.Integer(), nullable=False, comment="how many were added up"),
        sa.Column("last_at", sa.Double(), nullable=False, comment="instant of the last one"),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("verify_steps", sa.Double(), nullable=True),
        sa.Column("accepted_tokens", sa.Double(), nullable=True),
        sa.Column("drafted_tokens", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("acceptance_low", sa.Double(), nullable=True, comment="acceptance length of the lowest window"),
        sa.Column("acceptance_high", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("running_requests_low", sa.Double(), nullable=True),
        sa.Column("running_requests_high", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests_low", sa.Double(), nullable=True),
        sa.Column("waiting_requests_high", sa.Double(), nullable=True),
        sa.Column("tokens_in_use", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_low", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_high", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_low", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_high", sa.Double(), nullable=True),
        sa.Column("generation_throughput", sa.Double(), nullable=True),
        sa.Column("generation_throughput_low", sa.Double(), nullable=True),
        sa.Column("generation_throughput_high", sa.Double(), nullable=True),
        sa.Column("prefills", sa.Integer(), nullable=False),
        sa.Column("new_tokens", sa.Double(), nullable=True),
        sa.Column("cached_tokens", sa.Double(), nullable=True),
        sa.Column(
            "accepted_at",
            sa.LargeBinary(),
            nullable=True,
            comment="counts by position, packed (collector.storage.packing)",
        ),
        sa.PrimaryKeyConstraint("stream_id", "bucket", "shape", name=op.f("pk_minute_samples")),
        comment="live_samples by minute",
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (bucket)",
    )
    op.create_table(
        "hour_samples",
        sa.Column("stream_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment="its beginning, seconds since 1970"),
        sa.Column(
            "shape", sa.SmallInteger(), nullable=False, comment="what is known of its windows (collector.storage.tiers)"
        ),
        sa.Column("windows", sa.Integer(), nullable=False, comment="how many were added up"),
        sa.Column("last_at", sa.Double(), nullable=False, comment="instant of the last one"),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("verify_steps", sa.Double(), nullable=True),
        sa.Column("accepted_tokens", sa.Double(), nullable=True),
        sa.Column("drafted_tokens", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("acceptance_low", sa.Double(), nullable=True, comment="acceptance length of the lowest window"),
        sa.Column("acceptance_high", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("running_requests_low", sa.Double(), nullable=True),
        sa.Column("running_requests_high", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests_low", sa.Double(), nullable=True),
        sa.Column("waiting_requests_high", sa.Double(), nullable=True),
        sa.Column("tokens_in_use", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_low", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_high", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_low", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_high", sa.Double(), nullable=True),
        sa.Column("generation_throughput", sa.Double(), nullable=True),
        sa.Column("generation_throughput_low", sa.Double(), nullable=True),
        sa.Column("generation_throughput_high", sa.Double(), nullable=True),
        sa.Column("prefills", sa.Integer(), nullable=False),
        sa.Column("new_tokens", sa.Double(), nullable=True),
        sa.Column("cached_tokens", sa.Double(), nullable=True),
        sa.Column(
            "accepted_at",
            sa.LargeBinary(),
            nullable=True,
            comment="counts by position, packed (collector.storage.packing)",
        ),
        sa.PrimaryKeyConstraint("stream_id", "bucket", "shape", name=op.f("pk_hour_samples")),
        comment="live_samples by hour",
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (bucket)",
    )
    op.create_table(
        "fleet_minute_samples",
        sa.Column("group_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment="its beginning, seconds since 1970"),
        sa.Column(
            "shape", sa.SmallInteger(), nullable=False, comment="what is known of its windows (collector.storage.tiers)"
        ),
        sa.Column("windows", sa.Integer(), nullable=False, comment="how many were added up"),
        sa.Column("last_at", sa.Double(), nullable=False, comment="instant of the last one"),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("verify_steps", sa.Double(), nullable=True),
        sa.Column("accepted_tokens", sa.Double(), nullable=True),
        sa.Column("drafted_tokens", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("acceptance_low", sa.Double(), nullable=True, comment="acceptance length of the lowest window"),
        sa.Column("acceptance_high", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("running_requests_low", sa.Double(), nullable=True),
        sa.Column("running_requests_high", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests_low", sa.Double(), nullable=True),
        sa.Column("waiting_requests_high", sa.Double(), nullable=True),
        sa.Column("tokens_in_use", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_low", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_high", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_low", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_high", sa.Double(), nullable=True),
        sa.Column("generation_throughput", sa.Double(), nullable=True),
        sa.Column("generation_throughput_low", sa.Double(), nullable=True),
        sa.Column("generation_throughput_high", sa.Double(), nullable=True),
        sa.Column("prefills", sa.Integer(), nullable=False),
        sa.Column("new_tokens", sa.Double(), nullable=True),
        sa.Column("cached_tokens", sa.Double(), nullable=True),
        sa.Column(
            "accepted_at",
            sa.LargeBinary(),
            nullable=True,
            comment="counts by position, packed (collector.storage.packing)",
        ),
        sa.PrimaryKeyConstraint("group_id", "bucket", "shape", name=op.f("pk_fleet_minute_samples")),
        comment="minute_samples of all runs of a group",
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (bucket)",
    )
    op.create_table(
        "fleet_hour_samples",
        sa.Column("group_id", KEY, nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False, comment="its beginning, seconds since 1970"),
        sa.Column(
            "shape", sa.SmallInteger(), nullable=False, comment="what is known of its windows (collector.storage.tiers)"
        ),
        sa.Column("windows", sa.Integer(), nullable=False, comment="how many were added up"),
        sa.Column("last_at", sa.Double(), nullable=False, comment="instant of the last one"),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("verify_steps", sa.Double(), nullable=True),
        sa.Column("accepted_tokens", sa.Double(), nullable=True),
        sa.Column("drafted_tokens", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("acceptance_low", sa.Double(), nullable=True, comment="acceptance length of the lowest window"),
        sa.Column("acceptance_high", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("running_requests_low", sa.Double(), nullable=True),
        sa.Column("running_requests_high", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests_low", sa.Double(), nullable=True),
        sa.Column("waiting_requests_high", sa.Double(), nullable=True),
        sa.Column("tokens_in_use", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_low", sa.Double(), nullable=True),
        sa.Column("tokens_in_use_high", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_low", sa.Double(), nullable=True),
        sa.Column("kv_cache_usage_high", sa.Double(), nullable=True),
        sa.Column("generation_throughput", sa.Double(), nullable=True),
        sa.Column("generation_throughput_low", sa.Double(), nullable=True),
        sa.Column("generation_throughput_high", sa.Double(), nullable=True),
        sa.Column("prefills", sa.Integer(), nullable=False),
        sa.Column("new_tokens", sa.Double(), nullable=True),
        sa.Column("cached_tokens", sa.Double(), nullable=True),
        sa.Column(
            "accepted_at",
            sa.LargeBinary(),
            nullable=True,
            comment="counts by position, packed (collector.storage.packing)",
        ),
        sa.PrimaryKeyConstraint("group_id", "bucket", "shape", name=op.f("pk_fleet_hour_samples")),
        comment="hour_samples of all runs of a group",
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (bucket)",
    )
    op.create_table(
        "run_groups",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False, comment="the deployment's name, else what its runs serve"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_groups")),
        sa.UniqueConstraint("name", name=op.f("uq_run_groups_name")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=32), nullable=False, comment="what only one process may do at a time"),
        sa.Column(
            "token",
            sa.BigInteger(),
            nullable=False,
            comment="grows with every holder; who holds an older one may not write",
        ),
        sa.Column("holder", sa.String(), nullable=False, comment="host and process"),
        sa.Column("renewed_at", INSTANT, nullable=False, comment="last sign of life, by the server's clock"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )


def downgrade() -> None:
    for name in (
        "leases",
        "run_groups",
        "fleet_hour_samples",
        "fleet_minute_samples",
        "hour_samples",
        "minute_samples",
        "live_samples",
        "live_streams",
    ):
        op.drop_table(name)
    op.drop_table("series_samples")
    op.drop_table("scrape_states")
    op.drop_table("scrape_series")
    op.drop_table("run_events")
    op.drop_table("finding_evidence")
    op.drop_table("alert_deliveries")
    op.drop_table("verdicts")
    op.drop_table("source_lines")
    op.drop_table("series")
    op.drop_table("run_sources")
    op.drop_table("rule_outcomes")
    op.drop_table("request_results")
    op.drop_table("prefill_samples")
    op.drop_table("judgements")
    op.drop_table("findings")
    op.drop_table("decode_samples")
    op.drop_table("arguments")
    op.drop_table("runs")
    op.drop_table("draft_validations")
    op.drop_table("drafts")
    op.drop_table("units")
    op.drop_table("sources")
    op.drop_table("model_configs")
    op.drop_table("alert_silences")
    op.drop_table("alert_channels")
