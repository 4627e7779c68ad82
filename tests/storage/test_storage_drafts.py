"""The registry of drafts: what is stored once, and which run a registered figure belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update

from analysis.runner import diagnose
from collector.bundle import BundleOptions
from collector.domain.arguments import Arguments
from collector.domain.drafts import Measure, ModelConfig, Validation, Weights
from collector.domain.errors import UnknownName
from collector.domain.runs import RunRecord
from collector.domain.windows import Window
from collector.ingest import ingest, load_for_judgement
from collector.storage.drafts import (
    REGISTRY,
    find_draft,
    list_drafts,
    register_draft,
    registered_for,
    remove_draft,
    same_place,
    short_name,
)
from collector.storage.engine import Database
from collector.storage.relations import load_bundle, registered_validation
from collector.storage.runs import save_run
from collector.storage.sources import source_at
from collector.storage.states import run_states
from collector.storage.tables import DRAFT_VALIDATIONS, DRAFTS

CASES = Path(__file__).parents[1] / "cases"
CONFIG = ModelConfig("config.json", {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000})
OTHER = ModelConfig("config.json", {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 16000})


def figures(accuracy: float = 0.8, **fields: object) -> Validation:
    return Validation(accuracy, (accuracy,), Measure.CONDITIONAL, **fields)  # type: ignore[arg-type]


def with_weights(config: ModelConfig, digest: str) -> ModelConfig:
    return replace(config, weights=Weights("model.safetensors", {}, complete=True, digest=digest))


def run_with(
    connection: Connection, draft: str, config: ModelConfig | None = None, validation: Validation | None = None
) -> int:
    """A stored run that was started with a draft; each is a run of its own."""
    earlier = len(run_states(connection))
    start = 100.0 * earlier
    arguments = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": draft}
    record = RunRecord(
        "sglang",
        "a.log",
        started_at=start,
        ended_at=start + 1,
        arguments=Arguments().with_effective(arguments, None),
        windows=[Window(0, 1, start, running_requests=1.0)],
        draft_config=config,
        validation=validation,
    )
    return save_run(connection, record, source_id=source_at(connection, "a.log", at=1.0), ordinal=earlier, at=1.0)


def test_a_draft_is_registered_once_however_often_it_is_said(database: Database) -> None:
    with database.transaction() as connection:
        ids = {register_draft(connection, "org/draft", CONFIG, [figures()], at=time) for time in (5.0, 6.0)}
        (stored,) = list_drafts(connection, registered=True)
    assert ids == {stored.id}
    assert (stored.name, stored.config, stored.registered_at) == ("org/draft", CONFIG, 5.0)
    assert len(stored.validations) == 1


def test_figures_are_added_to_the_draft_of_the_name(database: Database) -> None:
    with database.transaction() as connection:
        first = register_draft(connection, "org/draft", CONFIG, [figures(0.7)], at=1.0)
        assert register_draft(connection, "org/draft/", None, [figures(0.8)], at=2.0) == first
        cached = "/root/.cache/huggingface/hub/models--org--draft/snapshots/0123abc"
        assert register_draft(connection, cached, None, [figures(0.9)], at=3.0) == first
        (stored,) = list_drafts(connection)
    assert [validation.accuracy for validation in stored.validations] == [0.7, 0.8, 0.9]


def test_a_draft_gains_its_config_and_keeps_its_figures(database: Database) -> None:
    with database.transaction() as connection:
        bare = register_draft(connection, "org/draft", None, [figures(0.7)], at=1.0)
        assert register_draft(connection, "org/draft", CONFIG, [figures(0.8)], at=2.0) == bare
        (stored,) = list_drafts(connection, registered=True)
    assert stored.config == CONFIG
    assert [validation.accuracy for validation in stored.validations] == [0.7, 0.8]


def test_figures_move_to_the_draft_that_a_run_brought(database: Database) -> None:
    """The run stored name and config together; the bare registration then joins it."""
    with database.transaction() as connection:
        run_with(connection, "org/draft", CONFIG)
        register_draft(connection, "org/draft", None, [figures(0.7)], at=1.0)
        register_draft(connection, "org/draft", CONFIG, [figures(0.8)], at=2.0)
        (stored,) = list_drafts(connection, registered=True)
    assert (stored.config, stored.runs) == (CONFIG, 1)
    assert sorted(validation.accuracy or 0 for validation in stored.validations) == [0.7, 0.8]


def test_two_drafts_of_one_name_and_different_configs_stay_two(database: Database) -> None:
    with database.transaction() as connection:
        first = register_draft(connection, "draft", CONFIG, [figures(0.7)], at=1.0)
        second = register_draft(connection, "draft", OTHER, [figures(0.8)], at=2.0)
        assert first != second
        with pytest.raises(UnknownName, match="several drafts"):
            find_draft(connection, "draft")
        assert find_draft(connection, str(first)).id == first


def test_a_removed_draft_is_gone(database: Database) -> None:
    with database.transaction() as connection:
        draft = register_draft(connection, "org/draft", CONFIG, [figures()], at=1.0)
        remove_draft(connection, draft)
        assert list_drafts(connection) == []
        assert connection.execute(select(DRAFT_VALIDATIONS)).all() == []
        with pytest.raises(UnknownName, match="no draft is registered"):
            remove_draft(connection, draft)


def test_runs_keep_what_was_stored_with_them(database: Database) -> None:
    own = figures(0.6)
    with database.transaction() as connection:
        run_id = run_with(connection, "org/draft", CONFIG, own)
        draft = register_draft(connection, "org/draft", CONFIG, [figures(0.8)], at=1.0)
        remove_draft(connection, draft)
        assert list_drafts(connection, registered=True) == []
        (stored,) = list_drafts(connection)
        assert stored.validations == (own,)
        subject = load_bundle(connection, run_id).subject
    assert (subject.validation, subject.draft_config) == (own, CONFIG)


@pytest.mark.parametrize(
    ("name", "registered", "path", "used", "how"),
    [
        ("org/draft", with_weights(CONFIG, "d1"), "/elsewhere/x", with_weights(OTHER, "d1"), "the digest of its weights"),
        ("org/draft", CONFIG, "org/draft", CONFIG, "its path and config"),
        ("org/draft", CONFIG, "/hub/models--org--draft/snapshots/ab12/", None, "its path"),
        ("org/draft", None, "org/draft", None, "its path"),
        ("org/draft", CONFIG, "/elsewhere/x", CONFIG, "its config"),
        ("org/Draft", None, "/models/draft", None, "its name"),
        ("/models/draft", None, "other/DRAFT", None, "its name"),
    ],
)  # fmt: skip
def test_a_registered_draft_is_known_by(
    sqlite_database: Database, name: str, registered: ModelConfig | None, path: str, used: ModelConfig | None, how: str
) -> None:
    with sqlite_database.transaction() as connection:
        register_draft(connection, name, registered, [figures()], at=1.0)
        found = registered_for(connection, path, used)
    assert found is not None
    assert found.validation.accuracy == 0.8
    proof = found.validation.evidence[-1]
    assert proof.source == REGISTRY
    assert how in (proof.text or "")


@pytest.mark.parametrize(
    ("path", "config"),
    [("org/another", None), ("", None), ("/models/another", OTHER), ("", with_weights(OTHER, "d9"))],
)
def test_nothing_is_known_of_another_draft(sqlite_database: Database, path: str, config: ModelConfig | None) -> None:
    with sqlite_database.transaction() as connection:
        assert registered_for(connection, path, config) is None
        register_draft(connection, "org/draft", with_weights(CONFIG, "d1"), [figures()], at=1.0)
        assert registered_for(connection, path, config) is None


def test_a_name_or_config_that_two_drafts_share_proves_nothing(sqlite_database: Database) -> None:
    with sqlite_database.transaction() as connection:
        register_draft(connection, "one/draft", CONFIG, [figures(0.7)], at=1.0)
        register_draft(connection, "two/draft", CONFIG, [figures(0.8)], at=1.0)
        assert registered_for(connection, "/models/draft", None) is None
        assert registered_for(connection, "/models/other", CONFIG) is None
        by_path = registered_for(connection, "two/draft", CONFIG)
    assert by_path is not None
    assert by_path.validation.accuracy == 0.8


def test_the_latest_figures_count(sqlite_database: Database) -> None:
    with sqlite_database.transaction() as connection:
        draft = register_draft(connection, "org/draft", None, [figures(0.7), figures(0.9)], at=1.0)
        register_draft(connection, "org/draft", None, [figures(0.8)], at=2.0)
        found = registered_for(connection, "org/draft", None)
    assert found is not None
    assert (found.draft_id, found.validation.accuracy) == (draft, 0.8)


def test_a_draft_without_figures_gives_none(sqlite_database: Database) -> None:
    with sqlite_database.transaction() as connection:
        register_draft(connection, "org/draft", CONFIG, [], at=1.0)
        assert registered_for(connection, "org/draft", CONFIG) is None


def test_a_stored_run_takes_registered_figures_unless_it_has_its_own(database: Database) -> None:
    with database.transaction() as connection:
        without = run_with(connection, "/models/draft")
        own = run_with(connection, "/models/draft", validation=figures(0.5))
        before = run_states(connection)
        register_draft(connection, "org/draft", None, [figures(0.8)], at=1.0)
        after = run_states(connection)
        taken = load_bundle(connection, without).subject.validation
        kept = load_bundle(connection, own).subject.validation
        assert registered_validation(connection, own) is None
    assert taken is not None
    assert (taken.accuracy, taken.evidence[-1].source) == (0.8, REGISTRY)
    assert kept == figures(0.5)
    assert before[without] != after[without], "the run must be judged anew"
    assert before[own] == after[own]


def test_removal_makes_runs_be_judged_anew(sqlite_database: Database) -> None:
    with sqlite_database.transaction() as connection:
        run_id = run_with(connection, "org/draft")
        first = run_states(connection)[run_id]
        draft = register_draft(connection, "org/draft", None, [figures(0.8)], at=1.0)
        second = run_states(connection)[run_id]
        remove_draft(connection, draft)
        third = run_states(connection)[run_id]
        assert load_bundle(connection, run_id).subject.validation is None
    assert first == third != second


def test_a_run_without_a_training_file_is_held_against_the_registry(sqlite_database: Database) -> None:
    """As for the same files read with ``--validation-accuracy``: the registry stands in for the option."""
    ingest(sqlite_database, [CASES / "kimi-k25-first-run"], BundleOptions())
    with sqlite_database.transaction() as connection:
        (run_id,) = run_states(connection)
        alone = load_for_judgement(connection, run_id)
        assert alone.subject.validation is None
        path = alone.subject.arguments.value("speculative_draft_model_path")
        register_draft(connection, str(path), None, [figures(0.85)], at=1.0)
        bundle = load_for_judgement(connection, run_id)
    assert bundle.subject.validation is not None
    before, after = (diagnose(one).document()["runs"][0] for one in (alone, bundle))
    assert "realistic_acceptance_length" not in before["quantities"]
    assert after["quantities"]["realistic_acceptance_length"]["value"] > 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("org/Model-EAGLE3", "model-eagle3"),
        ("/models/draft/", "draft"),
        ("/hub/models--org--Draft/snapshots/0a1b", "draft"),
        ("models--org--Draft", "draft"),
        ("draft", "draft"),
        ("", ""),
    ],
)
def test_short_names(path: str, name: str) -> None:
    assert short_name(path) == name


def test_places() -> None:
    assert same_place("org/draft", "/hub/models--org--draft/snapshots/0a1b")
    assert same_place("/a/b/", "/a/b")
    assert not same_place("", "")
    assert not same_place("org/draft", "org/Draft")


def test_digests_are_kept_for_drafts_that_runs_bring(sqlite_database: Database) -> None:
    with sqlite_database.transaction() as connection:
        run_with(connection, "org/draft", with_weights(CONFIG, "d1"))
        (row,) = connection.execute(select(DRAFTS)).all()
        assert row.weights_digest == "d1"
        assert row.registered_at is None
        connection.execute(update(DRAFTS).values(registered_at=3.0))
        assert find_draft(connection, "DRAFT").weights_digest == "d1"
