"""Per-token correctness of a draft on held-out text, for a replay in steps.

One text a line. A line is a JSON list or object, or a row of 0 and 1: whether the draft's first token is right at
each token; a list of lists says so for each draft of a step that starts there. Objects keep it under ``correct``,
or how many drafts in a row are right under ``accepted``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from collector.domain.errors import MalformedInput, UnreadableInput

MOST_TOKENS: Final = 50_000_000
_FLAGS: Final = ("correct", "correctness", "hits", "matches")
_COUNTS: Final = ("accepted", "accepted_tokens")
_PLAIN: Final = re.compile(r"[01](?:[\s,]*[01])*")


def read_correctness(text: str, source: str = "correctness.jsonl") -> list[list[int]]:
    """For each text and each of its tokens, how many drafts in a row are right if a step starts there.

    Raises:
        UnreadableInput: it holds none.
        MalformedInput: a line is of no known form; the error names it.
    """
    texts: list[list[int]] = []
    tokens = 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        runs = _runs(stripped, f"{source}:{number}")
        tokens += len(runs)
        if tokens > MOST_TOKENS:
            raise MalformedInput(
                f"more than {MOST_TOKENS:,} tokens", where=f"{source}:{number}", hint="give a part of it"
            )
        if runs:
            texts.append(runs)
    if not texts:
        raise UnreadableInput(
            "no correctness of tokens is in this file",
            where=source,
            hint='one text a line: {"correct": [1, 0, 1]}, [1, 0, 1] or 101',
        )
    return texts


def _runs(line: str, where: str) -> list[int]:
    if _PLAIN.fullmatch(line):
        return _in_a_row([character == "1" for character in line if character in "01"])
    try:
        document: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unknown(where) from error
    if isinstance(document, dict):
        for key in _COUNTS:
            if key in document:
                return _counts(document[key], where)
        document = next((document[key] for key in _FLAGS if key in document), None)
    if not isinstance(document, list):
        raise _unknown(where)
    if document and all(isinstance(row, list) for row in document):
        return [sum(1 for _ in takewhile(bool, _flags(row, where))) for row in document]
    return _in_a_row(_flags(document, where))


def _flags(values: Sequence[Any], where: str) -> list[bool]:
    if not all(value in (0, 1) for value in values):
        raise _unknown(where)
    return [bool(value) for value in values]


def _counts(values: Any, where: str) -> list[int]:
    whole = isinstance(values, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in values)
    if not whole:
        raise _unknown(where)
    return list(values)


def _in_a_row(flags: Sequence[bool]) -> list[int]:
    """At each token, how many from there on are right without a miss."""
    runs = [0] * len(flags)
    row = 0
    for index in range(len(flags) - 1, -1, -1):
        row = row + 1 if flags[index] else 0
        runs[index] = row
    return runs


def _unknown(where: str) -> MalformedInput:
    return MalformedInput(
        "this line is no correctness of tokens",
        why="it needs 0 or 1 for each token, or a list of them for each",
        where=where,
        hint='{"correct": [1, 0, 1]}, [[1, 1], [0, 0]] or {"accepted": [2, 0]}',
    )
