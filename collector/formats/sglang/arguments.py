"""The ``server_args=`` line: what SGLang says it runs with.

Up to 0.5.18 it is a dataclass ``repr``, from 0.5.19 a dictionary literal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from collector.formats.literals import KEY, NAME, read_fields


class ArgumentForm(StrEnum):
    """How the line is written."""

    OBJECT = "ServerArgs(…)"
    DICTIONARY = "{…}"


class ArgumentLine(NamedTuple):
    """The fields of a line in their order, whether it was complete, and how it is written."""

    values: dict[str, Any]
    complete: bool
    form: ArgumentForm


def read_arguments(text: str) -> ArgumentLine | None:
    """Read what follows ``server_args=``; ``None`` if it is neither form.

    A line that was cut off gives the fields before the cut.
    """
    if text.startswith("ServerArgs("):
        return ArgumentLine(*read_fields(text, len("ServerArgs("), NAME, ")"), ArgumentForm.OBJECT)
    if text.startswith("{"):
        return ArgumentLine(*read_fields(text, 1, KEY, "}"), ArgumentForm.DICTIONARY)
    return None
