"""What each trainer writes is read as that trainer counts it; what is ambiguous stays so."""

import json
import struct
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.promise import promise_of, promised_by
from collector.bundle import BundleOptions, read_bundle, read_training_file
from collector.domain.drafts import Measure, Reference, Validation, Vocabulary
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.models import read_training

GOLDEN = Path(__file__).parents[2] / "golden" / "training"
EXPECTED = yaml.safe_load((GOLDEN / "expected.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_golden(name):
    expected = EXPECTED[name]
    found = read_training((GOLDEN / name).read_bytes(), name)
    assert found.trainer == expected["trainer"]
    assert found.accuracy == expected["accuracy"]
    assert list(found.accuracy_at) == expected["at"]
    assert (found.measure, found.measure_stated) == (Measure(expected["measure"]), expected["stated"])
    assert found.vocabulary == Vocabulary(expected.get("vocabulary", found.vocabulary))
    assert found.reference == Reference(expected.get("reference", found.reference))
    assert found.held_out is expected["held_out"]
    assert found.length == (None if "length" not in expected else pytest.approx(expected["length"]))
    assert found.length_depth == expected.get("length_depth")
    assert found.replayed is expected.get("replayed", False)
    assert found.draft_vocabulary_coverage == expected.get("coverage")
    assert found.temperature == expected.get("temperature")
    assert (found.dataset, found.count) == (expected.get("dataset", ""), expected.get("count"))
    assert expected.get("remarks", "") in "; ".join(found.remarks)
    if "line" in expected:
        proof = found.evidence[0]
        assert (proof.line, proof.text) == (
            expected["line"],
            (GOLDEN / name).read_text().splitlines()[proof.line - 1].strip(),
        )
    for depth, length in expected.get("promised", {}).items():
        assert promised_by(found, depth).length == pytest.approx(length, abs=1e-6)


def test_every_golden_file_is_expected():
    files = {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*") if path.is_file()}
    assert files == {*EXPECTED, "README.md", "expected.yaml"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bundle_takes_the_golden_file_for_training_output(name, tmp_path):
    (tmp_path / "input.log").write_text("x")
    (tmp_path / f"training_{Path(name).name}").write_bytes((GOLDEN / name).read_bytes())
    (tmp_path / "launch.txt").write_text(
        "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3"
    )
    assert read_bundle([tmp_path]).subject.validation.trainer == EXPECTED[name]["trainer"]


def test_what_is_ambiguous_is_said_by_the_note_on_validation(tmp_path):
    from analysis import diagnose

    (tmp_path / "launch.txt").write_text(
        "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3 --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-draft-model-path /d"
    )
    options = BundleOptions(training=GOLDEN / "specforge" / "average-alone.txt", temperature=0.0)
    findings = diagnose(read_bundle([tmp_path], options)).findings
    (note,) = [finding for finding in findings if finding.rule == "MEA007"]
    assert note.values["measure"] == "unknown"
    assert "position 0 alone" in note.why


def test_tokens_left_out_lower_the_promise_by_the_coverage():
    stated = Validation(0.8, (0.8, 0.7), Measure.CONDITIONAL, vocabulary=Vocabulary.LEFT_OUT)
    covered = Validation(
        0.8, (0.8, 0.7), Measure.CONDITIONAL, vocabulary=Vocabulary.LEFT_OUT, draft_vocabulary_coverage=0.9
    )
    assert promised_by(stated, 2).length == pytest.approx(1 + 0.8 + 0.8 * 0.7)
    assert promised_by(covered, 2).length == pytest.approx(1 + 0.72 + 0.72 * 0.63)


def test_a_search_inside_the_vocabulary_widens_the_margin():
    plain = promise_of(Validation(0.7, vocabulary=Vocabulary.MISS, draft_vocabulary_coverage=0.9), 3, 0.0)
    inside = promise_of(Validation(0.7, vocabulary=Vocabulary.INSIDE, draft_vocabulary_coverage=0.9), 3, 0.0)
    assert inside.expected_length == plain.expected_length
    low = 0.6 + 0.6**2 + 0.6**3
    assert inside.margin == pytest.approx(plain.margin * low / (plain.expected_length - 1))


def test_replayed_figures_need_no_allowance_for_averaging():
    averaged = promise_of(Validation(0.7, measure=Measure.CONDITIONAL), 5, 0.0)
    replayed = promise_of(Validation(None, length=averaged.expected_length, length_depth=5, replayed=True), 5, 0.0)
    assert replayed.expected_length == replayed.realistic_length == pytest.approx(averaged.expected_length)
    assert averaged.realistic_length < averaged.expected_length
    assert replayed.margin == pytest.approx(0.9)


def test_a_length_of_another_depth_is_carried_over_by_its_rate():
    validation = Validation(None, length=1 + 0.7 + 0.49 + 0.343, length_depth=3, replayed=True)
    assert promised_by(validation, 5).length == pytest.approx(sum(0.7**i for i in range(6)))
    assert "depth 3" in promised_by(validation, 5).note


def test_prefix_shares_that_grow_are_not_taken_for_prefix_shares():
    promise = promise_of(Validation(0.5, (0.5, 0.6), Measure.PREFIX), 3, 0.0)
    assert promise.validation.measure is Measure.UNKNOWN
    assert "cannot be" in promise.validation.remarks[0]


# -- TensorBoard ----------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def record(event: bytes) -> bytes:
    return struct.pack("<Q", len(event)) + b"crc1" + event + b"crc2"


def event_file(*steps: tuple[int, dict[str, float]], tensors: bool = False) -> bytes:
    """An event file as its writers make it; checksums are not looked at."""
    data = record(b"\x09" + struct.pack("<d", 1.0) + field(3, b"brain.Event:2"))
    for step, scalars in steps:
        for tag, value in scalars.items():
            plain = struct.pack("<f", value)
            shown = field(8, b"\x08\x01" + field(5, plain)) if tensors else b"\x15" + plain
            summary = field(1, field(1, tag.encode()) + shown)
            data += record(b"\x09" + struct.pack("<d", 2.0) + b"\x10" + varint(step) + field(5, summary))
    return data


@pytest.mark.parametrize("tensors", [False, True])
def test_an_event_file_is_read_by_step(tmp_path, tensors):
    early = {"eval/avg_acc": 0.5, "eval/per_position_acc/0": 0.5, "eval/per_position_acc/1": 0.25}
    late = {"eval/avg_acc": 0.75, "eval/per_position_acc/0": 0.75, "eval/per_position_acc/1": 0.5, "train/lr": 1e-4}
    path = tmp_path / "events.out.tfevents.1700000000.host.1"
    path.write_bytes(event_file((200, early), (400, late), tensors=tensors) + b"\x10\x00")
    found = read_training_file(path)
    assert (found.trainer, found.accuracy_at) == ("SpecForge", (0.75, 0.5))
    assert found.evidence[0].text.startswith("step 400: eval/avg_acc 0.75")
    assert read_training_file(tmp_path) == found or read_training_file(tmp_path).accuracy_at == found.accuracy_at
    (tmp_path / "launch.txt").write_text(
        "python -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3"
    )
    assert read_bundle([tmp_path]).subject.validation.accuracy == 0.75


def test_an_event_file_that_is_damaged_is_named():
    broken = event_file((1, {"eval/acc_0": 0.5}))[:40] + record(b"\x2a\xff\xff\x03xx")
    with pytest.raises(InputError):
        read_training(broken, "events")
    with pytest.raises(MalformedInput) as caught:
        read_training(event_file() + record(b"\x0b"), "events")
    assert caught.value.where == "events"


@given(st.binary(max_size=200))
def test_any_bytes_behind_an_event_file_are_read_or_refused(tail):
    what = ""
    try:
        read_training(event_file() + tail, "events")
    except InputError as error:
        what = error.what
    assert isinstance(what, str)


# -- hostile output -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"eval/acc_0": ' + "9" * 5000 + "}",
        "[" * 5000 + '"acc"',
        '{"eval/acc_0": "high"}',
        '{"eval/acc_0": null, "acc": true}',
        "step 1: {'acc_0': " + "(" * 500 + "}",
        '{"acc": NaN}',
    ],
)
def test_hostile_output_is_refused_in_words(text):
    with pytest.raises(InputError) as caught:
        read_training(text.encode(), "t.txt")
    assert caught.value.where.startswith("t.txt")


def test_an_impossible_length_is_named():
    with pytest.raises(MalformedInput) as caught:
        read_training(b"Step 10 AR: 0.4\n", "t.txt")
    assert caught.value.where == "t.txt:1"


def test_a_folder_without_training_output(tmp_path):
    with pytest.raises(UnreadableInput) as caught:
        read_training_file(tmp_path)
    assert "val_metrics.json" in caught.value.why


@given(
    st.dictionaries(
        st.sampled_from(["acc_0", "eval/acc_0", "full_acc_0_epoch", "x"]), st.floats() | st.integers() | st.text()
    )
)
def test_any_json_document_is_read_or_refused(document):
    accuracy = None
    try:
        accuracy = read_training(json.dumps(document).encode(), "t.json").accuracy
    except InputError:
        return
    assert 0 <= accuracy <= 1
