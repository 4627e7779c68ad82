"""How an engine is launched: where its command begins, and which options it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from collector.launch.options import Option
from collector.launch.shell import Word


class Dialect(ABC):
    """The launch command of one engine. One module of this package has one ``DIALECT``."""

    engine: ClassVar[str]
    title: ClassVar[str]
    program: ClassVar[tuple[str, ...]]
    """The words that start the server, where a command must be written without one to go by."""
    settings_field: ClassVar[str] = ""
    """The field that names a file of further options, if the engine has one."""

    @abstractmethod
    def begins(self, words: list[Word]) -> int | None:
        """The index of the first word after the program's name, ``None`` if the engine is not launched here."""

    @abstractmethod
    def options(self) -> Mapping[str, Option]:
        """Every option by its spelling."""

    def positional(self, words: tuple[str, ...]) -> Mapping[str, str]:
        """Fields that words without an option set."""
        del words
        return {}

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was read, in the form and under the names that the engine itself uses."""
        return values

    def starts_in(self, image: str) -> tuple[str, ...]:
        """The program that a container of this image starts when no command is given; nothing if it starts none."""
        del image
        return ()

    def named_in(self, text: str) -> bool:
        """Whether a quoted text may hold the engine's launch command."""
        return self.engine in text
