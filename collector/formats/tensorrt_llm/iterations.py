"""Iterations of TensorRT-LLM: one line each, in words or as JSON, gathered into windows.

Source: TensorRT-LLM, ``_torch/pyexecutor/py_executor.py`` (``print_iter_log``) and the objects of
``GET /metrics`` (``enable_iter_perf_stats``), 0.20 to 1.4. The words of the line moved between
releases, so they are read key by key.
"""

from __future__ import annotations

import json
import math
import re
from calendar import timegm
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from collector.domain.windows import Window
from collector.formats.figures import DECIMAL

ITERATIONS: Final = 40
"""Iterations of one window: as many as SGLang puts into a line."""

_PAIR = re.compile(rb"'?(\w+)'?\s*[=:]\s*(?:np\.\w+\()?'?(-?" + DECIMAL + rb"(?:e[+-]?\d{1,3})?)(ms|s)?\b(?!\.[\d.])")
_DATE = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)-(\d\d)-(\d{4}))[ T-](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")


class Place(NamedTuple):
    """Where an iteration stands: byte offset and line number."""

    position: int
    line: int


@dataclass(slots=True)
class Iteration:
    """What one iteration did; ``None`` where the source does not say.

    ``drafted``, ``accepted`` and ``steps`` (requests with drafts) are there where it verified drafts.
    """

    number: int
    unit: str = ""
    at: float | None = None
    seconds: float | None = None
    running: float | None = None
    waiting: float | None = None
    prompts: int = 0
    generating: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    steps: float | None = None
    kv_cache_usage: float | None = None


STATED: Final = tuple(field.name for field in fields(Iteration))
"""Our names for what an iteration may state."""


def read_words(message: bytes) -> Iteration | None:
    """An iteration line; ``None`` if it is torn."""
    values: dict[bytes, float] = {}
    for key, number, unit in _PAIR.findall(message):
        try:
            values.setdefault(key, float(number) / (1_000 if unit == b"ms" else 1))
        except ValueError:
            return None
    if b"iter" not in values or b"num_ctx_requests" not in values:
        return None
    rank = int(values.get(b"global_rank", values.get(b"rank", 0)))
    stamp = re.search(rb"timestamp = ([^,]{8,40})", message)
    running = values.get(b"num_scheduled_requests")
    prompts = int(values[b"num_ctx_requests"])
    return Iteration(
        number=int(values[b"iter"]),
        unit=f"rank {rank}" if rank else "",
        at=instant(stamp[1].decode("ascii", "replace")) if stamp is not None else None,
        seconds=values.get(b"host_step_time", values.get(b"elapsed_time")),
        running=running,
        prompts=prompts,
        kv_cache_usage=values.get(b"kv_cache_util"),
    )


def read_objects(text: bytes) -> list[Iteration] | None:
    """The iterations of a JSON line: one object, or an array as the endpoint answers; ``None`` if it is neither."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = document if isinstance(document, list) else [document]
    read = [_object(item) for item in listed if isinstance(item, dict) and isinstance(item.get("iter"), int)]
    return read if read or not listed else None


def _object(row: Mapping[str, Any]) -> Iteration:
    batch, cache = _mapping(row, "inflightBatchingStats"), _mapping(row, "kvCacheStats")
    rank = row.get("attentionDpRank", row.get("rank", 0))
    rank = rank if isinstance(rank, int) else 0
    used, most = _number(cache, "usedNumBlocks"), _number(cache, "maxNumBlocks")
    milliseconds = _number(row, "iterLatencyMS")
    iteration = Iteration(
        number=row["iter"],
        unit=f"rank {rank}" if rank else "",
        at=instant(row["timestamp"]) if isinstance(row.get("timestamp"), str) else None,
        seconds=milliseconds / 1_000 if milliseconds is not None else None,
        running=_number(batch, "numScheduledRequests") if batch else _number(row, "numActiveRequests"),
        waiting=_number(row, "numQueuedRequests"),
        prompts=int(_number(batch, "numContextRequests") or 0),
        generating=_number(batch, "numGenRequests"),
        kv_cache_usage=used / most if used is not None and most else None,
    )
    drafts = _mapping(row, "specDecodingStats")
    if drafts and not rank:  # rows of other ranks repeat those of the first
        iteration.drafted = _number(drafts, "numDraftTokens")
        iteration.accepted = _number(drafts, "numAcceptedTokens")
        iteration.steps = _number(drafts, "numRequestsWithDraftTokens")
    return iteration


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _number(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


def instant(text: str) -> float | None:
    """Seconds since 1970 of ``2025-04-28 09:56:44`` or ``04-28-2025 09:56:44.123456``; the log prints no zone."""
    match = _DATE.match(text.strip())
    if match is None:
        return None
    year, month, day = (match[1], match[2], match[3]) if match[1] else (match[6], match[4], match[5])
    if not (int(year) >= 1970 and 1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    fraction = int((match[10] or "0").ljust(6, "0")) / 1_000_000
    return timegm((int(year), int(month), int(day), int(match[7]), int(match[8]), int(match[9]))) + fraction


class Gathered:
    """Iterations of one unit until they make a window."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self._rows: list[tuple[Place, float, Iteration]] = []

    def add(self, place: Place, at: float, iteration: Iteration) -> Iterator[Window]:
        """Take an iteration; gives the window that it completes."""
        self._rows.append((place, at, iteration))
        if len(self._rows) >= ITERATIONS:
            yield from self.finish()

    def finish(self) -> Iterator[Window]:
        """The window of what was gathered, if anything was."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        place, at, _ = rows[-1]
        items = [item for _, _, item in rows]
        seconds = _sum(item.seconds for item in items)
        accepted = _sum(item.accepted for item in items)
        generating = _sum(item.generating for item in items)
        # each generating request yields a token of the target's own and its accepted drafts
        generated = generating + (accepted or 0.0) if generating is not None else None
        yield Window(
            position=place.position,
            line=place.line,
            at=at,
            unit=self.unit,
            seconds=seconds,
            running_requests=_mean(item.running for item in items),
            waiting_requests=_mean(item.waiting for item in items),
            verify_steps=_sum(item.steps for item in items),
            accepted_tokens=accepted,
            drafted_tokens=_sum(item.drafted for item in items),
            generated_tokens=generated,
            generation_throughput=generated / seconds if generated is not None and seconds else None,
            kv_cache_usage=_mean(item.kv_cache_usage for item in items),
            prefills=sum(item.prompts for item in items),
        )


def _sum(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
