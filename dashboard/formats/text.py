"""Text for people, with colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.check import Check
    from analysis.diagnosis import Diagnosis


class TextFormat(ReportFormat):
    """The report as it stands on a terminal."""

    name: ClassVar[str] = "text"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """The four verdicts first, then what to do, then why."""
        from dashboard.report.diagnosis import print_report

        with console.capture() as captured:
            print_report(console, diagnosis)
        return captured.get()

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """What becomes of each flag, the findings, and a corrected command."""
        from dashboard.report.check import print_checks

        with console.capture() as captured:
            print_checks(console, checks)
        return captured.get()


FORMAT: Final = TextFormat()
