"""Did a figure change for the worse: an online detector on blocks, and dating of the change afterwards.

Log lines are alike in time and long requests span many of them, so a detector on raw lines raises
a false alarm every few minutes. This one pools windows into blocks of about 20 requests, learns a
baseline, and sums up shortfalls beyond an allowance (one-sided CUSUM). The allowance makes it blind,
on purpose, to changes below about 10%; that buys a month without false alarms.

It serves acceptance (accepted over steps), throughput at equal load (tokens over seconds) and step
cost (seconds over steps, ``direction="up"``) alike: feed it sums, it forms the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from analysis.theory.settings import DEFAULTS, Settings
from collector.domain.errors import DraftscopeError, MalformedInput

Direction = Literal["down", "up"]

_STATE: Final = 1
"""Number of the stored state's form."""


def cusum_path(
    scores: ArrayLike,
    allowance: float = DEFAULTS.drift_allowance,
    threshold: float = DEFAULTS.drift_threshold,
    cap: float = DEFAULTS.drift_cap,
) -> tuple[NDArray[float64], int | None]:
    """The statistic ``C = max(0, C + min(z, cap) - K)`` along scores, and the first index where it exceeds h."""
    steps = np.minimum(np.asarray(scores, dtype=float), cap) - allowance
    sums = np.cumsum(steps)
    path = sums - np.minimum(np.minimum.accumulate(sums), 0.0)
    beyond = np.flatnonzero(path > threshold)
    return path, int(beyond[0]) if beyond.size else None


def siegmund_run_length(allowance: float, threshold: float) -> float:
    """Textbook mean number of blocks between false alarms, for independent normal scores and a known baseline.

    For orientation only: an estimated baseline shortens it by far, capped scores lengthen it.
    Source: Siegmund (1985).
    """
    reach = 2 * allowance * (threshold + 1.166)
    return (math.exp(reach) - reach - 1) / (2 * allowance**2)


def raised_threshold(series: int, settings: Settings = DEFAULTS, allowance: float | None = None) -> float:
    """Threshold for one of ``series`` detectors watched together: ``h + ln(m) / (2 K)``."""
    return settings.drift_threshold + math.log(max(1, series)) / (2 * (allowance or settings.drift_allowance))


