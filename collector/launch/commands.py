"""From the text of a launch command to what it asks for."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import collector.launch
from collector.domain.arguments import LaunchCommand
from collector.domain.errors import UnreadableInput
from collector.domain.redaction import MASK, is_secret_name, redact_mapping, redact_text
from collector.launch.base import Dialect
from collector.launch.options import read_options
from collector.launch.shell import Word, split_words

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_REDIRECTION: Final = re.compile(r"\d*(?:>>?|<)(?:&\d+)?(?P<target>.*)")
_PROMPT: Final = re.compile(r"(?m)^[ \t]*(?:\$|>>>|[\w.-]+@[\w.-]+:[^\n#$]{0,80}[#$])[ \t]+(?=\S)")


@cache
def dialects() -> tuple[Dialect, ...]:
    """The launch dialects of this package, by engine."""
    found: list[Dialect] = []
    for info in pkgutil.iter_modules(collector.launch.__path__, "collector.launch."):
        candidate = getattr(importlib.import_module(info.name), "DIALECT", None)
        if isinstance(candidate, Dialect):
            found.append(candidate)
    return tuple(sorted(found, key=lambda dialect: dialect.engine))


def dialect_of(engine: str) -> Dialect:
    """The launch dialect of an engine that :func:`parse_launch` named."""
    return next(dialect for dialect in dialects() if dialect.engine == engine)


def parse_launch(text: str, source: str = "launch.txt") -> LaunchCommand:
    """What a launch command asks for; secrets are masked, variables stay as they are written.

    Raises:
        MalformedInput: a quote is not closed or an option lacks its value.
        UnreadableInput: no engine is launched in this text.
    """
    found = _find(split_words(_PROMPT.sub(_blank, text), source), source)
    if found is None:
        known = ", ".join(dialect.title for dialect in dialects())
        raise UnreadableInput(
            "no launch command of a known engine is in this text",
            where=source,
            hint=f"launch commands of these engines are read: {known}",
        )
    dialect, words, environment, first = found
    read = read_options(_without_redirections(words), dialect.options(), source)
    requested = dialect.settled({**dialect.positional(read.positional), **read.values})
    return LaunchCommand(
        engine=dialect.engine,
        text=redact_text(text.strip()),
        requested=redact_mapping(requested),
        environment={
            name: MASK if is_secret_name(name) and value else redact_text(value) for name, value in environment.items()
        },
        unknown=read.unknown,
        source=source,
        line=first,
    )


def _find(words: list[Word], source: str) -> tuple[Dialect, list[Word], dict[str, str], int] | None:
    """The command that launches an engine: its dialect, its options, the environment, its first line."""
    environment: dict[str, str] = {}
    for command in _commands(words):
        for dialect in dialects():
            begin = dialect.begins(command)
            if begin is not None:
                return dialect, command[begin:], {**environment, **_assignments(command[:begin])}, command[0].line
        for word in command:
            if " " in word.text and any(dialect.named_in(word.text) for dialect in dialects()):
                inner = _find(split_words(word.text, source), source)
                if inner is not None:
                    dialect, options, inside, _ = inner
                    return dialect, options, {**environment, **_assignments(command), **inside}, command[0].line
        if command[0].text == "export" or all(_ASSIGNMENT.match(word.text) for word in command):
            environment |= _assignments(command)
    return None


def _commands(words: list[Word]) -> Iterable[list[Word]]:
    command: list[Word] = []
    for word in words:
        if word.operator:
            if command:
                yield command
            command = []
        else:
            command.append(word)
    if command:
        yield command


def _assignments(words: list[Word]) -> dict[str, str]:
    pairs = (word.text.partition("=") for word in words if _ASSIGNMENT.match(word.text))
    return {name: value for name, _, value in pairs}


def _without_redirections(words: list[Word]) -> list[Word]:
    kept: list[Word] = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        match = _REDIRECTION.fullmatch(word.text)
        if match is None:
            kept.append(word)
        else:
            skip = not match["target"] and "&" not in word.text
    return kept


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
