"""NVIDIA Model Optimizer: ``Step 400 Training Acc: [0.74, 0.71]``, ``Step 1000 AR: 2.31``.

Source: Model Optimizer main of 2026-08 (``examples/speculative_decoding/eagle_utils.py``,
``scripts/ar_validate.py``, ``modelopt/torch/speculative/plugins/megatron_*.py``). "AR" is a length: tokens
per step, the target's own included. With Hugging Face the target's best token is looked for inside
the draft's vocabulary, with Megatron a token outside it is a miss and all tokens count, unmasked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, Final

from collector.domain.drafts import Measure, Reference, Vocabulary
from collector.models.scalars import Output
from collector.models.trainers.base import NUMBER, Found, Trainer

_TRAINING: Final = re.compile(r"Step \d+ Training Acc: \[(?P<values>[^\]]*)\]")
_ESTIMATED: Final = re.compile(rf"Step \d+ Estimated Training AR: (?P<length>{NUMBER})")
_MEASURED: Final = re.compile(rf"Step \d+ AR: (?P<length>{NUMBER})")
_REPORT: Final = re.compile(r"==== AR Validation Results \(osl=(?P<tokens>\d+), steps=(?P<steps>\d+)\) ====")
_ALL: Final = re.compile(rf"^\s*ALL: (?P<length>{NUMBER})")
_SAMPLES: Final = re.compile(r"^\s*Samples: (?P<count>\d+)")
_MEGATRON: Final = re.compile(r"(?P<kind>EAGLE Top-1|Medusa Training Accuracy): \[(?P<values>.*)\]")
_TENSOR: Final = re.compile(rf"(?:tensor\()?(?P<value>{NUMBER})(?:,\s*device=[^)]*)?\)?")
_REAL_LOOP: Final = "measured by drafting and verifying MT-Bench prompts, greedy, with short answers"


class ModelOptimizerTrainer(Trainer):
    """Measured lengths before accuracies of training batches."""

    name: ClassVar[str] = "Model Optimizer"
    order: ClassVar[int] = 20

    def find(self, output: Output) -> Found | None:
        """The report of ``ar_validate``, else Megatron's evaluation, else what training printed."""
        return _report(output) or _megatron(output) or _training(output)


TRAINER: Final = ModelOptimizerTrainer()


def _report(output: Output) -> Found | None:
    found = None
    for number, line in enumerate(output.lines, 1):
        head = _REPORT.search(line)
        if head is not None:
            found = Found(
                None, number, reference=Reference.TARGET, held_out=True, replayed=True,
                length_depth=int(head["steps"]), temperature=0.0, dataset="MT-Bench",
                remarks=(f"greedy answers of {head['tokens']} tokens",),
            )  # fmt: skip
        elif found is not None and (match := _ALL.search(line)):
            found = replace(found, length=float(match["length"]), line=number)
        elif found is not None and (match := _SAMPLES.search(line)):
            found = replace(found, count=float(match["count"]))
    return found if found is not None and found.length is not None else None


def _megatron(output: Output) -> Found | None:
    for number in range(len(output.lines), 0, -1):
        match = _MEGATRON.search(output.lines[number - 1])
        values = tuple(float(item["value"]) for item in _TENSOR.finditer(match["values"])) if match else ()
        if match is None or not values:
            continue
        eagle = match["kind"] == "EAGLE Top-1"
        return Found(
            values[0], number, values, Measure.MARGINAL, True,
            vocabulary=Vocabulary.MISS if eagle else Vocabulary.FULL,
            reference=Reference.TARGET if eagle else Reference.DATA, held_out=eagle,
            remarks=("prompt tokens and padding count too",),
        )  # fmt: skip
    return None


def _training(output: Output) -> Found | None:
    found = _printed(output) or _logged(output)
    length, line, replayed = None, 0, False
    for number, text in enumerate(output.lines, 1):
        measured, estimated = _MEASURED.search(text), _ESTIMATED.search(text)
        if measured is not None:
            length, line, replayed = float(measured["length"]), number, True
        elif estimated is not None and not replayed:
            length, line = float(estimated["length"]), number
    if length is None:
        return found
    if found is None:
        return Found(
            None, line, reference=Reference.TARGET, held_out=replayed, length=length, replayed=replayed,
            temperature=0.0 if replayed else None, dataset="MT-Bench" if replayed else "",
            remarks=(_REAL_LOOP,) if replayed else (),
        )  # fmt: skip
    depth = len(found.accuracy_at)
    if not replayed:
        return replace(found, length=length, length_depth=depth)
    return replace(
        found,
        length=length,
        length_depth=depth,
        replayed=True,
        remarks=(*found.remarks, f"the length was {_REAL_LOOP}"),
    )


def _printed(output: Output) -> Found | None:
    for number in range(len(output.lines), 0, -1):
        match = _TRAINING.search(output.lines[number - 1])
        if match is not None:
            values = tuple(float(value) for value in re.findall(NUMBER, match["values"]))
            return _of_batches(values, number, "") if values else None
    return None


def _logged(output: Output) -> Found | None:
    row = output.last("train_acc/parallel_0_step_0")
    if row is None:
        return None
    values = row.numbered("train_acc/parallel_0_step_{}")
    later = 1
    while further := row.numbered(f"train_acc/parallel_{later}_step_{{}}"):
        values.append(further[-1])  # parallel tokens follow after all steps of the first
        later += 1
    found = _of_batches(tuple(values), row.line, row.text)
    length = row.values.get("estimated_training_ar")
    return found if length is None else replace(found, length=length, length_depth=len(values))


def _of_batches(values: tuple[float, ...], line: int, text: str) -> Found:
    return Found(
        values[0], line, values, Measure.MARGINAL, True,
        vocabulary=Vocabulary.INSIDE, reference=Reference.TARGET, held_out=False, text=text,
        remarks=("prompt tokens count too, unless answer_only_loss was set",),
    )  # fmt: skip
