"""Domain types as JSON documents, field by field.

A field that the type has gained since a document was stored gets its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_document(value: Any) -> Any:
    """A value of the domain in plain types: dataclasses and mappings as objects, sequences as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_document(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_document(item) for item in value]
    return value


def from_document(kind: type[T], document: Any) -> T:
    """The inverse: a value of a dataclass from its document."""
    value: T = _revive(kind, document)
    return value


def _revive(kind: Any, document: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if document is None:
        return None
    if origin in (Union, UnionType):
        possible = [one for one in inner if one is not type(None)]
        return _revive(possible[0], document) if len(possible) == 1 else document
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        make: Any = kind
        return make(**{name: _revive(hints[name], item) for name, item in document.items() if name in hints})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(document)
    if origin is tuple:
        kinds = inner[:1] * len(document) if inner[1:] == (Ellipsis,) else inner
        return tuple(_revive(one, item) for one, item in zip(kinds, document, strict=True))
    if origin is list:
        return [_revive(inner[0], item) for item in document]
    if origin is not None and issubclass(origin, Mapping):
        return {key: _revive(inner[1], item) for key, item in document.items()}
    return document
