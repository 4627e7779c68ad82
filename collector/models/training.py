"""What the draft's training or validation printed, whichever tool printed it."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from collector.domain.drafts import Validation
from collector.domain.errors import MalformedInput, UnreadableInput
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.models import trainers
from collector.models.trainers.base import Found, Trainer, note_about_measure, temperature_in


@cache
def known_trainers() -> tuple[Trainer, ...]:
    """The tools of the package ``trainers``; the most particular first."""
    found: list[Trainer] = []
    for info in pkgutil.iter_modules(trainers.__path__, f"{trainers.__name__}."):
        candidate = getattr(importlib.import_module(info.name), "TRAINER", None)
        if isinstance(candidate, Trainer):
            found.append(candidate)
    return tuple(sorted(found, key=lambda trainer: (trainer.order, trainer.name)))


def read_validation(text: str, source: str = "training.txt") -> Validation:
    """The draft's accuracy from what its training printed.

    The last evaluation counts. A note in the text that says what is counted wins over what the
    tool's figures usually mean.

    Raises:
        UnreadableInput: no accuracy is in the text.
        MalformedInput: a figure is outside 0 to 100%.
    """
    lines = text.splitlines()
    for trainer in known_trainers():
        found = trainer.find(lines)
        if found is not None:
            return _validation(found, trainer, lines, source)
    raise UnreadableInput(
        "no accuracy of a draft model is in this text",
        where=source,
        hint="give it as --validation-accuracy 0.747, or one figure a position: 0.75,0.71,0.68",
    )


def _validation(found: Found, trainer: Trainer, lines: list[str], source: str) -> Validation:
    for value in (found.accuracy, *found.accuracy_at):
        if not 0.0 <= value <= 1.0:
            raise MalformedInput(
                f"an accuracy of {value:g} is not possible",
                why="accuracies lie between 0 and 1, or 0% and 100%",
                where=f"{source}:{found.line}",
            )
    evidence = [Evidence(source, found.line, redact_text(lines[found.line - 1].strip()))]
    validation = Validation(
        accuracy=found.accuracy,
        accuracy_at=found.accuracy_at,
        measure=found.measure,
        measure_stated=found.measure_stated,
        trainer=trainer.name,
        temperature=temperature_in(lines),
        draft_vocabulary_coverage=found.coverage,
    )
    note = note_about_measure(lines)
    if note is not None:
        measure, number = note
        evidence.append(Evidence(source, number, redact_text(lines[number - 1].strip())))
        validation = replace(validation, measure=measure, measure_stated=True)
    return replace(validation, evidence=tuple(evidence))
