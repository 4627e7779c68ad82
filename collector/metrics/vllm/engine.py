"""vLLM's samples as states of engines, and what it tells of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from collector.domain.arguments import Argument, Arguments
from collector.domain.deployments import UNKNOWN_METHOD
from collector.domain.evidence import Evidence
from collector.metrics.base import (
    Document,
    EngineInfo,
    EngineMetrics,
    EngineState,
    InfoPaths,
    Interval,
    UnitState,
)
from collector.metrics.counting import counted_interval
from collector.metrics.exposition import Sample, written
from collector.metrics.samples import Samples, SeriesTable, UnitSeries, small_number
from collector.metrics.vllm import names
from collector.metrics.vllm.server import SERVER_INFO, VERSION, cache_arguments, read_documents

DEPTH: Final = "speculative_config.num_speculative_tokens"
_COMPUTED: Final = ("source", "local_compute")


class VllmMetrics(EngineMetrics):
    """``/metrics`` of vLLM, one unit a data-parallel engine."""

    engine: ClassVar[str] = "vllm"
    title: ClassVar[str] = "vLLM"
    owner: ClassVar[str] = "vllm"
    prefixes: ClassVar[tuple[str, ...]] = (names.PREFIX, names.SANITISED)
    sample_names: ClassVar[frozenset[str]] = names.WANTED
    latency_names: ClassVar[Mapping[str, str]] = names.LATENCY_OF
    own_labels: ClassVar[frozenset[str]] = frozenset({"model_name", "engine"})
    info_paths: ClassVar[tuple[InfoPaths, ...]] = (
        InfoPaths((VERSION,)),
        InfoPaths(("/v1/models",)),
        InfoPaths(
            (SERVER_INFO,),
            "method and draft are not told; give the launch command, or start the server with VLLM_SERVER_DEV_MODE=1",
        ),
    )
    metrics_hint: ClassVar[str] = "they are always there; look whether a proxy hides /metrics"

    def info(self, documents: Sequence[Document]) -> EngineInfo:
        """Read ``/version``, ``/v1/models`` and, where the server has it, ``/server_info``."""
        return read_documents(documents)

    def needs_info(self, state: EngineState, info: EngineInfo) -> bool:
        """Everything is counted."""
        del state, info
        return False

    def stated(self, samples: Iterable[Sample], arguments: Arguments, source: str) -> Arguments:
        """Whether it speculates and how deep: the counters of drafts are there from the start, if and only if it does.

        Releases before 0.9.2 are left out of "does not": the first ones counted nothing.
        """
        del arguments
        found: dict[str, Argument] = {}

        def tell(name: str, value: object, text: str) -> None:
            found[name] = Argument(name, effective=value, effective_evidence=Evidence(source, None, text))  # type: ignore[arg-type]

        plain = _plain(samples)
        positioned = {
            place: sample
            for sample in plain.named(names.ACCEPTED_AT)
            if (place := small_number(sample.labels.get("position"))) is not None
        }
        known = plain.table.by_name.keys()
        if positioned:
            tell(DEPTH, max(positioned) + 1, written(positioned[max(positioned)]))
        elif names.EMITTED in known:
            tell("speculative_config.method", UNKNOWN_METHOD, f"{names.EMITTED} of the V0 engine is there")
        elif names.CACHE_USAGE[0] in known and not known & {names.DRAFTS, names.DRAFTED}:
            tell("speculative_config", None, f"no {names.DRAFTS} among the metrics")
        config = next(plain.named(names.CACHE_CONFIG), None)
        if config is not None:
            for name, value in cache_arguments(config.labels).items():
                tell(name, value, f'{names.CACHE_CONFIG}{{{name}="{value}"}}')
        return Arguments(found)

    def state(self, samples: Iterable[Sample], info: EngineInfo, at: float) -> EngineState:
        """One state an engine; a single one has no name."""
        del info
        plain = _plain(samples)
        return EngineState(
            at=at,
            units={unit: _unit_state(series, plain.values) for unit, series in plain.table.derived(_units).items()},
            samples=plain,
            counter_names=names.COUNTERS,
            started_at=plain.first(names.PROCESS_START),
        )

    def interval(self, before: EngineState | None, after: EngineState, info: EngineInfo) -> Interval:
        """Windows and prefills of every engine."""
        del info
        return counted_interval(before, after)


def _units(table: SeriesTable) -> dict[str, UnitSeries]:
    """The series of each engine; a single one has no name."""
    engines: dict[str, list[int]] = {}
    for position, series in enumerate(table.series):
        if series.name in names.READ:
            engines.setdefault(series.labels.get("engine", "0"), []).append(position)
    return {
        f"engine {engine}" if len(engines) > 1 else "": UnitSeries(table, engines[engine])
        for engine in sorted(engines, key=lambda text: (len(text), text))
    }


def _unit_state(series: UnitSeries, values: Sequence[float]) -> UnitState:
    """What one engine counts. A V0 engine's draft counters add their own totals up again and again, and are left out."""

    def total(*choices: str) -> float | None:
        return next((series.total(values, name) for name in choices if name in series), None)

    v0 = names.EMITTED in series
    first, decoded = total(names.FIRST_TOKENS), total(*names.DECODE_STEPS)
    prompt_tokens, queries = total(names.PROMPT_TOKENS), total(names.CACHE_QUERIES)
    computed, cached = None, None
    if prompt_tokens is not None and series.chosen(names.PROMPT_TOKENS_BY_SOURCE, *_COMPUTED):
        computed = series.total(values, names.PROMPT_TOKENS_BY_SOURCE, *_COMPUTED) or 0.0
        cached = prompt_tokens - computed
    elif queries:
        cached = total(names.CACHE_HITS) or 0.0
        computed = queries - cached
    elif queries is not None:  # the cache is off
        computed, cached = prompt_tokens, 0.0
    return UnitState(
        generated_tokens=total(names.GENERATED),
        target_passes=None if v0 else total(names.ITERATIONS),
        request_passes=None if v0 or first is None or decoded is None else first + decoded,
        prompts=first,
        computed_tokens=computed,
        cached_tokens=cached,
        verify_steps=None if v0 else total(names.DRAFTS),
        accepted_tokens=None if v0 else total(names.ACCEPTED),
        drafted_tokens=None if v0 else total(names.DRAFTED),
        accepted_at=None if v0 else series.positions(values, names.ACCEPTED_AT, "position"),
        preemptions=total(names.PREEMPTIONS),
        running_requests=total(names.RUNNING),
        waiting_requests=total(names.WAITING),
        kv_cache_usage=total(*names.CACHE_USAGE),
        printed_rate=total(names.V0_RATE),
    )


def _plain(samples: Iterable[Sample]) -> Samples:
    """The samples under the names with a colon."""
    given = Samples.of(samples)
    return Samples(given.table.derived(_plain_table), given.values)


def _plain_table(table: SeriesTable) -> SeriesTable:
    return table.renamed(names.SANITISED, names.PREFIX)
