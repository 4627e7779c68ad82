"""Texts of which many have one form: a form is learned strictly once, after that it costs one look-up.

The shape of a text is what remains when its digits are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Generic, TypeVar

FORMS_KEPT: Final = 4_096

_DIGITS: Final = b"0123456789"
_NUMBER: Final = re.compile(rb"\d+")

Form = TypeVar("Form")


class LearnedForms(Generic[Form]):
    """Forms by the shape of their texts.

    ``learn`` takes a text apart and gives its form, ``None`` for one that is torn.
    """

    def __init__(self, learn: Callable[[bytes], Form | None]) -> None:
        self._learn = learn
        self._forms: dict[bytes, Form] = {}
        self._torn: set[bytes] = set()

    def __len__(self) -> int:
        """How many forms and torn texts are remembered, each at most :data:`FORMS_KEPT`."""
        return len(self._forms) + len(self._torn)

    def of(self, text: bytes) -> Form | None:
        """The form of a text.

        One that lacks digits is torn but has the shape of whole ones, so a caller still checks each value.
        """
        shape = text.translate(None, _DIGITS)
        form = self._forms.get(shape)
        return self._first_of(text, shape) if form is None else form

    def _first_of(self, text: bytes, shape: bytes) -> Form | None:
        exact = _NUMBER.sub(b"0", text)
        if exact in self._torn:
            return None
        form = self._learn(text)
        if form is None:
            if len(self._torn) < FORMS_KEPT:
                self._torn.add(exact)
        elif len(self._forms) < FORMS_KEPT:
            self._forms[shape] = form
        return form
