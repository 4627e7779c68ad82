"""Samples out of a Prometheus-compatible store, with the instants at which they were scraped.

A selector with a range gives the samples themselves, where a range query would give them at
instants of its own: so the windows between them are those that direct scraping would have had.

Source: prometheus.io/docs/prometheus/latest/querying/api; Thanos, Mimir and VictoriaMetrics answer alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from collector.domain.errors import InputError, SourceError
from collector.sources.http import Answer, Endpoint, TooLarge, TooSlow

LARGEST_ANSWER: Final = 64 << 20
"""Bytes of one answer; a stretch of which more is stored is asked for in parts."""
LONGEST_SECONDS: Final = 3600.0
SHORTEST_SECONDS: Final = 15.0
"""Of what is asked for at once."""

_QUERY: Final = "/api/v1/query"
_OK: Final = 200
_DENIED: Final = (401, 403)
_TOO_MUCH: Final = (413, 422, 503, 504)
"""What stores answer to a question that takes too many samples or too much time."""
_WHOLE: Final = {"partial_response": "false", "deny_partial_response": "1"}
"""Thanos and VictoriaMetrics give less than all where a part of them does not answer, unless told otherwise."""


class StoredSeries(NamedTuple):
    """One series: its labels with ``__name__``, and its samples as instant and value."""

    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


class _TooMuch(SourceError):  # noqa: N818 - named for what is wrong
    """The store cannot give so much at once."""


class PrometheusApi:
    """The query API of a store."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Nothing is asked yet."""
        self.endpoint = endpoint
        self._seconds = LONGEST_SECONDS

    def read(self, selectors: Sequence[str], begin: float, end: float) -> tuple[float, list[StoredSeries]]:
        """The samples from ``begin`` on, as far as can be had at once: up to the instant that is returned.

        Instants are seconds since 1970.

        Raises:
            SourceError: the store does not answer as it should.
        """
        while True:
            until = min(begin + self._seconds, end)
            try:
                found = [series for selector in selectors for series in self._raw(selector, begin, until)]
            except (_TooMuch, TooLarge, TooSlow):
                if until - begin <= SHORTEST_SECONDS:
                    raise
                self._seconds = max((until - begin) / 2, SHORTEST_SECONDS)
                continue
            self._seconds = min(self._seconds * 2, LONGEST_SECONDS)
            return until, found

    def read_all(self, selectors: Sequence[str], begin: float, end: float) -> list[StoredSeries]:
        """All samples of a stretch; a series that is had in parts is there as often.

        Raises:
            SourceError: the store does not answer as it should.
        """
        found: list[StoredSeries] = []
        while begin < end:
            begin, part = self.read(selectors, begin, end)
            found += part
        return found

    def _raw(self, selector: str, begin: float, end: float) -> list[StoredSeries]:
        query = f"{selector}[{max(round((end - begin) * 1000), 1)}ms]"
        answer = self.endpoint.get(_QUERY, {"query": query, "time": f"{end:.3f}", **_WHOLE})
        data = _data(answer)
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise SourceError("the store's answer has another form than asked for", where=answer.url)
        return [
            StoredSeries(item["metric"], [(float(at), float(value)) for at, value in item["values"]])
            for item in data["result"]
            if "values" in item
        ]


def matchers_of(text: str) -> str:
    """The matchers of a selector, without its braces.

    Raises:
        InputError: it is no selector.
    """
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        stripped = stripped[1:-1].strip()
    if stripped and not re.match(r"[A-Za-z_]\w*\s*(=~|!~|!=|=)\s*[\"'`]", stripped):
        raise InputError(
            f"{text!r} is not a selector", why="it needs matchers of labels", hint='for instance {namespace="llm"}'
        )
    return stripped.rstrip(",")


def selector(names: Sequence[str], matchers: str = "") -> str:
    """A selector of metrics by their names."""
    return f'{{__name__=~"{"|".join(names)}"{"," if matchers else ""}{matchers}}}'


def one_of(label: str, values: Sequence[str]) -> str:
    """A matcher for a label that has one of these values."""
    return f"{label}=~{json.dumps('|'.join(map(re.escape, values)), ensure_ascii=False)}"


def _data(answer: Answer) -> Any:
    """What a successful answer holds."""
    if answer.status in _DENIED:
        raise SourceError(
            "the store wants to know who asks" if answer.status == _DENIED[0] else "the store refuses this user",
            why=f"it answered {answer.status}",
            where=answer.url,
            hint="give api_key, a user and password in the address, or headers; with tenants also the tenant",
        )
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    stated = document.get("error") if isinstance(document, dict) else None
    if answer.status in _TOO_MUCH:
        raise _TooMuch(
            "the store cannot give so many samples at once", why=str(stated or f"it answered {answer.status}"),
            where=answer.url, hint="narrow the selector, for instance to one namespace",
        )  # fmt: skip
    if stated is not None:
        raise SourceError(
            "the store refuses the question", why=str(stated), where=answer.url, hint="check the selector"
        )
    if answer.status != _OK or not isinstance(document, dict) or document.get("status") != "success":
        what = "this is a web page" if answer.is_page else f"it answered {answer.status}"
        raise SourceError(
            "there is no Prometheus API at this address", why=what, where=answer.url,
            hint="the part of the address before /api/v1; Mimir has it under /prometheus, VictoriaMetrics clusters under"
            " /select/0/prometheus",
        )  # fmt: skip
    return document.get("data")
