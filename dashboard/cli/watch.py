"""``draftscope watch``: running engines on the terminal, as they are now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from collector.domain.errors import DraftscopeError, InputError
from dashboard.cli.bundles import (
    Baseline,
    DraftConfig,
    Launch,
    TargetConfig,
    Temperature,
    ValidationAccuracy,
)
from dashboard.cli.console import output
from dashboard.cli.scrape import SHORTEST
from dashboard.durations import duration
from dashboard.stated import accuracies

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from collector.domain.runs import Bundle, RunRecord
    from collector.sources.live import LiveRun
    from dashboard.report.live import LiveState


LOOK_SECONDS: Final = 0.05
"""Between two looks at what has come in."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    urls: Annotated[list[str], typer.Argument(help="Addresses of engines, for instance http://gpu7:30000.")],
    every: Annotated[str, typer.Option(help="Pause between two scrapes: 5s, 1m.", metavar="DURATION")] = "5s",
    api_key: Annotated[
        str | None,
        typer.Option(help="The key the engines were started with.", envvar="DRAFTSCOPE_API_KEY", show_envvar=True),
    ] = None,
    timeout: Annotated[str, typer.Option(help="How long to wait for a whole answer.", metavar="DURATION")] = "10s",
    launch: Launch = None,
    baseline: Baseline = None,
    draft_config: DraftConfig = None,
    target_config: TargetConfig = None,
    validation_accuracy: ValidationAccuracy = None,
    temperature: Temperature = None,
    count: Annotated[
        int | None, typer.Option(help="End after so many scrapes of each engine; default: when interrupted.", min=1)
    ] = None,
) -> None:
    """Show acceptance, cost, latency and verdicts of running engines as they are now; nothing is stored."""
    pause = duration(every, "--every")
    if pause < SHORTEST:
        raise InputError(
            f"--every {every} is too often", why="it would disturb the engine", hint=f"{SHORTEST:g}s or more"
        )
    from collector.sources.http import Endpoint
    from collector.sources.live import LiveRun
    from collector.sources.scrape import Scraper

    known = _Known.of(
        launch, baseline, draft_config, target_config, accuracies(validation_accuracy), temperature=temperature
    )
    limit = duration(timeout, "--timeout")
    with ExitStack() as stack:
        endpoints = [stack.enter_context(Endpoint(url, api_key=api_key, timeout=limit)) for url in urls]
        watched = [_Watched(LiveRun(Scraper(endpoint)), endpoint.address) for endpoint in endpoints]
        pool = stack.enter_context(ThreadPoolExecutor(len(watched), thread_name_prefix="watch"))
        keep_watching(watched, known.bundle, pool, output(), pause=pause, count=count)


@dataclass(slots=True)
class _Watched:
    """One engine, and what is shown of it."""

    live: LiveRun
    address: str
    state: LiveState = field(init=False)
    pending: Future[LiveState] | None = None
    looks: int = 0

    def __post_init__(self) -> None:
        from dashboard.report.live import LiveState

        self.state = LiveState(self.address)

    def look(self, bundle: Callable[[RunRecord], Bundle]) -> LiveState:
        """Scrape and judge once; an engine that does not answer keeps what is known of it."""
        from analysis import diagnose
        from dashboard.report.live import LiveState

        try:
            record = self.live.take()
        except DraftscopeError as error:
            why = f" ({error.why})" if error.why else ""
            return replace(self.state, error=f"{error.what}{why}", hint=error.hint)
        notes = self.live.scrape.notes if self.live.scrape is not None else ()
        return LiveState(
            self.address, diagnose(bundle(record)), self.live.scrapes, record.ended_at, notes=notes or self.state.notes
        )


def keep_watching(
    watched: list[_Watched],
    bundle: Callable[[RunRecord], Bundle],
    pool: ThreadPoolExecutor,
    console: Console,
    *,
    pause: float,
    count: int | None,
) -> None:
    """Scrape all engines side by side until interrupted; a slow one holds up no other."""
    from collector.sources.pace import Pace

    pace = Pace(pause)
    try:
        with _shown(console) as show:
            ending = False
            while not ending:
                for item in watched:
                    if item.pending is None and item.looks != count:
                        item.pending = pool.submit(item.look, bundle)
                        item.looks += 1
                ending = all(item.looks == count for item in watched)
                ends = time.monotonic() + pace.next_in(failed=False)
                while _are_pending(watched) if ending else time.monotonic() < ends:
                    _show_done(watched, show)
                    time.sleep(LOOK_SECONDS)
                _show_done(watched, show)
    except KeyboardInterrupt:
        return


def _are_pending(watched: list[_Watched]) -> bool:
    return any(item.pending is not None and not item.pending.done() for item in watched)


def _show_done(watched: list[_Watched], show: Callable[[RenderableType], None]) -> None:
    """Show what has come in since the last look."""
    from dashboard.report.live import live_view

    done = [(item, item.pending) for item in watched if item.pending is not None and item.pending.done()]
    for item, pending in done:
        item.state, item.pending = pending.result(), None
    if done:
        show(live_view([item.state for item in watched]))


@contextmanager
def _shown(console: Console) -> Iterator[Callable[[RenderableType], None]]:
    """Draws in place on a terminal, else one view below the other."""
    if not console.is_terminal:
        yield console.print
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=False) as live:
        yield lambda view: live.update(view, refresh=True)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the user said beyond what engines tell."""

    complete: Callable[[RunRecord], None]
    baseline: RunRecord | None = None

    @classmethod
    def of(
        cls,
        launch: Path | None,
        baseline: Path | None,
        draft_config: Path | None,
        target_config: Path | None,
        validation: tuple[float, ...],
        *,
        temperature: float | None,
    ) -> _Known:
        """Read the files once.

        Raises:
            InputError: one of them cannot be used.
        """
        from collector.bundle import read_log, read_model_config, stated_validation
        from collector.launch import parse_launch
        from collector.sources.file import text_of

        command = parse_launch(text_of(launch), str(launch)) if launch is not None else None
        draft = read_model_config(draft_config) if draft_config is not None else None
        target = read_model_config(target_config) if target_config is not None else None
        plain = [run for run in read_log(baseline)[0] if run.windows] if baseline is not None else []
        if baseline is not None and not plain:
            raise InputError("the baseline holds no decode windows", where=str(baseline), hint="a log under load")

        def complete(record: RunRecord) -> None:
            record.draft_config, record.target_config, record.temperature = draft, target, temperature
            record.validation = stated_validation(validation) if validation else None
            if command is not None and command.engine == record.engine:
                record.launch = command
                record.arguments = record.arguments.with_launch(command)

        return cls(complete, plain[-1] if plain else None)

    def bundle(self, record: RunRecord) -> Bundle:
        """A run with everything that is known of it."""
        from collector.domain.runs import Bundle

        self.complete(record)
        return Bundle(record, baseline=self.baseline)
