from __future__ import annotations

import pytest

from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.deployments import Serving


def serving(engine: str, effective: dict[str, object], requested: dict[str, object] | None = None) -> Serving:
    launch = LaunchCommand(engine, "", requested or {})
    return Serving.of(engine, Arguments().with_launch(launch).with_effective(effective, None))


@pytest.mark.parametrize(
    ("engine", "effective", "method"),
    [
        ("sglang", {"speculative_algorithm": "EAGLE3"}, "eagle3"),
        ("sglang", {"speculative_algorithm": "NEXTN"}, "eagle"),
        ("sglang", {"speculative_algorithm": None}, ""),
        ("sglang", {"model_path": "/m"}, None),  # its line states all arguments: this one was cut off
        ("sglang", {}, None),
        ("vllm", {"speculative_config.method": "deepseek_mtp"}, "mtp"),
        ("vllm", {"speculative_config.method": "ngram_gpu"}, "ngram_gpu"),
        ("vllm", {"speculative_model": "[ngram]"}, "ngram"),
        ("vllm", {"speculative_config.model": "/m/draft"}, "unknown"),
        ("vllm", {"speculative_config": None}, ""),
        ("vllm", {}, None),
        ("llamacpp", {"spec_type": "ngram-mod,draft-simple"}, "draft_model"),
        ("llamacpp", {"spec_type": "draft-mtp"}, "mtp"),
        ("llamacpp", {"spec_type": "ngram-map-k"}, "ngram_map_k"),
        ("llamacpp", {"spec_type": "none"}, ""),
        ("another", {"speculative_algorithm": "EAGLE3"}, None),
    ],
)
def test_the_method_has_the_engines_effective_name(
    engine: str, effective: dict[str, object], method: str | None
) -> None:
    assert serving(engine, effective).method == method


def test_models_and_sizes_are_read_under_each_engines_names() -> None:
    sglang = {
        "model_path": "/m/t",
        "speculative_algorithm": None,
        "speculative_draft_model_path": "/m/d",
        "tp_size": 8,
        "dp_size": 1,
        "device": "cuda",
    }
    assert serving("sglang", sglang) == Serving("/m/t", "/m/t", "/m/d", "", "tp=8", "cuda")
    vllm = {"model": "/m/t", "speculative_config.model": "/m/d", "tensor_parallel_size": 2, "data_parallel_size": 4}
    assert serving("vllm", vllm, {"served_model_name": ["chat", "other"]}) == Serving(
        "chat", "/m/t", "/m/d", "unknown", "tp=2 dp=4"
    )


def test_what_was_asked_stands_in_for_what_is_not_stated() -> None:
    assert serving("sglang", {}, {"speculative_algorithm": "EAGLE", "model_path": "/m/t"}).method == "eagle"
