"""``draftscope scrape``: a running engine into the database, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from collector.domain.deployments import method_of
from collector.domain.errors import InputError
from collector.domain.windows import Origin, Window
from dashboard.cli.console import errors, output
from dashboard.cli.serve import ConfigOption
from dashboard.durations import duration

if TYPE_CHECKING:
    from rich.console import Console

    from collector.metrics.base import UnitState
    from collector.scraping import Stored, Watch
    from collector.sources.pace import Pace

SHORTEST: Final = 1.0
"""Seconds between two scrapes; more often would disturb the engine."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(scrape)


def scrape(
    url: Annotated[str, typer.Argument(help="Address of the engine, for instance http://gpu7:30000.")],
    every: Annotated[str | None, typer.Option(help="Go on, with this pause: 15s, 1m.", metavar="DURATION")] = None,
    once: Annotated[bool, typer.Option("--once", help="Scrape once and show what is known; the default.")] = False,
    api_key: Annotated[
        str | None,
        typer.Option(help="The key the engine was started with.", envvar="DRAFTSCOPE_API_KEY", show_envvar=True),
    ] = None,
    timeout: Annotated[str, typer.Option(help="How long to wait for a whole answer.", metavar="DURATION")] = "10s",
    take_iterations: Annotated[
        bool,
        typer.Option(
            "--take-iterations",
            help="TensorRT-LLM: take iterations out of its queue; other readers of that queue then miss them.",
        ),
    ] = False,
    database_url: Annotated[
        str | None, typer.Option(help="Database to store into; default: that of the settings.", metavar="URL")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Read metrics and effective arguments of a running engine into the database: SGLang, vLLM, llama.cpp, TensorRT-LLM."""
    from collector.scraping import Watch
    from collector.sources.http import Endpoint
    from collector.sources.pace import Pace
    from collector.sources.scrape import Scraper
    from dashboard.database import open_configured
    from dashboard.masked import SecretUrl
    from dashboard.settings import load_settings

    if once and every is not None:
        raise InputError("--once and --every exclude each other", hint="leave one out")
    pause = None if every is None else duration(every, "--every")
    if pause is not None and pause < SHORTEST:
        raise InputError(
            f"--every {every} is too often", why="it would disturb the engine", hint=f"{SHORTEST:g}s or more"
        )
    address = SecretUrl(database_url) if database_url else load_settings(config).service.database_url
    endpoint = Endpoint(url, api_key=api_key, timeout=duration(timeout, "--timeout"))
    with endpoint, open_configured(address) as database:
        watch = Watch(database, Scraper(endpoint, take_from_queue=take_iterations))
        if pause is None:
            print_scrape(output(), watch.take())
        else:
            keep_scraping(watch, Pace(pause), errors())


def keep_scraping(watch: Watch, pace: Pace, console: Console, *, clock: Callable[[], float] = time.time) -> None:
    """Scrape until interrupted; one line a scrape. An engine that does not answer is tried again."""
    from collector.domain.errors import SourceError

    scrapes = 0
    runs: list[int] = []
    try:
        while True:
            trouble: SourceError | None = None
            try:
                stored = watch.take()
            except SourceError as error:
                trouble = error
            else:
                scrapes += 1
                if stored.run_id not in runs:
                    runs.append(stored.run_id)
                console.print(_line(stored), markup=False)
            pause = pace.next_in(failed=trouble is not None)
            if trouble is not None:
                console.print(f"{_time(clock())}  {trouble}; next try in {pause:.0f} s", markup=False)
            pace.wait(pause)
    except KeyboardInterrupt:
        numbers = ", ".join(map(str, runs))
        told = f"run{'s' if len(runs) > 1 else ''} {numbers}" if runs else "nothing stored"
        console.print(f"stopped after {scrapes} scrape{'' if scrapes == 1 else 's'}: {told}", markup=False)


# ---- one scrape in words


@dataclass(frozen=True, slots=True)
class _Figures:
    """One scrape, all units together; ``reach`` says what acceptance and tokens are about.

    ``positions`` are the shares of steps that accepted at least i drafts, where the engine counts them.
    """

    acceptance: str
    positions: tuple[float, ...]
    tokens: float | None
    throughput: float | None
    load: str
    reach: str


def _figures(stored: Stored) -> _Figures:
    windows = stored.interval.windows
    verified = [window for window in windows if window.verify_steps]
    counted = [window for window in verified if window.origin is Origin.COUNTERS]
    chosen = counted or verified

    def total(name: str, among: Iterable[Window | UnitState]) -> float | None:
        values = [value for part in among if (value := getattr(part, name)) is not None]
        return float(sum(values)) if values else None

    since_start = stored.since_start or any(window.seconds is None for window in counted)
    reach = "since the start of the process" if since_start else "since the last scrape"
    steps, accepted = total("verify_steps", chosen), total("accepted_tokens", chosen)
    acceptance = ""
    if steps and accepted is not None:
        stretch = reach if counted else "of the last decode line seen"
        acceptance = f"{1 + accepted / steps:.3f} over {steps:,.0f} steps {stretch}"
    lists = [window.accepted_at for window in chosen if window.accepted_at]
    longest = max(map(len, lists), default=0)
    counted_at = [sum(counts[i] for counts in lists if i < len(counts)) for i in range(longest)]
    load = []
    for state, form in (("running", ".3g"), ("waiting", ".0f")):
        sources = windows, stored.scrape.state.units.values()
        known = next((found for among in sources if (found := total(f"{state}_requests", among)) is not None), None)
        if known is not None:
            load.append(f"{known:{form}} {state}")
    return _Figures(
        acceptance,
        tuple(count / steps for count in counted_at) if steps else (),
        total("generated_tokens", windows),
        total("generation_throughput", windows),
        ", ".join(load),
        "since the start of the process" if stored.since_start else "since the last scrape",
    )


def _line(stored: Stored) -> str:
    """The status of one scrape."""
    figures = _figures(stored)
    parts = [f"{_time(stored.scrape.state.at)}  run {stored.run_id}"]
    if stored.restarted:
        parts.append("the engine was restarted: a new run")
    if stored.falls:
        fall = stored.falls[0]
        parts.append(f"{fall.name} fell from {fall.before:g} to {fall.after:g}: this interval is left out")
    if figures.acceptance:
        parts.append(f"acceptance length {figures.acceptance}")
    if figures.throughput is not None:
        parts.append(f"{figures.throughput:,.1f} tok/s")
    if figures.load:
        parts.append(figures.load)
    parts += stored.scrape.notes
    return ", ".join(parts)


def print_scrape(console: Console, stored: Stored) -> None:
    """What one scrape told: the engine, its configuration, its acceptance."""
    from rich.table import Table

    figures, info = _figures(stored), stored.scrape.info
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    version = str(info.engine_version) if info.engine_version else "release not stated"
    table.add_row("Engine", f"{stored.scrape.engine.title} {version}")
    for label, names in _CONFIGURATION.items():
        argument = next((info.arguments[name] for name in names if info.arguments.seen(name)), None)
        if argument is None or (argument.runs is None and not argument.changed):
            continue
        asked = f"{argument.requested} asked, {argument.runs} runs" if argument.changed else str(argument.runs)
        table.add_row(label, asked)
    if figures.acceptance:
        table.add_row("Acceptance length", figures.acceptance)
        if figures.positions:
            table.add_row("Accepted by position", "  ".join(f"{share:.3f}" for share in figures.positions))
    elif method_of(stored.scrape.engine.engine, info.arguments):
        table.add_row("Acceptance length", f"not known {figures.reach}: no verify step was counted")
    for name, unit in stored.scrape.state.units.items():
        if unit.printed_length is not None:
            label = f"Last reported{f', {name}' if name else ''}"
            rate = "" if unit.printed_rate is None else f", accept rate {unit.printed_rate:.3f}"
            table.add_row(label, f"accept len {unit.printed_length:.3f}{rate} (as the engine defines them)")
    if figures.tokens is not None:
        table.add_row("Generated tokens", f"{figures.tokens:,.0f} {figures.reach}")
    if figures.throughput is not None:
        table.add_row("Throughput", f"{figures.throughput:,.1f} tok/s")
    if figures.load:
        table.add_row("Requests", figures.load)
    console.print(table)
    for fall in stored.falls:
        console.print(
            f"{fall.name} fell from {fall.before:g} to {fall.after:g}: this interval is left out", markup=False
        )
    for note in stored.scrape.notes:
        console.print(f"note: {note}", markup=False)
    restarted = " The engine was restarted since the last scrape." if stored.restarted else ""
    console.print(f"Stored as run {stored.run_id}.{restarted}", markup=False)
    if stored.since_start:
        console.print("Scrape again, or use --every 15s, for figures of an interval.", style="dim")


_CONFIGURATION: Final = {
    "Serves": ("served_model_name", "alias"),
    "Target": ("model_path", "model"),
    "Draft": (
        "speculative_draft_model_path", "speculative_config.model", "spec_draft_model",
        "speculative_config.speculative_model",
    ),
    "Method": ("speculative_algorithm", "speculative_config.method", "spec_type", "speculative_config.decoding_type"),
    "Draft steps": (
        "speculative_num_steps", "speculative_config.num_speculative_tokens", "spec_draft_n_max",
        "speculative_config.max_draft_len",
    ),
    "Branching": ("speculative_eagle_topk",),
    "Tokens verified a step": ("speculative_num_draft_tokens",),
    "Running requests at most": ("max_running_requests", "max_num_seqs", "parallel"),
    "Data-parallel ranks": ("dp_size", "data_parallel_size"),
    "Tensor-parallel ranks": ("tp_size", "tensor_parallel_size"),
}  # fmt: skip
"""What is shown of the configuration, under the name that an engine gives it."""


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")
