"""Model configs, draft checkpoints and their validation figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Table, select

from collector.domain.drafts import ModelConfig, Validation
from collector.storage.bulk import digest_of, insert_or_keep
from collector.storage.documents import from_document, to_document
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
    document = to_document(config)
    digest = digest_of(document)
    values = {"digest": digest, "source": config.source, "document": document}
    return _save(connection, MODEL_CONFIGS, values, digest=digest)


def load_config(connection: Connection, config_id: int | None) -> ModelConfig | None:
    """A stored config."""
    if config_id is None:
        return None
    query = select(MODEL_CONFIGS.c.document).where(MODEL_CONFIGS.c.id == config_id)
    return from_document(ModelConfig, connection.execute(query).scalar_one())


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
    digest = digest_of(name, None if config is None else to_document(config.raw))
    return _save(connection, DRAFTS, {"digest": digest, "name": name, "config_id": config_id}, digest=digest)


def save_validation(connection: Connection, draft_id: int, validation: Validation) -> int:
    """Store validation figures of a checkpoint once; returns their id."""
    document = to_document(validation)
    key = {"draft_id": draft_id, "digest": digest_of(document)}
    values = {
        "trainer": validation.trainer,
        "measure": validation.measure.value,
        "temperature": validation.temperature,
        "accuracy": validation.accuracy,
        "accuracy_at": list(validation.accuracy_at),
        "document": document,
    }
    return _save(connection, DRAFT_VALIDATIONS, {**values, **key}, **key)


def load_validation(connection: Connection, validation_id: int | None) -> Validation | None:
    """Stored validation figures."""
    if validation_id is None:
        return None
    query = select(DRAFT_VALIDATIONS.c.document).where(DRAFT_VALIDATIONS.c.id == validation_id)
    return from_document(Validation, connection.execute(query).scalar_one())


def list_drafts(connection: Connection) -> list[StoredDraft]:
    """All checkpoints by name."""
    validations: dict[int, list[Validation]] = {}
    for row in connection.execute(select(DRAFT_VALIDATIONS).order_by(DRAFT_VALIDATIONS.c.id)):
        validations.setdefault(row.draft_id, []).append(from_document(Validation, row.document))
    drafts = connection.execute(select(DRAFTS).order_by(DRAFTS.c.name, DRAFTS.c.id)).all()
    return [
        StoredDraft(row.id, row.name, load_config(connection, row.config_id), tuple(validations.get(row.id, ())))
        for row in drafts
    ]


def _save(connection: Connection, table: Table, values: Mapping[str, object], **key: object) -> int:
    connection.execute(insert_or_keep(connection, table), values)
    found: int = connection.execute(select(table.c.id).filter_by(**key)).scalar_one()
    return found
