"""What the readers of responses share: what stands around a response, and figures out of foreign JSON."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from collector.domain.errors import ImpossibleFigure
from collector.domain.requests import RequestResult

Found = Mapping[str, Any]
LARGEST: Final = 1 << 40
"""No count of one request is larger."""
LONGEST_NAME: Final = 200
"""Characters of a route or an id that are kept."""
EARLIEST: Final = 1e9
"""Instants before it (2001) are none: seconds since some start."""
_MILLISECONDS: Final = 1e11

_INSTANTS: Final = ("at", "timestamp", "time", "t", "ts", "created")
_ROUTES: Final = ("route", "endpoint", "path")
_PARAMETERS: Final = ("sampling_params", "generation_settings", "parameters", "request", "body", "metadata", "labels")
"""Where a request's own settings may stand beside its response."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the documents around a response say of the request; ``None`` or "" where they do not.

    ``name`` is the id of the response as the OpenAI-compatible interfaces give it, ``usage`` its token counts.
    """

    line: int = 0
    at: float | None = None
    route: str = ""
    temperature: float | None = None
    name: str = ""
    usage: Mapping[str, Any] | None = None

    def within(self, document: Found) -> Surroundings:
        """The same, one level further in."""
        told = (instant(document[key]) for key in _INSTANTS if key in document)
        at = next((value for value in told if value is not None), self.at)
        route, temperature = _setting(document, _route), _setting(document, _temperature)
        name, usage = document.get("id"), document.get("usage")
        return replace(
            self,
            at=at,
            route=self.route if route is None else route,
            temperature=self.temperature if temperature is None else temperature,
            name=name[:LONGEST_NAME] if isinstance(name, str) and name else self.name,
            usage=usage if isinstance(usage, dict) else self.usage,
        )


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """How one engine's responses are read.

    ``claims`` says whether an object holds the figures of a response, ``read`` makes a result of it;
    ``read`` gives ``None`` for the parts of a streamed answer that say nothing yet.
    """

    engine: str
    claims: Callable[[Found], bool]
    read: Callable[[Found, Surroundings], RequestResult | None]


def _setting(document: Found, read: Callable[[Found], Any]) -> Any:
    """A request's setting from the document, else from the objects in it that hold settings."""
    found = read(document)
    if found is not None:
        return found
    inner = (document[key] for key in _PARAMETERS if isinstance(document.get(key), dict))
    return next((value for part in inner if (value := _setting(part, read)) is not None), None)


def _route(document: Found) -> str | None:
    stated = next((document[key] for key in _ROUTES if isinstance(document.get(key), str) and document[key]), None)
    return None if stated is None else stated.strip()[:LONGEST_NAME]


def _temperature(document: Found) -> float | None:
    return seconds(document["temperature"]) if "temperature" in document else None


def instant(value: Any) -> float | None:
    """Seconds since 1970 from seconds, milliseconds or an ISO 8601 text; ``None`` for anything else."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        try:
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, OSError):
            return None
    figure = seconds(value)
    if figure is None or figure < EARLIEST:
        return None
    figure = figure / 1000 if figure >= _MILLISECONDS else figure
    return figure if figure < _MILLISECONDS else None


def seconds(value: Any) -> float | None:
    """A finite figure that is not negative, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        figure = float(value)
    except OverflowError:
        return None
    return figure if math.isfinite(figure) and figure >= 0 else None


def milliseconds(value: Any) -> float | None:
    """The same in seconds, of milliseconds."""
    figure = seconds(value)
    return None if figure is None else figure / 1000


def count(document: Found, *names: str) -> int | None:
    """The first of some counts that is there; ``None`` where none is.

    Raises:
        ImpossibleFigure: it is no whole number from 0 on.
    """
    for name in names:
        if document.get(name) is not None:
            return _whole(document[name], name)
    return None


def counts(document: Found, *names: str) -> tuple[int, ...] | None:
    """The first of some lists of counts that is there and not empty; ``None`` where none is.

    Raises:
        ImpossibleFigure: it is no list, or one of its counts is none.
    """
    for name in names:
        value = document.get(name)
        if isinstance(value, Sequence) and not isinstance(value, str):
            if value:
                return tuple(_whole(item, name) for item in value)
        elif value is not None:
            raise ImpossibleFigure(f"{name} is {_shown(value)}", why="a histogram is a list of counts")
    return None


def _whole(value: Any, name: str) -> int:
    figure = None if isinstance(value, bool) or not isinstance(value, (int, float)) else value
    if figure is None or not 0 <= figure <= LARGEST or figure != int(figure):
        raise ImpossibleFigure(f"{name} is {_shown(value)}", why="a count is a whole number from 0 on")
    return int(figure)


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, (bool, float, type(None))) else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def key_of(engine: str, name: str, document: Found, around: Surroundings) -> str:
    """A response's identity, 32 characters: of the engine's id for it, else of all that it says."""
    told = [name, document.get("index")] if name else [document, around.at]
    text = json.dumps([engine, told], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
