"""Lines that were not understood, counted by shape."""

from __future__ import annotations

import re
from typing import Final

from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.domain.runs import UnreadShape

SHAPES_KEPT: Final = 200
SHAPES_SHOWN: Final = 50
LONGEST_SHAPE: Final = 160

_QUOTED = re.compile(rb"'[^']*'|\"[^\"]*\"|`[^`]*`")
_NUMBER = re.compile(rb"0x[0-9a-fA-F]+|\d+(?:\.\d+)*")


def shape_of(text: bytes) -> bytes:
    """A line without what varies: quoted parts and numbers replaced, cut to a readable length."""
    return _NUMBER.sub(b"0", _QUOTED.sub(b"'_'", text[: 4 * LONGEST_SHAPE]))[:LONGEST_SHAPE].rstrip()


class ShapeCounter:
    """Counts lines by shape and keeps one example of each; a cap bounds the number of shapes."""

    def __init__(self, source: str) -> None:
        self.total = 0
        self._source = source
        self._counts: dict[bytes, int] = {}
        self._examples: dict[bytes, Evidence] = {}
        self._shapes: dict[bytes, bytes] = {}

    def add(self, number: int, text: bytes) -> None:
        """Count one line that was not understood."""
        self.total += 1
        shape = self._shapes.get(text)
        if shape is None:
            shape = shape_of(text)
            if len(text) <= LONGEST_SHAPE and len(self._shapes) < SHAPES_KEPT:
                self._shapes[text] = shape
        if shape in self._counts:
            self._counts[shape] += 1
        elif len(self._counts) < SHAPES_KEPT:
            self._counts[shape] = 1
            example = text[: 2 * LONGEST_SHAPE].decode("utf-8", "replace").rstrip()
            self._examples[shape] = Evidence(self._source, number, redact_text(example))

    def shapes(self) -> tuple[UnreadShape, ...]:
        """The most frequent shapes, first the largest."""
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:SHAPES_SHOWN]
        return tuple(
            UnreadShape(redact_text(shape.decode("utf-8", "replace")), count, self._examples[shape])
            for shape, count in ranked
        )
