"""How an engine is launched: where its command begins, and which options it takes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from collector.launch.options import Option
from collector.launch.shell import Word

_IMAGE: Final = re.compile(r"(?:[\w.:-]+/)*(?P<name>[\w.-]+)(?::(?P<tag>[\w.-]+))?(?:@.*)?")
_RELEASE: Final = re.compile(r"v?(\d+(?:\.\d+)+(?:\.?(?:post|rc)\d+)?)(?![\w.])")


class Dialect(ABC):
    """The launch command of one engine. One module of this package has one ``DIALECT``."""

    engine: ClassVar[str]
    title: ClassVar[str]
    program: ClassVar[tuple[str, ...]]
    """The words that start the server, where a command must be written without one to go by."""
    images: ClassVar[frozenset[str]] = frozenset()
    """Names of the engine's own container images, without the registry."""
    image_serves: ClassVar[bool] = False
    """Whether a container of such an image starts the server by itself."""
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

    def from_environment(self, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Fields that environment variables set where no option does."""
        del environment
        return {}

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was read, in the form and under the names that the engine itself uses."""
        return values

    def starts_in(self, image: str) -> tuple[str, ...]:
        """The program that a container of this image starts when no command is given; nothing if it starts none."""
        match = _IMAGE.fullmatch(image)
        return self.program if self.image_serves and match is not None and match["name"] in self.images else ()

    def release_in(self, image: str) -> str:
        """The release that the tag of one of the engine's own images names; nothing where it names none."""
        match = _IMAGE.fullmatch(image)
        release = _RELEASE.match(match["tag"] or "") if match is not None and match["name"] in self.images else None
        return release[1] if release is not None else ""

    def named_in(self, text: str) -> bool:
        """Whether a quoted text may hold the engine's launch command."""
        return self.engine in text
