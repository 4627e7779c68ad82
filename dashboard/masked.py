"""Secrets that cannot be printed by accident."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

MASK: Final = "***"


class Secret:
    """A text that prints as ``***``; :meth:`reveal` gives it where it is used."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class SecretUrl(Secret):
    """An address whose user, path and query may be secret: it prints as ``https://host/***``."""

    __slots__ = ()

    def __str__(self) -> str:
        try:
            parts = urlsplit(self._text)
            host = parts.hostname or ""
        except ValueError:
            return MASK
        return f"{parts.scheme}://{host}/{MASK}" if parts.scheme and host else MASK
