"""Every row of what is known about the layers that feed a draft, with its source."""

from pathlib import Path

import pytest
import yaml

from analysis.capture import captures, expected_states, ignored_keys, misplaced_ids, trained_outputs
from analysis.capture.sglang import loses_capture_under_two_batch_overlap
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange
from tests.unit.models.made import IDS, LAYOUTS

ROWS = yaml.safe_load(Path(__file__).with_name("aux_layers.yaml").read_text("utf-8"))


def draft_of(row):
    raw = {"architectures": ["LlamaForCausalLMEagle3"], **row.get("draft", {})}
    if "ids" in row:
        raw["eagle_config"] = {**raw.get("eagle_config", {}), IDS: row["ids"]}
    if "top" in row:
        raw[IDS] = row["top"]
    return ModelConfig("draft", raw)


def target_of(row):
    raw = {"architectures": [row["model"]], "num_hidden_layers": row["layers"]}
    return ModelConfig("target", {**raw, "model_type": row["kind"]} if "kind" in row else raw)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['engine']} {row['release']} {row['source'][:60]}")
def test_row(row):
    draft, target = draft_of(row), target_of(row)
    readings = captures(row["engine"], target, draft, ReleaseRange.parse(row["release"]))
    possible = [list(reading.outputs) for reading in readings if not reading.impossible]
    if row["outputs"] == "none":
        assert any(reading.impossible for reading in readings)
        assert not [reading for reading in readings if not reading.impossible and row["engine"] != "vllm"]
    else:
        assert possible == row["outputs"]
    assert misplaced_ids(row["engine"], draft) == row.get("misplaced")


@pytest.mark.parametrize(
    ("engine", "release", "draft", "states"),
    [
        ("sglang", "0.5.11", {"eagle_config": {IDS: [1, 2, 3, 4]}}, {3}),
        ("sglang", "0.5.12", {"eagle_config": {IDS: [1, 2, 3, 4]}}, {4}),
        ("sglang", "0.5.12", {"num_aux_hidden_states": 5, "eagle_config": {IDS: [1, 2, 3, 4]}}, {5}),
        ("sglang", "0.5.12", {}, {3}),
        ("sglang", "0.5.11-0.5.12", {"eagle_config": {IDS: [1, 2, 3, 4]}}, {3, 4}),
        ("vllm", "0.21.0", {"eagle_config": {IDS: [1, 2, 3, 4]}}, {3}),
        ("vllm", "0.22.0", {"eagle_config": {IDS: [1, 2, 3, 4]}}, {4}),
        ("vllm", "0.22.0", {"num_aux_hidden_states": 2}, {2}),
        ("llamacpp", "*", {"extract_layers": [1, 2, 3, 4]}, {3}),
        ("tensorrt-llm", "*", {}, set()),
        ("lmdeploy", "*", {}, set()),
    ],
)
def test_number_of_states(engine, release, draft, states):
    assert expected_states(engine, ModelConfig("d", draft), ReleaseRange.parse(release)) == states


@pytest.mark.parametrize(
    ("engine", "release", "draft", "ignored"),
    [
        ("sglang", "0.5.11", {"fc_norm": True, "norm_output": True}, ["fc_norm", "norm_output"]),
        ("sglang", "0.5.12", {"fc_norm": True, "norm_output": True}, []),
        ("sglang", "0.5.16", {"eagle_config": {"norm_before_fc": True}}, ["norm_before_fc"]),
        ("sglang", "0.5.17", {"norm_before_fc": True}, []),
        ("sglang", "0.4.8", {"bias": True}, ["bias"]),
        ("sglang", "0.5.23", {"norm_before_residual": True}, ["norm_before_residual"]),
        ("sglang", "0.5.23", {"norm_before_residual": False, "fc_norm": None}, []),
        ("vllm", "0.17.0", {"norm_before_fc": True}, ["norm_before_fc"]),
        ("vllm", "0.21.0", {"fc_norm": True, "norm_output": True}, ["fc_norm", "norm_output"]),
        ("vllm", "0.22.0", {"fc_norm": True, "norm_output": True, "norm_before_residual": True}, []),
    ],
)
def test_settings_that_a_release_does_not_read(engine, release, draft, ignored):
    found = ignored_keys(engine, ModelConfig("d", draft), ReleaseRange.parse(release))
    assert [key.key for key in found] == ignored


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("eagle3-specforge", ((1, 15, 28), "SpecForge")),
        ("eagle3-model-optimizer", ((1, 15, 28), "Model Optimizer")),
        ("eagle3-speculators", ((1, 15, 28), "speculators")),
        ("peagle-specforge", ((1, 15, 28), "SpecForge")),
        ("eagle3-official", None),
        ("medusa", None),
    ],
)
def test_the_same_three_layers_by_each_trainers_convention(name, outputs):
    assert trained_outputs(ModelConfig("d", LAYOUTS[name][0]), 32) == outputs


@pytest.mark.parametrize(
    ("model", "release", "loses"),
    [
        ("DeepseekV3ForCausalLM", "0.5.4", True),
        ("DeepseekV3ForCausalLM", "0.5.23", True),
        ("DeepseekV3ForCausalLM", "0.5.3", False),
        ("KimiK25ForConditionalGeneration", "0.5.10", True),
        ("Qwen3MoeForCausalLM", "0.5.3", True),
        ("Qwen2MoeForCausalLM", "0.5.23", True),
        ("Glm4MoeForCausalLM", "0.5.5", True),
        ("MiMoV2FlashForCausalLM", "0.5.23", False),
        ("DeepseekV4ForCausalLM", "0.5.23", False),
        ("Glm5NextForCausalLM", "0.5.23", False),
        ("LlamaForCausalLM", "0.5.9", None),
    ],
)
def test_two_batch_overlap_by_model_and_release(model, release, loses):
    target = ModelConfig("t", {"architectures": [model], "num_hidden_layers": 48})
    assert loses_capture_under_two_batch_overlap(target, ReleaseRange.parse(release)) is loses
