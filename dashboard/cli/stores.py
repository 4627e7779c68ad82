"""``draftscope ingest`` of what others keep: metrics and logs out of stores."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from collector.domain.errors import InputError
from dashboard.cli.console import errors, output

if TYPE_CHECKING:
    from collector.storage.engine import Database
    from dashboard.feeds.base import Feed, Source
    from dashboard.settings import Settings

Prometheus: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Read metrics out of a Prometheus-compatible store: its address before /api/v1.", metavar="URL"),
]
Loki: TypeAlias = Annotated[
    str | None, typer.Option(help="Read logs out of Loki: its address before /loki/api/v1.", metavar="URL")
]
Select: TypeAlias = Annotated[
    str | None,
    typer.Option(help='What to read of the store: labels as {namespace="llm"}.', metavar="SELECTOR"),
]  # fmt: skip
Since: TypeAlias = Annotated[
    str, typer.Option(help="How far to go back in a store that was not read before.", metavar="DURATION")
]
Tenant: TypeAlias = Annotated[str | None, typer.Option(help="Tenant of the store (X-Scope-OrgID).")]
Header: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Header to send to the store; may be repeated.", metavar="NAME=TEXT")
]
ApiKey: TypeAlias = Annotated[
    str | None, typer.Option(help="Key for the store, sent as bearer token.", envvar="DRAFTSCOPE_API_KEY", show_envvar=True)
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What was said about the store on the command line."""

    prometheus: str | None
    loki: str | None
    select: str | None
    since: str
    tenant: str | None
    headers: Mapping[str, str] = field(repr=False)
    api_key: str | None = field(repr=False)

    def source(self, deployment: str | None, labels: Mapping[str, str]) -> Source | None:
        """The store to read; ``None`` where none was named.

        Raises:
            InputError: what was said does not fit together.
        """
        from dashboard.feeds import source_kinds
        from dashboard.masked import Secret

        given = {"prometheus": self.prometheus, "loki": self.loki}
        named = {kind: url for kind, url in given.items() if url is not None}
        if not named:
            if self.select is not None or self.tenant is not None or self.headers:
                raise InputError("no store was named", hint=f"add {' or '.join(f'--{kind} URL' for kind in given)}")
            return None
        (kind, url), *others = named.items()
        if others:
            raise InputError(f"--{kind} and --{others[0][0]} exclude each other", hint="leave one out")
        source = source_kinds()[kind](
            url=url,
            select=self.select or "",
            since=self.since,
            tenant=self.tenant or "",
            headers={name: Secret(text) for name, text in self.headers.items()},
            api_key=Secret(self.api_key) if self.api_key else None,
            deployment=deployment or "",
            labels=labels,
        )  # type: ignore[call-arg]
        source.check()
        return source


def read_store(database: Database, source: Source, settings: Settings, *, follow: bool) -> None:
    """Read a source to its end, judge the runs and say what came; with ``follow`` go on until interrupted."""
    from dashboard.alerts import Alerting
    from dashboard.diagnoses import Diagnoses
    from dashboard.judging import judge_runs

    feed = source.open(database, time.time)
    told: set[str] = set()
    with _interruptible() as stopped:
        try:
            while True:
                more = feed.step()
                for problem in set(feed.problems.values()) - told:
                    errors().print(f"note: {problem}", markup=False)
                told |= set(feed.problems.values())
                if stopped() or not (more or follow):
                    break
                if not more:
                    _tell(source, feed)
                    stopped(source.interval_seconds)
        finally:
            feed.close()
    _tell(source, feed)
    if follow:
        return
    judged = judge_runs(
        Diagnoses(database, settings.thresholds), list(feed.run_ids), Alerting(settings.channels, settings.public_url)
    )
    for run_id, found in judged.items():
        output().print(f"run {run_id}  {found.diagnosis.headline}", markup=False, soft_wrap=True)


def _tell(source: Source, feed: Feed) -> None:
    from analysis import words

    output().print(f"{source.place}: {words.plural(len(feed.run_ids), 'run')}", markup=False, soft_wrap=True)


@contextmanager
def _interruptible() -> Iterator[Callable[..., bool]]:
    """Whether the user or the system said stop, waiting for it so many seconds."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda seconds=0.0: stop.wait(seconds)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
