"""What a benchmark tool's result file is read into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from collector.domain.results import BenchmarkRow
from collector.results.content import Content


class Tool(ABC):
    """The result files of one tool. ``order``: a lower one is asked first; ``engine``: the one it measures, "" if any."""

    name: ClassVar[str]
    engine: ClassVar[str] = ""
    order: ClassVar[int] = 50

    @abstractmethod
    def rows(self, content: Content) -> list[BenchmarkRow]:
        """Its measurements, empty if another tool wrote the file."""
