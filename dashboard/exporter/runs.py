"""The series of present runs as text, rendered again only where a run or its judgement changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from collector.storage.overview import Present, load_judged
from dashboard.exporter.families import AGE, RUN_FAMILIES, info, line_of

Encoder = Callable[[Collector], bytes]
_FAMILY: Final = re.compile("^(?=# HELP )", re.MULTILINE)


class Given(Collector):
    """Metrics that are at hand."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        """Just them."""
        return self._metrics


@dataclass(frozen=True, slots=True)
class _Rendered:
    """One run's lines by family, and the version of the run they are of."""

    version: tuple[Any, ...]
    lines: tuple[str, ...]


class RunSeries:
    """Renders present runs. A line is the same in both formats; what stands above a family's lines is not."""

    def __init__(self, labels: Sequence[str] = ()) -> None:
        """``labels`` are the free labels of runs that are exported."""
        self._families = (info(labels), *RUN_FAMILIES)
        self._rendered: dict[int, _Rendered] = {}

    def render(self, connection: Connection, present: Present, encode: Encoder, *, now: float) -> str:
        """All families of runs, in the format of ``encode``."""
        self._renew(connection, present)
        shown = [self._rendered[run.id].lines for run in present.runs if run.id in self._rendered]
        *heads, head_of_ages = _heads(encode, [family.metric() for family in (*self._families, AGE)])
        parts = []
        for number, head in enumerate(heads):
            parts.append(head)
            parts += [lines[number] for lines in shown]
        parts.append(head_of_ages)
        parts += [
            line_of(AGE.name, run.id, round(now - run.ended_at, 3)) for run in present.runs if run.ended_at is not None
        ]
        return "".join(parts)

    def _renew(self, connection: Connection, present: Present) -> None:
        """Render what changed, forget what is gone."""
        before = self._rendered
        self._rendered = {
            run.id: kept for run in present.runs if (kept := before.get(run.id)) and kept.version == run.version
        }
        versions = {run.id: run.version for run in present.runs if run.id not in self._rendered}
        if versions:
            for judged in load_judged(connection, list(versions)):
                lines = tuple([family.lines(judged) for family in self._families])
                self._rendered[judged.id] = _Rendered(versions[judged.id], lines)


def _heads(encode: Encoder, metrics: Sequence[Metric]) -> list[str]:
    """What a format writes of each metric, without its end of file."""
    return [block.removesuffix("# EOF\n") for block in _blocks(encode(Given(metrics)))]


def _blocks(exposition: bytes) -> list[str]:
    """The text of each family. Label values have no line breaks, so no other line begins like this."""
    return _FAMILY.split(exposition.decode())[1:]
