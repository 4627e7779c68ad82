"""The page of a run or a check as one file, to hand on and to print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.check import Check
    from analysis.diagnosis import Diagnosis


class HtmlFormat(ReportFormat):
    """What the dashboard shows, with style, scripts and plots inside; it loads nothing."""

    name: ClassVar[str] = "html"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """The page of the run."""
        from dashboard.pages.standalone import run_report
        from dashboard.store import RunReport

        del console
        return run_report(RunReport.of("", diagnosis))

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """The answers of the page that checks commands."""
        from dashboard.pages.check import Form, check_page
        from dashboard.pages.standalone import check_report

        del console
        return check_report(check_page(Form(), checks))


FORMAT: Final = HtmlFormat()
