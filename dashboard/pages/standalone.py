"""A page as one file: style, scripts and plots inside, no link to elsewhere, and a content policy of its own.

Scripts and style are allowed by their digests, so that nothing a log or config brings along can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from markupsafe import Markup

from dashboard.charts.base import Chart
from dashboard.pages.run import run_page
from dashboard.pages.templating import STATIC, render
from dashboard.store import RunReport

_STYLE: Final = "css/draftscope.css"
_PLOTS: Final = ("vendor/plotly-basic.min.js", "js/charts.js")
_CONVENIENCES: Final = ("js/page.js",)


@dataclass(frozen=True, slots=True)
class Inlined:
    """What stands in the file instead of being loaded; ``policy`` is its content policy."""

    style: Markup
    scripts: tuple[Markup, ...]
    policy: str


def run_report(report: RunReport, over_time: Sequence[Chart] = ()) -> str:
    """The page of a run as one file; of a watched one with its plots over time."""
    return _standalone("run.html", (*_PLOTS, *_CONVENIENCES), page=run_page(report), over_time=over_time)


def check_report(page: Any) -> str:
    """What was said about launch commands (:class:`dashboard.pages.check.CheckPage`) as one file."""
    return _standalone("check.html", _CONVENIENCES, page=page)


def _standalone(template: str, scripts: Sequence[str], **context: Any) -> str:
    return render(
        template, {"layout": "report.html", "standalone": True, "inlined": _inlined(tuple(scripts)), **context}
    )


@cache
def _inlined(scripts: tuple[str, ...]) -> Inlined:
    style, *code = (_text(path) for path in (_STYLE, *scripts))
    allowed = " ".join(_digest(text) for text in code)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Inlined(style, tuple(code), policy)


def _text(path: str) -> Markup:
    """A file of ours as it is; it must not end the element that it stands in."""
    text = (STATIC / path).read_text("utf-8")
    assert "</script" not in text
    assert "</style" not in text
    return Markup(text)  # noqa: S704 - our own files, never what users bring


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