def request_equivalents(
    steps: float, running: float, steps_per_request: float | None, settings: Settings = DEFAULTS
) -> tuple[float, float]:
    """What a window contributes to a block: requests' worth of steps, and request lifetimes.

    ``steps`` are verify steps (iterations times running requests). A block needs about 20 of the
    first and one of the second. Unknown ``steps_per_request`` is taken to be that of long chat.
    """
    mean = steps_per_request or settings.drift_steps_per_request
    return steps / mean, steps / max(running, 1.0) / mean


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is normal: mean, spread (widened for autocorrelation and for being an estimate), and what follows.

    ``allowance`` is K, ``load`` the median load of its blocks (``None`` where load plays no part).
    """

    mean: float
    spread: float
    autocorrelation: float
    allowance: float
    blocks: int
    load: float | None = None


def estimate_baseline(values: Sequence[float], load: float | None = None, settings: Settings = DEFAULTS) -> Baseline:
    """Baseline from block values in time order.

    ``sigma = s sqrt((1 + phi) / (1 - phi)) sqrt(1 + 1 / B)`` with the lag-1 autocorrelation phi
    clipped to [0, 0.6], ``K = max(0.75, 0.10 mean / sigma)``.

    Raises:
        DraftscopeError: fewer than two blocks.
    """
    if len(values) < 2:
        raise DraftscopeError("a baseline needs at least two blocks")
    array = np.asarray(values, dtype=float)
    mean, blocks = float(array.mean()), array.size
    deviations = array - mean
    power = float((deviations**2).sum())
    raw = float((deviations[1:] * deviations[:-1]).sum()) / power if power > 0 else 0.0
    autocorrelation = min(max(raw, 0.0), settings.drift_autocorrelation_cap)
    spread = math.sqrt(power / (blocks - 1))
    spread *= math.sqrt((1 + autocorrelation) / (1 - autocorrelation)) * math.sqrt(1 + 1 / blocks)
    smallest = settings.drift_relative_allowance * abs(mean) / settings.drift_largest_allowance
    spread = max(spread, smallest, settings.printed_rounding)
    allowance = max(settings.drift_allowance, settings.drift_relative_allowance * abs(mean) / spread)
    return Baseline(mean, spread, autocorrelation, allowance, blocks, load)


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """What one finished block says.

    Attributes:
        at: end of the block, as the caller's instants.
        value: the pooled figure.
        score: z, how many spreads it lies on the bad side; ``None`` while the baseline is learnt
            or where the load is not comparable.
        statistic: C after the block.
        alarm: whether it raised the alarm. cleared: whether it ended one.
        onset: when the change began, as far as the statistic tells; set with an alarm.
    """

    at: float
    value: float
    score: float | None
    statistic: float
    alarm: bool = False
    cleared: bool = False
    onset: float | None = None


@dataclass(slots=True)
class _OpenBlock:
    total: float = 0.0
    weight: float = 0.0
    requests: float = 0.0
    lifetimes: float = 0.0
    load: float = 0.0


@dataclass(slots=True)
class DriftDetector:
    """One-sided CUSUM on blocks of windows; its state can be stored and resumed.

    Attributes:
        direction: which way is worse.
        series: how many such detectors are watched together; raises the threshold.
        baseline: what was learnt, ``None`` while learning.
        learning: block values (and loads) seen so far while learning.
        statistic: C. drifted: whether an alarm stands. onset: when C last left zero.

    An alarm stands until the statistic is back at zero, so it does not flap. After a change that is
    known and meant (or an engine's restart) call :meth:`rebaseline`.
    """

    direction: Direction = "down"
    series: int = 1
    settings: Settings = DEFAULTS
    baseline: Baseline | None = None
    learning: list[tuple[float, float | None]] = field(default_factory=list)
    statistic: float = 0.0
    drifted: bool = False
    onset: float | None = None
    _open: _OpenBlock = field(default_factory=_OpenBlock)

    def add(
        self,
        at: float,
        total: float,
        weight: float,
        *,
        requests: float,
        lifetimes: float = 1.0,
        load: float | None = None,
    ) -> BlockOutcome | None:
        """Add a window; the outcome of the block it completes, else ``None``.

        ``total / weight`` is the figure (accepted and steps, say); ``requests`` and ``lifetimes``
        are those of :func:`request_equivalents`; ``load`` (running requests) makes only blocks of
        comparable load count.
        """
        block = self._open
        block.total += total
        block.weight += weight
        block.requests += requests
        block.lifetimes += lifetimes
        block.load += (load or 0.0) * weight
        if block.requests < self.settings.drift_block_requests or block.lifetimes < 1 or block.weight <= 0:
            return None
        value = block.total / block.weight
        mean_load = None if load is None else block.load / block.weight
        self._open = _OpenBlock()
        return self.add_block(at, value, mean_load)

    def add_block(self, at: float, value: float, load: float | None = None) -> BlockOutcome:
        """Add a finished block of the caller's own making."""
        if self.baseline is None:
            self._learn(value, load)
            return BlockOutcome(at, value, None, self.statistic)
        if not self._comparable(load, self.baseline.load):
            return BlockOutcome(at, value, None, self.statistic)
        worse = self.baseline.mean - value if self.direction == "down" else value - self.baseline.mean
        score = min(worse / self.baseline.spread, self.settings.drift_cap)
        if self.statistic == 0:
            self.onset = at
        self.statistic = max(0.0, self.statistic + score - self.baseline.allowance)
        threshold = raised_threshold(self.series, self.settings, self.baseline.allowance)
        if self.drifted:
            self.statistic = min(self.statistic, threshold)
            self.drifted = self.statistic > 0
            return BlockOutcome(at, value, score, self.statistic, cleared=not self.drifted)
        self.drifted = self.statistic > threshold
        return BlockOutcome(
            at, value, score, self.statistic, alarm=self.drifted, onset=self.onset if self.drifted else None
        )

    def rebaseline(self) -> None:
        """Forget what was normal and learn it anew."""
        self.baseline = None
        self.learning = []
        self.statistic = 0.0
        self.drifted = False
        self.onset = None
        self._open = _OpenBlock()

    def state(self) -> dict[str, Any]:
        """All of it as plain values for JSON; the settings are not part of it."""
        return {
            "form": _STATE,
            "direction": self.direction,
            "series": self.series,
            "baseline": asdict(self.baseline) if self.baseline else None,
            "learning": [list(pair) for pair in self.learning],
            "statistic": self.statistic,
            "drifted": self.drifted,
            "onset": self.onset,
            "open": asdict(self._open),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: Settings = DEFAULTS) -> DriftDetector:
        """Resume from :meth:`state`.

        Raises:
            MalformedInput: the state is of another form or damaged.
        """
        try:
            if state["form"] != _STATE:
                raise MalformedInput(f"drift state of form {state['form']!r}", hint="start the detector anew")
            return cls(
                direction=state["direction"],
                series=state["series"],
                settings=settings,
                baseline=Baseline(**state["baseline"]) if state["baseline"] else None,
                learning=[(value, load) for value, load in state["learning"]],
                statistic=state["statistic"],
                drifted=state["drifted"],
                onset=state["onset"],
                _open=_OpenBlock(**state["open"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedInput(
                "the stored state of a drift detector is damaged", why=str(error), hint="start the detector anew"
            ) from error

    def _learn(self, value: float, load: float | None) -> None:
        self.learning.append((value, load))
        loads = [seen for _, seen in self.learning if seen is not None]
        middle = float(np.median(loads)) if loads else None
        kept = [seen for seen, at_load in self.learning if self._comparable(at_load, middle)]
        if len(kept) >= self.settings.drift_baseline_blocks:
            self.baseline = estimate_baseline(kept, middle, self.settings)
            self.learning = []

    def _comparable(self, load: float | None, reference: float | None) -> bool:
        if load is None or reference is None:
            return True
        return abs(load - reference) <= self.settings.drift_load_tolerance * reference


@dataclass(frozen=True, slots=True)
class Change:
    """A level shift in a series of blocks: the first block of the new level, and the levels around it."""

    index: int
    before: float
    after: float


def date_changes(values: ArrayLike, settings: Settings = DEFAULTS) -> tuple[Change, ...]:
    """When the level of a series of *blocks* changed, for after an alarm: PELT with ``3 log(n) var``.

    The variance is that of neighbouring differences, so that the change itself does not inflate it.
    On raw log lines it finds changes everywhere; feed it blocks.

    Raises:
        DraftscopeError: the package that does it is not installed.
    """
    try:
        import ruptures
    except ImportError as error:
        raise DraftscopeError(
            "dating a change needs the package ruptures",
            why="it is an extra",
            hint="pip install 'draftscope[drift]'",
        ) from error
    series = np.asarray(values, dtype=float)
    if series.size < 4:
        return ()
    variance = float((np.diff(series) ** 2).mean()) / 2
    if variance == 0:
        return ()
    penalty = settings.drift_dating_penalty * math.log(series.size) * variance
    ends = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(series).predict(pen=penalty)
    bounds = [0, *ends]
    levels = [float(series[start:end].mean()) for start, end in zip(bounds, ends, strict=False)]
    return tuple(
        Change(int(index), before, after) for index, before, after in zip(ends[:-1], levels, levels[1:], strict=False)
    )
