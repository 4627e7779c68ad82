"""Reads whole blocks of an SGLang log: access lines and samples as arrays, all others one by one.

What a block gives is what its lines would give one by one. Lines in bulk touch only the run they
are in, so each stretch of them between two other lines is taken at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from collector.domain.windows import Coded, Columns, Origin, PrefillWindow, Row, Window
from collector.formats.blocks import Block
from collector.formats.columns import Figures, Lines, Mask, Positions, Template
from collector.formats.pairs import Form, PairTail
from collector.formats.sglang.heads import HeadColumns, Heads
from collector.formats.sglang.lines import ACCESS, DECODE, PREFILL
from collector.formats.sglang.ranks import RECENT_KEPT, Repeats
from collector.formats.tidy import UNTIDY, starts_with_mark, tidied, tidied_parts

if TYPE_CHECKING:
    from collector.formats.sglang.session import Facts, SglangSession

FORMS_KEPT: Final = 32
FORMS_LEARNED: Final = 16
"""New forms that one block may bring; lines of further ones are read one by one."""
UNTIDY_SHARE: Final = 0.1
"""Above this share of lines with carriage returns or colours the whole block is tidied first."""
CHATTER: Final = (b"Receive: obj=", b"Finish: obj=")
"""Lines that say nothing but are many where requests are logged."""


Column = Any
"""A list or array with a value a row, or one value for all rows (see :class:`Columns`)."""
_ACCESS, _CHATTER, _DECODE, _PREFILL = range(1, 5)
_DECODE_CONTENT: Final = ("running_requests", "tokens_in_use", "printed_length", "waiting_requests")
_PREFILL_CONTENT: Final = ("new_tokens", "cached_tokens", "new_sequences")
"""What two ranks of one batch print alike (see :mod:`collector.formats.sglang.ranks`)."""


@dataclass(slots=True)
class Samples:
    """Samples of one kind in a block. Shapes (n,); a value that a line does not state is NaN."""

    lines: Positions
    at: Figures
    ranks: Positions
    forms: npt.NDArray[np.int8]
    values: dict[str, Figures]

    def chosen(self, which: slice | Positions) -> Samples:
        """Some of them."""
        values = {name: figures[which] for name, figures in self.values.items()}
        return Samples(self.lines[which], self.at[which], self.ranks[which], self.forms[which], values)


class Tails:
    """Takes the tails of one kind of line apart, form by form."""

    def __init__(self, tail: PairTail, literal: bytes) -> None:
        self.literal = literal
        self._tail = tail
        self._known: list[tuple[Form, Template]] = []

    def read(self, lines: Lines, heads: Heads, chosen: Positions) -> tuple[Samples, Mask]:
        """The samples among some of the heads' ``rows``, and which of these could be read here."""
        rows = heads.rows[chosen]
        starts, ends = heads.messages[chosen] + len(self.literal), lines.ends[heads.lines[rows]]
        forms: npt.NDArray[np.int8] = np.full(len(rows), -1, dtype=np.int8)
        values: dict[str, Figures] = {}
        tried: Mask = np.zeros(len(rows), dtype=bool)
        number = 0
        for _ in range(len(self._known) + FORMS_LEARNED):
            left = (forms < 0).nonzero()[0]
            if not len(left):
                break
            if number == len(self._known) and not self._learn(lines, starts, ends, left[~tried[left]], tried):
                continue
            fits, found = self._known[number][1].match(lines, starts[left], ends[left])
            if len(left) == len(forms) and fits.all():
                values = found
                forms[:] = number
            else:
                forms[left[fits]] = number
                for name, figures in found.items():
                    if name not in values:
                        values[name] = np.full(len(forms), np.nan)
                    values[name][left[fits]] = figures[fits]
            number += 1
        read = forms >= 0
        if not read.all():
            rows, chosen, forms = rows[read], chosen[read], forms[read]
            values = {name: figures[read] for name, figures in values.items()}
        return Samples(heads.lines[rows], heads.at[rows], heads.ranks[chosen], forms, values), read

    def forms_of(self, samples: Samples) -> list[Form]:
        """The forms of samples in the order in which they first appear, the last one's once more at the end."""
        if (samples.forms == samples.forms[0]).all():
            return [self._known[samples.forms[0]][0]]
        numbers, first = np.unique(samples.forms, return_index=True)
        ordered = [*numbers[np.argsort(first)].tolist(), int(samples.forms[-1])]
        return [self._known[number][0] for number in ordered]

    def _learn(self, lines: Lines, starts: Positions, ends: Positions, left: Positions, tried: Mask) -> bool:
        """Learn the form of the first line that is left; whether it is one that can be read here."""
        if not len(left) or len(self._known) >= FORMS_KEPT:
            return False
        tried[left[0]] = True
        tail = lines.text(int(starts[left[0]]), int(ends[left[0]]))
        pairs = self._tail.read(tail)
        template = None if pairs is None else Template.of(tail, self._tail.spans(tail, pairs.form))
        if pairs is None or template is None:
            return False
        self._known.append((pairs.form, template))
        return True


