"""Reads whole blocks of an SGLang log: access lines and samples as arrays, all others one by one.

What a block gives is what its lines would give one by one. Lines in bulk touch only the run they
are in, so each stretch of them between two other lines is taken at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from collector.domain.windows import Coded, Columns, Origin, PrefillWindow, Row, Window
from collector.formats.blocks import Block
from collector.formats.bulk import Column, Learned, Tails, View, column, listed
from collector.formats.columns import Figures, Mask, Positions
from collector.formats.pairs import Form, PairTail
from collector.formats.sglang.heads import HeadColumns, Heads
from collector.formats.sglang.lines import ACCESS, DECODE, PREFILL
from collector.formats.sglang.ranks import RECENT_KEPT, Repeats

if TYPE_CHECKING:
    from collector.formats.sglang.session import Facts, SglangSession

CHATTER: Final = (b"Receive: obj=", b"Finish: obj=")
"""Lines that say nothing but are many where requests are logged."""


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


class SglangView(View):
    """A block's lines in bulk: access lines, samples and chatter.

    Shapes (n,) over these lines: ``kinds``, ``lines``, ``at``, ``milliseconds``, ``loud`` (not chatter).
    (n + 1,): how many ``decodes``, ``prefills`` and ``samples`` of either kind stand before each.
    """

    def __init__(self, block: Block, heads: HeadColumns, decode: Tails[Form], prefill: Tails[Form]) -> None:
        super().__init__(block)
        text = self.text
        found = heads.read(text, self.untidy)
        messages = found.messages
        kinds: npt.NDArray[np.int8] = np.where(found.access, _ACCESS, 0).astype(np.int8)
        kinds[found.rows[text.begins(messages, ACCESS)]] = _ACCESS
        for literal in CHATTER:
            kinds[found.rows[text.begins(messages, literal)]] = _CHATTER
        self.decode = self._samples(found, DECODE, decode, _DECODE, kinds)
        self.prefill = self._samples(found, PREFILL, prefill, _PREFILL, kinds)
        bulk = kinds.nonzero()[0]
        kinds = self.kinds = kinds[bulk]
        self.lines = found.lines[bulk]
        self.at = found.at[bulk]
        self.milliseconds = found.milliseconds[bulk]
        self.some_milliseconds = bool(self.milliseconds.any())
        self.loud = kinds != _CHATTER
        self.decodes = np.append(0, np.cumsum(kinds == _DECODE))
        self.prefills = np.append(0, np.cumsum(kinds == _PREFILL))
        self.samples = (self.decodes + self.prefills).tolist()

    def _samples(
        self, heads: Heads, literal: bytes, tails: Tails[Form], kind: int, kinds: npt.NDArray[np.int8]
    ) -> Samples:
        text = self.text
        chosen = text.begins(heads.messages, literal).nonzero()[0]
        rows = heads.rows[chosen]
        forms, values = tails.read(text, heads.messages[chosen] + len(literal), text.ends[heads.lines[rows]])
        read = forms >= 0
        if not read.all():
            rows, chosen, forms = rows[read], chosen[read], forms[read]
            values = {name: figures[read] for name, figures in values.items()}
        kinds[rows] = kind
        return Samples(heads.lines[rows], heads.at[rows], heads.ranks[chosen], forms, values)

    def others(self) -> tuple[Positions, int]:
        """The lines that are to be read one by one, and the number of empty ones."""
        left = self.text.starts != self.text.ends
        empty = len(left) - int(np.count_nonzero(left))
        left[self.lines] = False
        return left.nonzero()[0], empty

    def first_sample(self, first: int) -> tuple[int, float]:
        """The first sample at or behind a line, and its instant."""
        line = bisect_right(self.samples, self.samples[first]) - 1
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


class BulkReader:
    """Reads blocks for a session."""

    def __init__(self, session: SglangSession, decode: PairTail, prefill: PairTail) -> None:
        self._session = session
        self._heads = HeadColumns()
        self._decode = Tails(_learner(decode))
        self._prefill = Tails(_learner(prefill))
        self._view: SglangView | None = None
        self._facts: Facts | None = None
        self._first = self._last = 0

    def read(self, block: Block) -> None:
        """Read a block of whole lines."""
        view = SglangView(block, self._heads, self._decode, self._prefill)
        others, empty = view.others()
        reading = self._session.reading
        reading.engine_lines += len(view.lines)
        reading.understood += len(view.lines) + empty
        view.read_between(others, self._session.line, partial(self._take, view))
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
            for form in _forms_of(self._decode, decodes):
                if form is not facts.last_form:
                    facts.last_form = form
                    facts.clues.add_decode(form)
            _add_pairs(facts, decodes)
            windows = self._windows(facts, view, decodes, between)
            self._give(facts.decodes, windows, decodes, _DECODE_CONTENT, facts.life.windows, facts.life.record.windows)
        if len(prefills.lines):
            for form in _forms_of(self._prefill, prefills):
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

    def _windows(self, facts: Facts, view: SglangView, samples: Samples, prefills: Column) -> Columns[Window]:
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
        return Columns(
            Window,
            count,
            (
                offsets,
                numbers,
                samples.at,
                self._units(samples),
                column(seconds),
                column(running),
                column(values.get("waiting_requests")),
                column(verify),
                column(accepted),
                None,
                column(generated),
                column(throughput),
                column(length),
                column(values.get("printed_rate")),
                column(values.get("tokens_in_use")),
                column(values.get("kv_cache_usage")),
                column(values.get("graph"), bool),
                prefills,
                None,
                Origin.LOG,
            ),
        )

    def _batches(self, view: SglangView, samples: Samples) -> Columns[PrefillWindow]:
        offsets, numbers = view.places(samples.lines)
        values = samples.values
        columns = (
            offsets,
            numbers,
            samples.at,
            self._units(samples),
            column(values["new_tokens"]),
            column(values["cached_tokens"]),
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

    def _take(self, view: SglangView, first: int, last: int) -> None:
        """Lines between two others: what they mean for the run now, and their samples for later."""
        facts = self._session.stretch(view, first, last)
        if facts is not self._facts:
            self.flush()
            self._view, self._facts, self._first = view, facts, first
        self._last = last


def _learner(tail: PairTail) -> Callable[[bytes], Learned[Form] | None]:
    """How the form of a tail is learned."""

    def learn(text: bytes) -> Learned[Form] | None:
        pairs = tail.read(text)
        return None if pairs is None else Learned(pairs.form, tail.spans(text, pairs.form))

    return learn


def _forms_of(tails: Tails[Form], samples: Samples) -> list[Form]:
    """The forms of samples in the order in which they first appear, the last one's once more at the end."""
    if (samples.forms == samples.forms[0]).all():
        return [tails.forms[samples.forms[0]]]
    numbers, first = np.unique(samples.forms, return_index=True)
    ordered = [*numbers[np.argsort(first)].tolist(), int(samples.forms[-1])]
    return [tails.forms[number] for number in ordered]


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
    columns = [listed(samples.values.get(name), len(samples.lines)) for name in names]
    return zip(*columns, strict=True)
