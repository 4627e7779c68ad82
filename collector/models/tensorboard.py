"""Scalars of TensorBoard event files.

An event file is a sequence of records: length (8 bytes, little endian), checksum of the length (4),
the event, its checksum (4). An event is a protocol-buffer message. Only what scalars need is read.
Packages that read these files bring TensorBoard itself, or do not work with current releases of
``protobuf``.

Source: TensorFlow ``core/util/event.proto``, ``core/framework/summary.proto``, ``tensor.proto``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Final

from collector.domain.errors import MalformedInput
from collector.models.scalars import Scalars

_MARK: Final = b"brain.Event:"
_FLOAT, _DOUBLE = 1, 2
# Fields by number. Event: step, summary. Summary: value. Value: tag, simple_value, tensor.
_STEP, _SUMMARY, _VALUE, _TAG, _SIMPLE, _TENSOR = 2, 5, 1, 1, 2, 8
_TENSOR_TYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6


def is_event_file(head: bytes) -> bool:
    """Whether a file begins as TensorBoard's writers begin theirs."""
    return _MARK in head[:64]


def read_events(data: bytes, source: str) -> tuple[Scalars, ...]:
    """The scalars of an event file by step; a record that is cut at the end is left out.

    Raises:
        MalformedInput: the file is damaged in the middle.
    """
    steps: dict[int, dict[str, float]] = {}
    try:
        for event in _records(data):
            step, summaries = 0, []
            for number, value in _fields(event):
                if number == _STEP and isinstance(value, int):
                    step = value
                elif number == _SUMMARY and isinstance(value, bytes):
                    summaries.append(value)
            for summary in summaries:
                for number, value in _fields(summary):
                    if number == _VALUE and isinstance(value, bytes):
                        tag, figure = _scalar(value)
                        if tag and figure is not None and math.isfinite(figure):
                            steps.setdefault(step, {})[tag] = figure
    except (ValueError, struct.error, IndexError) as error:
        raise MalformedInput(
            "this event file is damaged", why=str(error), where=source, hint="copy it again from the training run"
        ) from error
    return tuple(
        Scalars(0, steps[step], f"step {step}: " + ", ".join(f"{tag} {value:g}" for tag, value in steps[step].items()))
        for step in sorted(steps)
    )


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        begin, end = at + 12, at + 12 + length
        if end + 4 > len(data):
            return
        yield data[begin:end]
        at = end + 4


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Field numbers and values: whole numbers, floats by their width, bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        value: int | float | bytes
        if kind == 0:
            value, at = _varint(message, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        elif kind == 2:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a field is longer than its message")
            value, at = message[at : at + length], at + length
        elif kind == 5:
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        else:
            raise ValueError(f"a field of unknown kind {kind}")
        yield number, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number has too many bytes")


def _scalar(message: bytes) -> tuple[str, float | None]:
    tag, figure = "", None
    for number, value in _fields(message):
        if number == _TAG and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == _SIMPLE and isinstance(value, float):
            figure = value
        elif number == _TENSOR and isinstance(value, bytes):
            figure = _of_tensor(value)
    return tag, figure


def _of_tensor(message: bytes) -> float | None:
    """The one number of a tensor of floats or doubles."""
    kind: int | float | bytes = 0
    for number, value in _fields(message):
        if number == _TENSOR_TYPE:
            kind = value
        elif number in (_FLOATS, _DOUBLES) and isinstance(value, float):
            return value
        elif number in (_FLOATS, _DOUBLES, _CONTENT) and isinstance(value, bytes):
            form = {_FLOAT: "<f", _DOUBLE: "<d"}.get(int(kind) if isinstance(kind, int) else 0)
            if form is not None and len(value) == struct.calcsize(form):
                return float(struct.unpack(form, value)[0])
    return None
