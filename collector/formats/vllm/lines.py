"""The lines of vLLM's log that carry facts, release by release.

Source: vLLM's release packages 0.8.5 to 0.32.0, and public logs of 0.5 to 0.8; files are named
beside the lines they print. Wordings that only tell that a message is vLLM's are in
``wordings.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from collector.domain.arguments import Value
from collector.formats.base import Line, Place, Sample
from collector.formats.figures import DECIMAL, WHOLE
from collector.formats.vllm.stats import STATED, StatsReader

ENGINE_CONFIG: Final = b"Initializing a"
ASKED: Final = b"non-default args: "
NAMESPACE: Final = b"args: Namespace("

_RATE = DECIMAL + rb"|nan"
_TOKENS = rb"Accepted: (?P<accepted>" + WHOLE + rb") tokens, Drafted: (?P<drafted>" + WHOLE + rb") tokens"
_POSITIONS = rb"(?P<positions>(?:\d\.\d{3}|nan)(?:, (?:\d\.\d{3}|nan))*)?"
_NOTHING: Final[Mapping[str, Value]] = {}
_ASYNC_OFF: Final[Mapping[str, Value]] = {"async_scheduling": False}


@dataclass(frozen=True)
class StatsLine(Line):
    """The engine line; see :mod:`collector.formats.vllm.stats`. Without a literal: the one about several engines."""

    stats: StatsReader = field(default_factory=StatsReader, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Our names for the values that such a line may state."""
        return STATED

    def read(self, message: bytes) -> Mapping[str, Value] | None:
        """The values a message states under our names."""
        if not message.startswith(self.starts) or message[:1].isdigit() == bool(self.starts):
            return None
        read = self.stats.read(message)
        return None if read is None else {**read.values, "engine": read.engine}


def _announced(
    name: str,
    starts: bytes,
    pattern: bytes | None = None,
    versions: str = "*",
    states: Mapping[str, Value] = _NOTHING,
) -> Line:
    """A line in which the engine says that it changed or decided something."""
    return Line(name, starts, pattern, kind="announcement", states=states, versions=versions)


