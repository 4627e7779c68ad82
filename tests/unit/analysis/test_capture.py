"""Which layers feed the draft, per model and release. Source: SGLang, set_eagle3_layers_to_capture of each model."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.capture import captures, declared_ids, misplaced_ids
from analysis.capture.sglang import loses_capture_under_two_batch_overlap
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange

LLAMA = ModelConfig("target", {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32})
DEEPSEEK = ModelConfig("target", {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61})
KIMI = ModelConfig(
    "target",
    {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "text_config": {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61},
    },
)


def draft(ids: Any = None) -> ModelConfig:
    raw: dict[str, Any] = {"architectures": ["LlamaForCausalLMEagle3"]}
    if ids is not None:
        raw["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": ids}
    return ModelConfig("draft", raw)


@pytest.mark.parametrize(
    ("target", "ids", "releases", "expected"),
    [
        (LLAMA, None, "0.5.9", [(1, 15, 28)]),
        (LLAMA, [1, 15, 28], "0.5.9", [(1, 15, 28)]),
        (LLAMA, [-1, 2, 16], "0.5.9", [(-1, 2, 16)]),
        (DEEPSEEK, None, "0.5.12", [(1, 29, 57)]),
        (DEEPSEEK, [1, 29, 57], "0.5.12", [(1, 29, 57)]),
        (DEEPSEEK, [1, 29, 57], "0.5.13", [(1, 29, 57)]),
        (DEEPSEEK, [2, 30, 58], "0.5.12", [(2, 30, 58)]),
        (DEEPSEEK, [2, 30, 58], "0.5.13", [(1, 29, 57)]),
        (KIMI, [-1, 2, 30], "0.5.10", [(-1, 2, 30)]),
        (KIMI, [2, 30, 58], "0.5.10-0.5.14", [(2, 30, 58), (1, 29, 57)]),
    ],
)
def test_captured_outputs(
    target: ModelConfig, ids: list[int] | None, releases: str, expected: list[tuple[int, ...]]
) -> None:
    readings = captures("sglang", target, draft(ids), ReleaseRange.parse(releases))
    assert [reading.outputs for reading in readings] == expected
    assert not any(reading.impossible for reading in readings)


def test_ids_as_given_cannot_reach_the_embedding() -> None:
    (reading,) = captures("sglang", KIMI, draft([-1, 2, 30]), ReleaseRange.parse("0.5.13"))
    assert reading.impossible == "2 of 3 states would be captured, so the server would not start"


def test_the_last_layers_output_is_outside_the_loop() -> None:
    (reading,) = captures("sglang", LLAMA, draft([1, 15, 31]), ReleaseRange.parse("0.5.9"))
    assert "2 of 3" in reading.impossible


@pytest.mark.parametrize("ids", ["2,30,58", [2.5, 3], [True, 2, 3], {"a": 1}])
def test_malformed_ids_are_no_ids(ids: Any) -> None:
    assert declared_ids("sglang", draft(ids)) is None


def test_ids_at_the_top_level_are_seen_and_not_taken() -> None:
    config = ModelConfig("draft", {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]})
    assert declared_ids("sglang", config) is None
    assert misplaced_ids("sglang", config) == [1, 2, 3]


@pytest.mark.parametrize(
    ("target", "releases", "expected"),
    [(DEEPSEEK, "0.5.9", True), (DEEPSEEK, "0.5.3", False), (LLAMA, "0.5.9", None), (None, "0.5.9", None)],
)
def test_two_batch_overlap(target: ModelConfig | None, releases: str, expected: bool | None) -> None:
    assert loses_capture_under_two_batch_overlap(target, ReleaseRange.parse(releases)) is expected


LLAMA_80 = ModelConfig("target", {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 80})


@pytest.mark.parametrize(
    ("config", "releases", "enters"),
    [
        ({}, "0.12.0", [(2, 40, 77)]),
        ({"eagle_aux_hidden_state_layer_ids": [1, 40, 79]}, "0.12.0", [(1, 40, 79)]),
        ({"eagle_aux_hidden_state_layer_ids": [79, 1, 40]}, "0.12.0", [(1, 40, 79)]),
        ({"eagle_aux_hidden_state_layer_ids": [1, 40, 80]}, "0.12.0", [(1, 40, 80)]),
        ({"eagle_aux_hidden_state_layer_ids": [1, 40, 79]}, "0.10.2", [(2, 40, 77)]),
        (
            {
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 4, 5]},
                "eagle_aux_hidden_state_layer_ids": [1, 2, 3],
            },
            "0.12.0",
            [(3, 4, 5)],
        ),
        ({"dflash_config": {"target_layer_ids": [1, 40, 78]}}, "0.21.0", [(2, 41, 79)]),
    ],
)
def test_vllm_reads_ids_as_the_layer_that_the_state_enters(
    config: dict[str, Any], releases: str, enters: list[tuple[int, ...]]
) -> None:
    readings = captures("vllm", LLAMA_80, ModelConfig("draft", config), ReleaseRange.parse(releases))
    assert [reading.enters for reading in readings] == enters
    assert [reading.outputs for reading in readings] == [tuple(i - 1 for i in ids) for ids in enters]


def test_an_unknown_engine_has_no_readings() -> None:
    assert captures("lmdeploy", LLAMA, draft([1, 2, 3]), ReleaseRange()) == ()
