"""Looks at everything the product needs and reads: what works, what does not, and what to try. Nothing is changed."""

from __future__ import annotations

import importlib.util
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collector.domain.conditions import Aspect, Condition
from collector.domain.errors import DraftscopeError
from dashboard.settings import Settings, load_settings

if TYPE_CHECKING:
    from dashboard.targets import Found

SCHEMA: Final = "draftscope.doctor/1"
RECENT_SECONDS: Final = 86_400.0
"""How far back events of runs are told."""
ASKED_AT_ONCE: Final = 32
EXTRAS: Final = {
    "aiohttp": ("aiohttp", "scrapes thousands of engines at a fraction of the work (scrape_client)"),
    "apprise": ("apprise", "alerts to services that have no channel of their own"),
    "drift": ("ruptures", "dates a change after a drift alarm"),
    "gcs": ("gcsfs", "reads gs:// paths"),
    "gguf": ("gguf", "reads headers of GGUF models"),
    "kubernetes": ("kubernetes", "pods as targets, and their logs"),
    "parquet": ("pyarrow", "draftscope db export and import"),
    "s3": ("s3fs", "reads s3:// paths"),
    "ssh": ("sshfs", "reads ssh:// paths"),
}
"""Extras: the module each is for, and what it does."""
_TOLD_EVENTS: Final = {
    "counter-reset": "counters fell while the engine ran; the interval around it is left out",
    "clock-jump": "the clock of this machine jumped; the interval was timed by a clock that does not",
}


class Check(NamedTuple):
    """One aspect of one thing."""

    about: str
    seen: Aspect


def examine(config: Path | None = None, *, now: Callable[[], float] = time.time) -> list[Check]:
    """Everything, one after the other; engines are asked side by side. A fault of one hides no other."""
    checks = [*_product()]
    try:
        settings = load_settings(config)
    except DraftscopeError as error:
        return [*checks, _failed("settings", "file", error), *_formats()]
    checks.append(_check("settings", "file", Condition.FINE, "read", ""))
    return [*checks, *_database(settings, now), *_targets(settings), *_formats()]


def document(checks: Iterable[Check]) -> dict[str, Any]:
    """The same as plain values."""
    rows = [
        {"about": about, "aspect": seen.name, "health": seen.condition.value, "told": seen.says, "hint": seen.hint}
        for about, seen in checks
    ]
    return {"schema": SCHEMA, "checks": rows}


def _check(about: str, name: str, condition: Condition, says: str, hint: str = "") -> Check:
    return Check(about, Aspect(name, condition, says, hint))


def _failed(about: str, aspect: str, error: DraftscopeError) -> Check:
    why = f" ({error.why})" if error.why else ""
    return _check(about, aspect, Condition.ERROR, f"{error.what}{why}", error.hint)


def _product() -> Iterator[Check]:
    from importlib.metadata import version

    yield _check(
        "draftscope", "release", Condition.FINE,
        f"{version('draftscope')}, Python {platform.python_version()}, {platform.system()}",
    )  # fmt: skip
    for extra, (module, purpose) in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        yield _check(
            "draftscope", f"extra {extra}", Condition.FINE if there else Condition.MISSING, purpose,
            "" if there else f'pip install "draftscope[{extra}]"',
        )  # fmt: skip


def _database(settings: Settings, now: Callable[[], float]) -> Iterator[Check]:
    from collector.storage.relations import earlier_in_place
    from collector.storage.runs import list_runs, load_events
    from dashboard.database import open_configured

    try:
        with open_configured(settings.service.database_url) as database, database.reading() as connection:
            runs = list_runs(connection).runs
            events = load_events(connection, tuple(_TOLD_EVENTS), since=now() - RECENT_SECONDS)
            begun = [run for run in runs if run.started_at is not None and run.started_at >= now() - RECENT_SECONDS]
            followed = [(run, earlier) for run in begun if (earlier := earlier_in_place(connection, run.id))]
    except DraftscopeError as error:
        yield _failed("database", "open", error)
        return
    latest = "no run yet" if not runs else f"the latest of its runs is {runs[0].id} ({runs[0].source})"
    hint = "" if runs else "draftscope ingest LOG, draftscope scrape URL, or [[targets]] in the settings"
    yield _check("database", "open", Condition.FINE, f"{database.name}: {latest}", hint)
    for run, earlier in followed:
        yield _check(
            f"run {run.id}", "restart", Condition.FINE,
            f"{_when(run.started_at)}began in place of run {max(earlier)}: counters begin anew with it",
        )  # fmt: skip
    for run_id, event in events:
        yield _check(
            f"run {run_id}", event.kind, Condition.WARNING, f"{_when(event.at)}{_TOLD_EVENTS[event.kind]} ({event.evidence.text})",
            "look at the engine's log around that time",
        )  # fmt: skip


def _when(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC: "


def _targets(settings: Settings) -> Iterator[Check]:
    from dashboard.targets import find_all

    if not settings.targets:
        yield _check(
            "targets", "settings", Condition.MISSING, "no engine is watched",
            'write [[targets]] with url = "http://HOST:PORT" into draftscope.toml',
        )  # fmt: skip
        return
    found, problems = find_all(settings.targets)
    for target, error in problems.items():
        yield _failed(target.place, "addresses", error)
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        for checks in pool.map(_probed, found):
            yield from checks


def _probed(found: Found) -> list[Check]:
    """What can be seen of one engine now."""
    from collector.sources.probe import probe
    from collector.sources.scrape import Scraper

    try:
        with found.endpoint() as endpoint:
            aspects = probe(Scraper(endpoint))
    except DraftscopeError as error:
        return [_failed(found.shown, "metrics", error)]
    return [Check(found.shown, aspect) for aspect in aspects]


def _formats() -> Iterator[Check]:
    """Each format of logs against its own samples."""
    from collector.formats import formats
    from collector.formats.base import self_check

    for log_format in formats():
        problems = self_check(log_format)
        yield _check(
            "formats", log_format.engine, Condition.ERROR if problems else Condition.READING,
            problems[0] if problems else f"{len(log_format.samples)} samples of {len(log_format.lines)} kinds of lines",
            "a fault of draftscope: please report it" if problems else "",
        )  # fmt: skip
