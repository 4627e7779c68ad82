"""Model configs, draft checkpoints and their validation figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Table, delete, select, update

from collector.domain.drafts import ModelConfig, Validation
from collector.domain.errors import UnknownName
from collector.domain.evidence import Evidence
from collector.storage.bulk import digest_of, insert_or_keep
from collector.storage.documents import from_document, to_document
from collector.storage.tables import DRAFT_VALIDATIONS, DRAFTS, MODEL_CONFIGS, RUNS

REGISTRY: Final = "registry"
"""What evidence calls the registry of drafts."""
_CACHED: Final = re.compile(r"models--(?P<owner>[^/]+?)--(?P<name>[^/]+)(?:/snapshots/[^/]+)?$")


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """One draft checkpoint with the validation figures known of it, oldest first.

    ``registered_at`` is ``None`` where the draft is only known from a run; ``runs`` counts the
    runs that were stored with it.
    """

    id: int
    name: str
    config: ModelConfig | None
    validations: tuple[Validation, ...]
    weights_digest: str = ""
    registered_at: float | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Registered:
    """Figures of a registered draft that were found to belong to a run, and by what."""

    draft_id: int
    validation_id: int
    validation: Validation


# -- configs --------------------------------------------------------------------------------------


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


# -- drafts ---------------------------------------------------------------------------------------


def save_draft(connection: Connection, name: str, config: ModelConfig | None) -> int:
    """Store a checkpoint, identified by name and config together; returns its id."""
    values = _draft_values(connection, name, config)
    return _save(connection, DRAFTS, values, digest=values["digest"])


def _draft_values(connection: Connection, name: str, config: ModelConfig | None) -> dict[str, Any]:
    document = None if config is None else to_document(config.raw)
    weights = "" if config is None or config.weights is None else config.weights.digest
    return {
        "digest": digest_of(name, document, *([weights] if weights else [])),
        "name": name,
        "config_id": None if config is None else save_config(connection, config),
        "config_digest": None if document is None else digest_of(document),
        "weights_digest": weights or None,
    }


def _with_config(connection: Connection, draft: Row[Any], config: ModelConfig) -> int:
    """Give a draft its config, unless the two together are stored already."""
    values = _draft_values(connection, draft.name, config)
    columns = DRAFTS.c
    there = connection.execute(select(columns.id).where(columns.digest == values["digest"])).scalar_one_or_none()
    if there is None:
        connection.execute(update(DRAFTS).where(columns.id == draft.id).values(values))
        return int(draft.id)
    of_bare = DRAFT_VALIDATIONS.c.draft_id == draft.id
    known = select(DRAFT_VALIDATIONS.c.digest).where(DRAFT_VALIDATIONS.c.draft_id == there)
    connection.execute(
        update(DRAFT_VALIDATIONS).where(of_bare, DRAFT_VALIDATIONS.c.digest.not_in(known)).values(draft_id=there)
    )
    connection.execute(update(DRAFTS).where(columns.id == draft.id).values(registered_at=None))
    return int(there)


def register_draft(
    connection: Connection, name: str, config: ModelConfig | None, validations: Sequence[Validation], *, at: float
) -> int:
    """Store a checkpoint whose figures hold for every run that uses it; returns its id. Safe to repeat.

    Without a config the figures go to the draft of this name that was registered last; a draft that was
    registered without one gains it.
    """
    columns = DRAFTS.c
    known = connection.execute(select(DRAFTS).where(columns.registered_at.is_not(None)).order_by(columns.id)).all()
    same = [row for row in known if same_place(row.name, name)]
    bare = next((row for row in same if row.config_digest is None), None)
    if config is None and same:
        draft_id = int(same[-1].id)
    elif config is not None and bare is not None:
        draft_id = _with_config(connection, bare, config)
    else:
        draft_id = save_draft(connection, name, config)
    connection.execute(
        update(DRAFTS).where(columns.id == draft_id, columns.registered_at.is_(None)).values(registered_at=at)
    )
    for validation in validations:
        save_validation(connection, draft_id, validation)
    return draft_id


def remove_draft(connection: Connection, draft_id: int) -> None:
    """Take a draft out of the registry, and its figures with it; runs that were stored with it keep theirs.

    Raises:
        UnknownName: no registered draft has this id.
    """
    columns = DRAFTS.c
    found = connection.execute(
        select(columns.id).where(columns.id == draft_id, columns.registered_at.is_not(None))
    ).scalar_one_or_none()
    if found is None:
        raise UnknownName(f"no draft is registered under {draft_id}", hint="draftscope drafts list shows them")
    used = select(RUNS.c.id).where(RUNS.c.draft_id == draft_id).limit(1)
    if connection.execute(used).scalar_one_or_none() is None:
        connection.execute(delete(DRAFTS).where(columns.id == draft_id))
        return
    connection.execute(update(DRAFTS).where(columns.id == draft_id).values(registered_at=None))
    kept = select(RUNS.c.validation_id).where(RUNS.c.validation_id.is_not(None))
    of_draft = DRAFT_VALIDATIONS.c.draft_id == draft_id
    connection.execute(delete(DRAFT_VALIDATIONS).where(of_draft, DRAFT_VALIDATIONS.c.id.not_in(kept)))


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


def list_drafts(connection: Connection, *, registered: bool = False) -> list[StoredDraft]:
    """All checkpoints by name, or the registered ones alone."""
    validations: dict[int, list[Validation]] = {}
    for row in connection.execute(select(DRAFT_VALIDATIONS).order_by(DRAFT_VALIDATIONS.c.id)):
        validations.setdefault(row.draft_id, []).append(from_document(Validation, row.document))
    used: dict[int, int] = {}
    for draft_id in connection.execute(select(RUNS.c.draft_id).where(RUNS.c.draft_id.is_not(None))).scalars():
        used[draft_id] = used.get(draft_id, 0) + 1
    query = select(DRAFTS).order_by(DRAFTS.c.name, DRAFTS.c.id)
    if registered:
        query = query.where(DRAFTS.c.registered_at.is_not(None))
    return [
        StoredDraft(
            row.id,
            row.name,
            load_config(connection, row.config_id),
            tuple(validations.get(row.id, ())),
            row.weights_digest or "",
            row.registered_at,
            used.get(row.id, 0),
        )
        for row in connection.execute(query).all()
    ]


def find_draft(connection: Connection, wanted: str) -> StoredDraft:
    """The registered draft of this id or name; a name's last part will do where it is the only one.

    Raises:
        UnknownName: none is, or several are.
    """
    drafts = list_drafts(connection, registered=True)
    for matching in (
        [draft for draft in drafts if str(draft.id) == wanted],
        [draft for draft in drafts if same_place(draft.name, wanted)],
        [draft for draft in drafts if short_name(draft.name) == short_name(wanted)],
    ):
        if len(matching) == 1:
            return matching[0]
        if matching:
            ids = ", ".join(str(draft.id) for draft in matching)
            raise UnknownName(f"several drafts are called {wanted!r}", why=f"their ids are {ids}", hint="name one id")
    raise UnknownName(f"no draft is registered as {wanted!r}", hint="draftscope drafts list shows them")


# -- which registered figures belong to a run -----------------------------------------------------


def registered_for(connection: Connection, path: str, config: ModelConfig | None) -> Registered | None:
    """The latest figures of the registered draft that a run uses.

    A draft is known by its weights' digest, else by its path (and config), else by its config if no other draft
    shares it, else by its name if no other draft has it. ``path`` is what the run's arguments state.
    """
    columns = DRAFTS.c
    drafts = connection.execute(select(DRAFTS).where(columns.registered_at.is_not(None)).order_by(columns.id)).all()
    if not drafts:
        return None
    weights = "" if config is None or config.weights is None else config.weights.digest
    document = None if config is None else digest_of(to_document(config.raw))
    placed = [row for row in drafts if path and same_place(row.name, path)]
    tried = (
        ("the digest of its weights", [row for row in drafts if weights and row.weights_digest == weights]),
        ("its path and config", [row for row in placed if document and row.config_digest == document]),
        ("its path", placed),
        ("its config", _alone([row for row in drafts if document and row.config_digest == document])),
        ("its name", _alone([row for row in drafts if path and short_name(row.name) == short_name(path)])),
    )
    for how, matching in tried:
        if matching:
            found = _latest(connection, matching[-1].id)
            if found is not None:
                return _told(matching[-1], found, how)
    return None


def registered_figures(connection: Connection) -> tuple[tuple[int, int], ...]:
    """Every registered draft with each of its figures, by id: what may belong to a run."""
    columns = DRAFT_VALIDATIONS.c
    query = select(DRAFTS.c.id, columns.id).join_from(DRAFTS, DRAFT_VALIDATIONS, DRAFTS.c.id == columns.draft_id)
    found = connection.execute(query.where(DRAFTS.c.registered_at.is_not(None)).order_by(DRAFTS.c.id, columns.id))
    return tuple((draft_id, validation_id) for draft_id, validation_id in found)


def short_name(path: str) -> str:
    """A model's name without owner, folder and revision, in lower case."""
    text = path.strip().rstrip("/")
    cached = _CACHED.search(text)
    return (cached["name"] if cached else text.rpartition("/")[2]).lower()


