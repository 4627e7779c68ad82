"""One scrape of a running engine: its metrics, and what it says of itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, NamedTuple

from collector.domain.arguments import Argument, Arguments
from collector.domain.errors import MalformedInput, SourceError
from collector.domain.evidence import Evidence
from collector.domain.windows import Window
from collector.metrics import engine_of, engines
from collector.metrics.base import Document, EngineInfo, EngineMetrics, EngineState, Taken, falls, same_process
from collector.metrics.exposition import Sample
from collector.metrics.layout import Layouts, PageReader
from collector.metrics.samples import Samples, SeriesTable
from collector.sources.fetching import AsyncEndpoint
from collector.sources.http import Answer, Endpoint, Server

_METRICS: Final = "/metrics"
_MODELS: Final = "/v1/models"
_OK, _UNAUTHORISED, _FORBIDDEN, _MISSING, _NOT_SUPPORTED = 200, 401, 403, 404, 501
_ABSENT: Final = (_MISSING, _NOT_SUPPORTED)


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one scrape gave. ``notes`` are what could not be had and is not needed at once.

    ``taken`` are windows that the engine gave out of its queue, once and for all; ``None`` where it was not asked.
    ``steady_at`` is its instant on a clock that never jumps, where one is used: differences alone mean something.
    """

    engine: EngineMetrics
    info: EngineInfo
    state: EngineState
    notes: tuple[str, ...] = ()
    taken: tuple[Window, ...] | None = None
    steady_at: float | None = None


@cache
def shared_layouts(engine: EngineMetrics) -> Layouts:
    """The layouts of an engine's pages, for all targets of this process: a fleet has few."""
    return Layouts(engine.sample_names)


class _Telling(NamedTuple):
    """What an engine's samples say of how it runs depends on."""

    table: SeriesTable
    known: Arguments
    above: tuple[bool, ...]


class _Asking:
    """A scrape on its way: the path to ask for next, and what came of it in the end."""

    def __init__(self, steps: Generator[str, Answer, Scrape]) -> None:
        self.path = ""
        self.scrape: Scrape | None = None
        self._steps = steps
        self._move(partial(next, steps))

    def answered(self, answer: Answer) -> None:
        """Go on with an answer."""
        self._move(partial(self._steps.send, answer))

    def failed(self, error: SourceError) -> None:
        """Go on where there was none."""
        self._move(partial(self._steps.throw, error))

    def _move(self, move: Callable[[], str]) -> None:
        try:
            self.path = move()
        except StopIteration as done:
            self.scrape = done.value


