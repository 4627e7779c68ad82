"""What the draft's training or validation printed, whichever tool printed it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from collector.domain.drafts import Validation
from collector.domain.errors import MalformedInput, UnreadableInput
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.models import trainers
from collector.models.scalars import Output
from collector.models.tensorboard import is_event_file, read_events
from collector.models.trainers.base import Found, Trainer, note_about_measure, temperature_in

LONGEST: Final = 1_025.0
"""No draft is longer than 1,024 tokens."""


@cache
def known_trainers() -> tuple[Trainer, ...]:
    """The tools of the package ``trainers``; the most particular first."""
    found: list[Trainer] = []
    for info in pkgutil.iter_modules(trainers.__path__, f"{trainers.__name__}."):
        candidate = getattr(importlib.import_module(info.name), "TRAINER", None)
        if isinstance(candidate, Trainer):
            found.append(candidate)
    return tuple(sorted(found, key=lambda trainer: (trainer.order, trainer.name)))


_FILES: Final = ("val_metrics.json", "*tfevents*", "best_meta.json", "meta.json", "trainer_state.json")
"""What a training run leaves in its folder, the most telling first."""


def training_file(folder: Path) -> Path:
    """The file of a run's or checkpoint's folder that has its accuracy; of several of one kind the last by name.

    Raises:
        UnreadableInput: it has none.
    """
    for pattern in _FILES:
        found = sorted(folder.glob(pattern))
        if found:
            return found[-1]
    raise UnreadableInput(
        "no training output is in this folder",
        why=f"it has none of {', '.join(_FILES)}",
        where=str(folder),
        hint="give the log of the training itself",
    )


def read_training(data: bytes, source: str = "training.txt") -> Validation:
    """The draft's accuracy from the bytes of what its training wrote: text, JSON, a table or an event file.

    Raises:
        UnreadableInput: no accuracy is in it.
        MalformedInput: it is damaged, or a figure is outside 0 to 100%.
    """
    if is_event_file(data):
        return _read(Output((), read_events(data, source)), source)
    return read_validation(data.decode("utf-8-sig", "replace"), source)


def read_validation(text: str, source: str = "training.txt") -> Validation:
    """The draft's accuracy from what its training printed.

    The last evaluation counts. A note in the text that says what is counted wins over what the
    tool's figures usually mean.

    Raises:
        UnreadableInput: no accuracy is in the text.
        MalformedInput: a figure is outside 0 to 100%.
    """
    return _read(Output(text.splitlines()), source)


def _read(output: Output, source: str) -> Validation:
    for trainer in known_trainers():
        found = trainer.find(output)
        if found is not None:
            return _validation(found, trainer, output.lines, source)
    raise UnreadableInput(
        "no accuracy of a draft model is in this text",
        where=source,
        hint="give it as --validation-accuracy 0.747, or one figure a position: 0.75,0.71,0.68",
    )


def _validation(found: Found, trainer: Trainer, lines: Sequence[str], source: str) -> Validation:
    where = f"{source}:{found.line}" if found.line else source
    for value in (found.accuracy, *found.accuracy_at):
        if value is not None and not 0.0 <= value <= 1.0:
            raise MalformedInput(
                f"an accuracy of {value:g} is not possible",
                why="accuracies lie between 0 and 1, or 0% and 100%",
                where=where,
            )
    if found.length is not None and not 1.0 <= found.length <= LONGEST:
        raise MalformedInput(
            f"an acceptance length of {found.length:g} is not possible",
            why="the target's own token counts, so it is at least 1",
            where=where,
        )
    evidence = [_evidence(found.line, found.text, lines, source)]
    stated = temperature_in(lines)
    validation = Validation(
        accuracy=found.accuracy,
        accuracy_at=found.accuracy_at,
        measure=found.measure,
        measure_stated=found.measure_stated,
        trainer=trainer.name,
        temperature=found.temperature if stated is None else stated,
        draft_vocabulary_coverage=found.coverage,
        vocabulary=found.vocabulary,
        reference=found.reference,
        held_out=found.held_out,
        length=found.length,
        length_depth=found.length_depth,
        replayed=found.replayed,
        dataset=found.dataset,
        count=found.count,
        remarks=found.remarks,
    )
    note = note_about_measure(lines)
    if note is not None:
        measure, number = note
        evidence.append(_evidence(number, "", lines, source))
        validation = replace(validation, measure=measure, measure_stated=True)
    return replace(validation, evidence=tuple(evidence))


def _evidence(line: int, text: str, lines: Sequence[str], source: str) -> Evidence:
    shown = lines[line - 1] if 0 < line <= len(lines) else text
    return Evidence(source, line or None, redact_text(shown.strip()))
