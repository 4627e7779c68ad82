"""Launch commands of vLLM and llama.cpp under the engines' own names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.drafting import drafting_of
from collector.domain.arguments import Arguments
from collector.launch import parse_launch


def drafting(command: str):
    launch = parse_launch(command)
    return drafting_of(launch.engine, Arguments().with_launch(launch))


@pytest.mark.parametrize(
    ("options", "requested"),
    [
        (
            """--speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'""",
            {"speculative_config.method": "ngram", "speculative_config.num_speculative_tokens": 3},
        ),
        ("--speculative_config.method eagle3", {"speculative_config.method": "eagle3"}),
        ("--speculative-config.num_speculative_tokens=3", {"speculative_config.num_speculative_tokens": 3}),
        (
            "--spec-method mtp --spec-tokens 2",
            {"speculative_config.method": "mtp", "speculative_config.num_speculative_tokens": 2},
        ),
        (
            "--speculative-model [ngram] --num-speculative-tokens 5",
            {"speculative_model": "[ngram]", "num_speculative_tokens": 5},
        ),
        ("-tp 4 -dp 2 -pp=1", {"tensor_parallel_size": 4, "data_parallel_size": 2, "pipeline_parallel_size": 1}),
        ("--max-model-len 32k --max-num-batched-tokens 8K", {"max_model_len": 32_000, "max_num_batched_tokens": 8_192}),
        ("--no-enable-prefix-caching --async-scheduling", {"enable_prefix_caching": False, "async_scheduling": True}),
        ("-cc.cudagraph_mode=NONE", {"compilation_config.cudagraph_mode": "NONE"}),
        ("--served-model-name a b --api-key sk-secret", {"served_model_name": ["a", "b"], "api_key": "***"}),
    ],
)
def test_options_of_vllm(options, requested):
    assert parse_launch(f"vllm serve /m/t {options}").requested == {"model": "/m/t", **requested}


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve /m/t --port 8000",
        "/opt/venv/bin/vllm serve /m/t --port 8000",
        "python3 -m vllm.entrypoints.openai.api_server --model /m/t --port 8000",
        "python -m vllm.entrypoints.cli.main serve /m/t --port 8000",
        "VLLM_USE_V1=0 python vllm/entrypoints/openai/api_server.py --model /m/t --port 8000",
        "bash -c 'vllm serve /m/t --port 8000'",
    ],
)
def test_where_vllm_begins(command):
    launch = parse_launch(command)
    assert (launch.engine, launch.requested) == ("vllm", {"model": "/m/t", "port": 8000})


@pytest.mark.parametrize(
    ("options", "requested"),
    [
        ("-md /d.gguf -ngld 99", {"spec_draft_model": "/d.gguf", "spec_draft_ngl": 99}),
        ("--model-draft /d.gguf --gpu-layers-draft 9", {"spec_draft_model": "/d.gguf", "spec_draft_ngl": 9}),
        ("--draft-max 16 --draft-min 4 --draft-p-min 0.5", {"draft_max": 16, "draft_min": 4, "spec_draft_p_min": 0.5}),
        ("--spec-type ngram-mod --spec-type draft-simple", {"spec_type": "ngram-mod,draft-simple"}),
        ("-fa -nkvo --no-jinja", {"flash_attn": True, "kv_offload": False, "jinja": False}),
        ("-fa on -ngl all -np 2", {"flash_attn": "on", "n_gpu_layers": "all", "parallel": 2}),
        ("-c 8192 -ctk q8_0 --temp 0.7", {"ctx_size": 8192, "cache_type_k": "q8_0", "temperature": 0.7}),
    ],
)
def test_options_of_llamacpp(options, requested):
    assert parse_launch(f"llama-server -m /m.gguf {options}").requested == {"model": "/m.gguf", **requested}


def test_variables_of_llamacpp_count_where_no_option_is_given():
    launch = parse_launch("LLAMA_ARG_SPEC_TYPE=draft-mtp LLAMA_ARG_N_PARALLEL=2 ./llama-server -m m.gguf -np 4")
    assert launch.requested == {"spec_type": "draft-mtp", "parallel": 4, "model": "m.gguf"}


def test_paths_of_windows_keep_their_backslashes():
    launch = parse_launch(r"C:\llama\llama-server.exe -m C:\models\t.gguf --port 8085")
    assert launch.requested == {"model": r"C:\models\t.gguf", "port": 8085}


def test_a_build_in_the_tag_of_an_image():
    launch = parse_launch("docker run -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server-cuda-b9093 -m /m.gguf --port 8080")
    assert (launch.engine, launch.release) == ("llamacpp", "b9093")


@pytest.mark.parametrize(
    ("command", "method", "depth"),
    [
        (
            "vllm serve m --speculative-config.method deepseek_mtp --speculative-config.num_speculative_tokens 2",
            "mtp",
            2,
        ),
        ("vllm serve m --speculative-config.model ngram --speculative-config.num_speculative_tokens 4", "ngram", 4),
        ("vllm serve m --speculative-model /d --num-speculative-tokens 5", "unknown", 5),
        ("vllm serve m", None, None),
        ("llama-server -m m -md d --spec-type draft-simple --spec-draft-n-max 8", "draft_model", 8),
        ("llama-server -m m --spec-type draft-mtp", "mtp", None),
        ("llama-server -m m --spec-type ngram-map-k,draft-eagle3 --spec-draft-n-max 4", "eagle3", None),
        (
            "llama-server -m m --spec-type ngram-map-k,draft-eagle3 --spec-draft-n-max 4 --spec-ngram-map-k-size-m 8",
            "eagle3",
            8,
        ),
        ("llama-server -m m --spec-type ngram-mod --spec-ngram-mod-n-max 64", "ngram_mod", 64),
        ("llama-server -m m -md d", None, None),
    ],
)
def test_how_a_command_drafts(command, method, depth):
    found = drafting(command)
    assert (found.known, found.method, found.depth) == (True, method, depth)


@given(st.text(alphabet="""-=.{}[]"', abc1:""", max_size=60))
@settings(max_examples=200)
def test_any_options_are_read_or_refused(text):
    from collector.domain.errors import InputError

    for program in ("vllm serve m", "llama-server -m m", "trtllm-serve m"):
        try:
            launch = parse_launch(f"{program} {text}")
        except InputError:
            continue
        assert launch.engine in {"vllm", "llamacpp", "tensorrt-llm"}
