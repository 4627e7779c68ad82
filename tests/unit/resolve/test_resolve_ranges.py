"""What is not known is said, never guessed; ranges of releases agree or say where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.resolve import known_releases, resolve, resolve_range
from analysis.resolve.devices import GPUS, find_gpu
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange

CHAIN = {
    "model_path": "some/model",
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "some/draft",
    "speculative_num_steps": 1,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 16,
}
LLAMA = ModelConfig("config.json", {"architectures": ["LlamaForCausalLM"]})


def release(text: str) -> Release:
    return Release.parse(text)


def test_chain_without_anything_else_known() -> None:
    resolution = resolve("sglang", CHAIN, release=release("0.5.9"))
    assert resolution.effective["speculative_num_draft_tokens"] == 2
    assert resolution.effective["max_running_requests"] == 48
    assert resolution.effective["disable_overlap_schedule"] is True
    (change,) = resolution.changes_of("speculative_num_draft_tokens")
    assert (change.before, change.after, change.step.id) == (16, 2, "sglang-18")
    assert change.line == change.step.announced
    assert change.line in resolution.announced
    assert "GPU" in resolution.depends["mem_fraction_static"]
    assert "GPU" in resolution.depends["chunked_prefill_size"]
    assert "drawn anew" in resolution.depends["random_seed"]
    assert not set(resolution.depends) & set(resolution.effective)


def test_target_decides_the_depth() -> None:
    asked = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "x"}
    unknown = resolve("sglang", asked, release=release("0.5.9"))
    assert "target's config.json" in unknown.depends["speculative_num_steps"]
    known = resolve("sglang", asked, release=release("0.5.9"), target=LLAMA)
    assert known.effective["speculative_num_steps"] == 5


def test_shell_variable_is_no_value() -> None:
    resolution = resolve("sglang", {**CHAIN, "speculative_num_steps": "$STEPS"}, release=release("0.5.9"))
    assert resolution.depends["speculative_num_steps"] == "the shell's value of $STEPS"
    assert "$STEPS" in resolution.depends["speculative_num_draft_tokens"]
    assert resolution.effective["max_running_requests"] == 48


def test_range_agrees() -> None:
    resolution = resolve_range("sglang", CHAIN, releases=ReleaseRange.parse("0.4.6-0.5.23"), target=LLAMA)
    assert resolution.release is None
    assert len(resolution.releases) == 28
    assert resolution.effective["speculative_num_draft_tokens"] == 2
    assert resolution.depends["disable_overlap_schedule"] == (
        "the release: 0.5.10.post1 gives True, 0.5.11 gives False"
    )
    assert "disable_overlap_schedule" not in resolution.effective
    assert {change.flag for change in resolution.changes} >= {"speculative_num_draft_tokens", "max_running_requests"}
    assert "disable_overlap_schedule" not in {change.flag for change in resolution.changes}


def test_flags_that_not_every_release_has_are_left_out() -> None:
    resolution = resolve_range("sglang", CHAIN, releases=ReleaseRange.parse("0.5.3-0.5.14"))
    assert "cuda_graph_max_bs" not in {**resolution.effective, **resolution.depends}


@pytest.mark.parametrize("text", ["0.5.9", "0.5.3", "0.5.9.post2"])
def test_one_release_is_itself(text: str) -> None:
    """Also one that was not read, between two that were."""
    alone = resolve_range("sglang", CHAIN, releases=ReleaseRange.parse(text))
    assert alone.release == release(text)
    assert alone.effective == resolve("sglang", CHAIN, release=release(text)).effective
    assert alone.reason == ""


def test_range_without_a_read_release_takes_its_neighbours() -> None:
    between = resolve_range("sglang", CHAIN, releases=ReleaseRange.parse("0.5.9.post1-0.5.9.post3"))
    assert [str(one) for one in between.releases] == ["0.5.9", "0.5.10.post1"]


def test_newer_release_is_predicted_with_caution() -> None:
    resolution = resolve("sglang", CHAIN, release=release("0.9.0"))
    assert resolution.effective["speculative_num_draft_tokens"] == 2
    assert "newer than the newest release read" in resolution.reason


def test_older_release_is_hardly_predicted() -> None:
    resolution = resolve("sglang", CHAIN, release=release("0.4.2"))
    assert "older than the oldest release read" in resolution.reason
    assert resolution.effective == {}
    assert set(resolution.depends) >= set(CHAIN)


def test_refusal_leaves_nothing_effective() -> None:
    resolution = resolve("sglang", {**CHAIN, "no_such_flag": True}, release=release("0.5.9"))
    (rejection,) = resolution.rejections
    assert rejection.kind == "SystemExit"
    assert "--no-such-flag" in rejection.message
    assert resolution.effective == {}
    assert resolution.depends == {}


def test_last_check_leaves_the_values() -> None:
    resolution = resolve("sglang", {**CHAIN, "pp_size": 2}, release=release("0.5.9"), target=LLAMA, device="h100")
    (rejection,) = resolution.rejections
    assert rejection.checked
    assert resolution.effective["speculative_num_draft_tokens"] == 2


@pytest.mark.parametrize("engine", ["", "nothing", "base", "table", "devices", "SGLang/..", "os"])
def test_unknown_engine(engine: str) -> None:
    resolution = resolve(engine, CHAIN, release=release("1.0"))
    assert resolution.effective == {}
    assert "not known" in resolution.reason
    assert known_releases(engine) == ()
    assert "not known" in resolve_range(engine, CHAIN, releases=ReleaseRange()).reason


@pytest.mark.parametrize("name", ["H100", "NVIDIA H100", "h-100", "nvidia_h100"])
def test_gpu_by_any_spelling(name: str) -> None:
    assert find_gpu(name) is GPUS["h100"]


def test_unknown_gpu_is_no_guess() -> None:
    assert find_gpu("h1000") is None
    assert "GPU" in resolve("sglang", CHAIN, release=release("0.5.9"), device="h1000").depends["mem_fraction_static"]


FLAGS = st.dictionaries(
    st.sampled_from(
        [
            "speculative_algorithm",
            "speculative_num_steps",
            "speculative_eagle_topk",
            "speculative_num_draft_tokens",
            "speculative_draft_model_path",
            "speculative_adaptive",
            "attention_backend",
            "disaggregation_mode",
            "enable_dp_attention",
            "tp_size",
            "dp_size",
            "pp_size",
            "page_size",
            "max_running_requests",
            "chunked_prefill_size",
            "enable_mixed_chunk",
            "moe_a2a_backend",
            "cuda_graph_config",
        ]
    ),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2**40),
        st.sampled_from(["EAGLE", "EAGLE3", "NGRAM", "DFLASH", "decode", "fa3", "deepep", "$X", "", "x"]),
    ),
    max_size=8,
)


@given(
    FLAGS,
    st.sampled_from(known_releases("sglang")),
    st.sampled_from([None, "h100", "b200", "t4", "cpu"]),
    st.booleans(),
)
def test_anything_asked_is_answered(flags: dict[str, object], known: Release, device: str | None, target: bool) -> None:
    """Whatever stands in a command, a flag ends with a value, a dependency or a refusal."""
    resolution = resolve("sglang", flags, release=known, target=LLAMA if target else None, device=device)
    for flag in (flag for flag, value in flags.items() if value is not None):
        assert flag in resolution.effective or flag in resolution.depends or resolution.rejections
    assert not set(resolution.effective) & set(resolution.depends)


def test_build_between_samples_is_known_where_both_neighbours_agree() -> None:
    asked = {"spec_draft_model": "/models/draft.gguf"}
    between = resolve("llamacpp", asked, release=release("b9150"))
    assert between.release == release("b9150")
    assert between.depends["spec_type"] == "the release: b9093 gives 'draft-simple', b9246 gives 'none'"
    assert between.effective["spec_draft_p_split"] == 0.1
    same = resolve("llamacpp", asked, release=release("b9700"))
    assert same.effective["spec_type"] == "none"
    assert [str(one) for one in same.releases] == ["b9601", "b9702"]


def test_what_a_draft_cannot_change_is_known_without_its_config() -> None:
    asked = {"model": "m", "speculative_config": {"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 3}}
    resolution = resolve("vllm", asked, release=release("0.32.0"))
    assert "draft's config.json" in resolution.depends["speculative_config.method"]
    assert resolution.effective["speculative_config.num_speculative_tokens"] == 3
    assert resolution.effective["speculative_config.model"] == "Qwen/Qwen3-0.6B"


SETTINGS = st.dictionaries(
    st.sampled_from(
        [
            "method",
            "model",
            "num_speculative_tokens",
            "prompt_lookup_max",
            "draft_tensor_parallel_size",
            "max_model_len",
            "parallel_drafting",
            "disable_padded_drafter_batch",
            "rejection_sample_method",
            "no_such_setting",
        ]
    ),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(1, 200),
        st.sampled_from(["eagle3", "ngram", "mtp", "draft_model", "suffix", "org/eagle3-head", "some.module", "$X"]),
    ),
    max_size=6,
)


@given(SETTINGS, st.sampled_from(known_releases("vllm")), st.sampled_from([None, "h100", "cpu"]), st.booleans())
def test_any_setting_of_vllm_is_answered(
    settings: dict[str, object], known: Release, device: str | None, configs: bool
) -> None:
    """Words where a number belongs included: what the engine would choke on is left open or refused."""
    model = LLAMA if configs else None
    resolution = resolve(
        "vllm",
        {"model": "m", "speculative_config": settings},
        release=known,
        target=model,
        draft=model,
        device=device,
    )
    for name in (name for name, value in settings.items() if value is not None):
        flag = f"speculative_config.{name}"
        assert flag in resolution.effective or flag in resolution.depends or resolution.rejections
    assert not set(resolution.effective) & set(resolution.depends)
