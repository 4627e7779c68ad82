"""Reads the Prometheus text exposition, strictly, and OpenMetrics text as far as samples go.

A body is read as a whole or not at all: a figure from half a line would be a wrong figure. Of most
bodies only some families are wanted, and their series are the same at every scrape; so the text
before a value is looked up (:class:`SeriesCache`) and parsed only where it was not seen before.

Source: prometheus.io/docs/instrumenting/exposition_formats, and the OpenMetrics 1.0 specification.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final, NamedTuple

from collector.domain.errors import MalformedInput

SHOWN_BYTES: Final = 200
"""How much of a line an error quotes."""

_SERIES: Final = re.compile(rb"([a-zA-Z_:][\w:]*)[ \t]*", re.ASCII)
_LABEL: Final = re.compile(rb'[ \t]*([a-zA-Z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*', re.ASCII)
_VALUE: Final = rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?|nan))"
_NUMBER: Final = re.compile(_VALUE)
# What may follow a series: its value, a time, an exemplar.
_REST: Final = re.compile(
    rb"[ \t]*(" + _VALUE + rb")(?:[ \t]+[+-]?[\d.]+(?:[eE][+-]?\d+)?)?"
    rb'(?:[ \t]+#[ \t]+\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}[ \t]+' + _VALUE + rb"(?:[ \t]+[\d.]+(?:[eE][+-]?\d+)?)?)?[ \t]*"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"\\": "\\", '"': '"', "n": "\n"}
_END: Final = b"# EOF"


class Series(NamedTuple):
    """One series: the name of its samples and its labels."""

    name: str
    labels: Mapping[str, str]


class Sample(NamedTuple):
    """One sample: name (with ``_total``, ``_bucket``, …), labels and value."""

    name: str
    labels: Mapping[str, str]
    value: float


def written(sample: Sample) -> str:
    """A sample as a line of text."""
    labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{labels}}} {sample.value:g}" if labels else f"{sample.name} {sample.value:g}"


class SeriesCache:
    """Series by the text before their value; ``None`` marks a series that is not wanted.

    A cache serves one target and one choice of names.
    """

    def __init__(self, most: int = 50_000) -> None:
        """Keep at most ``most`` series; beyond that begin anew."""
        self._most = most
        self._series: dict[bytes, Series | None] = {}
        self.get = self._series.get

    def put(self, text: bytes, series: Series | None) -> None:
        """Remember a series."""
        if len(self._series) >= self._most:
            self._series.clear()
        self._series[text] = series


_UNSEEN: Final = Series("", {})


def parse_exposition(
    body: bytes, *, wanted: Container[str] | None = None, cache: SeriesCache | None = None, source: str = ""
) -> list[Sample]:
    """The samples of a body in their order; ``wanted`` restricts them to these sample names.

    Times and exemplars are passed over.

    Raises:
        MalformedInput: a line is none of the format, a series appears twice, or the body is cut off.
    """
    cache = cache or SeriesCache()
    lines = body.split(b"\n")
    if lines.pop():
        raise _malformed("the text is cut off: its last line has no end", body[-SHOWN_BYTES:], len(lines) + 1, source)
    samples: list[Sample] = []
    seen: set[bytes] = set()
    ended = False
    for number, line in enumerate(lines, 1):
        if line[:1] == b"#" or not line:
            ended = ended or line == _END
            continue
        if ended:
            raise _malformed("a line follows # EOF", line, number, source)
        text, _, figure = line.rpartition(b" ")
        series = cache.get(text, _UNSEEN)
        if series is None:
            continue
        if series is _UNSEEN or _NUMBER.fullmatch(figure) is None:
            series, text, figure, alone = _parse(line, number, wanted, source)
            if alone:
                cache.put(text, series)
            if series is None:
                continue
        if text in seen:
            raise _malformed("the same series appears twice", line, number, source)
        seen.add(text)
        samples.append(Sample(series.name, series.labels, float(figure)))
    return samples


def _parse(
    line: bytes, number: int, wanted: Container[str] | None, source: str
) -> tuple[Series | None, bytes, bytes, bool]:
    """A line's series (``None`` if it is not wanted), the text that names it, its value, and whether nothing follows."""
    start = _SERIES.match(line)
    if start is None:
        raise _malformed("a line begins with no metric name", line, number, source)
    name = start[1].decode()
    labels, position = (
        ({}, start.end(1))
        if line[start.end() : start.end() + 1] != b"{"
        else _labels(line, start.end() + 1, number, source)
    )
    rest = _REST.fullmatch(line, position)
    if rest is None or rest.start(1) == position:
        raise _malformed("no value, or more than a value, follows the series", line, number, source)
    series = Series(name, labels) if wanted is None or name in wanted else None
    # Only a text that one blank parts from the last word of its line can be looked up again.
    alone = line[position : rest.start(1)] == b" " and rest.end(1) == len(line)
    return series, line[:position], rest[1], alone


def _labels(line: bytes, position: int, number: int, source: str) -> tuple[dict[str, str], int]:
    """The labels behind an opening brace, and the position behind the closing one."""
    labels: dict[str, str] = {}
    while True:
        label = _LABEL.match(line, position)
        if label is None:
            break
        name = label[1].decode()
        if name in labels:
            raise _malformed(f"label {name} appears twice", line, number, source)
        labels[name] = _unescaped(label[2], line, number, source)
        position = label.end()
        if line[position : position + 1] != b",":
            break
        position += 1
    while line[position : position + 1] in (b" ", b"\t"):
        position += 1
    if line[position : position + 1] != b"}":
        raise _malformed("the labels are not well formed", line, number, source)
    return labels, position + 1


def _unescaped(value: bytes, line: bytes, number: int, source: str) -> str:
    try:
        text = value.decode()
        return _ESCAPED.sub(lambda match: _ESCAPES[match[1]], text) if "\\" in text else text
    except UnicodeDecodeError:
        raise _malformed("a label value is not UTF-8", line, number, source) from None
    except KeyError:
        raise _malformed("a label value has an unknown escape", line, number, source) from None


def _malformed(what: str, line: bytes, number: int, source: str) -> MalformedInput:
    shown = line[:SHOWN_BYTES].decode("utf-8", "replace")
    return MalformedInput(
        f"the metrics cannot be read: {what}",
        why=f"it reads {shown!r}",
        where=f"{source}:{number}" if source else f"line {number}",
    )