class View:
    """A block's lines in bulk, in their order: access lines, samples and chatter.

    Shapes (n,) over these lines: ``kinds``, ``lines`` their numbers in the block, ``at``,
    ``milliseconds``, ``loud`` (not chatter). (n + 1,): how many ``decodes`` and ``prefills`` stand before each.
    """

    def __init__(self, block: Block, heads: HeadColumns, decode: Tails, prefill: Tails) -> None:
        self.block = block
        self.text = Lines(block)
        self.untidy = self._untidy()
        if np.count_nonzero(self.untidy) > len(self.untidy) * UNTIDY_SHARE:
            self.block = tidied(block)
            self.text = Lines(self.block)
            self.untidy = np.zeros(len(self.text.starts), dtype=bool)
        text = self.text
        found = heads.read(text, self.untidy)
        messages = found.messages
        kinds: npt.NDArray[np.int8] = np.where(found.access, _ACCESS, 0).astype(np.int8)
        kinds[found.rows[text.begins(messages, ACCESS)]] = _ACCESS
        for literal in CHATTER:
            kinds[found.rows[text.begins(messages, literal)]] = _CHATTER
        self.decode = self._samples(found, decode, _DECODE, kinds)
        self.prefill = self._samples(found, prefill, _PREFILL, kinds)
        bulk = kinds.nonzero()[0]
        kinds = self.kinds = kinds[bulk]
        self.lines = found.lines[bulk]
        self.at = found.at[bulk]
        self.milliseconds = found.milliseconds[bulk]
        self.some_milliseconds = bool(self.milliseconds.any())
        self.loud = kinds != _CHATTER
        self.decodes = np.append(0, np.cumsum(kinds == _DECODE))
        self.prefills = np.append(0, np.cumsum(kinds == _PREFILL))

    def _samples(self, heads: Heads, tails: Tails, kind: int, kinds: npt.NDArray[np.int8]) -> Samples:
        chosen = self.text.begins(heads.messages, tails.literal).nonzero()[0]
        samples, read = tails.read(self.text, heads, chosen)
        kinds[heads.rows[chosen[read]]] = kind
        return samples

    def _untidy(self) -> Mask:
        """Which lines are to be tidied before they are read."""
        found = self.text.with_any(UNTIDY)
        if starts_with_mark(self.block):
            found[0] = True
        return found

    def others(self) -> tuple[Positions, int]:
        """The lines that are to be read one by one, and the number of empty ones."""
        left = self.text.starts != self.text.ends
        empty = len(left) - int(np.count_nonzero(left))
        left[self.lines] = False
        return left.nonzero()[0], empty

    def first_sample(self, first: int) -> tuple[int, float]:
        """The first sample at or behind a line, and its instant."""
        samples = self.decodes + self.prefills
        line = int(np.searchsorted(samples, samples[first], side="right")) - 1
        return line, float(self.at[line])

    def touching(self, first: int, last: int, *, loud: bool) -> tuple[float | None, bool]:
        """Of lines from ``first`` up to and without ``last``, when the last was printed, and whether any has milliseconds.

        With ``loud``, chatter is passed over.
        """
        chosen = np.arange(first, last)
        if loud:
            chosen = chosen[self.loud[chosen]]
        if not len(chosen):
            return None, False
        return float(self.at[chosen[-1]]), bool(self.milliseconds[chosen].any())

    def places(self, lines: Positions) -> tuple[Positions, Positions]:
        """Byte offsets in the source and line numbers of lines of the block."""
        places = self.block.places
        if places is None:
            return self.text.starts[lines] + self.block.offset, lines + self.block.first_line
        return np.array(places.offsets)[lines], np.array(places.numbers)[lines]


