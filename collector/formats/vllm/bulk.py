"""Reads whole blocks of a vLLM log: access lines and samples as arrays, all others one by one.

What a block gives is what its lines would give one by one. Samples touch only the run they are in and what is open of its
intervals, so those between two other lines wait until something else needs them. A sample is read one by one where it may
mean more than figures: before it is known how many engines there are and how many tokens are drafted, and in a month other
than that of the line before.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from collector.domain.windows import Coded, Columns, CountsAt, Origin, PrefillWindow, Window
from collector.formats.base import Line
from collector.formats.blocks import Block
from collector.formats.bulk import Column, Learned, Tails, View, column
from collector.formats.columns import Figures, Mask, Positions
from collector.formats.count_columns import CountColumns, counted
from collector.formats.counts import SpecCounts
from collector.formats.pairs import Span
from collector.formats.vllm.heads import HeadColumns
from collector.formats.vllm.intervals import (
    CLOCKS_AGREE_SECONDS,
    SAME_INSTANT_SECONDS,
    Acceptance,
    Before,
    Intervals,
    Place,
)
from collector.formats.vllm.lines import LINES
from collector.formats.vllm.stats import SHARES, Stats, StatsForm, StatsReader

if TYPE_CHECKING:
    from collector.formats.vllm.session import Facts, VllmSession

_STATS: Final = (b"Engine ", b"Avg prompt throughput: ")
_ACCEPTANCE: Final = b"SpecDecoding metrics: "
BEGINNING: Final = 1 << 16
"""About as many bytes of a log are read line by line before it is clear which month it begins in."""
CHATTER: Final = (b"Received request ", b"Added request ")
"""Messages that are understood and say nothing, but are many where requests are logged."""
_ACCEPTANCE_LINES: Final = {line.name: line for line in LINES if line.name in ("acceptance", "acceptance-0.8.5")}
_NUMBER: Final = re.compile(rb"\d+(?:\.\d+)?")
_RATE: Final = re.compile(rb"\d\.\d{3}")
_AT: Final = "accepted_at_"

Numbers = npt.NDArray[np.int64]


class VllmView(View):
    """A block's lines in bulk: access lines, samples and chatter.

    ``before`` and ``chatted`` say how many samples and lines of chatter stand before each of these lines, shape (n + 1,).

    Of the samples, in their order, shape (m,): ``sampled`` their numbers in the block, ``at``, ``processes``, ``is_stats``,
    ``place`` their place among those of their kind, ``clues`` a number for what they tell of the release. ``named``,
    ``further`` and ``told``, shape (m + 1,), say how many before each name an engine, name one behind the first, and are
    acceptance lines. ``stats`` and ``acceptance`` are values by name, with the latter ``verify_steps`` and ``accepted_at``.

    Of the chatter: ``chatter`` the numbers in the block, ``chatter_at``, ``speakers`` the numbers of process and place in the
    code.
    """

    def __init__(self, block: Block, heads: HeadColumns, stats: Tails[StatsForm], acceptance: Tails[Line]) -> None:
        super().__init__(block)
        text = self.text
        found = heads.read(text, self.untidy)
        is_stats: Mask = np.zeros(len(found.lines), dtype=bool)
        for literal in _STATS:
            is_stats |= text.begins(found.messages, literal)
        is_acceptance = text.begins(found.messages, _ACCEPTANCE)
        ends = text.ends[found.lines]
        forms: npt.NDArray[np.int64] = np.full(len(found.lines), -1)
        rows = is_stats.nonzero()[0]
        forms[rows], self.stats = stats.read(text, found.messages[rows], ends[rows])
        rows = rows[forms[rows] >= 0]
        self.stats = {name: figures[forms[is_stats] >= 0] for name, figures in self.stats.items()}
        told = is_acceptance.nonzero()[0]
        forms[told], values = acceptance.read(text, found.messages[told], ends[told])
        read = forms[told] >= 0
        values = {name: figures[read] for name, figures in values.items()}
        counts = _counts(values, int(np.count_nonzero(read)))
        kept = counts.bonus >= 0
        told = told[read][kept]
        self.acceptance = {name: figures[kept] for name, figures in values.items()}
        self.verify_steps = counts.verify_steps[kept]
        self.accepted_at = counts.accepted_at[kept]
        samples = np.sort(np.concatenate((rows, told)))
        self.is_stats = is_stats[samples]
        self.place = np.where(self.is_stats, np.cumsum(self.is_stats), np.cumsum(~self.is_stats)) - 1
        self.at = found.at[samples]
        self.processes = found.processes[samples]
        self.clues = 4 * forms[samples] + 2 * self.is_stats + (self.processes > 0)
        self.clues[~self.is_stats] += 4_096 * (counts.bonus[kept] > 0)
        engines = self.stats.get("engine", np.full(len(rows), np.nan))
        self.named = self._until(engines >= 0)
        self.further = self._until(engines > 0)
        self.told = np.append(0, np.cumsum(~self.is_stats)).tolist()
        self.sampled = found.lines[samples]
        is_chatter: Mask = np.zeros(len(found.lines), dtype=bool)
        for literal in CHATTER:
            is_chatter |= text.begins(found.messages, literal)
        self.chatter = found.lines[is_chatter]
        self.chatter_at = found.at[is_chatter]
        self.speakers = list(zip(found.processes[is_chatter].tolist(), found.codes[is_chatter].tolist(), strict=True))
        self.lines = np.concatenate((found.access, self.sampled, self.chatter))
        order = np.argsort(self.lines, kind="stable")
        self.lines = self.lines[order]
        first, last = len(found.access), len(found.access) + len(samples)
        self.before = np.append(0, np.cumsum((order >= first) & (order < last))).tolist()
        self.chatted = np.append(0, np.cumsum(order >= last)).tolist()

    def _until(self, chosen: Mask) -> list[int]:
        """How many of the samples before each, shape (m + 1,), are among some engine lines."""
        found: Mask = np.zeros(len(self.is_stats), dtype=bool)
        found[self.is_stats] = chosen
        until: list[int] = np.append(0, np.cumsum(found)).tolist()
        return until

    def others(self) -> Positions:
        """The lines that are to be read one by one."""
        left: Mask = np.ones(len(self.text.starts), dtype=bool)
        left[self.lines] = False
        return left.nonzero()[0]


class BulkReader:
    """Reads blocks for a session."""

    def __init__(self, session: VllmSession) -> None:
        self._session = session
        self._heads = HeadColumns(session.calendar)
        self._stats = Tails(_learn_stats)
        self._acceptance = Tails(_learn_acceptance)
        self._view: VllmView | None = None
        self._facts: Facts | None = None
        self._first = self._last = 0
        self._new_clues: list[int] = []

    def read(self, block: Block) -> None:
        """Read a block of whole lines."""
        month = self._session.calendar.month
        if month is None:
            beginning, rest = block.parted(BEGINNING)
            self._session.read_lines(beginning)
            if rest is not None:
                self.read(rest)
            return
        view = VllmView(block, self._heads, self._stats, self._acceptance)
        self._session.reading.understood += len(view.lines) - len(view.sampled) - len(view.chatter)
        view.read_between(view.others(), self._session.line, partial(self._take, view, month))
        self.flush()
        self._facts = None

    def _take(self, view: VllmView, month: int, first: int, last: int) -> None:
        """Lines between two others: what they mean for the run now, and their samples for later."""
        session = self._session
        sample, end = view.before[first], view.before[last]
        spoken, heard = view.chatted[first], view.chatted[last]
        if spoken < heard and (session.tracing or session.calendar.month != month):
            for line in np.sort(np.concatenate((view.sampled[sample:end], view.chatter[spoken:heard]))).tolist():
                self._alone(view, line)
            return
        while sample < end:
            facts = session.facts_for(view, sample, end)
            if facts is not None and session.calendar.month == month:
                self._hold(view, facts, sample, end)
                break
            self._alone(view, int(view.sampled[sample]))
            sample += 1
        if spoken < heard:
            latest = end and view.sampled[end - 1] > view.chatter[heard - 1]
            at = view.at[end - 1] if latest else view.chatter_at[heard - 1]
            speakers = dict(view.speakers[spoken:heard])
            names = {self._heads.processes[process]: self._heads.codes[code] for process, code in speakers.items()}
            session.heard(names, float(at), heard - spoken)

    def _alone(self, view: VllmView, line: int) -> None:
        """Read one line of the block by itself."""
        self.flush()
        self._facts = None
        (position,), (number,) = (places.tolist() for places in view.places(np.array([line])))
        self._session.line(position, number, view.text.text(int(view.text.starts[line]), int(view.text.ends[line])))

    def _hold(self, view: VllmView, facts: Facts, sample: int, end: int) -> None:
        if facts is not self._facts:
            self.flush()
            self._facts, self._first = facts, sample
            _, firsts = np.unique(view.clues[sample:], return_index=True)
            self._new_clues = sorted((firsts + sample).tolist(), reverse=True)
        if self._view is None:
            self._view, self._first = view, sample
        self._last = end
        while self._new_clues and self._new_clues[-1] < end:
            self._session.tell_clues(facts, self._clues(view, self._new_clues.pop()))
        count = end - sample
        self._session.held(facts, float(view.at[end - 1]), count)

    def _clues(self, view: VllmView, sample: int) -> list[str]:
        """What a sample tells of the release, in the order in which one line would."""
        kind = int(view.clues[sample]) % 4_096
        form, kind = divmod(kind, 4)
        if kind >= 2:
            return ["-0.10.2" if self._stats.forms[form].v0 else "0.8.0-", *(["0.10.1-"] if kind & 1 else [])]
        line = self._acceptance.forms[form]
        beyond = line.name == "acceptance-0.8.5" and view.clues[sample] >= 4_096
        return [line.versions, *(["0.9.0-0.10.1"] if beyond else [])]

    def flush(self) -> None:
        """Give the run its samples that were not given yet."""
        view, facts = self._view, self._facts
        self._view = None
        if view is None or facts is None:
            return
        _Closing(view, facts, self._heads.processes, self._stats.forms).give(self._first, self._last)


class _Closing:
    """Puts samples together to intervals; the arithmetic is that of :mod:`collector.formats.vllm.intervals`."""

    def __init__(self, view: VllmView, facts: Facts, processes: list[bytes], forms: list[StatsForm]) -> None:
        self._view = view
        self._facts = facts
        self._intervals: Intervals = facts.intervals
        self._processes = processes
        self._forms = forms

    def give(self, first: int, last: int) -> None:
        """Complete the intervals of some samples; what stays open is left to those that follow."""
        view = self._view
        chosen = np.arange(first, last)
        processes = view.processes[first:last]
        order = chosen[np.argsort(processes, kind="stable")]
        edges = np.diff(view.processes[order], prepend=-1, append=-1).nonzero()[0].tolist()
        taken: Mask = np.zeros(len(order), dtype=bool)
        for start in edges[:-1]:
            taken[start] = self._begin(int(order[start]))
        left = order[~taken]
        stats, acceptance, still_open = self._paired(left)
        self._add(stats, acceptance)
        for sample in still_open.tolist():
            self._intervals.stats(self._process(sample), self._place(sample), self._stats_of(sample))

    def _begin(self, sample: int) -> bool:
        """Close what the first sample of a process finds open; whether the sample went into it."""
        process = self._process(sample)
        if not self._intervals.is_open(process):
            return False
        if self._view.is_stats[sample]:
            self._facts.keep(self._intervals.close(process))
            return False
        read = self._intervals.acceptance(process, self._place(sample), self._acceptance_of(sample))
        self._facts.keep(read)
        return True

    def _paired(self, order: Positions) -> tuple[Positions, Positions, Positions]:
        """Samples of each complete interval, -1 for none, and engine lines that are open still.

        ``order`` are samples process by process; so are the intervals.
        """
        view = self._view
        is_stats, at, processes = view.is_stats[order], view.at[order], view.processes[order]
        same = np.append(False, processes[1:] == processes[:-1])
        joined: Mask = ~is_stats & same
        joined[1:] &= is_stats[:-1] & (np.abs(np.diff(at)) <= SAME_INSTANT_SECONDS)
        followed = np.append(same[1:], False)
        open_now = is_stats & ~followed
        begins = ~joined & ~open_now
        stats = np.where(is_stats, order, -1)[begins]
        with_acceptance = np.append(joined[1:], False)
        following = np.append(order[1:], -1)
        acceptance = np.where(with_acceptance, following, np.where(is_stats, -1, order))[begins]
        return stats, acceptance, order[open_now]

    def _add(self, stats: Positions, acceptance: Positions) -> None:
        """Windows and prefill batches of complete intervals. Shapes (k,)."""
        if not len(stats):
            return
        view = self._view
        has_stats, has_acceptance = stats >= 0, acceptance >= 0
        place = np.where(has_stats, stats, acceptance)
        at = view.at[place]
        engines = self._engines(stats)
        throughput, prompts = (self._figures(name, stats) for name in ("generation_throughput", "prompt_throughput"))
        busy = (prompts > 0) | (throughput > 0)
        gap = self._gaps(view.processes[place], engines, has_stats, at, busy)
        own = self._own_clock(acceptance)
        seconds = np.where(np.isnan(own), gap, own)
        with np.errstate(invalid="ignore"):
            clock = np.where(np.isnan(own) | (np.abs(own - gap) > CLOCKS_AGREE_SECONDS), gap, own)
        clock[np.isnan(gap)] = np.nan
        where = np.where(has_acceptance, acceptance, stats)
        sort = np.argsort(where, kind="stable")
        offsets, numbers = view.places(view.sampled[where[sort]])
        units = self._units(engines)

        def sorted_column(figures: Figures | None) -> Column:
            return column(None if figures is None else figures[sort])

        shares: Figures = np.full((len(where), view.accepted_at.shape[1]), np.nan)
        shares[has_acceptance] = view.accepted_at[view.place[acceptance[has_acceptance]]]
        self._facts.life.windows.append(
            Columns(
                Window,
                len(where),
                (
                    offsets,
                    numbers,
                    view.at[where[sort]],
                    units if isinstance(units, str) else Coded(units.texts, units.codes[sort]),
                    sorted_column(seconds),
                    sorted_column(self._figures("running_requests", stats)),
                    sorted_column(self._figures("waiting_requests", stats)),
                    sorted_column(_taken(view.verify_steps, view.place, acceptance)),
                    column(self._told("accepted", acceptance)[sort], int),
                    column(self._told("drafted", acceptance)[sort], int),
                    sorted_column(throughput * clock),
                    sorted_column(throughput),
                    sorted_column(self._told("length", acceptance)),
                    sorted_column(self._told("percent", acceptance) / 100),
                    None,
                    sorted_column(self._figures("kv_cache_usage", stats)),
                    None,
                    (prompts > 0)[sort].astype(np.int64),
                    None if np.isnan(shares).all() else CountsAt(shares[sort]),
                    Origin.LOG,
                ),
            )
        )
        self._add_prefills(stats, prompts, clock, units)

    def _add_prefills(self, stats: Positions, prompts: Figures, clock: Figures, units: Coded | str) -> None:
        share = self._figures("cached_share", stats)
        tokens = prompts * clock
        with np.errstate(invalid="ignore"):
            rows = ((share >= 0) & (share < 1) & (tokens != 0) & ~np.isnan(tokens)).nonzero()[0]
        if not len(rows):
            return
        rows = rows[np.argsort(stats[rows], kind="stable")]
        share, new = share[rows], tokens[rows]
        if self._intervals.whole_prompts:
            new = new * (1 - share)
        view = self._view
        offsets, numbers = view.places(view.sampled[stats[rows]])
        unit = units if isinstance(units, str) else Coded(units.texts, units.codes[rows])
        values = (offsets, numbers, view.at[stats[rows]], unit, new, new * share / (1 - share))
        self._facts.life.prefills.append(Columns(PrefillWindow, len(rows), values))

    def _gaps(self, processes: Positions, engines: Numbers, has_stats: Mask, at: Figures, busy: Mask) -> Figures:
        """Seconds since the busy engine line before of the same process and engine, NaN where there is none."""
        key = processes * (int(engines.max()) + 2) + engines + 1
        order = np.argsort(key, kind="stable")
        gaps: Figures = np.full(len(key), np.nan)
        before = self._intervals.before
        edges = np.diff(key[order], prepend=-1, append=-1).nonzero()[0].tolist()
        for start, end in pairwise(edges):
            rows = order[start:end]
            engine = int(engines[rows[0]])
            name = self._processes[processes[rows[0]]], engine if engine >= 0 else None
            known = before.get(name)
            latest = np.maximum.accumulate(np.where(has_stats[rows], np.arange(len(rows)), -1))
            previous = np.append(-1, latest[:-1])
            earlier = np.where(
                previous >= 0,
                np.where(busy[rows][previous], at[rows][previous], np.nan),
                known.at if known is not None and known.busy else np.nan,
            )
            gaps[rows] = at[rows] - earlier
            if latest[-1] >= 0:
                row = rows[latest[-1]]
                before[name] = Before(float(at[row]), bool(busy[row]))
        gaps[~(gaps > 0)] = np.nan
        return gaps

    def _own_clock(self, acceptance: Positions) -> Figures:
        """The engine's clock behind counts and throughputs; the larger count is the more precise."""
        found: Figures = np.full(len(acceptance), np.nan)
        for name in ("accepted", "drafted"):
            count, rate = self._told(name, acceptance), self._told(f"{name}_throughput", acceptance)
            rows = (count > 0) & (rate > 0)
            found[rows] = count[rows] / rate[rows]
        return found

    def _engines(self, stats: Positions) -> Numbers:
        """The number of each engine, -1 where none is named."""
        engines = self._figures("engine", stats)
        return np.where(np.isnan(engines), -1, engines).astype(np.int64)

    def _units(self, engines: Numbers) -> Coded | str:
        numbers, codes = np.unique(engines, return_inverse=True)
        texts = [self._intervals.unit(None if number < 0 else number) for number in numbers.tolist()]
        return texts[0] if len(texts) == 1 else Coded(texts, codes)

    def _figures(self, name: str, stats: Positions) -> Figures:
        """A value of engine lines, NaN where there is none."""
        found = _taken(self._view.stats.get(name), self._view.place, stats)
        return found / 100 if name in SHARES else found

    def _told(self, name: str, acceptance: Positions) -> Figures:
        """A value of acceptance lines, NaN where there is none."""
        return _taken(self._view.acceptance.get(name), self._view.place, acceptance)

    # ---- single samples

    def _process(self, sample: int) -> bytes:
        return self._processes[int(self._view.processes[sample])]

    def _place(self, sample: int) -> Place:
        (position,), (number,) = (
            places.tolist() for places in self._view.places(self._view.sampled[sample : sample + 1])
        )
        return Place(position, number, float(self._view.at[sample]))

    def _stats_of(self, sample: int) -> Stats:
        which = np.array([sample])
        values = {name: float(self._figures(name, which)[0]) for name in self._view.stats}
        values = {name: value for name, value in values.items() if value == value}  # noqa: PLR0124 - NaN is not stated
        engine = values.pop("engine", None)
        form = self._forms[int(self._view.clues[sample]) // 4]
        return Stats(values, None if engine is None else int(engine), form)

    def _acceptance_of(self, sample: int) -> Acceptance:
        view, which = self._view, np.array([sample])
        place = int(view.place[sample])
        accepted, drafted, length, percent = (
            float(self._told(name, which)[0]) for name in ("accepted", "drafted", "length", "percent")
        )
        steps, own = float(view.verify_steps[place]), float(self._own_clock(which)[0])
        (shares,) = CountsAt(view.accepted_at[place : place + 1]).tolist()
        counts = SpecCounts(int(accepted), int(drafted), None if np.isnan(steps) else steps, shares)
        return Acceptance(counts, length, percent / 100, None if np.isnan(own) else own)


def _counts(values: dict[str, Figures], count: int) -> CountColumns:
    """The counts of acceptance lines depth by depth, in the order of the lines."""
    bonus: npt.NDArray[np.int8] = np.zeros(count, dtype=np.int8)
    steps: Figures = np.full(count, np.nan)
    names = sorted(name for name in values if name.startswith(_AT))
    shares: Figures = np.full((count, len(names)), np.nan)
    depths: Numbers = np.zeros(count, dtype=np.int64)
    for name in names:
        depths += ~np.isnan(values[name])
    for depth in np.unique(depths).tolist():
        rows = (depths == depth).nonzero()[0]
        positions = np.column_stack([values[name][rows] for name in names[:depth]])
        accepted, drafted, length = (values[name][rows] for name in ("accepted", "drafted", "length"))
        found = counted(accepted, drafted, length, positions)
        bonus[rows], steps[rows], shares[rows, :depth] = found.bonus, found.verify_steps, found.accepted_at
    return CountColumns(steps, shares, bonus)


def _taken(figures: Figures | None, place: Numbers, samples: Positions) -> Figures:
    """The figures of samples, NaN for those that are -1 and where none are stated."""
    if figures is None:
        return np.full(len(samples), np.nan)
    there = samples >= 0
    if there.all():
        return figures[place[samples]]
    found: Figures = np.full(len(samples), np.nan)
    found[there] = figures[place[samples[there]]]
    return found


def _learn_stats(text: bytes) -> Learned[StatsForm] | None:
    """The form of an engine line."""
    stats = StatsReader().read(text)
    if stats is None:
        return None
    numbers = zip(_NUMBER.finditer(text), stats.form.names, strict=True)
    return Learned(stats.form, [Span(*number.span(), name) for number, name in numbers if name is not None])


def _learn_acceptance(text: bytes) -> Learned[Line] | None:
    """The form of an acceptance line of V1 with positions: its line."""
    for line in _ACCEPTANCE_LINES.values():
        match = line.match(text)
        if match is None or not match["positions"]:
            continue
        spans = [Span(*match.span(name), name) for name in match.groupdict() if name != "positions"]
        start, end = match.span("positions")
        rates = list(_RATE.finditer(text, start, end))
        if not rates:
            continue
        spans += [Span(*rate.span(), f"{_AT}{index:03d}", 1) for index, rate in enumerate(rates)]
        return Learned(line, spans)
    return None
