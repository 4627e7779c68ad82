"""The periodic line about an engine: throughput, queues, cache.

Its parts are a list that differs by release and state, so it is read key by key; a shape is parsed strictly once
(:mod:`collector.formats.learned`).

Source: vLLM, ``vllm/engine/metrics.py`` (V0) and ``vllm/v1/metrics/loggers.py``, releases 0.5 to 0.32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from collector.formats.figures import LONGEST_FIGURE
from collector.formats.learned import LearnedForms

LONGEST: Final = 1_000

_NUMBERS = re.compile(rb"\d+(?:\.\d+)?")
_HEAD = re.compile(rb"(?:Engine \d+: |\d+ Engines Aggregated: )?(?=Avg prompt throughput: )")
_ITEM = re.compile(
    rb"KV fetch: \d+ waiting to start, \d+ in progress, \d+ completed waiting"
    rb"|(?P<key>[A-Z][A-Za-z ]{1,60}?): \d+(?:\.\d+)?(?: tokens/s| reqs|%)?"
)
_SEPARATOR = re.compile(rb", ?| (?=[GC]PU KV cache)|\.?\s*$")
_NAMES: Final[Mapping[bytes, str]] = {
    b"Avg prompt throughput": "prompt_throughput",
    b"Avg generation throughput": "generation_throughput",
    b"Running": "running_requests",
    b"Waiting": "waiting_requests",
    b"Pending": "waiting_requests",
    b"Prefix cache hit rate": "cached_share",
}
STATED: Final = (*dict.fromkeys(_NAMES.values()), "kv_cache_usage")
"""Our names for what such a line may state."""
_REQUIRED: Final = frozenset({"prompt_throughput", "generation_throughput", "running_requests", "waiting_requests"})
SHARES: Final = frozenset({"kv_cache_usage", "cached_share"})


class StatsForm(NamedTuple):
    """What lines of one shape share: our names for their numbers, and whether V0 prints it."""

    names: tuple[str | None, ...]
    v0: bool


class Stats(NamedTuple):
    """One line: values under our names, the engine's index (``None`` if it names none), and its form."""

    values: dict[str, float]
    engine: int | None
    form: StatsForm


class StatsReader:
    """Reads engine lines."""

    def __init__(self) -> None:
        self._forms = LearnedForms(_learn)

    def read(self, message: bytes) -> Stats | None:
        """What a line states, ``None`` if it is torn or another line."""
        if len(message) > LONGEST:
            return None
        form = self._forms.of(message)
        if form is None:
            return None
        numbers = _NUMBERS.findall(message)
        if len(numbers) != len(form.names) or max(map(len, numbers)) > LONGEST_FIGURE:
            return None  # the shape is the same where digits are missing or too many
        values: dict[str, float] = {}
        engine: int | None = None
        for name, number in zip(form.names, numbers, strict=True):
            if name == "engine":
                engine = int(number)
            elif name in SHARES:
                values[name] = float(number) / 100
            elif name is not None:
                values[name] = float(number)
        return Stats(values, engine, form)


def _learn(message: bytes) -> StatsForm | None:
    head = _HEAD.match(message)
    if head is None:
        return None
    names: list[str | None] = []
    if head[0]:
        names.append("engine" if head[0].startswith(b"Engine") else None)
    position = head.end()
    keys: list[bytes] = []
    while position < len(message):
        item = _ITEM.match(message, position)
        if item is None:
            return None
        key = item["key"]
        keys.append(key or b"KV fetch")
        names += [_name(key, names)] if key is not None else [None] * 3
        separator = _SEPARATOR.match(message, item.end())
        if separator is None:
            return None
        position = separator.end()
    if not names or not set(names) >= _REQUIRED:
        return None
    return StatsForm(tuple(names), v0=b"Swapped" in keys)


def _name(key: bytes, before: list[str | None]) -> str | None:
    """Our name of a key; the first of two that mean the same counts (V0 prints the usage of two caches)."""
    name = "kv_cache_usage" if key.endswith(b" KV cache usage") else _NAMES.get(key)
    return None if name in before else name
