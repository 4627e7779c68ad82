"""The OpenAPI document, with the published schemas of our documents among its components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi import FastAPI

import analysis.check
import analysis.compare
import analysis.diagnosis

_PUBLISHED: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "Diagnosis": analysis.diagnosis.schema,
    "Check": analysis.check.schema,
    "Comparison": analysis.compare.schema,
}
_LOCAL: Final = "#/$defs/"
_SHARED: Final = "#/components/schemas/"


class Service(FastAPI):
    """A FastAPI app whose OpenAPI document describes our documents in full."""

    def openapi(self) -> dict[str, Any]:
        """The document; made once."""
        if self.openapi_schema is None:
            super().openapi()["components"]["schemas"].update(components())
        return super().openapi()


def reference(name: str) -> dict[str, str]:
    """What an endpoint that answers with a published document refers to."""
    return {"$ref": f"{_SHARED}{name}"}


def components() -> dict[str, Any]:
    """Each published schema and its parts under names of their own."""
    found: dict[str, Any] = {}
    for name, schema in _PUBLISHED.items():
        published = schema()
        parts = published.pop("$defs", {})
        for key in ("$schema", "$id"):
            published.pop(key, None)
        named = {name: published} | {_named(name, part): definition for part, definition in parts.items()}
        found |= _renamed(name, named)
    return found


def _named(name: str, part: str) -> str:
    return name + "".join(word.capitalize() for word in part.split("_"))


def _renamed(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _SHARED + _named(name, item.removeprefix(_LOCAL))
            if key == "$ref" and item.startswith(_LOCAL)
            else _renamed(name, item)
            for key, item in value.items()
        }
    return [_renamed(name, item) for item in value] if isinstance(value, list) else value
