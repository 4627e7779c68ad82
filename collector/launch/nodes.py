"""YAML (and JSON) documents with the line of every value, for manifests that hold launch commands.

Nothing is constructed: tags are not followed, so a manifest can do no harm, and a value that is
used in several places through an anchor is one node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from collector.domain.errors import MalformedInput
from collector.launch.shell import Word, split_words

if TYPE_CHECKING:
    import yaml

_SEPARATOR: Final = re.compile(r"(?m)^---(?=\s|$).*$")
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FINDABLE: Final = re.compile(r"[^\s'\"\\]{2,}")
_NULLS: Final = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document.

    ``text`` is the whole document the value stands in, ``first_line`` the line of the file at
    which that document begins.
    """

    raw: yaml.Node
    text: str
    first_line: int

    @property
    def line(self) -> int:
        """The line of the file at which the value begins, from 1."""
        return self.first_line + int(self.raw.start_mark.line)

    @property
    def scalar(self) -> str | None:
        """A plain value as text; ``None`` for lists, mappings and null."""
        raw: Any = self.raw
        return None if raw.id != "scalar" or (raw.style is None and raw.value in _NULLS) else str(raw.value)

    def items(self) -> list[tuple[str, Node]]:
        """Keys and values of a mapping, merged ones (``<<``) included; nothing for anything else."""
        return [(key, self._of(value)) for key, value in _entries(self.raw, set()).items()]

    def get(self, *keys: str) -> Node | None:
        """The value below one or several keys, ``None`` where there is none."""
        found: Node | None = self
        for wanted in keys:
            found = next((value for key, value in found.items() if key == wanted), None) if found else None
        return found

    def members(self) -> list[Node]:
        """The members of a list; nothing for anything else."""
        raw: Any = self.raw
        return [self._of(item) for item in raw.value] if raw.id == "sequence" else []

    def texts(self) -> list[Word]:
        """The plain values of a list as words, each with its line."""
        return [Word(item.script, item.content_line, 0, 0) for item in self.members() if item.scalar is not None]

    @property
    def script(self) -> str:
        """A plain value as shell text with the line ends of the file, where YAML joined its lines."""
        value = self.scalar or ""
        if self._style != ">" or "'" in value:
            return value
        block = self.text[self.raw.start_mark.index : self.raw.end_mark.index].split("\n")[1:]
        lines = [line.strip() for line in block if line.strip() and not line.lstrip().startswith("#")]
        return " \\\n".join(lines) if " ".join(lines) == value.strip() else value

    @property
    def content_line(self) -> int:
        """The line at which the text of a plain value begins: for a block it is the one below its mark."""
        return self.line + (self._style in ("|", ">"))

    @property
    def _style(self) -> str | None:
        return getattr(self.raw, "style", None)

    def shell_words(self, source: str) -> list[Word]:
        """A plain value split as shell text, each word with its line.

        Raises:
            MalformedInput: a quote is not closed.
        """
        words = split_words(self.scalar or "", source, self.content_line)
        if self._style == "|" or self.raw.start_mark.line == self.raw.end_mark.line:
            return words
        return list(self._located(words))

    def _located(self, words: list[Word]) -> Iterator[Word]:
        """Words of a value whose lines YAML joined, with the lines at which they stand in the file."""
        cursor = int(self.raw.start_mark.index)
        end = int(self.raw.end_mark.index)
        for word in words:
            part = _FINDABLE.search(word.text)
            found = self.text.find(part[0], cursor, end) if part else -1
            if found >= 0:
                cursor = found
            yield word._replace(line=self.first_line + self.text.count("\n", 0, cursor))
            cursor += len(part[0]) if part and found >= 0 else 0

    def walk(self) -> Iterator[Node]:
        """This node and all below it, each once, in order."""
        entered: set[int] = set()
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if id(node.raw) in entered:
                continue
            entered.add(id(node.raw))
            yield node
            waiting += reversed([*node.members(), *(value for _, value in node.items())])

    def _of(self, raw: Any) -> Node:
        return Node(raw, self.text, self.first_line)


def _entries(raw: Any, entered: set[int]) -> dict[str, Any]:
    """A mapping's own keys, then those it merges; a mapping that merges itself is entered once."""
    if raw.id != "mapping" or id(raw) in entered:
        return {}
    entered.add(id(raw))
    named = [(str(key.value), value) for key, value in raw.value if key.id == "scalar"]
    found = {name: value for name, value in named if name != "<<"}
    for name, value in named:
        if name == "<<":
            for merged in [value] if value.id == "mapping" else value.value:
                found = {**_entries(merged, entered), **found}
    return found


def documents(text: str, source: str, wanted: Callable[[str], bool] = bool, *, first_line: int = 1) -> list[Node]:
    """The documents of a file with one or several, empty ones and those that are not wanted left out.

    Raises:
        MalformedInput: one of them is no YAML.
    """
    found = []
    start = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if match is None else match.start()
        part = text[start:end]
        node = _document(part, source, first_line + text.count("\n", 0, start)) if wanted(part) else None
        if node is not None:
            found.append(node)
        start = end if match is None else match.end()
    return found


def _document(text: str, source: str, first_line: int) -> Node | None:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        templated = _TEMPLATE.search(text) is not None
        raise MalformedInput(
            "this is not valid YAML",
            why=" ".join(part for part in (error.problem, error.context) if part),
            where=source if mark is None else f"{source}:{first_line + mark.line}",
            hint="render the templates first, for instance with helm template" if templated else "",
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise MalformedInput("this is not valid YAML", why=str(error).splitlines()[0], where=source) from error
    return None if node is None else Node(node, text, first_line)
