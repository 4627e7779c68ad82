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
    """Texts by run, good as long as the diagnosis is the same object and its history is equal. Safe from several threads."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[RunReport, str]] = OrderedDict()

    def of(self, report: RunReport, make: Callable[[RunReport], str]) -> str:
        """The page of a report; made where none is kept, or its data changed."""
        with self._lock:
            kept = self._kept.get(report.id)
            if kept is not None and kept[0].document is report.document and kept[0].history == report.history:
                self._kept.move_to_end(report.id)
                return kept[1]
        text = make(report)
        with self._lock:
            self._kept[report.id] = report, text
            self._kept.move_to_end(report.id)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return text
