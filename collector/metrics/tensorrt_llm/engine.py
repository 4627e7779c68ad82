"""TensorRT-LLM's samples as the state of a server, and its labels about how it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from collector.domain.arguments import Argument, Arguments, Value
from collector.domain.evidence import Evidence
from collector.domain.versions import Release
from collector.metrics.base import (
    Document,
    EngineInfo,
    EngineMetrics,
    EngineState,
    InfoPaths,
    Interval,
    Taken,
    UnitState,
)
from collector.metrics.counting import ALONE, until_counted
from collector.metrics.exposition import Sample
from collector.metrics.samples import Samples, UnitSeries, process_ids
from collector.metrics.tensorrt_llm import names
from collector.metrics.tensorrt_llm.iterations import read_iterations

DEPTH: Final = "speculative_config.max_draft_len"
_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    names.SPECULATION: {
        "spec_method": "speculative_config.decoding_type",
        "spec_num_tokens": DEPTH,
        "spec_draft_model": "speculative_config.speculative_model",
    },
    names.MODEL: {"model": "model", "served_model_name": "served_model_name", "dtype": "dtype"},
    names.PARALLEL: {
        "tensor_parallel_size": "tensor_parallel_size",
        "pipeline_parallel_size": "pipeline_parallel_size",
    },
}
"""Labels of the metrics about the configuration, and the options they tell of."""


class TensorrtLlmMetrics(EngineMetrics):
    """``/prometheus/metrics`` of ``trtllm-serve``. Its ``/metrics`` is a queue, which only ``taken`` reads."""

    engine: ClassVar[str] = "tensorrt-llm"
    title: ClassVar[str] = "TensorRT-LLM"
    owner: ClassVar[str] = "tensorrt_llm"
    prefixes: ClassVar[tuple[str, ...]] = (names.PREFIX,)
    sample_names: ClassVar[frozenset[str]] = names.WANTED
    latency_names: ClassVar[Mapping[str, str]] = names.LATENCY_OF
    metrics_path: ClassVar[str] = "/prometheus/metrics"
    queue_path: ClassVar[str] = "/metrics"
    own_labels: ClassVar[frozenset[str]] = frozenset({"model_name", "engine_type"})
    info_paths: ClassVar[tuple[InfoPaths, ...]] = (InfoPaths(("/version",)),)
    metrics_hint: ClassVar[str] = (
        "set return_perf_metrics: true and enable_iter_perf_stats: true in the file given by --config"
    )

    def info(self, documents: Sequence[Document]) -> EngineInfo:
        """Read ``/version``."""
        return EngineInfo(engine_version=_release(documents[0].content.get("version"))) if documents else EngineInfo()

    def needs_info(self, state: EngineState, info: EngineInfo) -> bool:
        """Everything is counted."""
        del state, info
        return False

    def stated(self, samples: Iterable[Sample], arguments: Arguments, source: str) -> Arguments:
        """What the labels of its configuration metrics tell."""
        del arguments
        found: dict[str, Argument] = {}
        known = list(samples)
        told = {sample.name for sample in known}
        if names.MODEL in told and names.SPECULATION not in told:
            proof = Evidence(source, None, f"no {names.SPECULATION} among the metrics")
            found["speculative_config"] = Argument("speculative_config", effective=None, effective_evidence=proof)
        for sample in known:
            for label, option in _LABELS.get(sample.name, {}).items():
                if label in sample.labels:
                    text = f'{sample.name}{{{label}="{sample.labels[label]}"}}'
                    found[option] = Argument(
                        option, effective=_value(sample.labels[label]), effective_evidence=Evidence(source, None, text)
                    )
        return Arguments(found)

    def taken(self, body: bytes, at: float) -> Taken:
        """Read iterations out of the queue."""
        return read_iterations(body, at)

    def state(self, samples: Iterable[Sample], info: EngineInfo, at: float) -> EngineState:
        """The server as a whole."""
        kept = Samples.of(samples)
        return EngineState(
            at=at,
            units={ALONE: _unit_state(kept.table.derived(UnitSeries.whole), kept.values, info.arguments)},
            samples=kept,
            counter_names=names.COUNTERS,
            processes=kept.table.derived(process_ids),
        )

    def interval(self, before: EngineState | None, after: EngineState, info: EngineInfo) -> Interval:
        """The window and the prompts of the server, once requests have ended."""
        del info
        return until_counted(before, after, exact=True)


def _unit_state(series: UnitSeries, values: Sequence[float], arguments: Arguments) -> UnitState:
    """Steps are counted by position: each verify step drafted a first token. Else every draft is taken to be whole."""
    total = partial(series.total, values)
    drafted_at = series.positions(values, names.DRAFTED_AT, "token_position")
    accepted_at = series.positions(values, names.ACCEPTED_AT, "token_position")
    counts: dict[str, Any] = {}
    depth, drafted, accepted = arguments.value(DEPTH), total(names.DRAFTED), total(names.ACCEPTED)
    if drafted_at:
        accepted_at = ((accepted_at or ()) + (0.0,) * len(drafted_at))[: len(drafted_at)]
        counts = {
            "verify_steps": drafted_at[0],
            "drafted_tokens": sum(drafted_at),
            "accepted_tokens": sum(accepted_at),
            "accepted_at": accepted_at,
        }
    elif drafted is not None and accepted is not None and isinstance(depth, int) and depth and not drafted % depth:
        counts = {"verify_steps": drafted / depth, "drafted_tokens": drafted, "accepted_tokens": accepted}
    prompt_tokens, cached = total(names.PROMPT_TOKENS), total(names.CACHED_TOKENS)
    length = total(names.LENGTH)
    return UnitState(
        generated_tokens=total(names.GENERATED),
        prompts=total(names.FINISHED),
        computed_tokens=None if prompt_tokens is None or cached is None else prompt_tokens - cached,
        cached_tokens=cached,
        running_requests=total(names.RUNNING),
        waiting_requests=total(names.WAITING),
        kv_cache_usage=total(names.CACHE_USAGE),
        printed_length=None if counts or not length else length,
        **counts,
    )


def _value(text: str) -> Value:
    if text.lower() in ("none", ""):
        return None
    return int(text) if text.isascii() and text.isdigit() else text


def _release(text: Any) -> Release | None:
    try:
        return Release.parse(str(text))
    except ValueError:
        return None
