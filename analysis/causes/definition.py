"""Measurement: figures of different definitions."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes, refutes
from analysis.causes.facts import Facts, Symptom

WIDE_GAP = 0.6
"""Share of the promised drafts below which definitions alone are no explanation. Ratio."""


class DefinitionMisread(Cause):
    """Figures of different definitions are compared.

    A rate that counts the target's own token, a task's accuracy, a top-k accuracy or an
    average of conditional figures taken for a top-1 accuracy; or a release that prints another
    formula than it is taken for. Nothing is wrong with the server then.
    """

    id = "definition-misread"
    kind = Kind.MEASUREMENT
    reports = (
        "vllm-project/vllm#9565",
        "vllm-project/vllm#17908",
        "ggml-org/llama.cpp#14104",
        "vllm-project/vllm#42508",
        "NickL77/BaldEagle#17",
        "sgl-project/SpecForge#128",
    )
    explains = frozenset({Symptom.ACCEPTANCE, Symptom.CONTRADICTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What the validation figure counts, and what is printed."""
        if facts.printed_otherwise:
            yield favours(STRONG, "the printed rate follows another formula than this release prints", "MEA001")
        if Symptom.ACCEPTANCE not in facts.symptoms:
            return
        note = facts.finding("MEA007")
        measure = note.values["measure"] if note is not None else None
        if facts.kept is not None and facts.kept < WIDE_GAP:
            yield opposes(STRONG, "definitions alone do not make a gap this large")
        if measure == "unknown":
            yield favours(HINT, "what the validation figure counts is not settled", "MEA007")
        elif measure is None and facts.run.record.validation is not None:
            yield refutes("the validation figure's meaning is stated")

    def experiment(self, facts: Facts) -> Experiment:
        """The training log itself."""
        source = facts.run.record.source
        return Experiment(
            "Give the training log itself, or request-level counts of a few responses",
            (f"draftscope diagnose {source} --training TRAINING_LOG --responses RESPONSES",),
            {"the gap closes": "it was one of definition", "the gap stays": "it is real"},
        )