LINES: Final = (
    # ---- every few seconds; engine/metrics.py (V0), v1/metrics/loggers.py
    StatsLine("engine", b"Engine ", versions="0.8.0-"),
    StatsLine("engine-unnamed", b"Avg prompt throughput: ", versions="-0.10.2"),
    StatsLine("engines-aggregated", b"", versions="0.11.1-"),
    Line(
        "prefix-cache",
        b"Prefix cache hit rate: GPU: ",
        rb"Prefix cache hit rate: GPU: (?P<percent>-?" + DECIMAL + rb")%, CPU: -?" + DECIMAL + rb"%",
        versions="-0.9.2",
    ),
    # v1/spec_decode/metrics.py
    Line(
        "acceptance",
        b"SpecDecoding metrics: Mean acceptance length: ",
        rb"SpecDecoding metrics: Mean acceptance length: (?P<length>" + _RATE + rb"), "
        rb"Accepted throughput: (?P<accepted_throughput>" + _RATE + rb") tokens/s, "
        rb"Drafted throughput: (?P<drafted_throughput>" + _RATE + rb") tokens/s, " + _TOKENS + rb", "
        rb"Per-position acceptance rate: "
        + _POSITIONS
        + rb", Avg Draft acceptance rate: (?P<percent>"
        + _RATE
        + rb")%",
        versions="0.10.2-",
    ),
    Line(
        "acceptance-0.8.5",
        b"SpecDecoding metrics: Draft acceptance rate: ",
        rb"SpecDecoding metrics: Draft acceptance rate: (?P<percent>" + _RATE + rb")%, "
        rb"Mean acceptance length: (?P<length>" + _RATE + rb"), " + _TOKENS + rb", "
        rb"Per-position acceptance rate: " + _POSITIONS,
        versions="0.8.5-0.10.1",
    ),
    Line(
        "acceptance-0.8.3",
        b"SpecDecoding metrics: Draft acceptance rate: ",
        rb"SpecDecoding metrics: Draft acceptance rate: (?P<percent>" + _RATE + rb")%, " + _TOKENS,
        versions="0.8.3-0.8.4",
    ),
    Line(
        "acceptance-0.8.2",
        b"Speculative metrics: Draft acceptance rate: ",
        rb"Speculative metrics: Draft acceptance rate: (?P<rate>" + _RATE + rb"), "
        rb"Number of accepted tokens: (?P<accepted>"
        + WHOLE
        + rb"), Number of draft tokens: (?P<drafted>"
        + WHOLE
        + rb"),",
        versions="0.8.2-0.8.2",
    ),
    # engine/metrics.py of V0; 0.5 doubled a word
    Line(
        "acceptance-v0",
        b"Speculative metrics: Draft acceptance rate: ",
        rb"Speculative metrics: Draft acceptance rate: (?P<rate>" + _RATE + rb"), "
        rb"System efficiency: (?P<efficiency>" + _RATE + rb"), "
        rb"Number of speculative tokens: (?P<depth>" + WHOLE + rb"), Number of accepted tokens(?: tokens)?: \d+, "
        rb"Number of draft tokens(?: tokens)?: (?P<drafted>" + WHOLE + rb"), "
        rb"Number of emitted tokens(?: tokens)?: (?P<emitted>" + WHOLE + rb")\.",
        versions="-0.9.2",
    ),
    Line("diffusion", b"DiffusionDecoding metrics: ", versions="0.24.0-"),
    Line("iteration", b"", rb"(?:Engine \d{3,}: )?Iteration\(\d+\): .*", versions="0.14.0-"),
    Line("utilisation", b"Engine ", rb"Engine \d{3,}: (?:MFU|vllm cache_config_info).*", versions="0.14.0-"),
    # ---- configuration
    Line(
        "version",
        b"vLLM API server version ",
        rb"vLLM API server version (?P<release>\S+)",
        kind="version",
        versions="-0.24.0",
    ),
    Line(
        "version-banner",
        b" \xe2\x96\x84\xe2\x96\x84 ",
        rb"[ \x80-\xff]+version (?P<release>\d\S*)",
        kind="version",
        versions="0.25.0-",
    ),
    Line(
        "engine-config",
        ENGINE_CONFIG,
        rb"Initializing an? (?P<generation>V[01] )?LLM engine \(v(?P<release>[^)\s]+)\) with config: (?P<config>.*)",
        kind="configuration",
    ),
    Line("asked", ASKED, rb"non-default args: (?P<given>\{.*)", kind="arguments", versions="0.9.0-"),
    Line("asked-namespace", NAMESPACE, rb"args: Namespace\((?P<given>.*)", kind="arguments", versions="-0.8.5"),
    Line(
        "batched-tokens",
        b"Chunked prefill is enabled with max_num_batched_tokens=",
        rb"Chunked prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)\.",
        kind="setting",
        states={"enable_chunked_prefill": True},
    ),
    Line(
        "async-scheduling",
        b"Asynchronous scheduling is ",
        rb"Asynchronous scheduling is (?P<switch>enabled|disabled)\.",
        kind="setting",
        versions="0.14.0-0.26.0",
    ),
    # ---- what the configuration changed; config/vllm.py, config/speculative.py, config.py before 0.11
    _announced(
        "async-off-method",
        b"Async scheduling not supported with ",
        rb"Async scheduling not supported with (?P<method>\S+)-based speculative decoding and will be disabled\.",
        "0.14.0-",
        states=_ASYNC_OFF,
    ),
    _announced(
        "async-off-padding",
        b"Async scheduling is not compatible with disable_padded_drafter_batch=True",
        versions="0.14.0-",
        states=_ASYNC_OFF,
    ),
    _announced(
        "async-off-speculation",
        b"Async scheduling is not yet supported with speculative decoding ",
        versions="0.11.1-0.13.0",
        states=_ASYNC_OFF,
    ),
    _announced(
        "async-off-executor", b"Async scheduling will be disabled because", versions="0.11.1-", states=_ASYNC_OFF
    ),
    _announced("async-off-other", b"Async scheduling is disabled ", versions="0.27.0-", states=_ASYNC_OFF),
    _announced(
        "scheduled-tokens",
        b"max_num_scheduled_tokens is set to ",
        rb"max_num_scheduled_tokens is set to (?P<max_num_scheduled_tokens>\d+) based on the speculative .*",
        "0.20.0-",
    ),
    Line(
        "draft-length",
        b"Overriding draft model max model len from ",
        rb"Overriding draft model max model len from (?P<previous>\d+) to (?P<draft_max_model_len>\d+)",
        kind="announcement",
        versions="0.21.0-",
    ),
    Line(
        "draft-positions",
        b"Overriding draft model max_position_embeddings from ",
        rb"Overriding draft model max_position_embeddings from (?P<previous>\d+) to the target model's max_model_len "
        rb"\((?P<draft_max_position_embeddings>\d+)\).*",
        kind="announcement",
        versions="0.27.0-",
    ),
    _announced(
        "one-module-repeated",
        b"Enabling num_speculative_tokens > 1 will run",
        versions="0.11.0-",
        states={"one_module": True},
    ),
    _announced(
        "one-module",
        b"All ",
        rb"All \S+ MTP models only have one layer\. Might need some code changes .*",
        "0.9.0-0.10.2",
        states={"one_module": True},
    ),
    _announced(
        "method-renamed",
        b"method `",
        rb"method `(?P<requested>[^`]*)` is deprecated and replaced with mtp\.",
        "0.11.0-",
        states={"speculative_config.method": "mtp"},
    ),
    Line(
        "suffix-depth",
        b"Defaulted num_speculative_tokens to ",
        rb"Defaulted num_speculative_tokens to (?P<num_speculative_tokens>\d+) for suffix decoding\.",
        kind="announcement",
        versions="0.11.1-",
    ),
    _announced(
        "draft-parallel-one",
        b"",
        rb"(?P<draft_type>\S+) cannot currently be run with tp>1; setting speculative_draft_tensor_parallel_size=1",
        states={"speculative_config.draft_tensor_parallel_size": 1},
    ),
    _announced(
        "graph-dynamic-depth",
        b"Dynamic speculative decoding changes the target verification length",
        rb"Dynamic speculative decoding changes .* Overriding cudagraph_mode from (?P<requested>\S+) to (?P<cudagraph_mode>\w+) .*",
        "0.24.0-",
    ),
    _announced(
        "dynamic-depth-off",
        b"Dynamic speculative decoding is not supported with data parallelism",
        rb"Dynamic speculative decoding is not supported with data parallelism .* num_speculative_tokens=(?P<num_speculative_tokens>\d+)\.",
        "0.26.0-",
    ),
    _announced(
        "graph-mode",
        b"CUDAGraphMode.",
        rb"CUDAGraphMode\.(?P<requested>\w+) is not supported with spec-decode .*[Ss]etting cudagraph_mode=(?P<cudagraph_mode>\w+).*",
        "0.10.1-",
    ),
    _announced(
        "model-runner-v1", b"Model Runner V2 ", rb"Model Runner V2 .*using the V1 model runner instead\.", "0.23.0-"
    ),
    _announced("block-drop-off", b"EAGLE trailing prefix-cache block dropping is disabled", versions="0.30.0-"),
    _announced(
        "draft-cache-group",
        b"Speculative decoding (method=",
        rb"Speculative decoding \(method=(?P<method>[^)]*)\) is enabled but no KV cache group .*",
        "0.30.0-",
    ),
    _announced(
        "text-only-drafts", b"Speculative Decoding with draft models or parallel drafting does not", versions="0.21.0-"
    ),
    _announced(
        "text-only-draft", b"Draft model ", rb"Draft model .* using text-only draft inputs instead\.", "0.28.0-"
    ),
    _announced("mask-hidden-skipped", b"mask_hidden found in weights but", versions="0.16.0-"),
    _announced("custom-proposer", b"Using a custom class-based proposer backend", versions="0.22.0-"),
    _announced("draft-probabilities-missing", b"Missing cached draft probabilities for request ", versions="0.22.0-"),
    _announced(
        "v0-fallback",
        b"",
        rb"(?P<feature>.{1,80}) (?:is not supported by the V1 Engine|is experimental on VLLM_USE_V1=1)\. Falling back to V0.*",
        "0.8.0-0.10.2",
    ),
    _announced("v0-scorer", b"[Speculative Decoding] ", versions="-0.9.2"),
    _announced(
        "stats-off",
        b"AsyncLLM created with api_server_count more than 1; disabling stats logging",
        versions="0.10.2-",
        states={"disable_log_stats": True},
    ),
    # ---- the draft; v1/worker/gpu_model_runner.py, v1/spec_decode/llm_base_proposer.py (eagle.py before)
    Line("draft-loading", b"Loading drafter model", kind="draft-loading"),
    Line(
        "aux-layers",
        b"Using auxiliary layers from speculative config: ",
        rb"Using auxiliary layers from speculative config: \((?P<layers>[\d, -]*)\)",
        kind="aux-layers",
        states={"origin": "config"},
        versions="0.11.1-",
    ),
    Line(
        "aux-layers-v2-runner",
        b"Using Eagle3 auxiliary layers from ",
        rb"Using Eagle3 auxiliary layers from (?P<origin>config|model): \((?P<layers>[\d, -]*)\)",
        kind="aux-layers",
        versions="0.17.0-",
    ),
    Line(
        "draft-weights",
        b"Detected ",
        rb"Detected (?P<kind>EAGLE|MTP) model(?P<how>[^.]*)\. .*target model.*",
        kind="draft-weights",
        versions="0.11.1-",
    ),
    Line(
        "vocabulary-map",
        b"VocabMapping initialized: ",
        rb"VocabMapping initialized: target_vocab=(?P<target_vocab>\d+), draft_vocab=(?P<draft_vocab>\d+), "
        rb"intersection=(?P<intersection>\d+) .*",
        kind="vocabulary-map",
        versions="0.25.0-",
    ),
    _announced(
        "vocabulary-small",
        b"Very small vocabulary intersection (",
        rb"Very small vocabulary intersection \((?P<intersection>\d+) tokens\)\.",
        "0.25.0-",
    ),
    Line(
        "architecture",
        b"Resolved architecture: ",
        rb"Resolved architecture: (?P<architecture>\w+)",
        kind="architecture",
        versions="0.10.1-",
    ),
    # ---- capacity; v1/core/kv_cache_utils.py
    Line(
        "kv-cache",
        b"GPU KV cache size: ",
        rb"GPU KV cache size: (?P<size>[\d,]+) tokens(?:, Maximum concurrency for [\d,]+ tokens per request: [\d.]+x)?",
        kind="kv-cache",
    ),
    Line(
        "kv-cache-device",
        b"",
        rb"(?!GPU )[A-Z]{3,4} KV cache size: (?P<size>[\d,]+) tokens, Maximum concurrency for .*",
        kind="kv-cache",
        versions="0.30.0-",
    ),
    Line(
        "preempted",
        b"Sequence group ",
        rb"Sequence group \S+ is preempted by \S+ mode because .*",
        kind="retracted",
        states={"retracted_requests": 1},
        versions="-0.10.2",
    ),
    # ---- life; uvicorn's lines bear the process's name from 0.10.1 to 0.30, or none
    Line("ready", b"INFO:     Application startup complete.", kind="ready", place=Place.BARE),
    Line("shutdown-uvicorn", b"INFO:     Shutting down", kind="shutdown", place=Place.BARE),
    Line("access", b"INFO:     ", rb"INFO:     (?!Application startup complete\.|Shutting down).*", place=Place.BARE),
    Line("server-warning", b"WARNING:  ", place=Place.BARE),
    Line("server-error", b"ERROR:    ", place=Place.BARE),
    Line(
        "shutdown",
        b"[shutdown] ",
        rb"\[shutdown\] (?!MPClient: engine core exited).*",
        kind="shutdown",
        versions="0.24.0-",
    ),
    Line(
        "engine-exited",
        b"[shutdown] MPClient: engine core exited unexpectedly",
        kind="child-failed",
        versions="0.24.0-",
    ),
    Line("failed", b"EngineCore encountered a fatal error.", kind="failing"),
    Line("failed-to-start", b"EngineCore failed to start.", kind="failing"),
    Line("failed-worker", b"WorkerProc hit an exception.", kind="failing"),
    Line("failed-worker-start", b"WorkerProc failed to start.", kind="failing"),
    Line("failed-output", b"AsyncLLM output_handler failed.", kind="failing"),
    Line("failed-v0", b"Engine background task failed", kind="failing", versions="-0.10.2"),
    Line(
        "process-died",
        b"",
        rb"(?P<process>(?:Worker|Engine core|RayWorkerProc) ?(?:proc \S+|rank=\S+)) died unexpectedly.*",
        kind="child-failed",
    ),
    Line(
        "refused-by-parser",
        b"",
        rb"(?:vllm(?: serve)?|\S*api_server\.py|usage): error: (?P<message>.*)",
        kind="refused",
        place=Place.BARE,
    ),
)

