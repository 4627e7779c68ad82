"""One scrape of a running engine: its metrics, and what it says of itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from collector.domain.arguments import Argument
from collector.domain.errors import MalformedInput, SourceError
from collector.domain.evidence import Evidence
from collector.metrics import engines
from collector.metrics.base import EngineInfo, EngineMetrics, EngineState, falls, same_process
from collector.metrics.exposition import SeriesCache, parse_exposition
from collector.sources.http import Answer, Endpoint

_METRICS: Final = "/metrics"
_MODELS: Final = "/v1/models"
_OK, _UNAUTHORISED, _FORBIDDEN, _MISSING = 200, 401, 403, 404


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one scrape gave. ``notes`` are what could not be had and is not needed at once."""

    engine: EngineMetrics
    info: EngineInfo
    state: EngineState
    notes: tuple[str, ...] = ()


class Scraper:
    """Scrapes one engine, again and again.

    What the engine says of itself is asked for at first, where its figures need it, and whenever
    the process may be another one. Only paths that read are asked.
    """

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float] = time.time) -> None:
        """``clock`` gives the present instant, in seconds since 1970."""
        self.endpoint = endpoint
        self._clock = clock
        self._engine: EngineMetrics | None = None
        self._cache = SeriesCache()
        self._info: EngineInfo | None = None
        self._info_path: str | None = None
        self._last: EngineState | None = None

    def scrape(self) -> Scrape:
        """Ask once.

        Raises:
            SourceError: the engine does not answer as it should; the error says how.
        """
        try:
            return self._scrape()
        except SourceError:
            self._last = None  # what answers next may be another process
            raise

    def _scrape(self) -> Scrape:
        answer = self.endpoint.get(_METRICS)
        at = self._clock()
        self._check(answer)
        engine = self._engine = self._engine or self._recognise(answer)
        try:
            samples = parse_exposition(answer.body, wanted=engine.sample_names, cache=self._cache, source=answer.url)
        except MalformedInput as error:
            raise SourceError(
                error.what, why=error.why, where=error.where, hint="look at the answer itself with curl"
            ) from error
        if not samples:
            self._engine = None
            raise SourceError(
                f"no metrics of {engine.title} are there",
                where=answer.url,
                hint="is another server listening there now?",
            )
        known = self._info
        notes: tuple[str, ...] = ()
        info = known or EngineInfo()
        state = engine.state(samples, info, at)
        if known is None or self._last is None or engine.needs_info(state, info) or _may_be_another(self._last, state):
            try:
                info = self._ask_info(engine)
            except SourceError as error:
                if known is None or self._last is None:
                    raise
                notes = (str(error),)
                info = replace(info, mean_lengths={})  # those of an earlier scrape
            else:
                notes = info.notes
            state = engine.state(samples, info, at)
        self._info, self._last = info, state
        return Scrape(engine, info, state, notes)

    def _check(self, answer: Answer) -> None:
        """Refuse answers that cannot be metrics."""
        if answer.status == _MISSING:
            hints = "; ".join(dict.fromkeys(f"{engine.title}: {engine.metrics_hint}" for engine in engines()))
            raise SourceError(
                "the server exposes no metrics", why="it answered 404 (not found)", where=answer.url, hint=hints
            )
        self._check_status(answer)
        if answer.is_page:
            raise SourceError(
                "this is a web page, not an engine's metrics",
                where=answer.url,
                hint="give the address of the engine itself, for instance http://gpu7:30000",
            )
        if not answer.body.strip():
            raise SourceError("the answer is empty", where=answer.url, hint="look at the server's log")

    @staticmethod
    def _check_status(answer: Answer) -> None:
        if answer.status in (_UNAUTHORISED, _FORBIDDEN):
            raise SourceError(
                "the server wants a key" if answer.status == _UNAUTHORISED else "the server refuses this key",
                why=f"it answered {answer.status}",
                where=answer.url,
                hint="give the key the server was started with: --api-key KEY, or DRAFTSCOPE_API_KEY",
            )
        if answer.status != _OK:
            hint = "give the address that it leads to" if 300 <= answer.status < 400 else "look at the server's log"
            raise SourceError(f"the server answered {answer.status}", where=answer.url, hint=hint)

    @staticmethod
    def _recognise(answer: Answer) -> EngineMetrics:
        """The engine whose metrics these are."""
        for engine in engines():
            if any(b"\n" + prefix.encode() in b"\n" + answer.body for prefix in engine.prefixes):
                return engine
        known = ", ".join(engine.title for engine in engines())
        seen = sorted({line.split(b":")[0].decode("utf-8", "replace") for line in answer.body.split(b"\n")[:2_000]
                       if b":" in line.split(b"{")[0].split(b" ")[0] and line[:1] not in (b"#", b"{")})  # fmt: skip
        raise SourceError(
            "these are not the metrics of an engine that is read",
            why=f"their names begin with {', '.join(seen[:5])}" if seen else "no name of a known engine is among them",
            where=answer.url,
            hint=f"live metrics of these engines are read: {known}",
        )

    def _ask_info(self, engine: EngineMetrics) -> EngineInfo:
        """What the engine says of itself; an engine that has no such endpoint says nothing."""
        for path in (self._info_path,) if self._info_path else engine.info_paths:
            answer = self.endpoint.get(path)
            if answer.status != _MISSING:
                self._check_status(answer)
                self._info_path = path
                info = engine.info(_document(answer), answer.url)
                return info if info.arguments.seen("served_model_name") else self._with_model(info)
        asked = " and ".join(engine.info_paths)
        return EngineInfo(notes=(f"{self.endpoint.address} does not say what it runs with: {asked} answer 404",))

    def _with_model(self, info: EngineInfo) -> EngineInfo:
        """The served name from the list of models, where the arguments do not state it."""
        answer = self.endpoint.get(_MODELS)
        if answer.status != _OK:
            return info
        listed = _document(answer).get("data")
        names = (
            [item["id"] for item in listed if isinstance(item, dict) and "id" in item]
            if isinstance(listed, list)
            else []
        )
        if not names:
            return info
        name = str(names[0])
        argument = Argument("served_model_name", effective=name, effective_evidence=Evidence(answer.url, None, name))
        return replace(
            info, arguments=replace(info.arguments, by_name={**info.arguments.by_name, argument.name: argument})
        )


def _may_be_another(before: EngineState, after: EngineState) -> bool:
    return same_process(before, after) is False or bool(falls(before, after))


def _document(answer: Answer) -> dict[str, Any]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise SourceError(
            "the answer is not a JSON document",
            why="it is a web page" if answer.is_page else f"it begins {answer.body[:60]!r}",
            where=answer.url,
            hint="check that the address is that of the engine itself",
        )
    return document
