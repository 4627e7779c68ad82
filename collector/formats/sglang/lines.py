"""The lines of SGLang's log that carry facts, release by release.

Source: SGLang's release packages 0.4.1 to 0.5.23; files are named beside the lines they print.
Wordings that only tell that a message is SGLang's are in ``messages.tsv`` and ``chatter.txt``.
"""

from __future__ import annotations

from typing import Final

from collector.formats.base import Line, Place, Sample
from collector.formats.figures import DECIMAL

DECODE: Final = b"Decode batch"
PREFILL: Final = b"Prefill batch"
ARGUMENTS: Final = b"server_args="
ACCESS: Final = b"INFO:     "

# managers/scheduler.py, later observability/scheduler_metrics_mixin.py and scheduler_components/metrics_reporter.py
DECODE_ITEMS: Final = {
    b"#running-req": "running_requests",
    b"#queue-req": "waiting_requests",
    b"#token": "tokens_in_use",
    b"#full token": "tokens_in_use",
    b"#gpu token": "tokens_in_use",
    b"token usage": "kv_cache_usage",
    b"full token usage": "kv_cache_usage",
    b"gpu token usage": "kv_cache_usage",
    b"accept len": "printed_length",
    b"accept rate": "printed_rate",
    b"gen throughput (token/s)": "generation_throughput",
    b"cuda graph": "graph",
    b"cpu graph": "graph",
    b"npu graph": "graph",
    b"musa graph": "graph",
    b"xpu graph": "graph",
}
PREFILL_ITEMS: Final = {
    b"#new-seq": "new_sequences",
    b"#new-token": "new_tokens",
    b"#cached-token": "cached_tokens",
    b"#queue-req": "waiting_requests",
    b"#running-req": "running_requests",
}

_GB = rb"-?" + DECIMAL
_NUMBER = rb"-?" + DECIMAL + rb"(?:e[+-]?\d{1,3})?"

