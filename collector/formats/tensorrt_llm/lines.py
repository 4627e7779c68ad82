"""The lines of TensorRT-LLM's log that carry facts.

Source: TensorRT-LLM's sources of 2025 and 2026: ``llmapi/llm_args.py``, ``_torch/speculative`` and
``_torch/pyexecutor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collector.domain.arguments import Value
from collector.formats.base import Line, Place, Sample
from collector.formats.figures import DECIMAL
from collector.formats.tensorrt_llm.iterations import STATED, read_objects, read_words


@dataclass(frozen=True)
class IterationLine(Line):
    """The line of an iteration in words; see :mod:`collector.formats.tensorrt_llm.iterations`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Our names for the values that such a line may state."""
        return STATED

    def read(self, message: bytes) -> Mapping[str, Value] | None:
        """The values a message states under our names."""
        if not message.startswith(self.starts):
            return None
        read = read_words(message)
        return None if read is None else {"number": read.number, "running": read.running, "seconds": read.seconds}


@dataclass(frozen=True)
class ObjectLine(Line):
    """Iterations as the metrics endpoint answers, one or several a line."""

    @property
    def names(self) -> tuple[str, ...]:
        """Our names for the values that such a line may state."""
        return STATED

    def read(self, message: bytes) -> Mapping[str, Value] | None:
        """The values a message states under our names."""
        if not message.startswith(self.starts) or b'"iter"' not in message:
            return None
        read = read_objects(message)
        if not read:
            return None
        return {"iterations": len(read), "drafted": read[0].drafted, "accepted": read[0].accepted}


_NOTHING: Final[Mapping[str, Value]] = {}


def _announced(name: str, starts: bytes, pattern: bytes | None = None, states: Mapping[str, Value] = _NOTHING) -> Line:
    return Line(name, starts, pattern, kind="announcement", states=states)


LINES: Final = (
    IterationLine("iteration", b"iter = "),
    ObjectLine("iteration-object", b"{", place=Place.BARE),
    ObjectLine("iteration-array", b"[", place=Place.BARE),
    Line("version", b"TensorRT-LLM version: ", rb"TensorRT-LLM version: (?P<release>\S+)", kind="version"),
    _announced(
        "overlap-off",
        b"Disable overlap scheduler for speculation mode ",
        rb"Disable overlap scheduler for speculation mode (?P<mode>\w+).*",
        {"disable_overlap_scheduler": True},
    ),
    _announced("greedy-fallback", b"Falling back to greedy decoding for "),
    _announced(
        "eagle-as-eagle3",
        b"speculative_config.decoding_type 'Eagle' is not supported",
        states={"speculative_config.decoding_type": "Eagle3"},
    ),
    _announced("layers-deprecated", b"MTPDecodingConfig: 'num_nextn_predict_layers' is deprecated"),
    _announced(
        "mtp-depth",
        b"MTP: max_draft_len (",
        rb"MTP: max_draft_len \((?P<requested>\d+)\) does not match num_nextn_predict_layers \(\d+\); "
        rb"using max_draft_len=(?P<max_draft_len>\d+) draft tokens\.",
    ),
    _announced(
        "eagle-depth",
        b"Based on the input choices, reset the num_eagle_layers(max_draft_len) from ",
        rb"Based on the input choices, reset the num_eagle_layers\(max_draft_len\) from (?P<requested>\d+) to (?P<max_draft_len>\d+).*",
    ),
    _announced(
        "tree-size-default",
        b"max_total_draft_tokens is not provided, use the default value ",
        rb"max_total_draft_tokens is not provided, use the default value (?P<max_total_draft_tokens>\d+).*",
    ),
    _announced("saves-hidden-states", b"SaveHiddenStatesDecodingConfig is active"),
    _announced("eagle3-two-model-deprecated", b"Eagle3 2-model is deprecated"),
    _announced("mtp-two-model-deprecated", b"2-model style MTP is deprecated"),
    _announced("tree-deprecated", b"The eagle_choices/static tree feature is deprecated"),
    _announced("sampling-flag-deprecated", b"DecodingBaseConfig: 'allow_advanced_sampling' is deprecated"),
    _announced("padding-enabled", b"Automatically enabling cuda_graph_config.enable_padding"),
    Line(
        "gate",
        b"[SpeculationGate] SpeculationGate initialized ",
        rb"\[SpeculationGate\] SpeculationGate initialized with window=(?P<window>\d+), threshold=(?P<threshold>"
        + DECIMAL
        + rb")",
        kind="speculation-gate",
    ),
    Line(
        "gate-closed",
        b"[SpeculationGate] Speculative decoding disabled: ",
        rb"\[SpeculationGate\] Speculative decoding disabled: rolling acceptance avg (?P<average>"
        + DECIMAL
        + rb") < threshold "
        rb"(?P<threshold>" + DECIMAL + rb") over last (?P<window>\d+) requests.*",
        kind="speculation-off",
    ),
    Line("gate-open", b"[SpeculationGate] Speculative decoding remains enabled"),
    Line("gate-request", b"[SpeculationGate] Request "),
    Line("drafting", b"Use spec decode: "),
    Line("ready", b"INFO:     Application startup complete.", kind="ready", place=Place.BARE),
    Line("shutdown", b"INFO:     Shutting down", kind="shutdown", place=Place.BARE),
    Line("access", b"INFO:     ", rb"INFO:     (?!Application startup complete\.|Shutting down).*", place=Place.BARE),
)

_HEAD = "[01/16/2026-06:20:17] [TRT-LLM] [RANK 0] [I] "
_WARN = "[01/16/2026-06:20:17] [TRT-LLM] [W] "

SAMPLES: Final = (
    Sample(
        "[04/28/2025-09:56:44] [TRT-LLM] [I] iter = 198, global_rank = 0, rank = 0, currank_total_requests = 0/0, elapsed_time = "
        "0.005060911178588867s, timestamp = 2025-04-28 09:56:44, num_scheduled_requests: 10, states = {'num_ctx_requests': 0, "
        "'num_ctx_tokens': 0, 'num_generation_tokens': 16}",
        "iteration",
        {"number": 198, "running": 10, "seconds": 0.005060911178588867},
    ),
    Sample(
        "[08/04/2026-19:08:13] [TRT-LLM] [I] [_torch][RANK 0] iter = 12, global_rank = 0, rank = 0, num_scheduled_requests = 64, "
        "kv_cache_util = 0.125, currank_total_requests = 1/8, host_step_time = 50.5ms, prev_device_step_time = 7.25ms, timestamp = "
        "2026-08-04 19:08:13, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 256, "
        "'cached_kv_tokens': 63821}",
        "iteration",
        {"number": 12, "running": 64, "seconds": 0.0505},
    ),
    Sample(
        '{"iter": 7, "iterLatencyMS": 15.5, "numActiveRequests": 5, "inflightBatchingStats": {"numGenRequests": 5}, '
        '"specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "numRequestsWithDraftTokens": 5}}',
        "iteration-object",
        {"iterations": 1, "drafted": 20, "accepted": 15},
    ),
    Sample('[{"iter": 7, "iterLatencyMS": 15.5}, {"iter": 8, "iterLatencyMS": 15.5}]', "iteration-array", {"iterations": 2}),
    Sample("[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc5", "version", {"release": "1.1.0rc5"}),
    Sample(
        _WARN + "Disable overlap scheduler for speculation mode NGRAM", "overlap-off",
        {"mode": "NGRAM", "disable_overlap_scheduler": True},
    ),
    Sample(_WARN + "Falling back to greedy decoding for Eagle3. If you want to use non-greedy sampling, please", "greedy-fallback"),
    Sample(
        _WARN + "speculative_config.decoding_type 'Eagle' is not supported on the PyTorch backend; only 'Eagle3' is supported.",
        "eagle-as-eagle3",
    ),
    Sample(_WARN + "MTPDecodingConfig: 'num_nextn_predict_layers' is deprecated. Use 'max_draft_len' instead.", "layers-deprecated"),
    Sample(
        _WARN + "MTP: max_draft_len (5) does not match num_nextn_predict_layers (3); using max_draft_len=3 draft tokens.",
        "mtp-depth", {"requested": 5, "max_draft_len": 3},
    ),
    Sample(
        _WARN + "Based on the input choices, reset the num_eagle_layers(max_draft_len) from 4 to 3", "eagle-depth",
        {"max_draft_len": 3},
    ),
    Sample(
        _WARN + "max_total_draft_tokens is not provided, use the default value 60 (max_draft_len * topk)", "tree-size-default",
        {"max_total_draft_tokens": 60},
    ),
    Sample(_WARN + "SaveHiddenStatesDecodingConfig is active, setting max_batch_size to 1", "saves-hidden-states"),
    Sample(_WARN + "Eagle3 2-model is deprecated and will be removed in release 1.4.", "eagle3-two-model-deprecated"),
    Sample(_WARN + "2-model style MTP is deprecated", "mtp-two-model-deprecated"),
    Sample(_WARN + "The eagle_choices/static tree feature is deprecated", "tree-deprecated"),
    Sample(_WARN + "DecodingBaseConfig: 'allow_advanced_sampling' is deprecated", "sampling-flag-deprecated"),
    Sample(_HEAD + "Automatically enabling cuda_graph_config.enable_padding because draft_len_schedule is set.", "padding-enabled"),
    Sample(_HEAD + "[SpeculationGate] SpeculationGate initialized with window=20, threshold=1.5", "gate", {"window": 20}),
    Sample(
        _HEAD + "[SpeculationGate] Speculative decoding disabled: rolling acceptance avg 0.812 < threshold 1.5 over last 20 requests",
        "gate-closed", {"average": 0.812, "threshold": 1.5},
    ),
    Sample(_HEAD + "[SpeculationGate] Speculative decoding remains enabled: rolling acceptance avg 2.1", "gate-open"),
    Sample(_HEAD + "[SpeculationGate] Request 7 completed: avg_decoded=2.1, accepted_len=1.1", "gate-request"),
    Sample("[01/16/2026-06:20:17] [TRT-LLM] [D] Use spec decode: False", "drafting"),
    Sample("INFO:     Application startup complete.", "ready"),
    Sample("INFO:     Shutting down", "shutdown"),
    Sample('INFO:     127.0.0.1:51234 - "POST /v1/completions HTTP/1.1" 200 OK', "access"),
)  # fmt: skip
