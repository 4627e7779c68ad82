"""A running engine on a terminal: verdicts, acceptance, cost and latency as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from analysis import words
from collector.domain.findings import Severity
from collector.domain.quantities import QUANTITIES
from collector.domain.windows import Window
from dashboard.report.diagnosis import figure, verdict_table
from dashboard.report.pieces import SEVERITY

if TYPE_CHECKING:
    from analysis.diagnosis import Diagnosis

SHOWN: Final = (
    "acceptance_length", "conditional_acceptance_rate", "draft_acceptance_rate", "draft_coverage",
    "generation_throughput", "step_seconds", "speedup", "step_cost_ratio", "running_requests", "waiting_requests",
    "kv_cache_usage", "cached_token_share", "time_to_first_token_seconds", "inter_token_latency_seconds",
    "time_per_output_token_seconds", "request_latency_seconds",
)  # fmt: skip
"""Quantities in the order in which they are shown."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_TRAIL: Final = 48
"""Windows in the trail of lengths."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is known of one engine: its address, its diagnosis so far, and what is wrong with asking it."""

    address: str
    diagnosis: Diagnosis | None = None
    scrapes: int = 0
    at: float | None = None
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


def live_view(states: Sequence[LiveState]) -> RenderableType:
    """A panel for each engine."""
    return Group(*(Panel(Group(*_parts(state)), title=_title(state), title_align="left") for state in states))


def _title(state: LiveState) -> Text:
    parts = [state.address]
    if state.diagnosis is not None:
        view = state.diagnosis.subject
        parts.append(f"{view.record.engine} {view.record.engine_version or ''}".strip())
        parts.append(view.method or ("no speculation" if view.drafting.known else "method not known"))
        if view.depth is not None:
            parts.append(f"depth {view.depth}")
    return Text(" · ".join(parts), style="bold")


def _parts(state: LiveState) -> Iterable[RenderableType]:
    if state.error:
        yield Text.assemble(("does not answer: ", "bold red"), state.error)
        if state.hint:
            yield Text(f"try: {state.hint}", style="dim")
    if state.diagnosis is None:
        if not state.error:
            yield Text("asking …", style="dim")
        return
    yield verdict_table(state.diagnosis)
    yield _figures(state.diagnosis)
    for finding in [item for item in state.diagnosis.findings if item.severity >= Severity.WARNING][:3]:
        label, style = SEVERITY[finding.severity]
        yield Text.assemble((label, style), " ", finding.title, (f"  {finding.rule}", "dim"))
    for note in state.notes:
        yield Text(note, style="dim")
    yield _footer(state)


def _figures(diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    view = diagnosis.subject
    for key in SHOWN:
        estimate = view.quantities.get(key)
        if estimate is not None:
            table.add_row(QUANTITIES[key].label, figure(key, estimate), _beside(diagnosis, key))
    positions = view.quantities.get("acceptance_rate_at")
    if positions is not None and isinstance(positions.value, list):
        shares = positions.value
        table.add_row("By position", "  ".join(f"{share:.2f}" for share in shares), _bars(shares, 0.0, 1.0))
    return table


def _beside(diagnosis: Diagnosis, key: str) -> str:
    """What stands behind a figure: how the length went, or the percentiles of a latency."""
    view = diagnosis.subject
    if key == "acceptance_length":
        lengths = [length for window in view.record.windows if (length := _length(window)) is not None]
        top = view.depth + 1.0 if view.depth is not None else max(lengths, default=2.0)
        return f"{_bars(lengths[-_TRAIL:], 1.0, top)} {words.length(lengths[-1])} last" if lengths else ""
    return view.quantities[key].note if key.endswith("_seconds") and key != "step_seconds" else ""


def _length(window: Window) -> float | None:
    """The length of a window between two scrapes."""
    if not window.seconds or not window.verify_steps or window.accepted_tokens is None:
        return None
    return 1 + window.accepted_tokens / window.verify_steps


def _bars(values: Sequence[float], low: float, high: float) -> str:
    """A row of bars; what lies outside is drawn at the end of the scale."""
    span = high - low if high > low else 1.0
    return "".join(_BARS[round(min(max((value - low) / span, 0.0), 1.0) * (len(_BARS) - 1))] for value in values)


def _footer(state: LiveState) -> Text:
    when = "" if state.at is None else datetime.fromtimestamp(state.at, UTC).astimezone().strftime("%H:%M:%S")
    return Text(f"{words.plural(state.scrapes, 'scrape')}, the last at {when}; Ctrl-C ends", style="dim")
