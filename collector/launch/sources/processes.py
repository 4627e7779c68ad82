"""Lines of ``ps`` and ``pgrep -a``, and ``/proc/PID/cmdline``: commands whose quotes are gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import ClassVar, Final

from collector.launch.dialects import mentions_engine
from collector.launch.shell import Word
from collector.launch.sources.base import LaunchSource, Snippet

_HEADER: Final = re.compile(r"\s*(?:\S+\s+)*?PID\s+(?:\S+\s+)*?(?:CMD|COMMAND|ARGS)\s*")
# A user, the process and at least one more figure (ps), or the process alone (pgrep -a, ps -o pid,args).
_LINE: Final = re.compile(r"\s*(?:[A-Za-z_][\w.+-]*\s+\d+\s+(?=[\d.]+\s)|(?P<alone>\d+)\s+(?=\S))")
# What may stand in the columns before a command: figures, times, terminals, states, dates.
_COLUMN: Final = re.compile(r"[\d.:,%+-]+|\?+|(?:pts|tty)\S*|[RSDZTtWXIK][a-zA-Z+<]{0,3}|[A-Z][a-z]{2}\d{0,2}")
_OPERATORS: Final = frozenset({"&&", "||", ";", "|", "&"})
_OPENING: Final = ("{", "[")


class ProcessSource(LaunchSource):
    """What the system says about running processes."""

    kind: ClassVar[str] = "a list of processes"
    order: ClassVar[int] = 0

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """One for each line; a value in JSON is put together again."""
        del source
        if "\0" in text:
            return [Snippet([Word(part, 1, 0, 0) for part in text.strip("\0\n").split("\0")], verbatim=False)]
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if not lines or not (_HEADER.fullmatch(lines[0][1]) or all(_LINE.match(line) for _, line in lines)):
            return None
        return [
            Snippet(list(_words(line, number)), verbatim=True, label=_label(line))
            for number, line in lines
            if mentions_engine(line)
        ]


SOURCE: Final = ProcessSource()


def _label(line: str) -> str:
    number = re.search(r"\b\d+\b", line)
    return f"process {number[0]}" if number else ""


def _words(line: str, number: int) -> Iterator[Word]:
    """The words of the command, between blanks; what begins like JSON goes on until it is whole."""
    parts = list(re.finditer(r"\S+", line))
    index = _first_of_command([part[0] for part in parts])
    while index < len(parts):
        last = _end_of_json(line, parts, index)
        start, end = parts[index].start(), parts[last].end()
        text = line[start:end]
        yield Word(text, number, start, end, operator=text in _OPERATORS)
        index = last + 1


def _first_of_command(words: list[str]) -> int:
    """The index after user, process and the other columns."""
    index = 0 if words[0].isdecimal() else 1
    while index < len(words) and _COLUMN.fullmatch(words[index]):
        index += 1
    return index


def _end_of_json(line: str, parts: list[re.Match[str]], index: int) -> int:
    """The index of the last part of a JSON value that begins at ``index``; the same index where none does."""
    name, given, inline = parts[index][0].partition("=")
    begins = parts[index].start() + (len(name) + 1 if given and name.startswith("--") else 0)
    opening = inline if given and name.startswith("--") else parts[index][0]
    if not opening.startswith(_OPENING):
        return index
    for last in range(index, len(parts)):
        try:
            json.loads(line[begins : parts[last].end()])
        except (ValueError, RecursionError):
            continue
        return last
    return index