_V1 = "(APIServer pid=1904) INFO 07-01 12:00:00 [loggers.py:271] "
_V0 = "INFO 07-24 04:00:36 metrics.py:316] "
_BOOT = "(APIServer pid=11514) INFO 11-29 17:35:05 [model.py:733] "
_WARN = "(APIServer pid=11514) WARNING 11-29 17:35:05 [vllm.py:2276] "
_CORE = "(EngineCore_DP0 pid=123) INFO 11-29 17:35:11 [core.py:133] "

SAMPLES: Final = (
    Sample(
        _V1 + "Engine 004: Avg prompt throughput: 1639.2 tokens/s, Avg generation throughput: 972.4 tokens/s, "
        "Running: 9 reqs, Waiting: 81 reqs, GPU KV cache usage: 98.2%, Prefix cache hit rate: 12.5%",
        "engine",
        {
            "engine": 4,
            "generation_throughput": 972.4,
            "running_requests": 9,
            "waiting_requests": 81,
            "cached_share": 0.125,
        },
    ),
    Sample(
        "(APIServer pid=11514) INFO 11-29 17:35:30 [loggers.py:335] Engine 000: Avg prompt throughput: 81.4 tokens/s, "
        "Avg generation throughput: 242.1 tokens/s, Running: 1 reqs, Waiting: 0 reqs, Deferred: 2 reqs, "
        "KV fetch: 1 waiting to start, 2 in progress, 3 completed waiting, CPU KV cache usage: 0.5%, "
        "External prefix cache hit rate: 3.0%, MM cache hit rate: 16.7%",
        "engine",
        {"engine": 0, "prompt_throughput": 81.4, "kv_cache_usage": 0.005},
    ),
    Sample(
        "INFO 07-24 04:00:36 metrics.py:295] Avg prompt throughput: 278.5 tokens/s, Avg generation throughput: 110.4 "
        "tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 0.3%, CPU KV cache usage: 0.0%.",
        "engine-unnamed",
        {"generation_throughput": 110.4, "running_requests": 2, "waiting_requests": 1, "kv_cache_usage": 0.003},
    ),
    Sample(
        _V1 + "2 Engines Aggregated: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 99.5 tokens/s, "
        "Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 0.0%",
        "engines-aggregated",
        {"generation_throughput": 99.5, "running_requests": 3},
    ),
    Sample(_V0 + "Prefix cache hit rate: GPU: 41.25%, CPU: 0.00%", "prefix-cache", {"percent": 41.25}),
    Sample(
        _V1 + "SpecDecoding metrics: Mean acceptance length: 2.29, Accepted throughput: 136.52 tokens/s, "
        "Drafted throughput: 316.87 tokens/s, Accepted: 1436 tokens, Drafted: 3333 tokens, "
        "Per-position acceptance rate: 0.657, 0.388, 0.248, Avg Draft acceptance rate: 43.1%",
        "acceptance",
        {"length": 2.29, "accepted": 1436, "drafted": 3333, "positions": "0.657, 0.388, 0.248", "percent": 43.1},
    ),
    Sample(
        "INFO 05-02 10:00:00 [metrics.py:48] SpecDecoding metrics: Draft acceptance rate: 61.5%, Mean acceptance "
        "length: 1.23, Accepted: 123 tokens, Drafted: 200 tokens, Per-position acceptance rate: 0.700, 0.530",
        "acceptance-0.8.5",
        {"length": 1.23, "accepted": 123, "drafted": 200, "positions": "0.700, 0.530"},
    ),
    Sample(
        "INFO 04-10 10:00:00 [metrics.py:48] SpecDecoding metrics: Draft acceptance rate: 100.0%, Accepted: 66 tokens, "
        "Drafted: 66 tokens",
        "acceptance-0.8.3",
        {"accepted": 66, "drafted": 66},
    ),
    Sample(
        "INFO 03-20 10:00:00 [metrics.py:60] Speculative metrics: Draft acceptance rate: 1.000, Number of accepted "
        "tokens: 66, Number of draft tokens: 66, ",
        "acceptance-0.8.2",
        {"rate": 1.0, "accepted": 66, "drafted": 66},
    ),
    Sample(
        _V0 + "Speculative metrics: Draft acceptance rate: 0.000, System efficiency: 0.059, Number of speculative "
        "tokens: 16, Number of accepted tokens: 0, Number of draft tokens tokens: 51056, Number of emitted tokens "
        "tokens: 3191.",
        "acceptance-v0",
        {"efficiency": 0.059, "depth": 16, "drafted": 51056, "emitted": 3191},
    ),
    Sample(
        "INFO 06-01 10:00:00 [metrics.py:455] Speculative metrics: Draft acceptance rate: 0.612, System efficiency: "
        "0.513, Number of speculative tokens: 4, Number of accepted tokens: 1234, Number of draft tokens: 2016, Number "
        "of emitted tokens: 1293.",
        "acceptance-v0",
        {"rate": 0.612, "drafted": 2016, "emitted": 1293},
    ),
    Sample(_V1 + "DiffusionDecoding metrics: Committed token throughput: 1.00 tokens/s, Mean denoising", "diffusion"),
    Sample(
        _V1 + "Iteration(12): 0 context requests, 0 context tokens, 4 generation requests, 8 generation tokens",
        "iteration",
    ),
    Sample(_V1 + "Engine 000: MFU: 1.2 TF/s/device 3.4 GB/s/device", "utilisation"),
    Sample("INFO 07-01 12:00:00 [api_server.py:1287] vLLM API server version 0.9.2", "version", {"release": "0.9.2"}),
    Sample(
        "(APIServer pid=11514) INFO 11-29 17:35:05 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0",
        "version-banner",
        {"release": "0.32.0"},
    ),
    Sample(
        _CORE + "Initializing a V1 LLM engine (v0.32.0) with config: model='/models/t', speculative_config="
        "SpeculativeConfig(method='eagle3', model='/models/e', num_spec_tokens=3), tokenizer='/models/t'",
        "engine-config",
        {"generation": "V1 ", "release": "0.32.0"},
    ),
    Sample(
        "INFO 07-24 03:59:01 llm_engine.py:176] Initializing an LLM engine (v0.5.3) with config: model='/models/base-7b'",
        "engine-config",
        {"release": "0.5.3"},
    ),
    Sample(
        "(APIServer pid=1) INFO 05-06 06:09:02 [utils.py:299] non-default args: {'model_tag': '/models/t', 'max_model_len': 512}",
        "asked",
    ),
    Sample(
        "INFO 04-20 06:09:02 [api_server.py:1044] args: Namespace(subparser='serve', model='/models/t', speculative_config=None)",
        "asked-namespace",
    ),
    Sample(
        _BOOT + "Chunked prefill is enabled with max_num_batched_tokens=2048.",
        "batched-tokens",
        {"max_num_batched_tokens": 2048},
    ),
    Sample(_BOOT + "Asynchronous scheduling is enabled.", "async-scheduling", {"switch": "enabled"}),
    Sample(
        _WARN + "Async scheduling not supported with ngram-based speculative decoding and will be disabled.",
        "async-off-method",
        {"method": "ngram", "async_scheduling": False},
    ),
    Sample(
        _WARN + "Async scheduling is not compatible with disable_padded_drafter_batch=True and will be disabled.",
        "async-off-padding",
    ),
    Sample(
        _WARN
        + "Async scheduling is not yet supported with speculative decoding  or pipeline_parallel_size > 1 and will "
        "be disabled.",
        "async-off-speculation",
    ),
    Sample(
        _WARN
        + "Async scheduling will be disabled because it is not supported with the `ray` distributed executor backend.",
        "async-off-executor",
    ),
    Sample(
        _WARN
        + "Async scheduling is disabled because the V1 model runner does not support it with pipeline parallelism.",
        "async-off-other",
    ),
    Sample(
        _WARN + "max_num_scheduled_tokens is set to 2048 based on the speculative decoding settings. This may lead to "
        "suboptimal performance.",
        "scheduled-tokens",
        {"max_num_scheduled_tokens": 2048},
    ),
    Sample(
        _BOOT + "Overriding draft model max model len from 1024 to 512",
        "draft-length",
        {"previous": 1024, "draft_max_model_len": 512},
    ),
    Sample(
        _BOOT + "Overriding draft model max_position_embeddings from 2048 to the target model's max_model_len (8192); "
        "EAGLE drafts share the target's positional space.",
        "draft-positions",
        {"draft_max_position_embeddings": 8192},
    ),
    Sample(
        _WARN + "Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer,which may "
        "result in lower acceptance rate",
        "one-module-repeated",
    ),
    Sample(
        _WARN + "All Deepseek MTP models only have one layer. Might need some code changes to support multiple layers.",
        "one-module",
    ),
    Sample(
        _WARN + "method `deepseek_mtp` is deprecated and replaced with mtp.",
        "method-renamed",
        {"requested": "deepseek_mtp", "speculative_config.method": "mtp"},
    ),
    Sample(
        _WARN + "Defaulted num_speculative_tokens to 24 for suffix decoding.",
        "suffix-depth",
        {"num_speculative_tokens": 24},
    ),
    Sample(
        _WARN + "mlp_speculator cannot currently be run with tp>1; setting speculative_draft_tensor_parallel_size=1",
        "draft-parallel-one",
        {"draft_type": "mlp_speculator", "speculative_config.draft_tensor_parallel_size": 1},
    ),
    Sample(
        _WARN + "Dynamic speculative decoding changes the target verification length at runtime. Overriding "
        "cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability.",
        "graph-dynamic-depth",
        {"cudagraph_mode": "PIECEWISE"},
    ),
    Sample(
        _WARN + "Dynamic speculative decoding is not supported with data parallelism because ranks differ. Disabling "
        "num_speculative_tokens_per_batch_size and falling back to static num_speculative_tokens=3.",
        "dynamic-depth-off",
        {"num_speculative_tokens": 3},
    ),
    Sample(
        _WARN + "CUDAGraphMode.FULL is not supported with spec-decode for attention backend FlashInfer (support: "
        "UNIFORM_SINGLE_TOKEN_DECODE); setting cudagraph_mode=PIECEWISE",
        "graph-mode",
        {"requested": "FULL", "cudagraph_mode": "PIECEWISE"},
    ),
    Sample(_WARN + "Model Runner V2 requires Triton; using the V1 model runner instead.", "model-runner-v1"),
    Sample(
        _WARN + "EAGLE trailing prefix-cache block dropping is disabled. This is experimental and may affect "
        "speculative-token acceptance rates.",
        "block-drop-off",
    ),
    Sample(
        _WARN
        + "Speculative decoding (method=mtp) is enabled but no KV cache group could be identified as the draft model's.",
        "draft-cache-group",
        {"method": "mtp"},
    ),
    Sample(
        _WARN
        + "Speculative Decoding with draft models or parallel drafting does not fully support multimodal models yet.",
        "text-only-drafts",
    ),
    Sample(
        _WARN
        + "Draft model Eagle does not support external multimodal embeddings. Embeddings from the target model will "
        "not be passed to the drafter; using text-only draft inputs instead.",
        "text-only-draft",
    ),
    Sample(
        _WARN + "mask_hidden found in weights but model is not configured for parallel drafting.", "mask-hidden-skipped"
    ),
    Sample(_WARN + "Using a custom class-based proposer backend. This is an experimental feature", "custom-proposer"),
    Sample(
        _WARN + "Missing cached draft probabilities for request cmpl-1; falling back to legacy speculative rejection "
        "behavior.",
        "draft-probabilities-missing",
    ),
    Sample(
        "WARNING 05-01 10:00:00 [arg_utils.py:1731] Speculative Decoding is not supported by the V1 Engine. Falling back "
        "to V0. ",
        "v0-fallback",
        {"feature": "Speculative Decoding"},
    ),
    Sample(
        "INFO 05-01 10:00:00 [spec_decode_worker.py:209] [Speculative Decoding] Use batch expansion for scoring proposals.",
        "v0-scorer",
    ),
    Sample(
        _WARN
        + "AsyncLLM created with api_server_count more than 1; disabling stats logging to avoid incomplete stats.",
        "stats-off",
    ),
    Sample("(Worker pid=1) INFO 11-29 17:35:18 [gpu_model_runner.py:75] Loading drafter model...", "draft-loading"),
    Sample(
        "(Worker pid=1) INFO 11-29 17:41:53 [gpu_model_runner.py:75] Using auxiliary layers from speculative config: (0, 1, 8)",
        "aux-layers",
        {"layers": "0, 1, 8", "origin": "config"},
    ),
    Sample(
        "(Worker pid=1) INFO 11-29 17:41:53 [eagle3_utils.py:30] Using Eagle3 auxiliary layers from model: (2, 40, 77)",
        "aux-layers-v2-runner",
        {"layers": "2, 40, 77", "origin": "model"},
    ),
    Sample(
        "(Worker pid=1) INFO 11-29 17:35:19 [llm_base_proposer.py:1541] Detected EAGLE model with distinct lm_head weights. "
        "Keeping separate lm_head weights from the target model.",
        "draft-weights",
        {"kind": "EAGLE", "how": " with distinct lm_head weights"},
    ),
    Sample(
        _BOOT
        + "VocabMapping initialized: target_vocab=2048, draft_vocab=1024, intersection=900 (87.9% of draft, 43.9% of "
        "target)",
        "vocabulary-map",
        {"intersection": 900},
    ),
    Sample(_WARN + "Very small vocabulary intersection (12 tokens).", "vocabulary-small", {"intersection": 12}),
    Sample(_BOOT + "Resolved architecture: LlamaForCausalLMEagle3", "architecture"),
    Sample(_CORE + "GPU KV cache size: 94,864 tokens", "kv-cache", {"size": "94,864"}),
    Sample(
        _CORE + "CPU KV cache size: 465,920 tokens, Maximum concurrency for 512 tokens per request: 910.00x",
        "kv-cache-device",
        {"size": "465,920"},
    ),
    Sample(
        "WARNING 06-01 10:00:00 [scheduler.py:1754] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode "
        "because there is not enough KV cache space.",
        "preempted",
    ),
    Sample("(APIServer pid=77) INFO:     Application startup complete.", "ready"),
    Sample("INFO:     Shutting down", "shutdown-uvicorn"),
    Sample('(APIServer pid=1) INFO:     10.0.0.108:39394 - "POST /v1/chat/completions HTTP/1.1" 200 OK', "access"),
    Sample("WARNING:  Invalid HTTP request received.", "server-warning"),
    Sample("ERROR:    Exception in ASGI application", "server-error"),
    Sample(
        "(APIServer pid=1) INFO 11-29 17:36:43 [launcher.py:254] [shutdown] API server: shutdown triggered", "shutdown"
    ),
    Sample(
        "(APIServer pid=1) ERROR 11-29 17:36:43 [core_client.py:254] [shutdown] MPClient: engine core exited unexpectedly; "
        "starting cleanup",
        "engine-exited",
    ),
    Sample("(EngineCore_DP0 pid=9) ERROR 10-10 10:10:10 [core.py:710] EngineCore encountered a fatal error.", "failed"),
    Sample("(EngineCore_DP0 pid=9) ERROR 10-10 10:10:10 [core.py:710] EngineCore failed to start.", "failed-to-start"),
    Sample("(Worker_TP0 pid=9) ERROR 10-10 10:10:10 [multiproc.py:671] WorkerProc hit an exception.", "failed-worker"),
    Sample(
        "(Worker_TP0 pid=9) ERROR 10-10 10:10:10 [multiproc.py:671] WorkerProc failed to start.", "failed-worker-start"
    ),
    Sample(
        "(APIServer pid=9) ERROR 10-10 10:10:10 [async_llm.py:480] AsyncLLM output_handler failed.", "failed-output"
    ),
    Sample("ERROR 10-10 10:10:10 [async_llm_engine.py:65] Engine background task failed", "failed-v0"),
    Sample(
        "(EngineCore_DP0 pid=9) ERROR 10-10 10:10:10 [multiproc_executor.py:230] Worker proc VllmWorker-1 died unexpectedly, "
        "shutting down executor.",
        "process-died",
        {"process": "Worker proc VllmWorker-1"},
    ),
    Sample(
        "vllm serve: error: unrecognized arguments: --speculative-model",
        "refused-by-parser",
        {"message": "unrecognized arguments: --speculative-model"},
    ),
)
