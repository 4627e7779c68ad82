"""What the readers of whole blocks share: the block as arrays, and tails that are taken apart form by form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from collector.domain.windows import Partial
from collector.formats.blocks import Block
from collector.formats.columns import Figures, Lines, Mask, Positions, Template
from collector.formats.pairs import Span
from collector.formats.tidy import UNTIDY, starts_with_mark, tidied, tidied_parts

FORMS_KEPT: Final = 32
FORMS_LEARNED: Final = 16
"""New forms that one block may bring; lines of further ones are read one by one."""
UNTIDY_SHARE: Final = 0.1
"""Above this share of lines with carriage returns or colours the whole block is tidied first."""

Column = Any
"""A list or array with a value a row, or one value for all rows (see :class:`collector.domain.windows.Columns`)."""
Form = TypeVar("Form")
Forms = npt.NDArray[np.int8]


class View:
    """A block as arrays. ``lines`` are the numbers of those of its lines that are read in bulk, in their order.

    ``untidy`` says of each line of the block whether it is to be tidied before it is read.
    """

    lines: Positions

    def __init__(self, block: Block) -> None:
        self.block = block
        self.text = Lines(block)
        self.untidy = self._untidy()
        if np.count_nonzero(self.untidy) > len(self.untidy) * UNTIDY_SHARE:
            self.block = tidied(block)
            self.text = Lines(self.block)
            self.untidy = np.zeros(len(self.text.starts), dtype=bool)

    def _untidy(self) -> Mask:
        found = self.text.with_any(UNTIDY)
        if starts_with_mark(self.block):
            found[0] = True
        return found

    def places(self, lines: Positions) -> tuple[Positions, Positions]:
        """Byte offsets in the source and line numbers of lines of the block."""
        if self._places is None:
            return self.text.starts[lines] + self.block.offset, lines + self.block.first_line
        offsets, numbers = self._places
        return offsets[lines], numbers[lines]

    @cached_property
    def _places(self) -> tuple[Positions, Positions] | None:
        """Where the lines of a block that stand apart in the source came from."""
        places = self.block.places
        return None if places is None else (np.array(places.offsets), np.array(places.numbers))

    def read_between(
        self, others: Positions, line: Callable[[int, int, bytes], None], stretch: Callable[[int, int], None]
    ) -> None:
        """Read some lines one by one, and tell of each stretch of lines in bulk between them.

        ``line`` takes a byte offset, a line number and the bytes; ``stretch`` which of the lines in bulk
        come next: from the first up to and without the last.
        """
        edges = [0, *np.searchsorted(self.lines, others).tolist(), len(self.lines)]
        starts, ends = self.text.starts[others].tolist(), self.text.ends[others].tolist()
        untidy = self.untidy[others].tolist()
        positions, numbers = (column.tolist() for column in self.places(others))
        before = 0
        for edge, start, end, position, number, tidy in zip(
            edges[1:], starts, ends, positions, numbers, untidy, strict=False
        ):
            if edge > before:
                stretch(before, edge)
                before = edge
            text = self.text.text(start, end)
            if tidy:
                for place, part in tidied_parts(position, text):
                    line(place, number, part)
            else:
                line(position, number, text)
        if edges[-1] > before:
            stretch(before, edges[-1])


class Learned(NamedTuple, Generic[Form]):
    """The form of a text, and where in it the values that are wanted stand."""

    form: Form
    spans: Sequence[Span]


class Tails(Generic[Form]):
    """Takes texts of one kind apart, form by form.

    ``learn`` reads a text of a form that was not seen before; ``None`` for one that is read one by one.
    """

    def __init__(self, learn: Callable[[bytes], Learned[Form] | None]) -> None:
        self.forms: list[Form] = []
        self._templates: list[Template] = []
        self._learner = learn

    def read(self, lines: Lines, starts: Positions, ends: Positions) -> tuple[Forms, dict[str, Figures]]:
        """The number of each text's form, -1 where it could not be read here, and the values by name.

        A value that a text does not state is NaN; where it could not be read, values are meaningless.
        """
        forms: Forms = np.full(len(starts), -1, dtype=np.int8)
        values: dict[str, Figures] = {}
        tried: Mask = np.zeros(len(starts), dtype=bool)
        number = 0
        for _ in range(len(self.forms) + FORMS_LEARNED):
            left = (forms < 0).nonzero()[0]
            if not len(left):
                break
            if number == len(self.forms) and not self._learn(lines, starts, ends, left[~tried[left]], tried):
                continue
            fits, found = self._templates[number].match(lines, starts[left], ends[left])
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
        return forms, values

    def _learn(self, lines: Lines, starts: Positions, ends: Positions, left: Positions, tried: Mask) -> bool:
        """Learn the form of the first text that is left; whether it is one that can be read here."""
        if not len(left) or len(self.forms) >= FORMS_KEPT:
            return False
        tried[left[0]] = True
        text = lines.text(int(starts[left[0]]), int(ends[left[0]]))
        learned = self._learner(text)
        template = None if learned is None else Template.of(text, learned.spans)
        if learned is None or template is None:
            return False
        self.forms.append(learned.form)
        self._templates.append(template)
        return True


def listed(figures: Figures | None, count: int) -> list[float | None]:
    """Figures as a list, with ``None`` in place of NaN."""
    if figures is None:
        return [None] * count
    column: list[float | None] = figures.tolist()
    for place in np.flatnonzero(np.isnan(figures)).tolist():
        column[place] = None
    return column


def column(figures: Figures | None, kind: type[float | int | bool] = float) -> Column:
    """Figures as a column of numbers or truth values: an array where each line states one, nothing where none does."""
    if figures is None:
        return None
    unsaid = np.isnan(figures)
    if not unsaid.any():
        return figures if kind is float else figures.astype(kind)
    return None if unsaid.all() else Partial(figures, kind)
