"""SGLang's samples as states of units, and its information endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from collector.domain.arguments import Arguments
from collector.metrics.base import (
    Document,
    EngineInfo,
    EngineMetrics,
    EngineState,
    InfoPaths,
    Interval,
    UnitState,
)
from collector.metrics.exposition import Sample, Series
from collector.metrics.samples import Places, Samples, SeriesTable, UnitSeries, added, process_ids, small_number
from collector.metrics.sglang import names
from collector.metrics.sglang.acceptance import LARGEST_WIDTH, Definition, counts_since_start, interval_of
from collector.metrics.sglang.server import read_server_info
from collector.metrics.sglang.windows import interval


class SglangMetrics(EngineMetrics):
    """``/metrics`` and ``/server_info`` of SGLang, one unit a data-parallel rank."""

    engine: ClassVar[str] = "sglang"
    title: ClassVar[str] = "SGLang"
    owner: ClassVar[str] = "sglang"
    prefixes: ClassVar[tuple[str, ...]] = (names.PREFIX, names.SANITISED)
    sample_names: ClassVar[frozenset[str]] = names.WANTED
    latency_names: ClassVar[Mapping[str, str]] = names.LATENCY_OF
    own_labels: ClassVar[frozenset[str]] = frozenset(
        {"model_name", "engine_type", "dp_rank", "tp_rank", "pp_rank", "moe_ep_rank", "pid"}
    )
    info_paths: ClassVar[tuple[InfoPaths, ...]] = (
        InfoPaths(("/server_info", "/get_server_info"), "what it runs with is not known"),  # the first from 0.5.6 on
    )
    metrics_hint: ClassVar[str] = "start the server with --enable-metrics"
    life_argument: ClassVar[str] = "random_seed"  # drawn at each start, unless it was asked for

    def info(self, documents: Sequence[Document]) -> EngineInfo:
        """Read ``/server_info``."""
        return read_server_info(documents[0].content, documents[0].url) if documents else EngineInfo()

    def needs_info(self, state: EngineState, info: EngineInfo) -> bool:
        """The server counts verify steps itself from 0.5.13 on, for all ranks together; else its mean length is needed."""
        counted = len(state.units) == 1 and names.VERIFIED in state.samples.table.by_name
        return bool(info.arguments.value("speculative_algorithm")) and not counted

    def state(self, samples: Iterable[Sample], info: EngineInfo, at: float) -> EngineState:
        """One state a data-parallel rank, of the lowest tensor rank that reports for it."""
        given = Samples.of(samples)
        plain = Samples(given.table.derived(_plain_table), given.values)
        kept = {
            number: sample.value
            for sample in plain.named(names.MEAN_LENGTH)
            if (number := small_number(sample.labels.get("dp_rank"))) is not None
        }
        means = kept or info.mean_lengths
        ranks = plain.table.derived(_Ranks)
        if not kept:
            plain = plain.plus(
                [Sample(names.MEAN_LENGTH, {"dp_rank": str(rank)}, mean) for rank, mean in means.items()]
            )
        units: dict[str, UnitState] = {}
        for rank in ranks.ranks:
            unit = _unit_state(rank.places, plain.values)
            if len(ranks.ranks) == 1:
                unit = _with_server(unit, ranks.of_server, plain.values, Definition.of(info.arguments))
            mean = means.get(small_number(rank.name) or 0)
            units[_unit_name(rank.name, rank.lowest, info)] = _with_mean(unit, mean, info.arguments)
        return EngineState(
            at=at,
            units=units,
            samples=plain,
            counter_names=names.COUNTERS,
            started_at=plain.first(names.PROCESS_START),
            processes=plain.table.derived(process_ids),
        )

    def interval(self, before: EngineState | None, after: EngineState, info: EngineInfo) -> Interval:
        """Windows and prefills of every unit."""
        return interval(before, after, info.arguments)


class _Rank(NamedTuple):
    """A data-parallel rank: its label, the lowest pipeline and tensor rank that reports for it, and where that one's figures are.

    ``places`` are those of each field of :class:`UnitState`.
    """

    name: str
    lowest: tuple[int, int]
    places: tuple[Places, ...]


class _OfServer(NamedTuple):
    """Where the figures stand that the server counts for all ranks."""

    generated: Places
    finished: Places
    verified: Places
    prompt_tokens: Places
    cached_tokens: Places


class _Ranks:
    """Where the figures of each data-parallel rank stand, in order, and those of the server."""

    def __init__(self, table: SeriesTable) -> None:
        server: list[int] = []
        ranked: dict[str, dict[tuple[int, int], list[int]]] = {}
        for position, series in enumerate(table.series):
            if "tp_rank" in series.labels or series.name in names.GAUGES:
                numbers = _number(series, "pp_rank"), _number(series, "tp_rank")
                ranked.setdefault(series.labels.get("dp_rank", ""), {}).setdefault(numbers, []).append(position)
            else:
                server.append(position)
        self.of_server = _places_of_server(UnitSeries(table, server))
        self.ranks = [
            _Rank(rank, lowest := min(ranked[rank]), _places_of_unit(UnitSeries(table, ranked[rank][lowest])))
            for rank in sorted(ranked, key=lambda text: (len(text), text))
        ]


def _plain_table(table: SeriesTable) -> SeriesTable:
    """The series under the names with a colon."""
    return table.renamed(names.SANITISED, names.PREFIX)


def _places_of_unit(series: UnitSeries) -> tuple[Places, ...]:
    """Where stands what a scheduler itself says. A mode that is not exposed yet counts 0."""

    def gauge(name: str) -> Places:
        return series.overall(name, "priority")

    of_field = {
        "generated_tokens": series.places(names.DECODED, "mode", "decode"),
        "target_passes": series.places(names.PASSES, "mode", "decode"),
        "graphless_passes": series.places(names.PASSES, "mode", "decode_none"),
        "prompts": series.places(names.DEQUEUED),
        "computed_tokens": series.places(names.DECODED, "mode", "prefill_compute"),
        "cached_tokens": series.places(names.DECODED, "mode", "prefill_cache"),
        "running_requests": gauge(names.RUNNING),
        "waiting_requests": gauge(names.WAITING),
        "tokens_in_use": gauge(names.TOKENS_IN_USE),
        "kv_cache_usage": gauge(names.CACHE_USAGE),
        "generation_throughput": gauge(names.THROUGHPUT),
        "graph": gauge(names.GRAPH),
        "printed_length": gauge(names.LENGTH),
        "printed_rate": gauge(names.RATE),
    }
    return tuple(of_field.get(name) for name in UnitState._fields)


def _places_of_server(server: UnitSeries) -> _OfServer:
    def total(name: str) -> Places:
        return server.chosen(name, "cache_source", "total") or server.places(name)

    return _OfServer(
        total(names.GENERATED), total(names.FINISHED), total(names.VERIFIED), total(names.PROMPT_TOKENS),
        total(names.CACHED_TOKENS),
    )  # fmt: skip


def _unit_state(places: tuple[Places, ...], values: Sequence[float]) -> UnitState:
    """What a scheduler itself says."""
    unit = UnitState._make([added(values, of_field) for of_field in places])
    if unit.printed_length == 0:  # until something was verified
        return unit._replace(printed_length=None, printed_rate=None)
    return unit


def _with_server(unit: UnitState, server: _OfServer, values: Sequence[float], definition: Definition) -> UnitState:
    """The only scheduler, with what the server counts for all."""
    # The first token of a request comes from its prefill; the others from decode steps.
    generated, finished, verified = (added(values, places) for places in server[:3])
    decoded = None if generated is None or finished is None else generated - finished
    changes: dict[str, Any] = {}
    if unit.generated_tokens is None:
        changes["generated_tokens"] = decoded
    if unit.prompts is None:
        changes["prompts"] = finished
    prompt_tokens = added(values, server.prompt_tokens)
    if unit.computed_tokens is None and prompt_tokens is not None:
        cached = added(values, server.cached_tokens) or 0.0
        changes |= {"computed_tokens": prompt_tokens - cached, "cached_tokens": cached}
    if verified is not None and decoded is not None:
        changes |= {"verify_steps": verified, "accepted_tokens": decoded - definition.own * verified}
    return unit._replace(**changes)


def _with_mean(unit: UnitState, mean: float | None, arguments: Arguments) -> UnitState:
    """A unit whose steps the server does not count, with the counts that its mean length gives back."""
    if unit.verify_steps is not None or not arguments.value("speculative_algorithm"):
        return unit
    if mean is None:
        # Stated from the first decode line on, like the gauge: without either there are no steps yet.
        none_yet = unit.printed_length is None
        return unit._replace(verify_steps=0.0, accepted_tokens=0.0) if none_yet else unit
    if unit.generated_tokens is None:
        return unit
    tokens, running, steps = unit.generated_tokens, max(unit.running_requests or 0.0, 1.0), interval_of(arguments)
    width = arguments.value("speculative_num_draft_tokens") or LARGEST_WIDTH
    if unit.target_passes:
        # The last decode line was written at a multiple of the interval; what came later is not in the mean.
        late = tokens / unit.target_passes * (unit.target_passes % steps)
        below, above = int(steps * max(running, tokens / unit.target_passes) * width), int(late) + 1
    else:
        # These are the tokens of finished requests: those in the cache are still to come.
        late, below, above = 0.0, int(steps * running * width), int(steps * running * width + (unit.tokens_in_use or 0))
    counts = counts_since_start(mean, tokens - late, Definition.of(arguments), below=below, above=above)
    if counts is None:
        return unit
    return unit._replace(verify_steps=counts.verify_steps, accepted_tokens=counts.accepted_tokens, mean_length=mean)


def _unit_name(rank: str, lowest: tuple[int, int], info: EngineInfo) -> str:
    """The unit as the log tags it: each rank only where its size is above 1."""
    pipeline, tensor = lowest
    tags = [f"DP{rank}"] if rank else []
    if (info.arguments.value("pp_size") or 1) > 1:
        tags.append(f"PP{pipeline}")
    if (info.arguments.value("tp_size") or 1) > 1:
        tags.append(f"TP{tensor}")
    return " ".join(tags)


def _number(series: Series, label: str) -> int:
    return small_number(series.labels.get(label)) or 0
