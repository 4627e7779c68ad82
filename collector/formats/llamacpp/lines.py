"""The lines of llama.cpp's server log that carry facts, build by build.

Source: llama.cpp's server, ``tools/server/server-context.cpp``, ``common/speculative.cpp`` and
``common/arg.cpp``, builds b4900 to b11549. A range of builds names the nearest ones that were read.
Wordings that only tell that a message is llama.cpp's are in ``wordings.txt``.
"""

from __future__ import annotations

from typing import Final

from collector.formats.base import Line, Place, Sample
from collector.formats.figures import DECIMAL, DECIMALS, FIGURE, WHOLE

_COUNTS = rb"\( *(?P<accepted>" + WHOLE + rb") accepted / *(?P<drafted>" + WHOLE + rb") generated\)"
_PER_TOKEN = rb" \( *(?:" + FIGURE + rb") ms per token, *(?P<rate>" + FIGURE + rb") tokens per second\)"

LINES: Final = (
    # ---- one request; old builds print the parts as lines of their own
    Line(
        "prompt",
        b"prompt eval time =",
        rb"prompt eval time = *(?P<ms>" + FIGURE + rb") ms / *(?P<tokens>" + WHOLE + rb") tokens" + _PER_TOKEN,
        place=Place.EITHER,
    ),
    Line(
        "eval",
        b"eval time =",
        rb"eval time = *(?P<ms>" + FIGURE + rb") ms / *(?P<tokens>" + WHOLE + rb") (?:tokens|runs *)" + _PER_TOKEN,
        place=Place.EITHER,
    ),
    Line(
        "total",
        b"total time =",
        rb"total time = *(?P<ms>" + FIGURE + rb") ms / *(?P<tokens>" + WHOLE + rb") tokens",
        place=Place.EITHER,
    ),
    Line("graphs", b"graphs reused =", place=Place.EITHER),
    Line(
        "acceptance-rate",
        b"draft acceptance rate = ",
        rb"draft acceptance rate = (?P<rate>" + FIGURE + rb") " + _COUNTS,
        versions="-b9245",
        place=Place.EITHER,
    ),
    Line(
        "acceptance",
        b"draft acceptance = ",
        rb"draft acceptance = (?P<rate>" + FIGURE + rb") " + _COUNTS,
        versions="b9094-b9712",
        place=Place.EITHER,
    ),
    Line(
        "acceptance-positions",
        b"draft acceptance = ",
        rb"draft acceptance = (?P<rate>"
        + FIGURE
        + rb") "
        + _COUNTS
        + rb", mean acceptance length = *(?P<length>"
        + FIGURE
        + rb"), acceptance rate per position = \((?P<positions>"
        + DECIMALS
        + rb")\)",
        versions="b9539-b9872",
        place=Place.EITHER,
    ),
    Line(
        "acceptance-length",
        b"draft acceptance = ",
        rb"draft acceptance = (?P<rate>" + FIGURE + rb") " + _COUNTS + rb", mean len = *(?P<length>" + FIGURE + rb")",
        versions="b9714-",
        place=Place.EITHER,
    ),
    Line(
        "positions",
        b"acc per pos = (",
        rb"acc per pos = \((?P<positions>" + DECIMALS + rb")\)",
        versions="b9714-",
        place=Place.EITHER,
    ),
    # one line for each implementation after each request, counted since the start
    Line(
        "statistics",
        b"statistics ",
        rb"statistics +(?P<implementation>[\w-]+): #calls\(b,g,a\) = +(?P<begun>\d+) +(?P<called>\d+) +(?P<verified>\d+), "
        rb"#gen drafts = +(?P<drafts>\d+), #acc drafts = +\d+, #gen tokens = +(?P<drafted>\d+), #acc tokens = +(?P<accepted>\d+)"
        rb"(?:, #mean acc len = +(?P<length>"
        + FIGURE
        + rb"))?(?:, #acc rate/pos = \((?P<positions>"
        + DECIMALS
        + rb")\))?(?:, dur.*)?",
        versions="b8600-",
        place=Place.EITHER,
    ),
    Line("progress", b"n_gen = ", rb"n_gen = +\d+, tg = .*"),
    Line("begun", b"processing task"),
    Line(
        "cached",
        b"",
        rb"(?:(?:cached )?n_tokens = (?P<cached>\d+), memory_seq_rm \[\d+, end\)|kv cache rm \[(?P<rest>\d+), end\))",
    ),
    Line("released", b"stop processing: "),
    # ---- start
    Line("starting", b"initializing ...", versions="b9246-"),
    Line(
        "build",
        b"",
        rb"(?P<build>\d{3,}) \([0-9a-f]{6,}\) with .*",
        kind="version",
    ),
    Line("build-info", b"b", rb"b(?P<build>\d+)-\w+", kind="version"),
    Line(
        "build-info-server",
        b"build_info: ",
        rb"build_info: b(?P<build>\d+)-\w+",
        kind="version",
        place=Place.EITHER,
    ),
    Line(
        "model",
        b"loading model '",
        rb"loading model '(?P<model>.*)'",
        kind="model-loading",
    ),
    Line(
        "draft-model",
        b"loading draft model '",
        rb"loading draft model '(?P<spec_draft_model>.*)'",
        kind="draft-loading",
    ),
    Line(
        "mtp-context",
        b"creating MTP draft context against the target model '",
        kind="draft-loading",
        states={"draft": "the target's own heads"},
        versions="b9246-",
    ),
    Line(
        "slots",
        b"initializing",
        rb"initializing(?: slots)?, n_slots = (?P<parallel>\d+)(?:, n_ctx_slot = (?P<slot_context>\d+), kv_unified = '(?P<unified>\w+)')?",
        kind="capacity",
    ),
    Line(
        "listening",
        b"",
        rb"(?:server is )?listening on (?P<address>\S+)(?: - .*)?",
        kind="ready",
    ),
    # ---- speculation
    Line(
        "implementation",
        b"adding ",
        rb"adding (?:speculative )?implementation '?(?P<implementation>[\w-]+)'?",
        kind="implementation",
    ),
    Line(
        "draft-settings",
        b"- n_max=",
        rb"- n_max=(?P<spec_draft_n_max>-?\d+), n_min=(?P<spec_draft_n_min>-?\d+), p_min=(?P<spec_draft_p_min>"
        + DECIMAL
        + rb")(?:, .*)?",
        kind="setting",
    ),
    Line(
        "ngram-settings",
        b"- size_n=",
        rb"- size_n=(?P<size_n>\d+), size_m=(?P<size_m>\d+), min_hits=(?P<min_hits>\d+)",
        kind="setting",
    ),
    Line(
        "ngram-map-settings",
        b"- size_key=",
        rb"- size_key=(?P<size_n>\d+), size_value=(?P<size_m>\d+), key_only=\d+, min_hits=(?P<min_hits>\d+)",
        kind="setting",
    ),
    Line(
        "ngram-mod-settings",
        b"- n_match=",
        rb"- n_match=(?P<n_match>\d+), n_max=(?P<n_max>\d+), n_min=(?P<n_min>\d+)",
        kind="setting",
    ),
    Line("ngram-cache-settings", b"- n_draft=", rb"- n_draft=(?P<draft_tokens>\d+), cache_static=.*", kind="setting"),
    Line("speculation-on", b"speculative decoding context initialized", kind="speculation-on"),
    Line(
        "speculation-off",
        b"no implementations specified for speculative decoding",
        kind="speculation-off",
        states={"spec_type": "none"},
        place=Place.EITHER,
    ),
    Line(
        "speculation-failed",
        b"failed to initialize speculative decoding context: ",
        rb"failed to initialize speculative decoding context: (?P<message>.*)",
        kind="speculation-failed",
        states={"spec_type": "none"},
        versions="b9246-",
    ),
    Line(
        "speculation-unsupported",
        b"speculative decoding not supported by this context",
        kind="speculation-failed",
        states={"spec_type": "none"},
    ),
    Line(
        "speculation-not-with-images",
        b"speculative decoding is not supported ",
        rb"speculative decoding is not supported (?:by|with) multimodal.*",
        kind="speculation-failed",
        states={"spec_type": "none"},
        versions="-b9093",
    ),
    Line(
        "type-detected",
        b"auto-detected speculative type '",
        rb"auto-detected speculative type '(?P<spec_type>[\w-]+)' from the draft model metadata",
        kind="announcement",
        versions="b10332-",
    ),
    Line(
        "checkpoints",
        b"speculative decoding will use checkpoints",
        kind="announcement",
        place=Place.EITHER,
    ),
    Line(
        "depth-clamped",
        b"requested draft size (n_max=",
        rb"requested draft size \(n_max=(?P<requested>\d+), n_min=\d+\) exceeds the trained block size \d+ -- "
        rb"clamping to (?P<spec_draft_n_max>\d+)",
        kind="announcement",
        versions="b9714-",
    ),
    # ---- vocabularies
    Line(
        "vocabularies-differ",
        b"the target and draft vocabs are not compatible",
        rb"the target and draft vocabs are not compatible",
        kind="vocabulary-mismatch",
        place=Place.EITHER,
    ),
    Line(
        "vocabularies-translated",
        b"the target and draft vocabs are not compatible - tokens will be translated",
        kind="vocabulary-translated",
        versions="-b9093",
        place=Place.EITHER,
    ),
    Line(
        "vocabulary-type",
        b"draft model vocab type must match",
        rb"draft model vocab type must match target model to use speculation but vocab_type_dft = (?P<draft>\d+) while "
        rb"vocab_type_tgt = (?P<target>\d+).*",
        kind="vocabulary-mismatch",
        states={"what": "type"},
    ),
    Line(
        "vocabulary-marks",
        b"draft model ",
        rb"draft model (?P<what>bos|eos) tokens must match target model to use speculation\. (?P<message>.*)",
        kind="vocabulary-mismatch",
    ),
    Line(
        "vocabulary-size",
        b"draft model vocab must closely match",
        rb"draft model vocab must closely match target model to use speculation but target vocab size (?P<target>\d+) does not match draft "
        rb"vocab size (?P<draft>\d+).*",
        kind="vocabulary-mismatch",
        states={"what": "size"},
    ),
    Line(
        "vocabulary-token",
        b"draft model vocab must match",
        rb"draft model vocab must match target model to use speculation but token (?P<token>\d+) content differs .*",
        kind="vocabulary-mismatch",
        states={"what": "content"},
    ),
    # ---- what else bears on drafts
    Line(
        "aux-layers",
        b"EAGLE3 extract_layers = [",
        rb"EAGLE3 extract_layers = \[(?P<layers>[\d, -]*)\]",
        kind="aux-layers",
        states={"origin": "config"},
        versions="b9246-",
    ),
    Line("draft-context-lags", b"ctx_dft pos_max=", kind="announcement", versions="b9246-"),
    Line("draft-width", b"target embeddings of size ", kind="announcement", versions="b9246-"),
    Line("draft-sampling-on-cpu", b"backend offload failed for seq_id=", kind="announcement", versions="b9246-"),
    Line(
        "ngram-too-short",
        b"ngram_mod n_match=",
        rb"ngram_mod n_match=\d+ is too small .*",
        kind="announcement",
        versions="b9246-",
    ),
    Line(
        "ngram-pool-reset",
        b"ngram_mod occupancy ",
        rb"ngram_mod occupancy [\d.]+ exceeds .*",
        kind="ngram-pool-reset",
        versions="b9246-",
    ),
    Line("synthetic", b"synthetic speculative acceptance is enabled", kind="synthetic-acceptance", versions="b10567-"),
    Line(
        "synthetic-rates",
        b"synthetic acceptance: n_max = ",
        rb"synthetic acceptance: n_max = (?P<spec_draft_n_max>\d+), mean length = (?P<length>"
        + DECIMAL
        + rb"), rates = \[(?P<rates>"
        + DECIMALS
        + rb")\]",
        kind="synthetic-acceptance",
        versions="b10567-",
    ),
    Line("mtp-missing", b"context type MTP requested but model", kind="announcement", versions="b9246-"),
    # ---- end
    Line("exiting", b"exiting due to ", rb"exiting due to (?P<message>.*)", kind="refused"),
    Line("shutdown", b"operator(): cleaning up before exit...", kind="shutdown"),
    Line("shutdown-old", b"cleaning up before exit...", kind="shutdown"),
    Line(
        "argument-refused",
        b"error while handling argument ",
        rb"error while handling argument \"(?P<flag>[^\"]+)\": (?P<message>.*)",
        kind="refused",
        place=Place.EITHER,
    ),
    Line(
        "argument-unknown",
        b"error: invalid argument: ",
        rb"error: invalid argument: (?P<flag>\S+)",
        kind="refused",
        states={"message": "unknown argument"},
        place=Place.EITHER,
    ),
    Line(
        "aborted",
        b"",
        rb"(?P<place>\S+\.(?:cpp|c|cu|cuh|h|hpp|m|mm|cc):\d+): (?P<message>.*)",
        kind="crashed",
        place=Place.BARE,
    ),
)

