"""llama.cpp's samples as the state of a server, and what it tells of itself.

Counters move when a request ends. They are printed with six digits, those by position alone with
all: beyond a million what moved between two scrapes can be rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar, Final

from collector.domain.arguments import Argument, Arguments
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
from collector.metrics.counting import ALONE, until_counted
from collector.metrics.exposition import Sample, written
from collector.metrics.llamacpp import names
from collector.metrics.llamacpp.server import PROPERTIES, SLOTS, UNKNOWN_DRAFT, depth_option, read_documents
from collector.metrics.samples import Samples, UnitSeries, small_number

PRINTED_DIGITS: Final = 6
TOLD_FROM_ROUNDING: Final = 100
"""How many times the last printed digit a count has to move by."""


class LlamacppMetrics(EngineMetrics):
    """``/metrics`` of llama.cpp's server: one unit, all slots together."""

    engine: ClassVar[str] = "llamacpp"
    title: ClassVar[str] = "llama.cpp"
    owner: ClassVar[str] = "llamacpp"
    prefixes: ClassVar[tuple[str, ...]] = (names.PREFIX,)
    sample_names: ClassVar[frozenset[str]] = names.WANTED
    start_header: ClassVar[str] = names.PROCESS
    info_paths: ClassVar[tuple[InfoPaths, ...]] = (
        InfoPaths((PROPERTIES,), "build and model are not known"),
        InfoPaths((SLOTS,), "whether it drafts is not told; start the server without --no-slots", list),
    )
    metrics_hint: ClassVar[str] = "start the server with --metrics"
    name_argument: ClassVar[str] = "alias"
    telling_names: ClassVar[frozenset[str]] = frozenset({names.DRAFTS})

    def info(self, documents: Sequence[Document]) -> EngineInfo:
        """Read ``/props`` and ``/slots``."""
        return read_documents(documents)

    def needs_info(self, state: EngineState, info: EngineInfo) -> bool:
        """Slots tell how they draft once they have served a request."""
        arguments = info.arguments
        served = any(unit.generated_tokens for unit in state.units.values())
        return served and arguments.value("spec_type") == UNKNOWN_DRAFT and not arguments.seen("spec_draft_n_max")

    def stated(self, samples: Iterable[Sample], arguments: Arguments, source: str) -> Arguments:
        """That it drafts, where it does not say so itself; and how many tokens a draft has at most: as many as positions."""
        found: dict[str, Argument] = {}
        kept = list(samples)
        drafts = next((sample for sample in kept if sample.name == names.DRAFTS and sample.value > 0), None)
        spec_type = arguments.value("spec_type")
        if drafts is not None and not arguments.seen("spec_type"):
            spec_type = UNKNOWN_DRAFT
            evidence = Evidence(source, None, written(drafts))
            found["spec_type"] = Argument("spec_type", effective=spec_type, effective_evidence=evidence)
        positioned = {
            place: sample
            for sample in kept
            if sample.name == names.ACCEPTED_AT and (place := small_number(sample.labels.get("position"))) is not None
        }
        option = depth_option(spec_type)
        if positioned and option is not None:
            evidence = Evidence(source, None, written(positioned[max(positioned)]))
            found[option] = Argument(option, effective=len(positioned), effective_evidence=evidence)
        return Arguments(found)

    def state(self, samples: Iterable[Sample], info: EngineInfo, at: float) -> EngineState:
        """The server as a whole."""
        del info
        kept = Samples.of(samples)
        return EngineState(
            at=at,
            units={ALONE: _unit_state(kept.table.derived(UnitSeries.whole), kept.values)},
            samples=kept,
            counter_names=names.COUNTERS,
            processes=frozenset(f"{sample.value:.0f}" for sample in kept.named(names.PROCESS)),
        )

    def interval(self, before: EngineState | None, after: EngineState, info: EngineInfo) -> Interval:
        """The window and the prompts of the server, once requests have ended."""
        del info
        return until_counted(before, after, exact=before is None or _told_from_rounding(before, after))


def _unit_state(series: UnitSeries, values: Sequence[float]) -> UnitState:
    value = partial(series.total, values)
    accepted_at, accepted = series.positions(values, names.ACCEPTED_AT, "position"), value(names.ACCEPTED)
    if accepted is not None and accepted_at is not None and _last_digit(accepted) > 1:
        accepted = sum(accepted_at)  # the same, exactly
    decodes, busy = value(names.DECODES), value(names.BUSY_SLOTS)
    return UnitState(
        generated_tokens=value(names.GENERATED),
        target_passes=decodes,
        request_passes=None if decodes is None or busy is None else decodes * busy,
        computed_tokens=value(names.PROMPT_TOKENS),
        cached_tokens=value(names.CACHED_TOKENS),
        verify_steps=value(names.DRAFTS),
        accepted_tokens=accepted,
        drafted_tokens=value(names.DRAFTED),
        accepted_at=accepted_at,
        running_requests=value(names.RUNNING),
        waiting_requests=value(names.WAITING),
        tokens_in_use=value(names.CACHE_TOKENS),
        kv_cache_usage=value(names.CACHE_USAGE),
    )


def _told_from_rounding(before: EngineState, after: EngineState) -> bool:
    """Whether every count either stood still or moved by far more than its last printed digit is worth."""
    earlier, later = before.units[ALONE], after.units[ALONE]
    counts = ((getattr(earlier, name) or 0.0, getattr(later, name)) for name in ("generated_tokens", "verify_steps"))
    return all(
        end is None or end == start or _last_digit(end) <= 1 or end - start >= TOLD_FROM_ROUNDING * _last_digit(end)
        for start, end in counts
    )


def _last_digit(value: float) -> float:
    """What the last printed digit of a value is worth."""
    return 10.0 ** (math.floor(math.log10(value)) + 1 - PRINTED_DIGITS) if value >= 1 else 0.0
