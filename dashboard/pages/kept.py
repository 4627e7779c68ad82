"""Pages of runs as they were made last: most of what a page costs is the same until its data changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from dashboard.store import RunReport

MOST_KEPT: Final = 32
"""Pages held in memory, about 200 kB each."""


class KeptPages:
    """Texts by run, good as long as the report is the same and its history is equal. Safe from several threads."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[RunReport, str]] = OrderedDict()

    def of(self, report: RunReport, make: Callable[[RunReport], str], variant: str = "") -> str:
        """The page of a report; made where none is kept, or its data changed. There may be one of each ``variant``."""
        key = report.id, variant
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and _same(kept[0], report):
                self._kept.move_to_end(key)
                return kept[1]
        text = make(report)
        with self._lock:
            self._kept[key] = report, text
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return text


def _same(one: RunReport, other: RunReport) -> bool:
    """Whether two reports of a run show the same; one that was not stored has no version."""
    alike = one.version == other.version if one.version else one.document is other.document
    return alike and one.history == other.history