_SLOT = "0.00.928.691 I slot print_timing: id  1 | task 1 | "
_SPEC = "0.00.203.692 I spec common_specu: "
_SRV = "0.00.203.665 I srv    load_model: "

SAMPLES: Final = (
    Sample(
        _SLOT + "prompt eval time =      29.85 ms /    13 tokens (    2.30 ms per token,   435.50 tokens per second)",
        "prompt", {"ms": 29.85, "tokens": 13},
    ),
    Sample(
        "prompt eval time =       0.46 ms /    20 tokens (    0.02 ms per token, 43196.54 tokens per second)",
        "prompt", {"tokens": 20},
    ),
    Sample(
        _SLOT + "       eval time =      19.30 ms /    48 tokens (    0.41 ms per token,  2435.61 tokens per second)",
        "eval", {"ms": 19.3, "tokens": 48, "rate": 2435.61},
    ),
    Sample("      total time =     181.83 ms /    68 tokens", "total", {"tokens": 68}),
    Sample(_SLOT + "   graphs reused =         13", "graphs"),
    Sample(
        "draft acceptance rate = 0.74286 (   26 accepted /    35 generated)",
        "acceptance-rate", {"rate": 0.74286, "accepted": 26, "drafted": 35},
    ),
    Sample(
        "0.31.870.130 I slot print_timing: id  0 | task 0 | draft acceptance = 0.06967 (   96 accepted /  1378 generated)",
        "acceptance", {"accepted": 96, "drafted": 1378},
    ),
    Sample(
        _SLOT + "draft acceptance = 0.55172 (   32 accepted /    58 generated), mean acceptance length =  3.13, acceptance rate "
        "per position = (0.800, 0.600, 0.467, 0.267)",
        "acceptance-positions", {"length": 3.13, "positions": "0.800, 0.600, 0.467, 0.267"},
    ),
    Sample(
        _SLOT + "draft acceptance = 0.55172 (   32 accepted /    58 generated), mean len =  3.13",
        "acceptance-length", {"accepted": 32, "drafted": 58, "length": 3.13},
    ),
    Sample(_SLOT + "     acc per pos = (0.769, 0.769, 0.615, 0.462)", "positions", {"positions": "0.769, 0.769, 0.615, 0.462"}),
    Sample(
        _SPEC + "statistics     draft-simple: #calls(b,g,a) =   24    336    336, #gen drafts =    336, #acc drafts =   272, #gen "
        "tokens =   1312, #acc tokens =   786, #mean acc len = 3.34, #acc rate/pos = (0.810, 0.685, 0.476, 0.369), dur(b,g,a) = "
        "0.692, 242.019, 0.149 ms",
        "statistics", {"implementation": "draft-simple", "verified": 336, "drafted": 1312, "accepted": 786},
    ),
    Sample(
        "statistics draft: #calls(b,g,a) = 7 160 95, #gen drafts = 96, #acc drafts = 95, #gen tokens = 179, #acc tokens = 165, "
        "dur(b,g,a) = 0.001, 25.059, 0.003 ms",
        "statistics", {"implementation": "draft", "drafts": 96, "verified": 95},
    ),
    Sample(_SLOT + "n_gen =    100, tg =  21.82 t/s, tg_3s =  22.04 t/s", "progress"),
    Sample("0.21.310.204 I slot launch_slot_: id  3 | task 0 | processing task, is_child = 0", "begun"),
    Sample("0.00.879.545 I slot   operator(): id  1 | task 1 | cached n_tokens = 7, memory_seq_rm [7, end)", "cached", {"cached": 7}),
    Sample("slot update_slots: id  1 | task 246 | kv cache rm [12, end)", "cached", {"rest": 12}),
    Sample("slot      release: id  1 | task 328 | stop processing: n_tokens = 67, truncated = 0", "released"),
    Sample("0.00.001.284 I srv  llama_server: initializing ...", "starting"),
    Sample("build: 7551 (a52dc60ba) with GNU 10.2.1 for Linux x86_64", "build", {"build": 7551}),
    Sample("build_info: b9093-12ab34cd", "build-info", {"build": 9093}),
    Sample("0.00.001.284 I srv          init: build_info: b9713-12ab34cd", "build-info-server", {"build": 9713}),
    Sample(_SRV + "loading model '/models/target.gguf'", "model", {"model": "/models/target.gguf"}),
    Sample(
        "0.00.100.311 I common_speculative_init_result: loading draft model '/models/draft-near.gguf'",
        "draft-model", {"spec_draft_model": "/models/draft-near.gguf"},
    ),
    Sample(
        "0.00.100.311 I common_speculative_init_result: creating MTP draft context against the target model '/models/t.gguf'",
        "mtp-context",
    ),
    Sample(
        _SRV + "initializing, n_slots = 2, n_ctx_slot = 2048, kv_unified = 'false'",
        "slots", {"parallel": 2, "slot_context": 2048, "unified": "false"},
    ),
    Sample("srv    load_model: initializing slots, n_slots = 2", "slots", {"parallel": 2}),
    Sample("0.00.227.016 I srv  llama_server: listening on http://127.0.0.1:54461", "listening", {"address": "http://127.0.0.1:54461"}),
    Sample("main: server is listening on http://127.0.0.1:8080 - starting the main loop", "listening"),
    Sample(_SPEC + "adding speculative implementation 'draft-simple'", "implementation", {"implementation": "draft-simple"}),
    Sample("common_speculative_init: adding implementation draft", "implementation", {"implementation": "draft"}),
    Sample(
        _SPEC + "- n_max=4, n_min=0, p_min=0.200000, backend_sampling=1", "draft-settings",
        {"spec_draft_n_max": 4, "spec_draft_n_min": 0, "spec_draft_p_min": 0.2},
    ),
    Sample(_SPEC + "- size_n=12, size_m=48, min_hits=1", "ngram-settings", {"size_n": 12, "size_m": 48}),
    Sample(_SPEC + "- size_key=12, size_value=48, key_only=1, min_hits=1", "ngram-map-settings", {"size_m": 48}),
    Sample(_SPEC + "- n_match=24, n_max=64, n_min=48", "ngram-mod-settings", {"n_max": 64}),
    Sample(_SPEC + "- n_draft=8, cache_static=none, cache_dynamic=none", "ngram-cache-settings", {"draft_tokens": 8}),
    Sample(_SRV + "speculative decoding context initialized", "speculation-on"),
    Sample(_SPEC + "no implementations specified for speculative decoding", "speculation-off", {"spec_type": "none"}),
    Sample(
        "0.00.203.666 E srv    load_model: failed to initialize speculative decoding context: draft-simple requires a draft context",
        "speculation-failed", {"message": "draft-simple requires a draft context"},
    ),
    Sample("0.00.203.665 W srv    load_model: speculative decoding not supported by this context", "speculation-unsupported"),
    Sample("srv    load_model: speculative decoding is not supported by multimodal, it will be disabled", "speculation-not-with-images"),
    Sample(
        _SPEC + "auto-detected speculative type 'draft-dflash' from the draft model metadata", "type-detected",
        {"spec_type": "draft-dflash"},
    ),
    Sample(_SRV + "speculative decoding will use checkpoints", "checkpoints"),
    Sample(
        _SPEC + "requested draft size (n_max=16, n_min=0) exceeds the trained block size 8 -- clamping to 7", "depth-clamped",
        {"requested": 16, "spec_draft_n_max": 7},
    ),
    Sample("0.00.203.692 E spec common_specu: the target and draft vocabs are not compatible", "vocabularies-differ"),
    Sample(
        "the target and draft vocabs are not compatible - tokens will be translated between the two", "vocabularies-translated",
    ),
    Sample(
        _SPEC + "draft model vocab type must match target model to use speculation but vocab_type_dft = 2 while vocab_type_tgt = 1",
        "vocabulary-type", {"draft": 2, "target": 1},
    ),
    Sample(
        _SPEC + "draft model bos tokens must match target model to use speculation. add: 1 - 0, id: 1 - 2)", "vocabulary-marks",
        {"what": "bos"},
    ),
    Sample(
        _SPEC + "draft model vocab must closely match target model to use speculation but target vocab size 151936 does not match "
        "draft vocab size 152064 - difference 128, max allowed 128",
        "vocabulary-size", {"target": 151936, "draft": 152064},
    ),
    Sample(
        _SPEC + "draft model vocab must match target model to use speculation but token 7 content differs - target 'a', draft 'b'",
        "vocabulary-token", {"token": 7},
    ),
    Sample("0.00.100.001 I load_arch_hparams: EAGLE3 extract_layers = [2, 16, 29]", "aux-layers",
           {"layers": "2, 16, 29"}),
    Sample(_SPEC + "ctx_dft pos_max=10 < N-2=12 \N{EM DASH} process() did not run on every prefill ubatch.", "draft-context-lags"),
    Sample(_SPEC + "target embeddings of size 4096 do not fit the draft input width 2048", "draft-width"),
    Sample(_SPEC + "backend offload failed for seq_id=0; using CPU sampler", "draft-sampling-on-cpu"),
    Sample(_SPEC + "ngram_mod n_match=8 is too small - poor quality is possible, see: https://x", "ngram-too-short"),
    Sample(_SPEC + "ngram_mod occupancy 0.31 exceeds threshold (0.25) - resetting", "ngram-pool-reset"),
    Sample(_SPEC + "synthetic speculative acceptance is enabled for benchmarking; generated output is not valid", "synthetic"),
    Sample(
        _SPEC + "synthetic acceptance: n_max = 4, mean length = 2.600000, rates = [0.7, 0.5]", "synthetic-rates",
        {"spec_draft_n_max": 4, "length": 2.6},
    ),
    Sample(
        "0.00.045.999 W llama_init_from_model: context type MTP requested but model doesn't contain MTP layers", "mtp-missing",
    ),
    Sample("0.00.046.557 E srv  llama_server: exiting due to model loading error", "exiting", {"message": "model loading error"}),
    Sample("0.02.982.392 I srv    operator(): operator(): cleaning up before exit...", "shutdown"),
    Sample("srv    operator(): cleaning up before exit...", "shutdown-old"),
    Sample(
        'error while handling argument "--draft-max": the argument has been removed. use --spec-draft-n-max', "argument-refused",
        {"flag": "--draft-max", "message": "the argument has been removed. use --spec-draft-n-max"},
    ),
    Sample("error: invalid argument: --speculate", "argument-unknown", {"flag": "--speculate"}),
    Sample(
        'common/speculative.cpp:260: GGML_ASSERT(n_chars < 0 && "failed to detokenize id_last") failed', "aborted",
        {"place": "common/speculative.cpp:260"},
    ),
)  # fmt: skip
