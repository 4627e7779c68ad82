"""Configurations of llama-swap: a command for each model, with macros.

A command's lines belong together without a backslash, and lines that begin with ``#`` are comments.

Source: llama-swap, ``config.example.yaml`` (``models``, ``cmd``, ``env``, ``macros``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from collector.domain.errors import MalformedInput
from collector.launch.nodes import Node, documents
from collector.launch.shell import Word
from collector.launch.sources.base import LaunchSource, Snippet

_MODELS: Final = re.compile(r"(?m)^models:\s*(?:#.*)?$")
_COMMAND: Final = re.compile(r"(?m)^\s+[\"']?cmd[\"']?\s*:")
_MACRO: Final = re.compile(r"\$\{([\w-]+)\}")
_NESTED: Final = 8
"""Macros in macros that are put in."""


class LlamaSwapSource(LaunchSource):
    """``cmd`` of every model."""

    kind: ClassVar[str] = "a llama-swap configuration"
    order: ClassVar[int] = 2

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """One for each model, named after it."""
        if not _MODELS.search(text) or not _COMMAND.search(text):
            return None
        try:
            found = documents(text, source)
        except MalformedInput:
            return None
        return [snippet for document in found for snippet in _commands(document, source)]


SOURCE: Final = LlamaSwapSource()


def _commands(document: Node, source: str) -> Iterator[Snippet]:
    models, shared = document.get("models"), document.get("macros")
    for name, model in models.items() if models is not None else ():
        command = model.get("cmd")
        if command is None or command.scalar is None:
            continue
        macros = {
            key: node.scalar or "" for part in (shared, model.get("macros")) if part for key, node in part.items()
        }
        environment = model.get("env")
        pairs = (word.text.partition("=") for word in environment.texts()) if environment is not None else ()
        yield Snippet(
            list(_words(command, macros, source)),
            verbatim=False,
            environment={variable: value for variable, given, value in pairs if given},
            label=name,
        )


def _words(command: Node, macros: Mapping[str, str], source: str) -> Iterator[Word]:
    """The command's words; those of a macro stand at the line that names it."""
    for word in command.shell_words(source):
        if word.operator and word.text == "\n":
            continue
        expanded = _expanded(word.text, macros)
        if expanded == word.text:
            yield word._replace(operator=False)
        else:
            yield from (Word(part, word.line, 0, 0) for part in expanded.split())


def _expanded(text: str, macros: Mapping[str, str]) -> str:
    for _ in range(_NESTED):
        again = _MACRO.sub(lambda found: macros.get(found[1], found[0]), text)
        if again == text:
            break
        text = again
    return text
