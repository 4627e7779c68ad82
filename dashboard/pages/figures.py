"""Figures as people read them.

Three significant digits with trailing zeros, thousands with a comma; lengths with two decimals,
ratios with three, shares in percent; an interval has the digits of its value. A figure that is
not known has no text at all: pages show a hatched block and the words "cannot tell" for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from collector.domain.quantities import QUANTITIES

SIGNIFICANT: Final = 3
EXACT_COUNTS_BELOW: Final = 10_000
SHARES: Final = frozenset(
    {
        "draft_acceptance_rate",
        "acceptance_rate_at",
        "retained_share",
        "draft_coverage",
        "system_efficiency",
        "kv_cache_usage",
        "cached_token_share",
        "loss_share_acceptance",
        "loss_share_step_cost",
    }
)
"""Ratios of counts, in percent. Conditional ratios and accuracies never are, so that the two are not mixed up."""
WHOLE: Final = frozenset({"draft_depth", "verify_width", "max_acceptance_length", "best_draft_depth"})
"""Quantities that are whole numbers unless the depth adapts."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A formatted figure: ``value [low, high] unit``.

    ``value`` bears a sign that belongs to it (``×``, ``%``); ``note`` says what must stand
    beside it (``assumed``, or that it is impossible).
    """

    value: str
    low: str = ""
    high: str = ""
    unit: str = ""
    note: str = ""

    @property
    def interval(self) -> str:
        """``[1.62, 1.98]``, or "" where the figure was counted or derived."""
        return f"[{self.low}, {self.high}]" if self.low else ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.value, self.interval, self.unit, self.note) if part)


@dataclass(frozen=True, slots=True)
class Form:
    """How numbers of one kind and size are written: scaled, with this many decimals (below 0: rounded to tens)."""

    decimals: int
    scale: float = 1.0
    before: str = ""
    after: str = ""
    unit: str = ""

    def digits(self, number: float) -> str:
        """The digits alone."""
        return f"{round(self.scale * number, self.decimals):,.{max(self.decimals, 0)}f}"

    def text(self, number: float) -> str:
        """The digits with the sign that belongs to them."""
        return f"{self.before}{self.digits(number)}{self.after}"


def form(key: str, number: float) -> Form:
    """How a quantity of this size is written."""
    unit = QUANTITIES[key].unit if key in QUANTITIES else ""
    if key in SHARES:
        return Form(_decimals(100 * number), 100.0, after="%")
    if key in WHOLE:
        return Form(0 if float(number).is_integer() else 1, unit="tokens")
    match unit:
        case "tokens/step":
            return Form(2, unit="tokens")
        case "x":
            return Form(_decimals(number), before="×")
        case "ratio":
            return Form(3)
        case "s":
            return _duration(number)
        case "steps" | "tokens":
            return _count(number, unit)
        case "requests":
            return Form(0 if round(number, 1).is_integer() else 1, unit="request" if round(number, 1) == 1 else unit)
        case _:
            return Form(_decimals(number), unit=unit)


def figure(key: str, estimate: Mapping[str, Any] | None) -> Figure | None:
    """A quantity of the diagnosis document; ``None`` where it is not known.

    A list is joined; a number that JSON cannot hold is shown as it was.
    """
    if estimate is None:
        return None
    value = estimate["value"]
    note = "assumed" if estimate.get("assumed") else ""
    if value is None:
        return Figure(str(estimate["raw"]), note="impossible") if "raw" in estimate else None
    if not is_number(value):
        return Figure(words(key, value), note=note)
    written = form(key, value)
    low, high = estimate.get("low"), estimate.get("high")
    ends = ("", "") if low is None or high is None else (written.digits(low), written.digits(high))
    return Figure(written.text(value), *ends, unit=written.unit, note=note)


def words(key: str, value: Any) -> str:
    """Any value of the document as text; numbers in the form of the quantity they are."""
    if value is None:
        return "unset"
    if isinstance(value, (list, tuple)):
        return ", ".join(words(key, item) for item in value)
    if not is_number(value):
        return str(value)
    if key not in QUANTITIES and isinstance(value, int):
        return str(value)
    return form(key, value).text(value)


def significant(number: float) -> str:
    """``54.8``, ``0.449``, ``4,310``, ``2.00``."""
    return Form(_decimals(number)).text(number)


def length(number: float) -> str:
    """An acceptance length: ``1.80``."""
    return Form(2).text(number)


def ratio(number: float) -> str:
    """A conditional acceptance or an accuracy: ``0.449``."""
    return Form(3).text(number)


def share(number: float) -> str:
    """A share of counts: ``16.0%``."""
    return form("draft_acceptance_rate", number).text(number)


def percent(number: float) -> str:
    """A share where tenths do not matter: ``54%``."""
    return f"{100 * number:.0f}%"


def factor(number: float) -> str:
    """A speed-up: ``×0.609``."""
    return form("speedup", number).text(number)


def count(number: float) -> str:
    """Exact up to 9,999, then ``12.4 k``."""
    return _count(number, "").text(number)


def seconds(number: float) -> str:
    """``32.8 ms`` under a second, then ``4.20 s``, ``6.00 min``, ``2.50 h``."""
    written = _duration(number)
    return f"{written.text(number)} {written.unit}"


def clock(at: float) -> str:
    """``14:03:09``, on the server's own clock."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


def day(at: float) -> str:
    """``9 April 2026``."""
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment.day} {moment:%B %Y}"


def instant(at: float) -> str:
    """``9 April 2026, 14:02``."""
    return f"{day(at)}, {datetime.fromtimestamp(at, UTC):%H:%M}"


def moment(at: float) -> str:
    """``9 Apr, 14:03``."""
    when = datetime.fromtimestamp(at, UTC)
    return f"{when.day} {when:%b, %H:%M}"


def whole_time(seconds: float) -> str:
    """A stretch of whole seconds, minutes or hours: ``15 seconds``, ``6 minutes``, ``1 hour``."""
    for size, name in ((3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return plural(round(seconds / size), name)
    return plural(round(seconds), "second")


def span(first: float, last: float) -> str:
    """``14:03:09 to 14:21:40``; with their days where those differ."""
    if day(first) == day(last):
        return f"{clock(first)} to {clock(last)}"
    return f"{instant(first)} to {instant(last)}"


def plural(number: int, one: str, many: str = "") -> str:
    """``1 window``, ``18 windows``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def is_number(value: Any) -> bool:
    """Whether a value of the document is a number; truth values are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(number: float, unit: str) -> Form:
    if abs(number) < EXACT_COUNTS_BELOW:
        return Form(0, unit=unit)
    size, letter = next(pair for pair in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if abs(number) >= pair[0])
    return Form(_decimals(number / size), 1 / size, after=letter, unit=unit)


def _duration(number: float) -> Form:
    for below, scale, unit in ((1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min")):
        if abs(number) < below:
            return Form(_decimals(scale * number), scale, unit=unit)
    return Form(_decimals(number / 3600), 1 / 3600, unit="h")


def _decimals(number: float) -> int:
    """Decimals that leave three significant digits, counted after rounding (9.996 is written 10.0)."""
    if number == 0 or not math.isfinite(number):
        return SIGNIFICANT - 1
    first = SIGNIFICANT - 1 - math.floor(math.log10(abs(number)))
    rounded = round(number, first)
    return SIGNIFICANT - 1 - math.floor(math.log10(abs(rounded)))
