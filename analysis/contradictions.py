"""Figures of one run that contradict each other beyond their rounding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analysis import words
from analysis.drafting import infer_width
from analysis.view import RunView

POSITIONS_ROUNDING = 0.02
"""How far 1 + the sum of printed positions may lie from the length. Tokens; each is rounded to three decimals."""
CLOCK_APART = 0.5
"""How far the printed length may lie from that of the clock. Tokens; real logs stay within 0.25."""
BONUS = 0.25
"""How near to 1.0 the distance must be to name the target's own token as the reason. Tokens."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What contradicts what: title, explanation, figures, the frame's row to show, and what to do."""

    title: str
    why: str
    values: dict[str, Any] = field(default_factory=dict)
    row: int | None = None
    fix: str = ""


def contradictions(run: RunView) -> list[Contradiction]:
    """All contradictions of a speculating run; none where the figures allow no comparison."""
    return [found for found in (_rate(run), _positions(run), _bonus(run), _clock(run)) if found is not None]


def _counted(run: RunView) -> bool:
    """Whether the engine prints counts, not rates that follow from a length."""
    from analysis.frame import COUNTED_BY_ENGINE

    return run.record.engine in COUNTED_BY_ENGINE


def _rate(run: RunView) -> Contradiction | None:
    """Printed rate and length that no definition connects at the stated depth and width."""
    printed = run.printed
    if printed is None or printed.definition is not None or not run.depth or not run.width:
        return None
    if run.arguments.value("speculative_adaptive") or _counted(run):
        return None  # counted drafts may be shorter than the depth
    frame = run.frame
    inferred = infer_width(frame["printed_length"].to_numpy(dtype=float), frame["printed_rate"].to_numpy(dtype=float))
    fits = f" They fit a verify width of {inferred[0]}." if inferred is not None else ""
    return Contradiction(
        f"Printed length {printed.length:.2f} and rate {printed.rate:.2f} fit no definition at depth {run.depth}",
        f"With depth {run.depth} and {run.width} tokens verified a step no known formula turns one into the other.{fits}",
        {
            "metric": "accept rate",
            "printed": printed.rate,
            "implied_verify_width": inferred[0] if inferred is not None else None,
            **run.figures("acceptance_length", "draft_depth", "verify_width"),
        },
        printed.row,
        "Check the depth and the number of draft tokens that run; the argument line may not be of this run.",
    )


def _positions(run: RunView) -> Contradiction | None:
    pooled = run.pooled
    if pooled is None or not pooled.prefix:
        return None
    summed = 1 + sum(pooled.prefix)
    if abs(summed - pooled.length) <= POSITIONS_ROUNDING:
        return None
    return Contradiction(
        f"Positions add up to length {words.length(summed)}, the counts say {words.length(pooled.length)}",
        "1 + the shares of all positions is the length by definition.",
        {"metric": "acceptance_rate_at", "acceptance_length": pooled.length, "summed": summed},
        fix="Prefer the counts; the list is cut, delayed, or of another meaning.",
    )


def _bonus(run: RunView) -> Contradiction | None:
    """A printed length without the target's own token, in lines of releases that count it."""
    events = run.record.events_of("bonus-missing")
    pooled = run.pooled
    if not events or pooled is None:
        return None
    shown = events[0].values["printed"]
    printed = float(shown) if isinstance(shown, (int, float)) else 0.0
    return Contradiction(
        f"Printed length {words.length(printed)} is one less than the counts beside it say",
        "It leaves out the target's own token, which releases with lines of this form count.",
        {"metric": "mean acceptance length", "printed": printed, "acceptance_length": pooled.length},
        fix="Prefer the counts, and check the engine's release.",
    )


def _clock(run: RunView) -> Contradiction | None:
    """Printed length against throughput x time; a corrected known fault of a release is no contradiction.

    Engines that print counts also decode without drafts, so their clocks say something else.
    """
    if run.arguments.value("enable_beta_spec") or _counted(run):
        return None
    from analysis.clock import clock_check

    check = clock_check(run.frame)
    if check is None or abs(check.apart) < CLOCK_APART:
        return None
    if abs(check.apart - 1) < BONUS:
        reading = "It leaves out the target's own token: add 1 to every printed length."
    elif abs(check.apart + 1) < BONUS:
        reading = "It counts the target's own token twice: subtract 1 from every printed length."
    else:
        reading = (
            "Either a line does not cover the number of steps it is taken to cover, or one of the figures is wrong."
        )
    return Contradiction(
        f"Printed length {words.length(check.printed)}, throughput and clock say {words.length(check.by_clock)}",
        f"Over {check.windows} windows the engine made {words.length(check.by_clock)} tokens a step. {reading}",
        {"metric": "accept len", "printed": check.printed, "by_clock": check.by_clock, "windows": check.windows},
        fix="Check the engine's release and --decode-log-interval; compare with request-level counts.",
    )
