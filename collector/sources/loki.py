"""Logs out of Grafana Loki.

Source: grafana.com/docs/loki/latest/reference/loki-http-api.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from collector.domain.errors import InputError, SourceError
from collector.sources.entries import Entry, Log, Page
from collector.sources.http import Endpoint

LARGEST_ANSWER: Final = 64 << 20
"""Bytes of one answer."""
PAGE_ENTRIES: Final = 5000
"""Lines that are asked for at once: as many as Loki gives unless it was set otherwise."""
LONGEST_QUESTION: Final = 30 * 86_400 * 1_000_000_000
"""Nanoseconds that one question is about: Loki takes an hour more unless it was set otherwise (``max_query_length``)."""
SETTLED_SECONDS: Final = 10.0
"""Lines are read once they are this old: a collector may still have earlier ones to send."""
_SERIES: Final = "/loki/api/v1/series"
_QUERY: Final = "/loki/api/v1/query_range"
_WITHIN: Final = frozenset(
    {"stream", "level", "detected_level", "logtag", "flags", "filename", "service_name", "__stream_shard__"}
)
"""Labels by which lines of one log differ."""
_FILE: Final = "filename"
_CONTAINERS: Final = ("pod", "container", "container_name", "container_id")
_TIED: Final = (
    "several lines came at one instant, and Loki keeps neither their order nor one that repeats another; "
    "increment_duplicate_timestamp in its limits_config keeps both"
)
_DENIED: Final = (401, 403)
_OK: Final = 200
_SECOND: Final = 1_000_000_000


class Loki:
    """The logs that a selector finds."""

    def __init__(self, endpoint: Endpoint, select: str, *, now: Callable[[], float] = time.time) -> None:
        """Nothing is asked yet; ``now`` gives seconds since 1970.

        Raises:
            InputError: ``select`` is no selector of streams.
        """
        self._endpoint = endpoint
        self._matchers = matchers_of(select)
        self._now = now

    @property
    def name(self) -> str:
        """Address and selector."""
        return f"{self._endpoint.address} {{{self._matchers}}}"

    def logs(self, since: int) -> Sequence[Log]:
        """The logs of all streams that the selector finds; standard output and error of one container are one log."""
        asked = {"match[]": f"{{{self._matchers}}}"}
        streams = [
            labels for stretch in self._stretches(since) for labels in self._ask(_SERIES, {**asked, **stretch}) or ()
        ]
        found = {tuple(_own(labels).items()): _own(labels) for labels in streams}
        names = sorted({name for labels in found.values() for name in labels})
        return [
            Log(
                f"{self._endpoint.address} {{{_written(labels, labels)}}}",
                labels,
                (_written(labels, names),),  # with those it does not have, so that no others are found with it
            )
            for labels in found.values()
        ]

    def page(self, log: Log, since: int) -> Page:
        """The next lines of one log."""
        entries: list[Entry] = []
        for stretch in self._stretches(since):
            entries += self._entries({"query": f"{{{log.key[0]}}}", **stretch}, PAGE_ENTRIES - len(entries))
            if len(entries) >= PAGE_ENTRIES:
                break
        tied = any(one.at == other.at for one, other in pairwise(entries))
        return Page(entries, more=len(entries) >= PAGE_ENTRIES, doubt=_TIED if tied else "")

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _entries(self, asked: Mapping[str, str], most: int) -> list[Entry]:
        """The first lines of one question, so many at most, in their order."""
        data = self._ask(_QUERY, {**asked, "limit": str(most), "direction": "forward"})
        if not isinstance(data, dict) or data.get("resultType") != "streams":
            raise SourceError("Loki's answer has another form than asked for", where=self._endpoint.address + _QUERY)
        entries = [
            Entry(int(value[0]), value[1].encode("utf-8", "surrogatepass"))
            for stream in data["result"]
            for value in stream["values"]
        ]
        return sorted(entries, key=lambda entry: entry.at)

    def _stretches(self, since: int) -> Iterator[dict[str, str]]:
        """The time from an instant on in stretches that Loki takes."""
        end = self._end()
        for start in range(since, end, LONGEST_QUESTION):
            yield {"start": str(start), "end": str(min(end, start + LONGEST_QUESTION))}

    def _end(self) -> int:
        return round((self._now() - SETTLED_SECONDS) * _SECOND)

    def _ask(self, path: str, form: Mapping[str, str]) -> Any:
        answer = self._endpoint.get(path, form)
        if answer.status in _DENIED:
            raise SourceError(
                "Loki wants to know who asks" if answer.status == _DENIED[0] else "Loki refuses this user",
                why=f"it answered {answer.status}",
                where=answer.url,
                hint="give the tenant, and api_key, user and password, or headers",
            )
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            document = None
        if answer.status == _OK and isinstance(document, dict) and document.get("status") == "success":
            return document.get("data")
        text = answer.body[:300].decode("utf-8", "replace").strip()
        if answer.is_page or not 400 <= answer.status < 600 or answer.status == 404:
            raise SourceError(
                "there is no Loki at this address",
                why="this is a web page" if answer.is_page else f"it answered {answer.status}",
                where=answer.url,
                hint="the address in front of /loki/api/v1",
            )
        raise SourceError(
            "Loki refuses the question", why=text, where=answer.url, hint="check the selector; --since asks for less"
        )


def _own(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that are the same for all lines of one log."""
    own = {name: text for name, text in sorted(labels.items()) if name not in _WITHIN}
    if _FILE in labels and not own.keys() & set(_CONTAINERS):
        own[_FILE] = labels[_FILE]
    return own


def _written(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return ",".join(f"{name}={json.dumps(labels.get(name, ''), ensure_ascii=False)}" for name in names)


def matchers_of(select: str) -> str:
    """The matchers of a selector of streams, without its braces.

    Raises:
        InputError: it is none.
    """
    match = re.fullmatch(r"\s*\{((?:[^{}\"`]|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)+)\}(.*)", select, re.DOTALL)
    if match is None or not match[1].strip():
        raise InputError(
            f"{select!r} selects no streams", why="Loki needs matchers of labels",
            hint='for instance {namespace="llm", container="vllm"}',
        )  # fmt: skip
    if match[2].strip():
        raise InputError(
            f"{match[2].strip()!r} leaves out or changes lines", why="an engine's log is read as it was written",
            hint="give the selector alone",
        )  # fmt: skip
    return match[1].strip().rstrip(",")
