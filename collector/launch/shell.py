"""Splits shell text into words as a shell would, without expanding anything.

Variables stay visible (``$MODEL``), comments go, continuations join. What cannot be closed is an
error that names the line.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from collector.domain.errors import MalformedInput

_OPERATORS: Final = ("&&", "||", ";;", ";", "|", "&", "(", ")", "\n")
_BLANK: Final = " \t\r"


class Word(NamedTuple):
    """One word or operator of a command: its text without quotes, its line from 1, and its place in the text."""

    text: str
    line: int
    start: int
    end: int
    operator: bool = False


def split_words(text: str, source: str) -> list[Word]:
    """The words and operators of shell text.

    Raises:
        MalformedInput: a quote is not closed.
    """
    words: list[Word] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character in _BLANK:
            position += 1
        elif _continues(text, position):
            position = _after_continuation(text, position)
        elif character == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif operator := next((item for item in _OPERATORS if text.startswith(item, position)), ""):
            words.append(Word(operator, _line(text, position), position, position + len(operator), operator=True))
            position += len(operator)
        else:
            word = _word(text, position, source)
            words.append(word)
            position = word.end
    return words


def _word(text: str, start: int, source: str) -> Word:
    parts: list[str] = []
    position = start
    while position < len(text):
        character = text[position]
        if character in "'\"":
            part, position = _quoted(text, position, source)
            parts.append(part)
        elif _continues(text, position):
            position = _after_continuation(text, position)
        elif character == "\\":
            parts.append(text[position + 1 : position + 2])
            position += 2
        elif text.startswith(("${", "$("), position):
            end = text.find("}" if text[position + 1] == "{" else ")", position)
            end = len(text) if end < 0 else end + 1
            parts.append(text[position:end])
            position = end
        elif character in _BLANK or any(text.startswith(item, position) for item in _OPERATORS):
            break
        else:
            parts.append(character)
            position += 1
    return Word("".join(parts), _line(text, start), start, min(position, len(text)))


def _quoted(text: str, start: int, source: str) -> tuple[str, int]:
    quote = text[start]
    parts: list[str] = []
    position = start + 1
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
    raise MalformedInput(
        "a quote is not closed",
        why=f"the {quote} is opened and never closed",
        where=f"{source}:{_line(text, start)}",
        hint="close the quote, or give the command exactly as it was typed",
    )


def _continues(text: str, position: int) -> bool:
    return text.startswith(("\\\n", "\\\r\n"), position)


def _after_continuation(text: str, position: int) -> int:
    return position + (2 if text.startswith("\\\n", position) else 3)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
