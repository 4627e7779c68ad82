"""What is read from a file of responses, in a form that people can compare line by line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from collector.domain.requests import RequestResult
from collector.requests import read_responses

FOLDER = Path(__file__).parent


def files() -> list[str]:
    found = (path for path in FOLDER.glob("*/*") if path.suffix in (".json", ".jsonl"))
    return sorted(str(path.relative_to(FOLDER)) for path in found)


def as_read(name: str) -> dict[str, Any]:
    found = read_responses([(FOLDER / name).read_bytes()], name)
    return {"notes": list(found.notes()), "results": [_stated(result) for result in found.results]}


def _stated(result: RequestResult) -> dict[str, Any]:
    stated = {field.name: getattr(result, field.name) for field in fields(result)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in stated.items()
        if value not in (None, "")
    }
