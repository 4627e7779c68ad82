"""What a source of launch commands is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from collector.launch.shell import Word


@dataclass(frozen=True, slots=True)
class SettingsText:
    """A file of options that a command may name: its text, and the line at which it begins in its source."""

    text: str
    first_line: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """Words among which a command may stand.

    ``words`` are those of a script, operators included, or of one command without any;
    ``verbatim`` says that the lines of the source are the command's own text. ``environment``
    holds variables that are set for it, ``image`` the container image it runs in, ``replaced``
    says that a command stands in for the image's own, ``label`` which of several it is,
    ``settings`` are the files that its source mounts, by name.
    """

    words: list[Word]
    verbatim: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    replaced: bool = False
    label: str = ""
    settings: Mapping[str, SettingsText] = field(default_factory=dict)


class LaunchSource(ABC):
    """One kind of text in which launch commands stand; one module of this package has one ``SOURCE``.

    ``order`` says when it is asked: kinds that know their texts surely come first.
    """

    kind: ClassVar[str]
    order: ClassVar[int]

    @abstractmethod
    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """The parts of the text in which commands may stand; ``None`` where it is of another kind.

        Raises:
            MalformedInput: it is of this kind and broken.
        """