LINES: Final = (
    Line(
        "decode",
        DECODE,
        items=DECODE_ITEMS,
        required=(b"#running-req", b"gen throughput (token/s)", b"#queue-req"),
    ),
    # A prefill server of a split deployment prints other queues in place of #running-req.
    Line("prefill", PREFILL, items=PREFILL_ITEMS, required=(b"#new-seq", b"#new-token", b"#cached-token")),
    # srt/server.py, entrypoints/engine.py; read by the session
    Line("arguments", ARGUMENTS, kind="arguments"),
    # Settings changed on the running server, not a launch
    Line("arguments-updated", b"Global server args updated!", kind="arguments-updated"),
    # ---- what the argument stage announces
    Line(
        "running-requests-reset",
        b"Max running requests is reset to ",
        rb"Max running requests is reset to (?P<max_running_requests>\d+) for speculative decoding\..*",
        kind="announcement",
        versions="0.5.4-",
        place=Place.EITHER,
    ),
    Line(
        "draft-tokens-adjusted",
        b"speculative_num_draft_tokens is adjusted to speculative_num_steps + 1",
        kind="announcement",
        versions="0.4.5-",
        place=Place.EITHER,
    ),
    Line(
        "draft-tokens-ngram-default",
        b"speculative_num_draft_tokens is set to ",
        rb"speculative_num_draft_tokens is set to (?P<speculative_num_draft_tokens>\d+) by default for ngram .*",
        kind="announcement",
        versions="0.5.10-",
        place=Place.EITHER,
    ),
    Line(
        "draft-tokens-dflash-default",
        b"speculative_num_draft_tokens is not set; defaulting to ",
        rb"speculative_num_draft_tokens is not set; defaulting to (?P<speculative_num_draft_tokens>\d+) for DFLASH\.",
        kind="announcement",
        versions="0.5.11-",
        place=Place.EITHER,
    ),
    Line(
        "topk-adjusted",
        b"speculative_eagle_topk is adjusted to 1 when page_size > 1",
        kind="announcement",
        states={"speculative_eagle_topk": 1},
        versions="0.4.5-0.4.8",
        place=Place.EITHER,
    ),
    Line(
        "topk-changed",
        b"speculative_eagle_topk is changed to 1 when page_size > 1",
        kind="announcement",
        states={"speculative_eagle_topk": 1},
        versions="0.4.4-0.4.4",
        place=Place.EITHER,
    ),
    Line(
        "block-drafter-one",
        b"DFLASH only supports ",
        rb"DFLASH only supports (?P<flag>speculative_\w+) == (?P<effective>\d+); overriding speculative_\w+=(?P<requested>\S+) to \d+\.",
        kind="announcement",
        versions="0.5.11-",
        place=Place.EITHER,
    ),
    Line(
        "block-drafter-one-dspark",
        b"DSpark only supports speculative_",
        rb"DSpark only supports (?P<flag>speculative_\w+) == (?P<effective>\d+); overriding speculative_\w+=(?P<requested>\S+) to \d+\.",
        kind="announcement",
        versions="0.5.16-",
        place=Place.EITHER,
    ),
    Line(
        "adaptive-disabled",
        b"speculative_adaptive disabled: ",
        rb"speculative_adaptive disabled: (?P<reason>.*)",
        kind="announcement",
        states={"speculative_adaptive": False},
        versions="0.5.11-",
        place=Place.EITHER,
    ),
    *(
        Line(
            name,
            starts,
            kind="announcement",
            states={"disable_overlap_schedule": off},
            versions=versions,
            place=Place.EITHER,
        )
        for name, starts, off, versions in (
            (
                "overlap-off-0.4.1",
                b"The radix cache, chunked prefill, and overlap scheduler are disabled",
                True,
                "-0.4.1",
            ),
            ("overlap-off-0.4.3", b"Overlap scheduler are disabled because of using eagle", True, "0.4.3-0.4.3"),
            (
                "overlap-off-0.4.4",
                b"Overlap scheduler is disabled because of using eagle speculative",
                True,
                "0.4.4-0.5.2",
            ),
            (
                "overlap-off-0.5.3",
                b"Overlap scheduler is disabled because of using eagle3 and standalone",
                True,
                "0.5.3-0.5.3",
            ),
            (
                "overlap-off-0.5.4",
                b"Overlap scheduler is disabled because of using eagle3 or standalone",
                True,
                "0.5.4-0.5.6",
            ),
            ("overlap-off-0.5.7", b"Overlap scheduler is disabled when spec v2 is off", True, "0.5.7-0.5.10"),
            ("overlap-off-dflash", b"Overlap scheduler is disabled when using DFLASH", True, "0.5.11-0.5.13"),
            ("overlap-off-frozen-kv", b"Overlap scheduler is disabled when using Frozen-KV MTP", True, "0.5.12-0.5.13"),
            ("overlap-off-v1", b"Spec v1 is used for eagle/eagle3/standalone", True, "0.5.11-0.5.12"),
            ("overlap-off-synchronous", b"Non-overlap (synchronous) spec v2 is used", True, "0.5.13-"),
            (
                "overlap-off-cpu",
                b"Overlap schedule is not implemented for speculative decoding on CPU",
                True,
                "0.5.16-",
            ),
            ("overlap-off-pipeline", b"Pipeline parallelism is incompatible with overlap schedule", True, "0.4.6-"),
            ("overlap-off-mamba", b"Disabling overlap schedule since ", True, "0.5.5-0.5.13"),
            ("overlap-off-diffusion", b"Overlap schedule is disabled because of using diffusion LLM", True, "0.5.6-"),
            ("overlap-on-beta", b"Beta spec is enabled for eagle speculative decoding", False, "0.5.3-0.5.6"),
            ("overlap-on-0.5.7", b"Spec v2 is enabled for eagle/eagle3 speculative decoding", False, "0.5.7-0.5.10"),
            ("overlap-on-0.5.11", b"Spec v2 is enabled by default for eagle/eagle3/standalone", False, "0.5.11-0.5.12"),
            ("overlap-on-0.5.13", b"Overlap spec v2 is enabled by default", False, "0.5.13-0.5.13"),
        )
    ),
    Line(
        "overlap-off-ngram",
        b"The overlap scheduler and mixed chunked prefill are disabled because of using ngram",
        kind="announcement",
        states={"disable_overlap_schedule": True, "enable_mixed_chunk": False},
        versions="0.5.3-0.5.13",
        place=Place.EITHER,
    ),
    Line(
        "mixed-chunk-off",
        b"Mixed chunked prefill is disabled",
        kind="announcement",
        states={"enable_mixed_chunk": False},
        versions="0.4.7-",
        place=Place.EITHER,
    ),
    Line(
        "mixed-chunk-off-ngram",
        b"The mixed chunked prefill are disabled because of using ngram",
        kind="announcement",
        states={"enable_mixed_chunk": False},
        versions="0.5.14-",
        place=Place.EITHER,
    ),
    Line(
        "chunk-adjusted",
        b"DP attention is enabled. The chunked prefill size is adjusted to ",
        rb"DP attention is enabled\. The chunked prefill size is adjusted to (?P<chunked_prefill_size>-?\d+) to avoid .*",
        kind="announcement",
        versions="-0.5.15",
        place=Place.EITHER,
    ),
    Line(
        "chunk-adjusted-0.5.16",
        b"DP attention is enabled. chunked prefill size is adjusted from ",
        rb"DP attention is enabled\. chunked prefill size is adjusted from (?P<requested>-?\d+) to (?P<chunked_prefill_size>-?\d+)\.",
        kind="announcement",
        versions="0.5.16-",
        place=Place.EITHER,
    ),
    Line(
        "attention-backend-0.4.4",
        b"Attention backend not set. Use ",
        rb"Attention backend not set\. Use (?P<attention_backend>\w+) backend by default\.",
        kind="announcement",
        versions="0.4.4-0.4.8",
        place=Place.EITHER,
    ),
    Line(
        "attention-backend-0.4.9",
        b"Attention backend not explicitly specified. Use ",
        rb"Attention backend not explicitly specified\. Use (?P<attention_backend>\w+) backend by default\.",
        kind="announcement",
        versions="0.4.9-0.5.6",
        place=Place.EITHER,
    ),
    Line(
        "attention-backend-0.5.7",
        b"Attention backend not specified. Use ",
        rb"Attention backend not specified\. Use (?P<attention_backend>\w+) backend by default\.",
        kind="announcement",
        versions="0.5.7-",
        place=Place.EITHER,
    ),
    Line(
        "spec-v2-variable-ignored",
        b"SGLANG_ENABLE_SPEC_V2 has been removed",
        kind="announcement",
        versions="0.5.14-0.5.20",
        place=Place.EITHER,
    ),
    Line(
        "draft-path-not-needed",
        b"DeepSeek MTP does not require setting speculative_draft_model_path",
        kind="announcement",
        versions="0.4.6-",
        place=Place.EITHER,
    ),
    Line(
        "flag-deprecated",
        b"'--",
        rb"'(?P<flag>--[\w-]+)' is deprecated and will be removed.*",
        kind="announcement",
        versions="0.5.11-",
        place=Place.EITHER,
    ),
    Line(
        "endpoint-deprecated",
        b"Endpoint '",
        rb"Endpoint '(?P<endpoint>[^']+)' is deprecated.*",
        versions="0.5.6-",
    ),
    # ---- start-up; model_executor/model_runner.py and its later parts
    Line(
        "weights-loaded",
        b"Load weight end.",
        rb"Load weight end\.(?: elapsed=" + _NUMBER + rb" s,)? type=(?P<type>[\w.]+)"
        rb"(?:, dtype=(?P<dtype>[\w.]+))?(?:, (?:(?!avail mem=).)*?)?, avail mem=" + _GB + rb" GB"
        rb"(?:, mem usage=(?P<weights_gb>" + _GB + rb") GB\.)?",
        kind="weights-loaded",
    ),
    Line(
        "kv-cache",
        b"KV Cache is allocated.",
        rb"KV Cache is allocated\. (?:dtype: (?P<dtype>[\w.]+), )?#tokens: (?P<tokens>\d+), "
        rb"(?:K size: " + _GB + rb" GB, V size: " + _GB + rb" GB|KV size: " + _GB + rb" GB).*",
        kind="kv-cache",
        versions="0.4.6-",
    ),
    Line(
        "kv-cache-dtype",
        b"Using KV cache dtype: ",
        rb"Using KV cache dtype: (?P<dtype>[\w.]+)",
        kind="kv-cache-dtype",
    ),
    Line(
        "graph-capture",
        b"Capture ",
        rb"Capture (?P<phase>[\w ]+?) (?:CUDA|cuda|cpu|npu|CPU|NPU|xpu) graph begin\."
        rb"(?: backend=(?P<backend>[\w-]+), (?:num_tokens_per_(?:bs|req)=(?P<tokens_per_request>\d+), )?(?:(?!avail mem=).)*avail mem="
        + _GB
        + rb" GB| This can take up to several minutes\.(?: avail mem="
        + _GB
        + rb" GB)?)",
        kind="graph-capture",
        versions="0.4.4-",
    ),
    Line(
        "graph-capture-target",
        b"Capture ",
        rb"Capture (?:cuda|cpu|npu|xpu) graph begin\. This can take up to several minutes\.(?: avail mem="
        + _GB
        + rb" GB)?",
        kind="graph-capture",
        states={"phase": "target"},
        versions="-0.5.13",
    ),
    Line(
        "graph-captured",
        b"Capture ",
        rb"Capture (?:[\w ]+ )?(?:CUDA|cuda|cpu|npu|CPU|NPU|xpu) graph end\..*",
    ),
    Line("graph-capture-failed", b"Capture cuda graph failed", kind="graph-capture-failed"),
    # managers/scheduler.py; max_running_requests is that of one scheduler, after division by dp_size
    Line(
        "capacity",
        b"max_total_num_tokens=",
        rb"max_total_num_tokens=(?P<max_total_num_tokens>\d+)(?:, chunked_prefill_size=(?P<chunked_prefill_size>-?\d+|None))?, "
        rb"max_prefill_tokens=\d+, max_running_requests=(?P<max_running_requests>\d+), context_len=(?P<context_len>\d+).*",
        kind="capacity",
    ),
    Line("ready", b"The server is fired up and ready to roll!", kind="ready"),
    # ---- speculation at run time
    Line(
        "adaptive-steps",
        b"Switch adaptive runtime state: steps ",
        rb"Switch adaptive runtime state: steps (?P<previous_steps>\d+) -> (?P<speculative_num_steps>\d+), "
        rb"draft_tokens (?P<previous_draft_tokens>\d+) -> (?P<speculative_num_draft_tokens>\d+).*",
        kind="adaptive-steps",
        versions="0.5.11-",
    ),
    Line(
        "block-size-mismatch",
        b"DFLASH block size mismatch: ",
        rb"DFLASH block size mismatch: using speculative_num_draft_tokens=(?P<speculative_num_draft_tokens>\d+) "
        rb"but draft config block_size=(?P<block_size>\d+)\.",
        kind="announcement",
        versions="0.5.11-",
    ),
    Line("nan-logits", b"Detected errors during sampling! NaN in the logits", kind="nan-logits"),
    # ---- trouble
    Line(
        "retracted-0.4.1",
        b"Decode out of memory happened.",
        rb"Decode out of memory happened\. #retracted_reqs: (?P<retracted_requests>\d+), .*",
        kind="retracted",
        versions="-0.4.6",
    ),
    Line(
        "retracted",
        b"KV cache pool is full. Retract requests.",
        rb"KV cache pool is full\. Retract requests\. #retracted_reqs: (?P<retracted_requests>\d+), .*",
        kind="retracted",
        versions="0.4.7-",
    ),
    # the exception itself is the last line of the traceback that follows
    Line("scheduler-exception", b"Scheduler hit an exception: ", kind="scheduler-exception"),
    Line("child-failed", b"Received sigquit from a child proc", kind="child-failed"),
    Line(
        "child-crashed",
        b"Subprocess ",
        rb"Subprocess (?P<process>.*?) \(pid=\d+\) crashed with exit code (?P<exit_code>-?\d+)\..*",
        kind="child-failed",
        versions="0.5.10-",
    ),
    Line("watchdog", b"Watchdog timeout (self.watchdog_timeout=", kind="watchdog", versions="-0.5.6"),
    Line(
        "watchdog-0.5.7",
        b"",
        rb"(?P<process>\w[\w .-]{0,60}) watchdog timeout \(self\.watchdog_timeout=[\d.]+, self\.soft=(?P<soft>\w+)\).*",
        kind="watchdog",
        versions="0.5.7-",
    ),
    Line("shutdown", b"SIGTERM received.", kind="shutdown"),
    Line("shutdown-drained", b"Gracefully exiting...", kind="shutdown"),
    Line("shutdown-killed", b"kill_process_tree called", kind="shutdown"),
    # ---- understood, and not kept
    Line("access", ACCESS),
    Line("server-warning", b"WARNING:  "),
    Line("server-error", b"ERROR:    "),
    Line("import-skipped", b"Ignore import error when loading "),
    Line("weights-loading", b"Load weight begin."),
    Line("distributed", b"Init torch distributed "),
    Line("distributed-0.5.21", b"Init parallel ", versions="0.5.21-"),
    Line("memory-pool", b"Memory pool end."),
    Line("memory-baseline", b"Memory baseline taken."),
    Line("request-received", b"Receive: obj="),
    Line("request-finished", b"Finish: obj="),
    Line("startup-timings", b"Engine startup timings "),
    Line("cpu-threads", b"init_cpu_threads_env"),
    Line("cpu-binding", b"init_threads_binding"),
    Line("cuda-architecture", b"Cannot detect CUDA architecture"),
    Line("open-files-limit", b"Fail to set RLIMIT_"),
    # Argument-stage lines of an already configured root logger (up to 0.5.10)
    Line(
        "refused-by-parser",
        b"",
        rb"(?:\S*launch_server\.py|sglang[ \w-]*|usage): error: (?P<message>.*)",
        kind="refused",
        place=Place.BARE,
    ),
)

