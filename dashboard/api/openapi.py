"""The OpenAPI document, with the published schema of the diagnosis among its components."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from analysis.diagnosis import schema

NAME: Final = "Diagnosis"
_LOCAL: Final = "#/$defs/"
_SHARED: Final = "#/components/schemas/"


class Service(FastAPI):
    """A FastAPI app whose OpenAPI document describes the diagnosis in full."""

    def openapi(self) -> dict[str, Any]:
        """The document; made once."""
        if self.openapi_schema is None:
            super().openapi()["components"]["schemas"].update(components())
        return super().openapi()


def reference() -> dict[str, str]:
    """What an endpoint that answers with a diagnosis refers to."""
    return {"$ref": f"{_SHARED}{NAME}"}


def components() -> dict[str, Any]:
    """The published schema and its parts under names of their own."""
    published = schema()
    parts = published.pop("$defs")
    for key in ("$schema", "$id"):
        published.pop(key)
    named = {NAME: published} | {_named(part): definition for part, definition in parts.items()}
    renamed: dict[str, Any] = _renamed(named)
    return renamed


def _named(part: str) -> str:
    return NAME + "".join(word.capitalize() for word in part.split("_"))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _SHARED + _named(item.removeprefix(_LOCAL)) if key == "$ref" else _renamed(item)
            for key, item in value.items()
        }
    return [_renamed(item) for item in value] if isinstance(value, list) else value