class BulkReader:
    """Reads blocks for a session."""

    def __init__(self, session: SglangSession, decode: PairTail, prefill: PairTail) -> None:
        self._session = session
        self._heads = HeadColumns()
        self._decode = Tails(decode, DECODE)
        self._prefill = Tails(prefill, PREFILL)
        self._view: View | None = None
        self._facts: Facts | None = None
        self._first = self._last = 0

    def read(self, block: Block) -> None:
        """Read a block of whole lines."""
        view = View(block, self._heads, self._decode, self._prefill)
        others, empty = view.others()
        reading = self._session.reading
        reading.engine_lines += len(view.lines)
        reading.understood += len(view.lines) + empty
        edges = np.concatenate(([0], np.searchsorted(view.lines, others), [len(view.lines)]))
        sampled = np.diff((view.decodes + view.prefills)[edges]) > 0
        last_at = np.append(np.nan, view.at)[edges[1:]]
        stretches = zip(pairwise(edges.tolist()), sampled.tolist(), last_at.tolist(), strict=True)
        starts, ends = view.text.starts[others].tolist(), view.text.ends[others].tolist()
        untidy = view.untidy[others].tolist()
        positions, numbers = (column.tolist() for column in view.places(others))
        line = self._session.line
        for start, end, position, number, tidy_first in zip(starts, ends, positions, numbers, untidy, strict=True):
            self._take(view, *next(stretches))
            text = view.text.text(start, end)
            if tidy_first:
                for place, part in tidied_parts(position, text):
                    line(place, number, part)
            else:
                line(position, number, text)
        self._take(view, *next(stretches))
        self.flush()

    def flush(self) -> None:
        """Give the run its samples that were not given yet."""
        view, facts, first, last = self._view, self._facts, self._first, self._last
        if view is None or facts is None:
            return
        self._view = self._facts = None
        decodes = view.decode.chosen(slice(view.decodes[first], view.decodes[last]))
        prefills = view.prefill.chosen(slice(view.prefills[first], view.prefills[last]))
        kinds = view.kinds[first:last]
        is_prefill = kinds[(kinds == _DECODE) | (kinds == _PREFILL)] == _PREFILL
        ranks: npt.NDArray[np.int16] = np.empty(len(is_prefill), dtype=np.int16)
        ranks[is_prefill] = prefills.ranks
        ranks[~is_prefill] = decodes.ranks
        between = self._prefills_between(facts, ranks, is_prefill)
        if len(decodes.lines):
            for form in self._decode.forms_of(decodes):
                if form is not facts.last_form:
                    facts.last_form = form
                    facts.clues.add_decode(form)
            _add_pairs(facts, decodes)
            windows = self._windows(facts, view, decodes, between)
            self._give(facts.decodes, windows, decodes, _DECODE_CONTENT, facts.life.windows, facts.life.record.windows)
        if len(prefills.lines):
            for form in self._prefill.forms_of(prefills):
                if form is not facts.last_prefill_form:
                    facts.last_prefill_form = form
                    facts.clues.add_prefill(form)
            batches = self._batches(view, prefills)
            self._give(
                facts.prefill_lines,
                batches,
                prefills,
                _PREFILL_CONTENT,
                facts.life.prefills,
                facts.life.record.prefills,
            )

    def _give(
        self,
        repeats: Repeats[Row],
        columns: Columns[Row],
        samples: Samples,
        content: tuple[str, ...],
        bulk: list[Columns[Row]],
        rows: list[Row],
    ) -> None:
        """Pass samples on; one by one where a rank above 0 may repeat another's."""
        ranks = self._heads.ranks
        present = np.bincount(samples.ranks).nonzero()[0].tolist()
        tagged = [number for number in present if ranks[number].tensor is not None]
        groups = {ranks[number].group for number in tagged}
        alone = not repeats.holding and len(groups) == len(tagged) and not any(ranks[n].tensor for n in tagged)
        if not alone:
            numbers = samples.ranks.tolist()
            for row, number, said in zip(columns.rows(), numbers, _said(samples, content), strict=True):
                rows += repeats.add(row, ranks[number], said)
            return
        bulk.append(columns)
        for number in tagged:
            latest = (samples.ranks == number).nonzero()[0][-RECENT_KEPT:]
            repeats.remember(ranks[number], len(latest), partial(_latest, samples, latest, content))

    def _units(self, samples: Samples) -> Coded | str:
        """The unit of each sample."""
        ranks = self._heads.ranks
        present = np.bincount(samples.ranks, minlength=len(ranks)) > 0
        texts = [ranks[number].unit for number in present.nonzero()[0].tolist()]
        if len(texts) == 1:
            return texts[0]
        return Coded(texts, (np.cumsum(present) - 1)[samples.ranks])

    def _windows(self, facts: Facts, view: View, samples: Samples, prefills: Column) -> Columns[Window]:
        """Decode windows; the arithmetic is that of :meth:`SglangSession._window`."""
        count = len(samples.lines)
        values = samples.values
        running, throughput = values["running_requests"], values["generation_throughput"]
        steps = facts.interval * running
        length = values.get("printed_length")
        generated = steps
        verify = accepted = None
        if length is not None:
            accepted = (length - facts.own_tokens) * steps
            verify = np.where(np.isnan(length), np.nan, steps)
            generated = np.where(np.isnan(length), steps, length * steps)
        timed = (generated != 0) & (throughput != 0)
        seconds = np.divide(generated, throughput, out=np.full(count, np.nan), where=timed)
        if facts.counted_twice:
            generated = generated - steps
        offsets, numbers = view.places(samples.lines)
        graph = values.get("graph")
        return Columns(
            Window,
            count,
            (
                offsets,
                numbers,
                samples.at,
                self._units(samples),
                _column(seconds),
                _column(running),
                _column(values.get("waiting_requests")),
                _column(verify),
                _column(accepted),
                None,
                _column(generated),
                _column(throughput),
                _column(length),
                _column(values.get("printed_rate")),
                _column(values.get("tokens_in_use")),
                _column(values.get("kv_cache_usage")),
                _truths(graph),
                prefills,
                None,
                Origin.LOG,
            ),
        )

    def _batches(self, view: View, samples: Samples) -> Columns[PrefillWindow]:
        offsets, numbers = view.places(samples.lines)
        values = samples.values
        columns = (
            offsets,
            numbers,
            samples.at,
            self._units(samples),
            _column(values["new_tokens"]),
            _column(values["cached_tokens"]),
        )
        return Columns(PrefillWindow, len(samples.lines), columns)

    def _prefills_between(self, facts: Facts, ranks: npt.NDArray[np.int16], is_prefill: Mask) -> Column:
        """How many prefills of its unit stand between each decode line and the one before; counts go on in the run.

        Shapes: (n,) over all samples in their order; the result is over the decode lines.
        """
        if not facts.prefills and not is_prefill.any():
            return 0
        order = np.argsort(ranks, kind="stable")
        prefill = is_prefill[order]
        seen = np.cumsum(prefill)
        between: npt.NDArray[np.int64] = np.zeros(len(ranks), dtype=np.int64)
        edges = np.diff(ranks[order], prepend=-1, append=-1).nonzero()[0].tolist()
        for start, end in pairwise(edges):
            unit = self._heads.ranks[int(ranks[order[start]])].unit
            decodes = (~prefill[start:end]).nonzero()[0] + start
            before = int(seen[start]) - int(prefill[start])
            carried = facts.prefills.pop(unit, 0)
            if len(decodes):
                between[order[decodes]] = np.diff(seen[decodes], prepend=before - carried)
                left = int(seen[end - 1]) - int(seen[decodes[-1]])
            else:
                left = carried + int(seen[end - 1]) - before
            if left:
                facts.prefills[unit] = left
        return between[~is_prefill]

    def _take(self, view: View, edges: tuple[int, int], sampled: bool, last_at: float) -> None:
        """Lines between two others: what they mean for the run now, and their samples for later."""
        first, last = edges
        if first == last:
            return
        facts = self._session.stretch(view, first, last, sampled=sampled, last_at=last_at)
        if facts is not self._facts:
            self.flush()
            self._view, self._facts, self._first = view, facts, first
        self._last = last


