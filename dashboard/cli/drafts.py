"""``draftscope drafts``: drafts whose validation figures hold for every run that uses them."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector.domain.drafts import Measure
from collector.domain.errors import InputError
from dashboard.cli.bundles import Training, ValidationAccuracy
from dashboard.cli.console import errors, output
from dashboard.cli.serve import ConfigOption
from dashboard.stated import accuracies

if TYPE_CHECKING:
    from analysis.theory.replay import Replay
    from collector.domain.drafts import Validation
    from collector.storage.drafts import StoredDraft

DEEPEST = 1_024
DraftName = Annotated[str, typer.Argument(help="Path or repository that servers are started with, or the draft's id.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="The draft: its config.json, folder, archive, GGUF file or cache folder.")
]
MeasureOption = Annotated[Measure, typer.Option(help="What --validation-accuracy counts.")]
TemperatureOption = Annotated[float | None, typer.Option(help="Sampling temperature of the validation.", min=0.0)]
DatasetOption = Annotated[str, typer.Option(help="What it was validated on.")]


class Form(StrEnum):
    """Forms of a listing."""

    TEXT = "text"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("--format", help="Form of the output.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, help="Drafts and their validation figures.", rich_markup_mode=None)
    group.command()(add)
    group.command("import")(import_)
    group.command("list")(list_)
    group.command()(show)
    group.command()(remove)
    group.command()(replay)
    app.add_typer(group, name="drafts")


def add(
    name: Annotated[str, typer.Argument(help="Path or repository that servers are started with.")],
    model: ModelOption = None,
    training: Training = None,
    validation_accuracy: ValidationAccuracy = None,
    measure: MeasureOption = Measure.UNKNOWN,
    temperature: TemperatureOption = None,
    dataset: DatasetOption = "",
    config: ConfigOption = None,
) -> None:
    """Register a draft, or add figures to one; safe to repeat."""
    from dataclasses import replace

    from collector.bundle import read_training_file, stated_validation
    from collector.models import open_model

    found = []
    if training is not None:
        found.append(read_training_file(training))
    figures = accuracies(validation_accuracy)
    if figures:
        found.append(stated_validation(figures, measure))
    if not found and model is None:
        raise InputError(
            "nothing is said about the draft",
            hint="give --training FILE, --validation-accuracy X[,X...] or --model PATH",
        )
    told = [
        replace(
            validation,
            temperature=validation.temperature if temperature is None else temperature,
            dataset=dataset or validation.dataset,
        )
        for validation in found
    ]
    stored = _register(name, None if model is None else open_model(model), told, config)
    _print(stored)
    if any(item.measure is Measure.UNKNOWN and item.accuracy is not None and not item.replayed for item in told):
        errors().print(
            "note: what these figures count is not stated, so they are read as one accuracy at every position; "
            "--measure prefix, conditional or marginal says it",
            markup=False,
        )


def import_(
    file: Annotated[Path, typer.Argument(help="JSON as 'drafts list --format json' prints it.")],
    config: ConfigOption = None,
) -> None:
    """Register all drafts of a file; safe to repeat."""
    from collector.models.configs import parse_json
    from collector.sources.file import text_of
    from dashboard.drafts import drafts_in

    source = str(file)
    drafts = drafts_in(parse_json(text_of(file), source, "file of drafts"), source)
    parts = [draft.parts(source) for draft in drafts]
    for name, model, validations in parts:
        _print(_register(name, model, validations, config))


def list_(form: FormOption = Form.TEXT, config: ConfigOption = None) -> None:
    """List registered drafts."""
    from collector.storage.drafts import list_drafts

    with _database(config) as database, database.reading() as connection:
        drafts = list_drafts(connection, registered=True)
    if form is Form.JSON:
        _write({"drafts": [_document(draft) for draft in drafts]})
        return
    if not drafts:
        output().print("No draft is registered. draftscope drafts add NAME --training FILE", markup=False)
    for draft in drafts:
        _print(draft)


def show(name: DraftName, form: FormOption = Form.TEXT, config: ConfigOption = None) -> None:
    """Show one registered draft with all its figures."""
    from collector.storage.drafts import find_draft

    with _database(config) as database, database.reading() as connection:
        draft = find_draft(connection, name)
    if form is Form.JSON:
        _write(_document(draft))
        return
    _print(draft, every=True)


def remove(name: DraftName, config: ConfigOption = None) -> None:
    """Take a draft out of the registry; runs stored with figures of their own keep them."""
    from collector.storage.drafts import find_draft, remove_draft

    with _database(config) as database, database.transaction() as connection:
        draft = find_draft(connection, name)
        remove_draft(connection, draft.id)
    output().print(f"draft {draft.id} {draft.name} is no longer registered", markup=False, soft_wrap=True)


def replay(
    file: Annotated[Path, typer.Argument(help="Correctness per token: one text a line, JSON or rows of 0 and 1.")],
    depth: Annotated[int, typer.Option(help="Drafts a step.", min=1, max=DEEPEST)] = 5,
    add_to: Annotated[str, typer.Option("--add", metavar="NAME", help="Register the result for this draft.")] = "",
    form: FormOption = Form.TEXT,
    config: ConfigOption = None,
) -> None:
    """Walk held-out text in steps, as a server does: the length to expect, without an allowance for averaging."""
    from analysis.theory.replay import replay as walk
    from collector.models.correctness import read_correctness
    from collector.sources.file import text_of

    texts = read_correctness(text_of(file), str(file))
    depths = sorted({*range(1, min(depth, 8) + 1), depth})
    walks = [walk(texts, one) for one in depths]
    if form is Form.JSON:
        _write({"texts": len(texts), "tokens": walks[-1].tokens, "depths": [_walked(one) for one in walks]})
    else:
        _print_walks(walks, len(texts))
    if add_to:
        draft = _register(add_to, None, [_of_walk(walks[-1], str(file))], config)
        errors().print(f"note: registered for draft {draft.id} {draft.name}", markup=False)


def _walked(walk: Replay) -> dict[str, Any]:
    return {
        "depth": walk.depth,
        "acceptance_length": walk.length,
        "acceptance_rate_at": list(walk.prefix),
        "verify_steps": sum(walk.steps),
        "accuracy": walk.accuracy,
        "chain_formula_length": walk.promised_length,
        "kept": walk.kept,
        **_interval(walk),
    }


def _interval(walk: Replay) -> dict[str, float]:
    """The 95% interval over texts, where there are enough of them."""
    import numpy as np

    from analysis.theory.intervals import request_interval
    from analysis.theory.settings import DEFAULTS

    if len(walk.steps) < DEFAULTS.minimum_requests:
        return {}
    interval = request_interval(np.array(walk.accepted, dtype=float), np.array(walk.steps, dtype=float))
    return {"low": interval.length_low, "high": interval.length_high}


def _of_walk(walk: Replay, source: str) -> Validation:
    from collector.domain.drafts import Reference, Validation, Vocabulary
    from collector.domain.evidence import Evidence

    shown = f"replay at depth {walk.depth}: length {walk.length:.3f} over {sum(walk.steps)} steps"
    return Validation(
        accuracy=walk.prefix[0],
        accuracy_at=walk.prefix,
        measure=Measure.PREFIX,
        measure_stated=True,
        trainer="replay",
        temperature=0.0,
        vocabulary=Vocabulary.MISS,
        reference=Reference.TARGET,
        held_out=True,
        length=walk.length,
        length_depth=walk.depth,
        replayed=True,
        count=float(walk.tokens),
        evidence=(Evidence(source, None, shown),),
    )


def _print_walks(walks: list[Replay], texts: int) -> None:
    from rich.table import Table

    last = walks[-1]
    console = output()
    shown = _interval(last)
    spread = f" [{shown['low']:.2f}, {shown['high']:.2f}]" if shown else ""
    console.print(f"Length {last.length:.2f}{spread} at depth {last.depth}", style="bold")
    console.print(
        f"{texts:,} texts, {last.tokens:,} tokens, {sum(last.steps):,} steps. Averaged over all positions the first draft is "
        f"right {last.accuracy:.1%} of the time, from which the chain formula would promise {last.promised_length:.2f}; steps "
        f"keep {last.kept:.0%} of the promised drafts, because each starts where the one before failed.",
        markup=False,
    )
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for column in ("depth", "length", "chain formula", "kept", "accepted up to it"):
        table.add_column(column, justify="right")
    for walk in walks:
        table.add_row(
            str(walk.depth),
            f"{walk.length:.2f}",
            f"{walk.promised_length:.2f}",
            f"{walk.kept:.0%}",
            f"{walk.prefix[-1]:.1%}",
        )
    console.print(table)


def _register(name: str, model: Any, validations: list[Validation], config: Path | None) -> StoredDraft:
    from collector.storage.drafts import find_draft, register_draft

    if not name.strip():
        raise InputError("a draft needs a name", hint="the path or repository that servers are started with")
    with _database(config) as database, database.transaction() as connection:
        draft_id = register_draft(connection, name.strip(), model, validations, at=time.time())
        return find_draft(connection, str(draft_id))


def _database(config: Path | None) -> Any:
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    return open_configured(load_settings(config).service.database_url)


def _document(draft: StoredDraft) -> dict[str, Any]:
    from dashboard.drafts import registered

    return registered(draft).model_dump(mode="json")


def _write(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print(draft: StoredDraft, *, every: bool = False) -> None:
    """A draft in a line, and its latest figures (or all) below."""
    from dashboard.drafts import registered
    from dashboard.pages.drafts import drafts_page

    (entry,) = drafts_page([registered(draft)]).drafts
    console = output()
    facts = ", ".join(f"{label.lower()} {text}" for label, text in entry.facts)
    console.print(f"{entry.id}  {entry.sub}", markup=False, style="bold", soft_wrap=True)
    console.print(f"   {facts}", markup=False, soft_wrap=True)
    for row in entry.validations if every else entry.validations[:1]:
        promised = ", ".join(f"depth {item.depth}: {item.expected} (healthy {item.healthy})" for item in row.promised)
        console.print(f"   {row.figures}: {row.measure}", markup=False, soft_wrap=True)
        console.print(f"   promises {promised}", markup=False, soft_wrap=True)
        for text in (row.over, row.source, *row.doubts):
            if text and every:
                console.print(f"   {text}", markup=False, soft_wrap=True)
    if not entry.validations:
        console.print("   no validation figure", markup=False)