_AT = "[2026-11-29 18:20:00] "

SAMPLES: Final = (
    # ---- decode, one of each era
    Sample(
        "[2025-01-02 03:04:05 TP0] Decode batch. #running-req: 2, #token: 910, token usage: 0.01, "
        "gen throughput (token/s): 95.32, #queue-req: 0",
        "decode",
        {"running_requests": 2, "tokens_in_use": 910, "generation_throughput": 95.32, "waiting_requests": 0},
    ),
    Sample(
        "[2025-02-02 03:04:05 TP0] Decode batch. #running-req: 2, #token: 910, token usage: 0.01, accept len: 2.31, "
        "gen throughput (token/s): 95.32, largest-len: 0, #queue-req: 0, ",
        "decode",
        {"printed_length": 2.31},
    ),
    Sample(
        "[2026-11-29 18:30:10] Decode batch. #running-req: 1, #token: 53, token usage: 0.01, accept len: 2.10, "
        "cuda graph: False, gen throughput (token/s): 12.34, #queue-req: 0",
        "decode",
        {"printed_length": 2.1, "graph": False},
    ),
    Sample(
        "[2025-07-10 08:40:05 TP0] Decode batch. #running-req: 32, #token: 92634, token usage: 0.22, accept len: 1.98, "
        "pre-allocated usage: 0.00, #retracted-req: 0, cuda graph: True, gen throughput (token/s): 1010.28, #queue-req: 0, ",
        "decode",
        {"printed_length": 1.98, "kv_cache_usage": 0.22, "graph": True},
    ),
    Sample(
        "[2025-10-22 10:27:57 TP0] Decode batch. #running-req: 1, #token: 108, token usage: 0.00, accept len: 2.17, "
        "accept rate: 0.54, cuda graph: True, gen throughput (token/s): 0.39, #queue-req: 0, ",
        "decode",
        {"printed_length": 2.17, "printed_rate": 0.54, "generation_throughput": 0.39},
    ),
    Sample(
        "[2026-01-01 03:10:01 DP1 TP1] Decode batch, #running-req: 32, #full token: 63019, full token usage: 0.12, "
        "#swa token: 41, swa token usage: 0.01, accept len: 1.47, accept rate: 0.49, cuda graph: True, "
        "gen throughput (token/s): 1474.33, #queue-req: 3, ",
        "decode",
        {"tokens_in_use": 63019, "kv_cache_usage": 0.12, "waiting_requests": 3},
    ),
    Sample(
        "[2026-11-29 18:20:04] Decode batch, #running-req: 1, #token: 0, token usage: 0.00, accept len: 1.75, "
        "accept rate: 0.88, cpu graph: False, gen throughput (token/s): 14.52, #queue-req: 0",
        "decode",
        {"printed_length": 1.75, "printed_rate": 0.88, "graph": False, "tokens_in_use": 0},
    ),
    Sample(
        "[2026-03-01 03:10:01.250 DP0 PP0 TP0] Decode batch [4120], #running-req: 8, #full token: 100, full token usage: 0.10, "
        "mamba num: 8, mamba usage: 0.02, accept len: 2.34, accept rate: 0.45, cap len: 3.10, block accept len: 2.50, "
        "est uncap acc len: 2.60 [2.40, 2.80], pre-allocated usage: 0.00, #prealloc-req: 0, #transfer-req: 1, "
        "#host-receive-req: 0, #retracted-req: 0, npu graph: True, gen throughput (token/s): 512.00, #queue-req: 0, "
        "est. decode TFLOPS/s (per GPU): 12.30, est. read BW (GB/s per GPU): 900.10, est. write BW (GB/s per GPU): 9.10, "
        "fwd occupancy: 91.20%",
        "decode",
        {"running_requests": 8, "tokens_in_use": 100, "printed_length": 2.34, "printed_rate": 0.45, "graph": True},
    ),
    # ---- prefill
    Sample(
        "[2025-01-02 03:04:05 TP0] Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, cache hit rate: 0.00%, "
        "token usage: 0.00, #running-req: 0, #queue-req: 0",
        "prefill",
        {"new_sequences": 1, "new_tokens": 7, "cached_tokens": 0},
    ),
    Sample(
        "[2025-10-22 10:27:56 TP0] Prefill batch. #new-seq: 1, #new-token: 28, #cached-token: 4, token usage: 0.00, "
        "#running-req: 0, #queue-req: 0, ",
        "prefill",
        {"new_tokens": 28, "cached_tokens": 4},
    ),
    Sample(
        "[2025-07-10 08:40:05 TP0] Prefill batch. #new-seq: 2, #new-token: 28, #cached-token: 4, token usage: 0.00, "
        "#unbootstrapped-req: 0, #queue-req: 0, #transferring-req: 1, input throughput (token/s): 81.20, ",
        "prefill",
        {"new_sequences": 2},
    ),
    Sample(
        "[2026-11-29 18:20:01] Prefill batch, #new-seq: 1, #new-token: 12, #cached-token: 0, token usage: 0.00, "
        "#running-req: 0, #queue-req: 0, input throughput (token/s): 0.00, cpu graph: False",
        "prefill",
        {"new_tokens": 12},
    ),
    Sample(
        "[2026-11-29 18:23:11] Prefill batch, #new-seq: 1, #new-token: 12, #cached-token: 0, token usage: 0.00, "
        "#running-req: 0, #queue-req: 0, #pending-token: 0, cpu graph: False, input throughput (token/s): 9.52",
        "prefill",
        {"new_tokens": 12},
    ),
    # ---- arguments
    Sample(_AT + "server_args=ServerArgs(model_path='/models/a', tp_size=1)", "arguments"),
    Sample(_AT + "server_args={'model_path': '/models/a', 'tp_size': 1}", "arguments"),
    Sample(
        _AT + "Global server args updated! get_global_server_args()=ServerArgs(model_path='/models/a')",
        "arguments-updated",
    ),
    # ---- announcements
    Sample(
        "Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting "
        "--max-running-requests.",
        "running-requests-reset",
        {"max_running_requests": 48},
    ),
    Sample(
        _AT
        + "Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting "
        "--max-running-requests.",
        "running-requests-reset",
        {"max_running_requests": 48},
    ),
    Sample(
        "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
        "draft-tokens-adjusted",
    ),
    Sample(
        _AT
        + "speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding. You can override this by "
        "explicitly setting --speculative-num-draft-tokens.",
        "draft-tokens-ngram-default",
        {"speculative_num_draft_tokens": 12},
    ),
    Sample(
        _AT + "speculative_num_draft_tokens is not set; defaulting to 16 for DFLASH.",
        "draft-tokens-dflash-default",
        {"speculative_num_draft_tokens": 16},
    ),
    Sample(
        "speculative_eagle_topk is adjusted to 1 when page_size > 1", "topk-adjusted", {"speculative_eagle_topk": 1}
    ),
    Sample("speculative_eagle_topk is changed to 1 when page_size > 1", "topk-changed", {"speculative_eagle_topk": 1}),
    Sample(
        _AT + "DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps=5 to 1.",
        "block-drafter-one",
        {"flag": "speculative_num_steps", "effective": 1, "requested": 5},
    ),
    Sample(
        _AT + "DSpark only supports speculative_eagle_topk == 1; overriding speculative_eagle_topk=4 to 1.",
        "block-drafter-one-dspark",
        {"flag": "speculative_eagle_topk", "effective": 1, "requested": 4},
    ),
    Sample(
        _AT
        + "speculative_adaptive disabled: speculative_eagle_topk is not 1. Falling back to static speculative params.",
        "adaptive-disabled",
        {"speculative_adaptive": False},
    ),
    Sample(
        "The radix cache, chunked prefill, and overlap scheduler are disabled because of using eagle speculative decoding.",
        "overlap-off-0.4.1",
        {"disable_overlap_schedule": True},
    ),
    Sample("Overlap scheduler are disabled because of using eagle speculative decoding.", "overlap-off-0.4.3"),
    Sample("Overlap scheduler is disabled because of using eagle speculative decoding.", "overlap-off-0.4.4"),
    Sample(
        "Overlap scheduler is disabled because of using eagle3 and standalone speculative decoding.",
        "overlap-off-0.5.3",
    ),
    Sample(
        "Overlap scheduler is disabled because of using eagle3 or standalone speculative decoding.", "overlap-off-0.5.4"
    ),
    Sample(
        "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative algorithm. You can set env "
        "SGLANG_ENABLE_SPEC_V2=True to enable the experimental overlap scheduler. ",
        "overlap-off-0.5.7",
        {"disable_overlap_schedule": True},
    ),
    Sample(
        _AT + "Overlap scheduler is disabled when using DFLASH speculative decoding (spec v2 is not supported yet).",
        "overlap-off-dflash",
    ),
    Sample(
        _AT
        + "Overlap scheduler is disabled when using Frozen-KV MTP speculative decoding (spec v2 is not supported yet).",
        "overlap-off-frozen-kv",
    ),
    Sample(
        _AT + "Spec v1 is used for eagle/eagle3/standalone speculative decoding because overlap schedule is disabled.",
        "overlap-off-v1",
    ),
    Sample(
        _AT + "Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone speculative decoding.",
        "overlap-off-synchronous",
    ),
    Sample(_AT + "Overlap schedule is not implemented for speculative decoding on CPU.", "overlap-off-cpu"),
    Sample("Pipeline parallelism is incompatible with overlap schedule.", "overlap-off-pipeline"),
    Sample(
        "Disabling overlap schedule since MambaRadixCache is not compatible with overlap schedule currently, try to use "
        "--disable-radix-cache if overlap schedule is necessary",
        "overlap-off-mamba",
    ),
    Sample("Overlap schedule is disabled because of using diffusion LLM inference", "overlap-off-diffusion"),
    Sample(
        "Beta spec is enabled for eagle speculative decoding and overlap schedule is turned on.",
        "overlap-on-beta",
        {"disable_overlap_schedule": False},
    ),
    Sample(
        "Spec v2 is enabled for eagle/eagle3 speculative decoding and overlap schedule is turned on.",
        "overlap-on-0.5.7",
    ),
    Sample(
        _AT + "Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.", "overlap-on-0.5.11"
    ),
    Sample(
        _AT + "Overlap spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.",
        "overlap-on-0.5.13",
    ),
    Sample(
        "The overlap scheduler and mixed chunked prefill are disabled because of using ngram speculative decoding.",
        "overlap-off-ngram",
        {"disable_overlap_schedule": True, "enable_mixed_chunk": False},
    ),
    Sample(
        "Mixed chunked prefill is disabled because of using eagle speculative decoding.",
        "mixed-chunk-off",
        {"enable_mixed_chunk": False},
    ),
    Sample(
        _AT + "The mixed chunked prefill are disabled because of using ngram speculative decoding.",
        "mixed-chunk-off-ngram",
    ),
    Sample(
        "DP attention is enabled. The chunked prefill size is adjusted to 1024 to avoid MoE kernel issues. ",
        "chunk-adjusted",
        {"chunked_prefill_size": 1024},
    ),
    Sample(
        _AT + "DP attention is enabled. chunked prefill size is adjusted from 8192 to 1024.",
        "chunk-adjusted-0.5.16",
        {"requested": 8192, "chunked_prefill_size": 1024},
    ),
    Sample(
        "[2025-04-02 03:04:05 TP0] Attention backend not set. Use flashinfer backend by default.",
        "attention-backend-0.4.4",
        {"attention_backend": "flashinfer"},
    ),
    Sample(
        "WARNING:sglang.srt.server_args:Attention backend not explicitly specified. Use fa3 backend by default.",
        "attention-backend-0.4.9",
        {"attention_backend": "fa3"},
    ),
    Sample(
        _AT + "Attention backend not specified. Use fa3 backend by default.",
        "attention-backend-0.5.7",
        {"attention_backend": "fa3"},
    ),
    Sample(
        _AT + "SGLANG_ENABLE_SPEC_V2 has been removed: speculative decoding always runs the V2 worker. Use "
        "--disable-overlap-schedule to select the non-overlap (synchronous) path.",
        "spec-v2-variable-ignored",
    ),
    Sample("DeepSeek MTP does not require setting speculative_draft_model_path.", "draft-path-not-needed"),
    Sample(
        "[2026-11-29 18:22:17] \x1b[1;33m'--disable-cuda-graph' is deprecated and will be removed in a future release. Use "
        "'--cuda-graph-backend-{decode,prefill}=disabled' instead.\x1b[0m",
        "flag-deprecated",
        {"flag": "--disable-cuda-graph"},
    ),
    Sample(
        _AT
        + "Endpoint '/get_load' is deprecated and will be removed in a future version. Please use '/v1/loads' instead.",
        "endpoint-deprecated",
        {"endpoint": "/get_load"},
    ),
    # ---- start-up
    Sample(
        "[2025-01-02 03:04:05 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=43.10 GB",
        "weights-loaded",
        {"type": "LlamaForCausalLM", "dtype": "torch.bfloat16"},
    ),
    Sample(
        "[2025-10-02 03:04:05 TP0] Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, avail mem=43.10 GB, "
        "mem usage=35.48 GB.",
        "weights-loaded",
        {"type": "LlamaForCausalLMEagle3", "weights_gb": 35.48},
    ),
    Sample(
        _AT + "Load weight end. elapsed=0.01 s, type=LlamaForCausalLMEagle3, avail mem=20.52 GB, mem usage=-0.00 GB.",
        "weights-loaded",
        {"type": "LlamaForCausalLMEagle3", "weights_gb": -0.0},
    ),
    Sample(
        _AT + "Load weight end. elapsed=31.20 s, type=DeepseekV3ForCausalLM, quant=fp8, bits=8, avail mem=20.52 GB, "
        "mem usage=81.20 GB.",
        "weights-loaded",
        {"type": "DeepseekV3ForCausalLM", "weights_gb": 81.2},
    ),
    Sample(
        "[2025-10-02 03:04:05 TP0] KV Cache is allocated. #tokens: 402133, K size: 7.67 GB, V size: 7.67 GB",
        "kv-cache",
        {"tokens": 402133},
    ),
    Sample(
        _AT + "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 8192, KV size: 0.01 GB",
        "kv-cache",
        {"tokens": 8192, "dtype": "torch.float8_e4m3fn"},
    ),
    Sample(_AT + "Using KV cache dtype: torch.bfloat16", "kv-cache-dtype", {"dtype": "torch.bfloat16"}),
    Sample(
        "[2025-10-02 03:04:05 TP0] Capture draft extend cuda graph begin. This can take up to several minutes. avail mem=26.70 GB",
        "graph-capture",
        {"phase": "draft extend"},
    ),
    Sample(
        _AT
        + "Capture draft extend CUDA graph begin. backend=full, num_tokens_per_bs=4, bs=[1, 2, 4], avail mem=26.70 GB",
        "graph-capture",
        {"phase": "draft extend", "backend": "full", "tokens_per_request": 4},
    ),
    Sample(
        _AT + "Capture target_verify CUDA graph begin. backend=full, num_tokens=[4, 8, 16], avail mem=26.70 GB",
        "graph-capture",
        {"phase": "target_verify"},
    ),
    Sample(
        "[2025-10-02 03:04:05 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=26.70 GB",
        "graph-capture-target",
        {"phase": "target"},
    ),
    Sample(
        "[2025-10-02 03:04:05 TP0] Capture cuda graph end. Time elapsed: 11.73 s. mem usage=0.93 GB. avail mem=25.77 GB.",
        "graph-captured",
    ),
    Sample(_AT + "Capture cuda graph failed: CUDA out of memory.", "graph-capture-failed"),
    Sample(
        _AT
        + "max_total_num_tokens=8192, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=48, "
        "context_len=2048, available_cpu_mem=21.55 GB",
        "capacity",
        {"max_total_num_tokens": 8192, "chunked_prefill_size": 2048, "max_running_requests": 48, "context_len": 2048},
    ),
    Sample(
        "[2025-01-02 03:04:05 TP0] max_total_num_tokens=8192, max_prefill_tokens=16384, max_running_requests=4097, context_len=2048",
        "capacity",
        {"max_running_requests": 4097},
    ),
    Sample(_AT + "The server is fired up and ready to roll!", "ready"),
    # ---- speculation at run time, trouble
    Sample(
        _AT + "Switch adaptive runtime state: steps 3 -> 5, draft_tokens 4 -> 6",
        "adaptive-steps",
        {"speculative_num_steps": 5, "speculative_num_draft_tokens": 6},
    ),
    Sample(
        _AT + "DFLASH block size mismatch: using speculative_num_draft_tokens=8 but draft config block_size=16.",
        "block-size-mismatch",
        {"speculative_num_draft_tokens": 8, "block_size": 16},
    ),
    Sample("[2025-06-02 03:04:05 TP0] Detected errors during sampling! NaN in the logits.", "nan-logits"),
    Sample(
        "[2025-01-02 03:04:05 TP0] Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.6057 -> 0.8997",
        "retracted-0.4.1",
        {"retracted_requests": 2},
    ),
    Sample(
        _AT + "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 149, "
        "#new_token_ratio: 0.6057 -> 0.8997",
        "retracted",
        {"retracted_requests": 1},
    ),
    Sample(
        "[2025-06-02 03:04:05 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "scheduler-exception",
    ),
    Sample(_AT + "Received sigquit from a child process. It usually means the child failed.", "child-failed"),
    Sample(
        _AT + "Subprocess scheduler_0 (pid=812) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        "child-crashed",
        {"exit_code": -9},
    ),
    Sample("[2025-06-02 03:04:05 TP0] Watchdog timeout (self.watchdog_timeout=300)", "watchdog"),
    Sample(
        _AT + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "watchdog-0.5.7",
        {"process": "Scheduler", "soft": False},
    ),
    Sample(_AT + "SIGTERM received. signum=None frame=None. Draining requests and shutting down...", "shutdown"),
    Sample(
        _AT + "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
        "shutdown-drained",
    ),
    Sample(_AT + "kill_process_tree called: parent_pid=13384, include_parent=False, pid=13384", "shutdown-killed"),
    # ---- understood, and not kept
    Sample(_AT + 'INFO:     127.0.0.1:57202 - "POST /generate HTTP/1.1" 200 OK', "access"),
    Sample(_AT + "WARNING:  Invalid HTTP request received.", "server-warning"),
    Sample(_AT + "ERROR:    Exception in ASGI application", "server-error"),
    Sample(
        _AT
        + "Ignore import error when loading sglang.srt.models.glm_ocr: No module named 'transformers.models.glm_ocr'",
        "import-skipped",
    ),
    Sample(_AT + "Load weight begin. avail mem=21.57 GB", "weights-loading"),
    Sample(_AT + "Init torch distributed ends. elapsed=0.05 s, mem usage=0.00 GB", "distributed"),
    Sample(_AT + "Init parallel ends. elapsed=0.04 s", "distributed-0.5.21"),
    Sample(_AT + "Memory pool end. avail mem=21.55 GB", "memory-pool"),
    Sample(_AT + "Memory baseline taken. mem usage=0.00 GB", "memory-baseline"),
    Sample(
        "[2025-11-02 10:11:12] Receive: obj=GenerateReqInput(rid='0f', text='Decode batch, #running-req: 1', stream=True)",
        "request-received",
    ),
    Sample("[2025-11-02 10:11:12] Finish: obj=GenerateReqInput(rid='0f'), out={'meta_info': {}}", "request-finished"),
    Sample(_AT + "Engine startup timings (s): load_weight=0.02, kv_cache_allocation=0.96", "startup-timings"),
    Sample(_AT + "init_cpu_threads_env and shared memory based AllReduce is disabled", "cpu-threads"),
    Sample(_AT + "init_threads_binding: numa_index=0, world_size=1, local_omp_cpuid=0,1", "cpu-binding"),
    Sample(_AT + "Cannot detect CUDA architecture.", "cuda-architecture"),
    Sample(_AT + "Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit", "open-files-limit"),
    Sample(
        "launch_server.py: error: argument --speculative-algorithm: invalid choice: 'EAGLE4' (choose from 'EAGLE', 'EAGLE3')",
        "refused-by-parser",
        {"message": "argument --speculative-algorithm: invalid choice: 'EAGLE4' (choose from 'EAGLE', 'EAGLE3')"},
    ),
)
