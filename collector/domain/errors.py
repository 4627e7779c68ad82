"""The errors a user can meet, and the four parts each of them has.

::

    DraftscopeError
    ├── InputError            something given cannot be used
    │   ├── UnreadableInput   it cannot be opened or is not of a kind we know
    │   │   └── NoLaunchCommand   it was read, and no engine is launched in it
    │   ├── MalformedInput    it is of a kind we know, and broken at a place we can name
    │   └── UnknownName       a name (rule, run, setting, flag) that does not exist
    ├── ImpossibleFigure      a figure that no engine can produce: reported, never clipped
    ├── SourceError           a live source does not answer as it should
    ├── StorageError          the database cannot do what was asked
    └── RefusedError          we decline on purpose (an open bind without a token, a foreign address)
"""

from __future__ import annotations


class DraftscopeError(Exception):
    """What happened, why if known, where, and what to try.

    Pages, API and command line print the same four parts.
    """

    def __init__(self, what: str, *, why: str = "", where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.where = where
        self.hint = hint

    def parts(self) -> dict[str, str]:
        """The parts that are known, in the order they are read: what, why, where, try."""
        named = {"what": self.what, "why": self.why, "where": self.where, "try": self.hint}
        return {name: text for name, text in named.items() if text}

    def __str__(self) -> str:
        return "; ".join(self.parts().values())


class InputError(DraftscopeError):
    """Something that was given cannot be used."""


class UnreadableInput(InputError):
    """The input cannot be opened, or its kind is not one we know."""


class NoLaunchCommand(UnreadableInput):
    """The text was read, and no known engine is launched in it."""


class MalformedInput(InputError):
    """The input is of a known kind and broken at a place that ``where`` names."""


class UnknownName(InputError):
    """A rule, run, setting or flag of this name does not exist; ``hint`` names the nearest."""


class ImpossibleFigure(DraftscopeError):
    """A figure outside what its definition allows, for instance a length above depth + 1.

    It means a wrong depth, a wrong definition or corrupt data. It becomes finding MEA002 or
    MEA003 and is never clipped.
    """


class SourceError(DraftscopeError):
    """A live source (engine endpoint, store) does not answer as it should."""


class StorageError(DraftscopeError):
    """The database cannot do what was asked."""


class RefusedError(DraftscopeError):
    """draftscope declines on purpose, for instance to listen openly without a token."""