def same_place(one: str, other: str) -> bool:
    """Whether two paths or repositories name the same model; a folder of the download cache is its repository."""
    return _place(one) == _place(other) != ""


def _place(path: str) -> str:
    text = path.strip().rstrip("/")
    cached = _CACHED.search(text)
    return f"{cached['owner']}/{cached['name']}" if cached else text


def _alone(rows: list[Row[Any]]) -> list[Row[Any]]:
    return rows if len(rows) == 1 else []


def _latest(connection: Connection, draft_id: int) -> Row[Any] | None:
    columns = DRAFT_VALIDATIONS.c
    query = select(DRAFT_VALIDATIONS).where(columns.draft_id == draft_id).order_by(columns.id.desc()).limit(1)
    return connection.execute(query).one_or_none()


def _told(draft: Row[Any], row: Row[Any], how: str) -> Registered:
    """The figures, with how they were found to belong to the run."""
    validation = from_document(Validation, row.document)
    proof = Evidence(REGISTRY, None, f"draft {draft.name or draft.id}, known by {how}")
    return Registered(draft.id, row.id, replace(validation, evidence=(*validation.evidence, proof)))


def _save(connection: Connection, table: Table, values: Mapping[str, object], **key: object) -> int:
    connection.execute(insert_or_keep(connection, table), values)
    found: int = connection.execute(select(table.c.id).filter_by(**key)).scalar_one()
    return found
