"""systemd units, and the container units of Podman."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from collector.launch.shell import Word, split_words
from collector.launch.sources.base import LaunchSource, Snippet

_SECTION: Final = re.compile(r"(?m)^\s*\[(?:Unit|Service|Container)\]\s*$")
_CONTAINER: Final = "Exec"
_STARTS: Final = ("ExecStart", "ExecStartPre", "ExecStartPost", _CONTAINER)
# @ - : + ! before the program say how systemd runs it.
_MARKS: Final = re.compile(r"[@\-:+!]+")


class UnitSource(LaunchSource):
    """``ExecStart=`` of a service, ``Image=`` and ``Exec=`` of a container, with ``Environment=``."""

    kind: ClassVar[str] = "a systemd unit"
    order: ClassVar[int] = 1

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """One for each command of the unit, the variables of the whole unit with it."""
        if not _SECTION.search(text):
            return None
        settings = list(_settings(text))
        environment: dict[str, str] = {}
        for setting in settings:
            if setting.name == "Environment":
                pairs = (word.text.partition("=") for word in setting.words(source))
                environment |= {name: value for name, given, value in pairs if given}
        image = next((setting.value.strip() for setting in settings if setting.name == "Image"), "")
        return [
            Snippet(_command(setting, source), verbatim=True, environment=environment, image=image)
            for setting in settings
            if setting.name in _STARTS and setting.value.strip()
        ]


SOURCE: Final = UnitSource()


class _Setting(NamedTuple):
    """One ``Name=value``; the lines of its value end as they do in the file, so that words know theirs."""

    name: str
    value: str
    line: int

    def words(self, source: str) -> list[Word]:
        """The words of the value; systemd has no operators."""
        found = split_words(self.value, source, self.line)
        return [word._replace(operator=False) for word in found if word.text != "\n"]


def _settings(text: str) -> Iterator[_Setting]:
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first = number
        parts = [lines[number]]
        number += 1
        if parts[0].lstrip().startswith(("#", ";", "[")) or "=" not in parts[0]:
            continue
        while parts[-1].rstrip().endswith("\\") and number < len(lines):
            # A comment between continued lines is left out and does not end them.
            comment = lines[number].lstrip().startswith(("#", ";"))
            parts[-1] = parts[-1].rstrip()
            parts.append("\\" if comment else lines[number])
            number += 1
        name, _, value = "\n".join(parts).partition("=")
        yield _Setting(name.strip(), value.removesuffix("\\"), first + 1)


def _command(setting: _Setting, source: str) -> list[Word]:
    """The command; that of a service without the marks that may stand before its program."""
    words = setting.words(source)
    first = words[0]
    marks = None if setting.name == _CONTAINER else _MARKS.match(first.text)
    return [first._replace(text=first.text[marks.end() :]), *words[1:]] if marks else words
