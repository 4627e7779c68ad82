"""Requests as reports show them: what they stand for, and their figures by temperature, route and length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analysis import words
from analysis.theory.settings import DEFAULTS
from collector.domain.quantities import QUANTITIES

if TYPE_CHECKING:
    from analysis.traffic import Traffic

TITLE: Final = "Requests"
COUNTED: Final = ("acceptance_length", "draft_acceptance_rate")
"""What is shown of requests that count their verify steps."""
UNCOUNTED: Final = ("draft_acceptance_rate", "tokens_per_target_pass")
"""What is shown of those that do not."""
RESPECTS: Final = {
    "temperature": "Temperature",
    "route": "Route",
    "prompt_tokens": "Prompt tokens",
    "output_tokens": "Output tokens",
}


def traffic_line(traffic: Traffic) -> str:
    """What the requests stand for."""
    counted = traffic.pooled.windows if traffic.pooled is not None else 0
    return requests_line(len(traffic.results), counted, judged_by=traffic.stand)


def requests_line(count: int, counted: int, *, judged_by: bool) -> str:
    """What some requests stand for, ``counted`` of which count their verify steps."""
    read = words.plural(count, "request")
    if not counted:
        return f"{read}; none says how many steps verified drafts, so the length is not taken from them."
    some = "" if counted == count else f", {counted} with counts of verify steps"
    if judged_by:
        return f"{read}{some}. Acceptance is theirs."
    return f"{read}{some}: fewer than {DEFAULTS.minimum_requests} say less than the log or metrics, which are judged."


def traffic_header(traffic: Traffic) -> tuple[str, ...]:
    """The columns of the table."""
    share = "of the steps" if traffic.pooled is not None else "of the tokens"
    return ("", "requests", share, *(QUANTITIES[key].label for key in _shown(traffic)))


def traffic_rows(traffic: Traffic) -> list[tuple[str, ...]]:
    """All requests, then those of each temperature, route and length, where there are several."""
    from dashboard.report.diagnosis import figure

    shown = _shown(traffic)
    own = traffic.quantities
    rows = [
        (
            "All",
            words.count(len(traffic.results)),
            "100%",
            *(figure(key, own[key]) if key in own else "" for key in shown),
        )
    ]
    for by, name in RESPECTS.items():
        strata = [stratum for stratum in traffic.strata if stratum.by == by]
        if len(strata) < 2:
            continue
        rows += [
            (
                f"{name} {stratum.value}",
                words.count(stratum.requests),
                words.percent(stratum.share),
                *(figure(key, stratum.quantities[key]) if key in stratum.quantities else "" for key in shown),
            )
            for stratum in strata
        ]
    return rows


def _shown(traffic: Traffic) -> tuple[str, ...]:
    return COUNTED if traffic.pooled is not None else UNCOUNTED
