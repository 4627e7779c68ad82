"""The whole document as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.check import Check
    from analysis.diagnosis import Diagnosis


class JsonFormat(ReportFormat):
    """The document that everything else shows."""

    name: ClassVar[str] = "json"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """The diagnosis document."""
        del console
        return _json(diagnosis.document())

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """The check document."""
        from analysis.check import document

        del console
        return _json(document(checks))


FORMAT: Final = JsonFormat()


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
