"""What a form of the report is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.check import Check
    from analysis.diagnosis import Diagnosis


class ReportFormat(ABC):
    """One form of a report; one module of this package has one ``FORMAT``.

    ``console`` tells how wide the page is and whether it has colours; forms for machines do not
    look at it.
    """

    name: ClassVar[str]

    @abstractmethod
    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """What is to be said about a run."""

    @abstractmethod
    def check(self, checks: Sequence[Check], console: Console) -> str:
        """What is to be said about launch commands, in the order they were found; there is at least one."""
