"""Messages that are known by their beginning: which stage prints them, and which releases."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from collector.domain.versions import ReleaseRange

WIDTH: Final = 8


class Stage(StrEnum):
    """When a message is printed, and whether it is kept."""

    ARGUMENTS = "a"
    NOTABLE = "n"
    KNOWN = "r"


class Message(NamedTuple):
    """A known message: its beginning, stage and releases."""

    starts: bytes
    stage: Stage
    versions: ReleaseRange


class MessageTable:
    """Finds known messages; of two that fit, the longer beginning wins."""

    def __init__(self, messages: list[Message]) -> None:
        self._table: dict[bytes, list[Message]] = {}
        for message in sorted(messages, key=lambda item: -len(item.starts)):
            self._table.setdefault(message.starts[:WIDTH], []).append(message)

    def find(self, text: bytes) -> Message | None:
        """The known message that a text is."""
        for message in self._table.get(text[:WIDTH], ()):
            if text.startswith(message.starts):
                return message
        return None


@cache
def known_messages() -> MessageTable:
    """The messages of SGLang's releases 0.4.1 to 0.5.23, as read in their sources."""
    folder = files(__package__)
    everywhere = ReleaseRange()
    messages = [
        Message(line.encode(), Stage.KNOWN, everywhere)
        for line in folder.joinpath("chatter.txt").read_text("utf-8").splitlines()
    ]
    for line in folder.joinpath("messages.tsv").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            stage, versions, starts = line.split("\t")
            messages.append(Message(starts.encode(), Stage(stage), ReleaseRange.parse(versions)))
    return MessageTable(messages)


@cache
def field_ranges() -> dict[str, ReleaseRange]:
    """Releases whose argument line has a field; fields that every release has are left out."""
    lines = files(__package__).joinpath("fields.tsv").read_text("utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: ReleaseRange.parse(versions) for name, versions in pairs}
