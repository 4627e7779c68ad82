"""Model configs, draft checkpoints and their validation figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Row, Table, select

from collector.domain.drafts import Measure, ModelConfig, Validation
from collector.domain.evidence import Evidence
from collector.storage.bulk import digest_of, insert_or_keep
from collector.storage.tables import DRAFT_VALIDATIONS, DRAFTS, MODEL_CONFIGS


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """One draft checkpoint with the validation figures known of it, oldest first."""

    id: int
    name: str
    config: ModelConfig | None
    validations: tuple[Validation, ...]


def save_config(connection: Connection, config: ModelConfig) -> int:
    """Store a model's config once; returns its id."""
    digest = digest_of(config.source, sorted(config.raw.items()))
    values = {"digest": digest, "source": config.source, "raw": dict(config.raw)}
    return _save(connection, MODEL_CONFIGS, values, digest=digest)


def load_config(connection: Connection, config_id: int | None) -> ModelConfig | None:
    """A stored config."""
    if config_id is None:
        return None
    columns = MODEL_CONFIGS.c
    row = connection.execute(select(columns.source, columns.raw).where(columns.id == config_id)).one()
    return ModelConfig(row.source, row.raw)


def load_draft_config(connection: Connection, draft_id: int | None) -> ModelConfig | None:
    """The config of a stored checkpoint, where it is known."""
    if draft_id is None:
        return None
    return load_config(
        connection, connection.execute(select(DRAFTS.c.config_id).where(DRAFTS.c.id == draft_id)).scalar_one()
    )


def save_draft(connection: Connection, name: str, config: ModelConfig | None) -> int:
    """Store a checkpoint, identified by name and config together; returns its id."""
    config_id = None if config is None else save_config(connection, config)
    digest = digest_of(name, None if config is None else sorted(config.raw.items()))
    return _save(connection, DRAFTS, {"digest": digest, "name": name, "config_id": config_id}, digest=digest)


def save_validation(connection: Connection, draft_id: int, validation: Validation) -> int:
    """Store validation figures of a checkpoint once; returns their id."""
    values = {
        "trainer": validation.trainer,
        "measure": validation.measure.value,
        "measure_stated": validation.measure_stated,
        "temperature": validation.temperature,
        "draft_vocabulary_coverage": validation.draft_vocabulary_coverage,
        "accuracy": validation.accuracy,
        "accuracy_at": list(validation.accuracy_at),
        "evidence": [[item.source, item.line, item.text] for item in validation.evidence],
    }
    digest = digest_of(sorted(values.items()))
    key = {"draft_id": draft_id, "digest": digest}
    return _save(connection, DRAFT_VALIDATIONS, {**values, **key}, **key)


def load_validation(connection: Connection, validation_id: int | None) -> Validation | None:
    """Stored validation figures."""
    if validation_id is None:
        return None
    return _validation(
        connection.execute(select(DRAFT_VALIDATIONS).where(DRAFT_VALIDATIONS.c.id == validation_id)).one()
    )


def list_drafts(connection: Connection) -> list[StoredDraft]:
    """All checkpoints by name."""
    validations: dict[int, list[Validation]] = {}
    for row in connection.execute(select(DRAFT_VALIDATIONS).order_by(DRAFT_VALIDATIONS.c.id)):
        validations.setdefault(row.draft_id, []).append(_validation(row))
    drafts = connection.execute(select(DRAFTS).order_by(DRAFTS.c.name, DRAFTS.c.id)).all()
    return [
        StoredDraft(row.id, row.name, load_config(connection, row.config_id), tuple(validations.get(row.id, ())))
        for row in drafts
    ]


def _save(connection: Connection, table: Table, values: Mapping[str, object], **key: object) -> int:
    connection.execute(insert_or_keep(connection, table), values)
    found: int = connection.execute(select(table.c.id).filter_by(**key)).scalar_one()
    return found


def _validation(row: Row[tuple[object, ...]]) -> Validation:
    return Validation(
        accuracy=row.accuracy,
        accuracy_at=tuple(row.accuracy_at),
        measure=Measure(row.measure),
        measure_stated=row.measure_stated,
        trainer=row.trainer,
        temperature=row.temperature,
        draft_vocabulary_coverage=row.draft_vocabulary_coverage,
        evidence=tuple(Evidence(*item) for item in row.evidence),
    )
