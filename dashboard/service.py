"""The service: web, API, exporter, judging and alerts in one process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any, Final, Protocol

import uvicorn
from fastapi import FastAPI

from collector.domain.errors import DraftscopeError, RefusedError
from collector.log_writer import Owner
from collector.pushed_logs import PushedLogs
from collector.sources.fetching import Client
from collector.storage.engine import Database
from collector.storage.leadership import Leadership
from dashboard import garbage
from dashboard.alert_book import AlertBook
from dashboard.alerts import Alerting
from dashboard.api import findings, logs, requests, traces
from dashboard.api.security import refuse_open_bind
from dashboard.app import create_app, create_bare_app
from dashboard.charts import base as charts
from dashboard.collecting import Collection
from dashboard.database import pushed_folder
from dashboard.database_store import DatabaseStore
from dashboard.diagnoses import Diagnoses
from dashboard.doctor import Doctor, log_formats
from dashboard.electing import Election
from dashboard.exporter.endpoint import Exporter, metrics_router
from dashboard.feeding import Feeding
from dashboard.judging import Sweep
from dashboard.outbox import Outbox
from dashboard.pages.templating import compile_all
from dashboard.pushing import Pushing
from dashboard.reminders import Reminders
from dashboard.retaining import Retaining
from dashboard.settings import Settings, address_of
from dashboard.uploading import Uploads

SHUTDOWN_SECONDS: Final = 5
"""How long open requests may take to end once the service is told to stop."""
_BACKLOG: Final = 2048
_LOG: Final = logging.getLogger(__name__)
_LISTEN_ERRORS: Final = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "this user may not listen on that port",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}


class Worker(Protocol):
    """What runs beside the web service until it is told to stop."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set."""


def build_app(
    diagnoses: Diagnoses,
    settings: Settings,
    collection: Collection | None = None,
    feeding: Feeding | None = None,
    pushed: PushedLogs | None = None,
) -> FastAPI:
    """Pages, API and exporter on one database."""
    token = settings.service.token
    app = create_app(DatabaseStore(diagnoses), token=token.reveal() if token else None)
    states = collection.states if collection else list
    app.include_router(metrics_router(Exporter(diagnoses.database, settings.exporter, targets=states)))
    alerting = Alerting(settings.channels, settings.public_url)
    app.state.uploads = Uploads(diagnoses, alerting)
    app.state.alerts = AlertBook(diagnoses.database, alerting)
    app.state.collection = collection
    app.state.feeding = feeding
    app.state.pushed = pushed
    app.state.reload = None
    app.state.database = diagnoses.database
    app.include_router(logs.router)
    app.include_router(requests.router)
    app.state.doctor = Doctor(diagnoses.database, settings, collection, feeding)
    app.include_router(traces.router)
    app.include_router(findings.router)
    return app


def build_exporter(database: Database, settings: Settings) -> FastAPI:
    """The exporter alone."""
    app = create_bare_app()
    app.include_router(metrics_router(Exporter(database, settings.exporter)))
    return app


def run_exporter(database: Database, settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve metrics alone until SIGINT or SIGTERM; ``announce`` gets the address once it is bound.

    Raises:
        RefusedError: as :func:`run_service`.
    """
    service = settings.service
    refuse_open_bind(service.host, service.token.reveal() if service.token else None)
    with _listening(service.host, service.port) as listening:
        announce(address_of(service.host, listening.getsockname()[1]))
        asyncio.run(_serve(build_exporter(database, settings), listening))


def run_service(
    database: Database,
    settings: Settings,
    *,
    announce: Callable[[str], None],
    read_again: Callable[[], Settings] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; ``announce`` gets the address once it is bound.

    On SIGHUP the targets and sources of ``read_again`` are watched from then on.

    Raises:
        RefusedError: the place to listen on is open to others and no token is set, or it is taken.
        StorageError: another service collects into the same SQLite file.
    """
    service = settings.service
    refuse_open_bind(service.host, service.token.reveal() if service.token else None)
    diagnoses = Diagnoses(database, settings.thresholds)
    leadership = Leadership(database)
    leadership.take()
    collection = Collection(leadership.database, settings.targets, client=Client(service.scrape_client))
    feeding = Feeding(leadership.database, settings.sources)
    pushed = PushedLogs(Owner(database, time.time), pushed_folder(database.name))
    quiet_until = time.time() + settings.alerts.quiet_start_seconds
    alerting = Alerting(settings.channels, settings.public_url, quiet_until)
    workers: list[Worker] = [
        Election(leadership, (collection, feeding, Retaining(leadership.database, settings.retention))),
        Pushing(pushed),
        Sweep(diagnoses, alerting),
        Outbox(database, settings.channels),
        Reminders(database, alerting),
    ]
    with _listening(service.host, service.port) as listening:
        announce(address_of(service.host, listening.getsockname()[1]))
        app = build_app(diagnoses, settings, collection, feeding, pushed)
        Thread(target=prepare_pages, name="pages").start()
        if read_again is not None:
            app.state.reload = partial(_read_again, collection, feeding, read_again)
        asyncio.run(_serve(app, listening, workers, partial(_on_signal, app.state.reload)))


def prepare_pages() -> None:
    """Do once what the first pages would wait for."""
    compile_all()
    charts.prepare()
    log_formats()
    garbage.settle()


def _read_again(collection: Collection, feeding: Feeding, read: Callable[[], Settings]) -> tuple[int, int]:
    """Take over the targets and sources of the settings as they are now; returns how many there are.

    Raises:
        DraftscopeError: the settings cannot be used; nothing is changed.
    """
    try:
        settings = read()
    except DraftscopeError as error:
        _LOG.error("the settings were read again and cannot be used: %s", error)
        raise
    collection.replace(settings.targets)
    feeding.replace(settings.sources)
    _LOG.info("the targets and sources were read again")
    return len(settings.targets), len(settings.sources)


def _on_signal(reload: Callable[[], tuple[int, int]] | None) -> None:
    """SIGHUP: what goes wrong is in the log."""
    if reload is not None:
        with contextlib.suppress(DraftscopeError):
            reload()


async def _serve(
    app: FastAPI,
    listening: socket.socket,
    workers: Sequence[Worker] = (),
    read_again: Callable[[], None] = lambda: None,
) -> None:
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS
    )
    server = uvicorn.Server(config)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, read_again)
    with _stopped_by_signals(server):
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker.run(stop))
            try:
                await server.serve(sockets=[listening])
            finally:
                stop.set()


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """A signal is a wish to stop, not a failure.

    The server has handlers of its own while it serves and afterwards raises what it got once more;
    these here take that, and what comes before and after.
    """

    def stop(_number: int, _frame: Any) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens.

    Raises:
        RefusedError: nothing can listen there.
    """
    try:
        families = {entry[0] for entry in socket.getaddrinfo(host or None, port, flags=socket.AI_PASSIVE)}
        family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise RefusedError(
            f"cannot listen on {host}:{port}",
            why=_LISTEN_ERRORS.get(error.errno or 0, error.strerror or str(error)),
            where="--host, --port",
            hint="choose another port, for instance --port 8788, or stop what uses it",
        ) from error
    with listening:
        yield listening


class MaskingFormatter(logging.Formatter):
    """One line a record, and no secret of the settings in any of them, whoever wrote it."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def log_to_stderr(settings: Settings) -> None:
    """Set up logging for the process."""
    handler = logging.StreamHandler()
    handler.setFormatter(MaskingFormatter(settings.secrets()))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in ("uvicorn", "alembic", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
