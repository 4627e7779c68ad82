"""Column types that behave the same on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Dialect, String
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import JSON, TypeDecorator, TypeEngine

from collector.domain.arguments import UNSEEN

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_OF_TEXT: Final = _EPOCH.replace(tzinfo=None)
_NUMBER_KEY: Final = "$number"
_JSON_NULL: Final = object()
"""What a stored JSON ``null`` is read as, so that it differs from an absent (SQL NULL) value."""


_AS_GIVEN: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SORTED: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def storable(text: str) -> str:
    """The same text without what PostgreSQL cannot hold: NUL becomes its symbol, lone surrogates a question mark."""
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def dump_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON text; NaN and infinities, which JSON lacks, become ``{"$number": "nan"}``."""
    return (_SORTED if sort_keys else _AS_GIVEN).encode(_plain(value))


def load_json(text: str | bytes) -> Any:
    """The inverse of :func:`dump_json`; a top-level ``null`` becomes a mark of its own (see :class:`SeenJson`)."""
    special = _NUMBER_KEY in text if isinstance(text, str) else _NUMBER_KEY.encode() in text
    value = json.loads(text, object_hook=_revive if special else None)  # the hook takes as long as all the rest
    return _JSON_NULL if value is None else value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER_KEY: str(float(value))}
    if isinstance(value, dict):
        return {storable(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _revive(document: dict[str, Any]) -> Any:
    if len(document) == 1 and document.get(_NUMBER_KEY) in ("nan", "inf", "-inf"):
        return float(document[_NUMBER_KEY])
    return document


class Instant(TypeDecorator[float]):
    """Seconds since 1970 in Python; a time with zone (UTC) in the database, to the microsecond.

    SQLite, which has no such type, holds ISO 8601 text ending in ``Z``, which sorts by time.
    """

    impl = String(27)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """TIMESTAMP WITH TIME ZONE on PostgreSQL."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(String(27))

    def process_bind_param(self, value: float | None, dialect: Dialect) -> Any:
        """Seconds to what the driver takes."""
        if value is None:
            return None
        passed = timedelta(seconds=value)
        if dialect.name == "postgresql":
            return _EPOCH + passed
        return (_EPOCH_OF_TEXT + passed).isoformat(timespec="microseconds") + "Z"

    def process_result_value(self, value: Any, dialect: Dialect) -> float | None:
        """What the driver gives to seconds."""
        if value is None:
            return None
        moment = value if dialect.name == "postgresql" else datetime.fromisoformat(value)
        return (moment - _EPOCH) / timedelta(seconds=1)


def stored_instant(value: float) -> float:
    """An instant as it is read back."""
    return timedelta(seconds=value) / timedelta(seconds=1)


class Text(TypeDecorator[str]):
    """Text that was read somewhere and may hold anything; see :func:`storable`."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Make it storable."""
        return None if value is None else storable(value)


_JSON: Final = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


class Json(TypeDecorator[Any]):
    """A JSON document, or NULL. JSONB on PostgreSQL."""

    impl = _JSON
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """A stored ``null`` is ``None`` as well."""
        return None if value is _JSON_NULL else value


class SeenJson(TypeDecorator[Any]):
    """A value that may be unseen: NULL is ``UNSEEN``, JSON ``null`` is a value that was stated to be unset.

    It is held as text: columns of JSON types take a number alone for one of the database's own, and lose its type
    (``1.0``) or digits.
    """

    impl = String
    cache_ok = True
    should_evaluate_none = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """``UNSEEN`` to NULL."""
        return None if value is UNSEEN else dump_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """NULL to ``UNSEEN``."""
        if value is None:
            return UNSEEN
        found = load_json(value)
        return None if found is _JSON_NULL else found
