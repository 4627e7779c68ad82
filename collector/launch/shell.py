"""Splits shell text into words as a shell would, without expanding anything.

Variables and substitutions stay visible (``$MODEL``, ``$(hostname)``), comments go, continuations
join. What is not closed is an error that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from collector.domain.errors import MalformedInput

_OPERATORS: Final = ("&&", "||", ";;", ";", "|", "&", "(", ")", "\n")
_DRIVE: Final = re.compile(r"[A-Za-z]:\\")
"""A path of Windows, whose backslashes stand for themselves."""
_CONTINUED: Final = re.compile(r"\\\r?\n|(?<=[ \t])[\^`]\r?\n")
"""The end of a line that goes on: as POSIX shells write it, and as those of Windows do."""
_BLANK: Final = " \t\r"


class Word(NamedTuple):
    """One word or operator of a command: its text without quotes, its line, and its place in the text.

    ``bare`` says that it does not begin in quotes, so that ``>`` and ``<`` redirect.
    """

    text: str
    line: int
    start: int
    end: int
    operator: bool = False
    bare: bool = False


def split_words(text: str, source: str, first_line: int = 1) -> list[Word]:
    """The words and operators of shell text that begins at ``first_line`` of its source.

    Raises:
        MalformedInput: a quote or a substitution is not closed.
    """
    return list(_Splitter(text, source, first_line).words())


class _Splitter:
    def __init__(self, text: str, source: str, first_line: int) -> None:
        self.text = text
        self.source = source
        self._line, self._counted = first_line, 0

    def words(self) -> Iterator[Word]:
        text, position = self.text, 0
        while position < len(text):
            character = text[position]
            if character in _BLANK:
                position += 1
            elif self._continues(position):
                position = self._after_continuation(position)
            elif character == "#":
                end = text.find("\n", position)
                position = len(text) if end < 0 else end
            elif operator := next((item for item in _OPERATORS if text.startswith(item, position)), ""):
                yield Word(operator, self.line(position), position, position + len(operator), operator=True)
                position += len(operator)
            else:
                word = self._word(position)
                yield word
                position = word.end

    def line(self, position: int) -> int:
        """The line of a place that lies behind every one asked for before."""
        self._line += self.text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _word(self, start: int) -> Word:
        text, position = self.text, start
        line = self.line(start)
        windows = _DRIVE.match(text, start) is not None
        parts: list[str] = []
        while position < len(text):
            character = text[position]
            if character in "'\"":
                part, position = self._quoted(position)
                parts.append(part)
            elif self._continues(position):
                position = self._after_continuation(position)
            elif character == "\\":
                parts.append(character if windows else text[position + 1 : position + 2])
                position += 1 if windows else 2
            elif character == "`" or text.startswith(("${", "$("), position):
                end = self._substituted(position)
                parts.append(text[position:end])
                position = end
            elif character in _BLANK or any(text.startswith(item, position) for item in _OPERATORS):
                break
            else:
                parts.append(character)
                position += 1
        return Word("".join(parts), line, start, min(position, len(text)), bare=text[start] not in "'\"\\")

    def _quoted(self, start: int) -> tuple[str, int]:
        text, quote, position = self.text, self.text[start], start + 1
        parts: list[str] = []
        while position < len(text):
            character = text[position]
            if character == quote:
                return "".join(parts), position + 1
            if character == "\\" and quote == '"' and position + 1 < len(text):
                escaped = text[position + 1]
                if escaped == "\n":
                    position += 2
                    continue
                parts.append(escaped if escaped in '"\\$`' else character + escaped)
                position += 2
                continue
            parts.append(character)
            position += 1
        raise self._open("a quote", quote, start)

    def _substituted(self, start: int) -> int:
        """The place after ``${...}``, ``$(...)`` or backticks, which stay as they are written."""
        text = self.text
        if text[start] == "`":
            end = text.find("`", start + 1)
            if end < 0:
                raise self._open("a substitution", "`", start)
            return end + 1
        opening = text[start + 1]
        closing = "}" if opening == "{" else ")"
        depth, position = 0, start + 1
        while position < len(text):
            character = text[position]
            if character == "\\":
                position += 1
            elif character in "'\"" and opening == "(":
                position = self._quoted(position)[1] - 1
            else:
                depth += (character == opening) - (character == closing)
                if not depth:
                    return position + 1
            position += 1
        raise self._open("a substitution", "$" + opening, start)

    def _open(self, what: str, opened: str, start: int) -> MalformedInput:
        line = self._line + self.text.count("\n", self._counted, start)
        return MalformedInput(
            f"{what} is not closed",
            why=f"the {opened} is opened and never closed",
            where=f"{self.source}:{line}",
            hint="close it, or give the command exactly as it was typed",
        )

    def _continues(self, position: int) -> bool:
        return _CONTINUED.match(self.text, position) is not None

    def _after_continuation(self, position: int) -> int:
        match = _CONTINUED.match(self.text, position)
        assert match is not None
        return match.end()
