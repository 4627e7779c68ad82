"""Everything that pages draw of the windows of a run, so that they need no windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from dashboard.charts.base import Chart, Key

_CHARTS: Final = ("over_time", "spread", "context", "batch", "throughput", "running")


@dataclass(frozen=True, slots=True)
class Seen:
    """When the windows that count were seen (seconds since 1970), and how many they are."""

    first: float
    last: float
    windows: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A window that does not count, and why."""

    time: str
    place: str
    figures: str
    reason: str


@dataclass(frozen=True, slots=True)
class Line:
    """A figure over a run's own time: minutes since its first window."""

    minute: Sequence[float] = ()
    value: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of one run; a chart is ``None`` where no window has its figures, or is drawn from elsewhere.

    ``lengths`` and ``throughputs`` lie over those of other runs, ``recent`` are the lengths of the last windows.
    ``more_left_out`` counts the windows beyond those of ``left_out``.
    """

    over_time: Chart | None = None
    spread: Chart | None = None
    context: Chart | None = None
    batch: Chart | None = None
    throughput: Chart | None = None
    running: Chart | None = None
    lengths: Line = Line()
    throughputs: Line = Line()
    recent: Sequence[float] = ()
    seen: Seen | None = None
    left_out: Sequence[LeftOut] = ()
    more_left_out: int = 0

    def document(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Drawn:
        """The inverse of :meth:`document`."""
        seen = document["seen"]
        return cls(
            **{name: _chart(document[name]) for name in _CHARTS},
            lengths=Line(**document["lengths"]),
            throughputs=Line(**document["throughputs"]),
            recent=document["recent"],
            seen=None if seen is None else Seen(**seen),
            left_out=[LeftOut(**window) for window in document["left_out"]],
            more_left_out=document["more_left_out"],
        )


def _chart(document: Mapping[str, Any] | None) -> Chart | None:
    if document is None:
        return None
    return Chart(**{**document, "keys": tuple(Key(**key) for key in document["keys"])})