def _add_pairs(facts: Facts, samples: Samples) -> None:
    """Lengths and rates as clues for the release, as long as any are wanted."""
    lengths, rates = samples.values.get("printed_length"), samples.values.get("printed_rate")
    if lengths is None or rates is None or facts.clues.has_enough_pairs:
        return
    _, first = np.unique(lengths + 1j * rates, return_index=True)
    first.sort()
    for length, rate in zip(lengths[first].tolist(), rates[first].tolist(), strict=True):
        if length == length and rate == rate:  # noqa: PLR0124 - a line that states none is NaN
            facts.clues.add_pair(length, rate)


def _latest(samples: Samples, which: Positions, names: tuple[str, ...]) -> Iterator[tuple[float, object]]:
    """Instants of some samples and what they say."""
    latest = samples.chosen(which)
    return zip(latest.at.tolist(), _said(latest, names), strict=True)


def _said(samples: Samples, names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """What each sample says under some names."""
    columns = [_listed(samples.values.get(name), len(samples.lines)) for name in names]
    return zip(*columns, strict=True)


def _listed(figures: Figures | None, count: int) -> list[float | None]:
    """Figures as a list, with ``None`` in place of NaN."""
    if figures is None:
        return [None] * count
    column: list[float | None] = figures.tolist()
    for place in np.flatnonzero(np.isnan(figures)).tolist():
        column[place] = None
    return column


def _column(figures: Figures | None) -> Column:
    """Figures as a column: an array where each line states one."""
    if figures is None or not np.isnan(figures).any():
        return figures
    return _listed(figures, len(figures))


def _truths(figures: Figures | None) -> Column:
    """Truth values as a column."""
    if figures is None:
        return None
    if not np.isnan(figures).any():
        return figures == 1
    return [None if figure is None else bool(figure) for figure in _listed(figures, len(figures))]
