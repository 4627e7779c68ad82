"""Verify steps and accepted tokens behind the ratios that SGLang publishes.

SGLang divides whole numbers and publishes the quotient with all its digits: tokens of verify steps
(the target's own included) over steps times requests. So the whole numbers can be had back:
up to a common factor from the quotient alone, and fully where one of them is known roughly.

Source: SGLang, ``srt/managers/scheduler_metrics_mixin.py: log_decode_stats`` (0.4.10 to 0.5.9,
later moved), ``scheduler.py: get_internal_state``; theory section 1.2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from collector.domain.arguments import Arguments

DEFAULT_INTERVAL: Final = 40
"""Decode steps between two updates of the gauges where the server does not say."""
LARGEST_BATCH: Final = 4_096
LARGEST_WIDTH: Final = 64
"""Tokens verified a step where the server does not say. Both only bound a search."""


class Counts(NamedTuple):
    """Verify steps (times requests), and draft tokens accepted in them."""

    verify_steps: float
    accepted_tokens: float


class Definition(NamedTuple):
    """How this server's mean length counts: what is added to the tokens of a step, and which of them are not drafts.

    With ``a`` drafts accepted, a step yields ``a + own`` tokens and the published length is ``a + own + surplus``.
    """

    own: int = 1
    surplus: int = 0

    @classmethod
    def of(cls, arguments: Arguments) -> Definition:
        """The definition that follows from how the server runs."""
        algorithm = arguments.value("speculative_algorithm")
        if algorithm == "UNO":  # 0.5.20+: two tokens of its own a step
            return cls(own=2)
        if algorithm and arguments.value("enable_beta_spec") is True:  # 0.5.3: the own token is counted twice
            return cls(surplus=1)
        return cls()


def interval_of(arguments: Arguments) -> int:
    """Decode steps between two updates of the gauges."""
    stated = arguments.value("decode_log_interval")
    return stated if isinstance(stated, int) and stated > 0 else DEFAULT_INTERVAL


def counts_of_line(length: float, running: float, steps: int, definition: Definition) -> Counts | None:
    """The counts of the last ``steps`` decode steps, from the gauge of their mean length.

    ``running`` says roughly how many requests decoded in them; it chooses the common factor.
    ``None`` where the gauge states no length (NaN, or nothing decoded yet).
    """
    if not length > 0:
        return None
    quotient = Fraction(length).limit_denominator(steps * LARGEST_BATCH)
    about = steps * max(running, 1.0)
    if quotient.numerator / quotient.denominator == length:
        verify_steps = float(quotient.denominator * max(1, round(about / quotient.denominator)))
    else:
        verify_steps = about
    return Counts(verify_steps, (length - definition.own - definition.surplus) * verify_steps)


def counts_since_start(
    mean: float, tokens: float, definition: Definition, *, below: int, above: int = 0
) -> Counts | None:
    """The counts since the start of the process, from the mean length and the tokens decoded since then.

    The mean is updated together with the gauges, so that some tokens are not in it yet (at most
    ``below``); tokens that are counted when a request finishes lag behind it (at most ``above``).
    ``None`` where no whole numbers fit: the mean was reset since, or counts other tokens.
    """
    per_step = mean - definition.surplus
    if not per_step > 0:
        return None
    nearest = int(tokens)
    for distance in range(max(below, above) + 1):
        for candidate in (nearest - distance, nearest + distance):
            if not (nearest - below <= candidate <= nearest + above and candidate > 0):
                continue
            steps = round(candidate / per_step)
            if steps and (candidate + definition.surplus * steps) / steps == mean:
                return Counts(float(steps), float(candidate - definition.own * steps))
    return None