class Scraper:
    """Scrapes one engine, again and again.

    What the engine says of itself is asked for at first, where its figures need it, and whenever
    the process may be another one. Only paths that read are asked: which those are is learnt from
    the list of models, since the same path is a harmless page of one engine and a queue of another.
    """

    def __init__(
        self,
        endpoint: Server,
        *,
        take_from_queue: bool = False,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """``clock`` gives the present instant, in seconds since 1970; ``steady`` one that never jumps.

        ``take_from_queue`` reads an engine's queue of iterations as well: what is taken is gone for other readers.
        """
        self.endpoint = endpoint
        self._clock = clock
        self._steady = steady
        self._take_from_queue = take_from_queue
        self._expected: EngineMetrics | None = None
        self._engine: EngineMetrics | None = None
        self._pages: PageReader | None = None
        self._info: EngineInfo | None = None
        self._stated: tuple[_Telling, EngineInfo, EngineInfo] | None = None
        self._info_paths: dict[tuple[str, ...], str] = {}
        self._last: EngineState | None = None
        self._of_queue: tuple[Sample, ...] = ()
        self._taken: tuple[Window, ...] = ()

    def scrape(self) -> Scrape:
        """Ask once.

        Raises:
            SourceError: the engine does not answer as it should; the error says how.
        """
        if not isinstance(self.endpoint, Endpoint):
            raise TypeError("an endpoint that is waited for is scraped by scrape_async")
        asking = _Asking(self.steps())
        while asking.scrape is None:
            try:
                answer = self.endpoint.get(asking.path)
            except SourceError as error:
                asking.failed(error)
            else:
                asking.answered(answer)
        return asking.scrape

    async def scrape_async(self) -> Scrape:
        """Ask once, through an :class:`AsyncEndpoint`; otherwise as :meth:`scrape`."""
        if not isinstance(self.endpoint, AsyncEndpoint):
            raise TypeError("an endpoint that blocks is scraped by scrape")
        asking = _Asking(self.steps())
        while asking.scrape is None:
            try:
                answer = await self.endpoint.get(asking.path)
            except SourceError as error:
                asking.failed(error)
            else:
                asking.answered(answer)
        return asking.scrape

    def steps(self) -> Generator[str, Answer, Scrape]:
        """The paths to ask for, one after the other; each is answered, or the error is thrown in. Returns the scrape."""
        try:
            return (yield from self._scrape())
        except SourceError:
            self._last = None  # what answers next may be another process
            raise

    def _scrape(self) -> Generator[str, Answer, Scrape]:
        if self._engine is None:
            self._expected = yield from self._who()
        expected = self._engine or self._expected
        answer = yield expected.metrics_path if expected is not None else _METRICS
        at, steady_at = self._clock(), None if self._steady is None else self._steady()
        takes = self._take_from_queue and expected is not None and bool(expected.queue_path)
        if takes and expected is not None and answer.status == _MISSING:  # the queue alone is there
            engine, samples = expected, Samples.of(())
        else:
            engine, samples = self._read(answer)
        self._engine = engine
        taken = (yield from self._take(engine, at)) if takes else Taken(())
        self._of_queue = taken.samples or self._of_queue
        self._taken += taken.windows
        beside = [*self._of_queue]
        if engine.start_header and engine.start_header in answer.headers:
            beside += _as_sample(engine.start_header, answer.headers[engine.start_header])
        samples = samples.plus(beside)
        known, notes = self._info, taken.notes
        info = self._with_stated(engine, known or EngineInfo(), samples, answer.url)
        state = engine.state(samples, info, at)
        if known is None or self._last is None or engine.needs_info(state, known) or _may_be_another(self._last, state):
            try:
                self._info = yield from self._ask_info(engine)
            except SourceError as error:
                if known is None or self._last is None:
                    raise
                notes += (str(error),)
                self._info = replace(known, mean_lengths={})  # those of an earlier scrape
            else:
                notes += self._info.notes
            info = self._with_stated(engine, self._info, samples, answer.url)
            state = engine.state(samples, info, at)
        self._last = state
        windows, self._taken = self._taken, ()
        return Scrape(engine, info, state, notes, windows if takes else None, steady_at)

    def _with_stated(self, engine: EngineMetrics, info: EngineInfo, samples: Samples, source: str) -> EngineInfo:
        """What the engine says of itself, and behind that what its samples say.

        Samples are asked again where they may say something else: the proof of what was said stays the same.
        """
        above = tuple([samples.values[i] > 0 for i in samples.table.among(engine.telling_names)])
        telling = _Telling(samples.table, info.arguments, above)
        if self._stated is None or self._stated[0] != telling:
            self._stated = telling, info, with_stated(engine, info, samples, source)
        elif self._stated[1] is not info:
            self._stated = telling, info, replace(info, arguments=self._stated[2].arguments)
        return self._stated[2]

    def _who(self) -> Generator[str, Answer, EngineMetrics | None]:
        """Which engine this is by its list of models, where it has one and shows it."""
        answer = yield _MODELS
        if answer.status != _OK:
            return None
        try:
            models = json.loads(answer.body)["data"]
            owners = {item["owned_by"] for item in models if "owned_by" in item}
        except (ValueError, RecursionError, KeyError, TypeError):
            return None
        return next((engine for engine in engines() if engine.owner in owners), None)

    def _read(self, answer: Answer) -> tuple[EngineMetrics, Samples]:
        """The engine and its samples."""
        self._check(answer)
        engine = self._engine or self._recognise(answer)
        if self._pages is None or engine is not self._engine:
            self._pages = PageReader(shared_layouts(engine))
        try:
            samples = self._pages.read(answer.body, answer.url)
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
        return engine, samples

    def _take(self, engine: EngineMetrics, at: float) -> Generator[str, Answer, Taken]:
        answer = yield engine.queue_path
        self._check_status(answer)
        try:
            return engine.taken(answer.body, at)
        except MalformedInput as error:
            raise SourceError(
                error.what, why=error.why, where=answer.url, hint=f"{engine.title}: {engine.metrics_hint}"
            ) from error

    def _check(self, answer: Answer) -> None:
        """Refuse answers that cannot be metrics."""
        if answer.status in _ABSENT:
            likely = [self._expected] if self._expected is not None else engines()
            hints = "; ".join(f"{engine.title}: {engine.metrics_hint}" for engine in likely)
            why = "it answered 404 (not found)" if answer.status == _MISSING else "it answered 501 (not turned on)"
            raise SourceError("the server exposes no metrics", why=why, where=answer.url, hint=hints)
        self._check_status(answer)
        if answer.is_page:
            raise SourceError(
                "this is a web page, not an engine's metrics",
                where=answer.url,
                hint="give the address of the engine itself, for instance http://gpu7:30000",
            )
        if not answer.body or answer.body.isspace():
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
        engine = engine_of(answer.body)
        if engine is not None:
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

    def _ask_info(self, engine: EngineMetrics) -> Generator[str, Answer, EngineInfo]:
        """What the engine says of itself; what it has no endpoint for stays unknown."""
        documents: list[Document] = []
        notes: list[str] = []
        for wanted in engine.info_paths:
            known = self._info_paths.get(wanted.paths)
            for path in (known,) if known else wanted.paths:
                answer = yield path
                if answer.status not in _ABSENT:
                    self._check_status(answer)
                    self._info_paths[wanted.paths] = path
                    documents.append(Document(path, answer.url, _json(answer, wanted.kind)))
                    break
            else:
                if wanted.missed:
                    asked = " and ".join(wanted.paths)
                    answers = "answers" if len(wanted.paths) == 1 else "answer"
                    notes.append(f"{self.endpoint.address}: {asked} {answers} {answer.status}: {wanted.missed}")
        info = engine.info(documents)
        info = replace(info, notes=(*notes, *info.notes))
        return info if info.arguments.seen(engine.name_argument) else (yield from self._with_model(engine, info))

    def _with_model(self, engine: EngineMetrics, info: EngineInfo) -> Generator[str, Answer, EngineInfo]:
        """The served name from the list of models, where the arguments do not state it."""
        answer = yield _MODELS
        if answer.status != _OK:
            return info
        listed = _json(answer, dict).get("data")
        names = (
            [item["id"] for item in listed if isinstance(item, dict) and "id" in item]
            if isinstance(listed, list)
            else []
        )
        if not names:
            return info
        name = str(names[0])
        argument = Argument(engine.name_argument, effective=name, effective_evidence=Evidence(answer.url, None, name))
        return replace(
            info, arguments=replace(info.arguments, by_name={**info.arguments.by_name, argument.name: argument})
        )


def _may_be_another(before: EngineState, after: EngineState) -> bool:
    return same_process(before, after) is False or bool(falls(before, after))


def _as_sample(name: str, text: str) -> list[Sample]:
    """A header as a sample, none where it is no number."""
    try:
        return [Sample(name, {}, float(text))]
    except ValueError:
        return []


def with_stated(engine: EngineMetrics, info: EngineInfo, samples: Iterable[Sample], source: str) -> EngineInfo:
    """What the engine says of itself, and behind that what its samples say."""
    stated = engine.stated(samples, info.arguments, source)
    if not stated:
        return info
    return replace(info, arguments=Arguments({**stated.by_name, **info.arguments.by_name}))


def _json(answer: Answer, kind: type) -> Any:
    """A document, which is of this kind."""
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, kind):
        return content
    raise SourceError(
        "the answer is not a JSON document",
        why="it is a web page" if answer.is_page else f"it begins {answer.body[:60]!r}",
        where=answer.url,
        hint="check that the address is that of the engine itself",
    )
