"""Model configs and what the training of drafts printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.bundle import read_model_config
from collector.domain.drafts import Measure
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.models import parse_model_config, read_validation


def test_a_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"architectures": ["A"], "hidden_size": 8, "text_config": {"num_hidden_layers": 61}}')
    config = read_model_config(path)
    assert (config.layers, config.architectures, config.source) == (61, ("A",), str(path))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n "hidden_size": 8,\n "vocab_size": }', "config.json:3"),
        ("", "config.json:1"),
        ("[1, 2]", "config.json"),
        ('{"name": "x"}', "config.json"),
        ("[" * 100_000, "config.json"),
    ],
)
def test_a_broken_config_names_the_line(text, where):
    with pytest.raises(MalformedInput) as error:
        parse_model_config(text)
    assert error.value.where == where


CASES = [
    (
        "epoch 4 validation\neval/avg_acc: 0.747\nnote: accuracy of the next draft token given that all earlier ones were right",
        (0.747, (), Measure.CONDITIONAL, True, 2),
    ),
    ("eval/avg_acc: 0.747", (0.747, (), Measure.UNKNOWN, False, 1)),
    ("train_accuracy = 0.9\nval accuracy = 74.7%\ntrain_accuracy = 0.91", (0.747, (), Measure.UNKNOWN, False, 2)),
    ("acc: [0.8, 0.7, 0.6]\n# joint: this and all earlier right", (0.8, (0.8, 0.7, 0.6), Measure.PREFIX, True, 1)),
    ("0.747", (0.747, (), Measure.UNKNOWN, False, 1)),
    ("0.80, 0.71 0.65", (0.8, (0.8, 0.71, 0.65), Measure.UNKNOWN, False, 1)),
    (
        "medusa head 0 accuracy 0.95\nmedusa head 1 accuracy 0.93\nmedusa head 2 accuracy 0.91",
        (0.95, (0.95, 0.93, 0.91), Measure.UNKNOWN, False, 1),
    ),
    (
        (
            "Train Epoch [1/10], position 0,  Acc: 0.70\nTest Epoch [1/10], position 0,  Acc: 0.60\n"
            "Test Epoch [1/10], position 1,  Acc: 0.50\nTest Epoch [2/10], position 0,  Acc: 0.72\n"
            "Test Epoch [2/10], position 0, pLoss: 1.00\nTest Epoch [2/10], position 1,  Acc: 0.66\n"
        ),
        (0.72, (0.72, 0.66), Measure.MARGINAL, True, 4),
    ),
    (
        "Eval - Step 400 [401/10], position 0,  Acc: 0.74\nEval - Step 400 [401/10], position 1,  Acc: 0.71\n",
        (0.74, (0.74, 0.71), Measure.MARGINAL, True, 1),
    ),
    (
        (
            "step 50: {'loss': 1.0, 'acc': 0.6, 'acc_0': 0.65, 'acc_1': 0.6}\n"
            "step 100: {'eval/avg_acc': 0.7, 'eval/per_position_acc': [0.7, 0.64]}\n"
            "step 150: {'loss': 0.9, 'acc_0': 0.75, 'acc_1': 0.7}"
        ),
        (0.7, (0.7, 0.64), Measure.MARGINAL, True, 2),
    ),
    ("step 50: {'acc': 0.6, 'acc_0': 0.65, 'acc_1': 0.6}", (0.65, (0.65, 0.6), Measure.MARGINAL, True, 1)),
    (
        (
            "train/loss=1.2, train/full_acc_0=0.71, train/full_acc_1=0.5\n"
            "val/full_acc_0_epoch=0.74, val/full_acc_1_epoch=0.55, val/cond_acc_1_epoch=0.74, epoch=1"
        ),
        (0.74, (0.74, 0.55), Measure.PREFIX, True, 2),
    ),
    ("val/cond_acc_0_epoch=0.74, val/cond_acc_1_epoch=0.71", (0.74, (0.74, 0.71), Measure.CONDITIONAL, True, 1)),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=range(len(CASES)))
def test_training_output(text, expected):
    validation = read_validation(text)
    proof = validation.evidence[0]
    found = (validation.accuracy, validation.accuracy_at, validation.measure, validation.measure_stated, proof.line)
    assert found == expected
    assert proof.text == text.splitlines()[proof.line - 1].strip()


def test_what_else_the_output_states():
    validation = read_validation(
        "first run top 32000 token frequency ratio: 97.50%\nTest Epoch [2/10], position 0,  Acc: 0.72\ntemperature: 0.0"
    )
    assert validation.draft_vocabulary_coverage == 0.975
    assert validation.temperature == 0.0
    assert validation.trainer


@pytest.mark.parametrize("text", ["", "loss: 1.2", "the accuracy was good", "step 1: {broken"])
def test_text_without_accuracy(text):
    with pytest.raises(UnreadableInput) as error:
        read_validation(text)
    assert "--validation-accuracy" in error.value.hint


def test_an_impossible_accuracy_names_its_place():
    with pytest.raises(MalformedInput) as error:
        read_validation("loss 1\neval accuracy: 74.7", "t.txt")
    assert error.value.where == "t.txt:2"


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text):
    what = "an accuracy"
    try:
        read_validation(text)
    except InputError as error:
        what = error.what
    assert what
