"""The settings: read once from ``draftscope.toml`` and the environment, and handed down as values.

``docs/settings.md`` describes every key.
"""

from __future__ import annotations

import difflib
import os
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from analysis.thresholds import Thresholds
from collector.domain.errors import MalformedInput, UnknownName, UnreadableInput
from collector.storage.limits import Retention
from dashboard.exporter.choices import ExporterChoices, read_choices
from dashboard.feeds import read_sources
from dashboard.feeds.base import HttpSource, Source
from dashboard.masked import Secret, SecretUrl
from dashboard.sinks import sink_kinds
from dashboard.sinks.base import SinkConfig
from dashboard.strict import from_text, read_table, refuse_unknown
from dashboard.targets import Target, read_targets

FILE_NAME: Final = "draftscope.toml"
PREFIX: Final = "DRAFTSCOPE_"
CONFIG_VARIABLE: Final = "DRAFTSCOPE_CONFIG"
SCRAPE_CLIENTS: Final = ("httpx", "aiohttp")
"""Libraries that scrape targets: the second takes a fraction of the work and is an extra."""
_DATABASE_EXAMPLE: Final = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Service:
    """The keys at the top of the file; each can be given as ``DRAFTSCOPE_<KEY>``.

    ``database_url`` is ``None`` for the embedded database in the user's data folder.
    """

    database_url: SecretUrl | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    token: Secret | None = None
    public_url: str = ""
    scrape_client: str = "httpx"


@dataclass(frozen=True, slots=True)
class Alerts:
    """``[alerts]``: for so long after its own start the service holds back what opens."""

    quiet_start_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Channel:
    """One alert channel: its kind, and its settings as the kind's ``Config``."""

    kind: str
    config: SinkConfig


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    service: Service = field(default_factory=Service)
    thresholds: Thresholds = field(default_factory=Thresholds)
    alerts: Alerts = field(default_factory=Alerts)
    retention: Retention = field(default_factory=Retention)
    channels: tuple[Channel, ...] = ()
    targets: tuple[Target, ...] = ()
    sources: tuple[Source, ...] = ()
    exporter: ExporterChoices = field(default_factory=ExporterChoices)

    @property
    def public_url(self) -> str:
        """Where people reach the service, without a slash at the end."""
        service = self.service
        return service.public_url.rstrip("/") or address_of(service.host, service.port)

    def secrets(self) -> tuple[str, ...]:
        """Every secret text of the settings, passwords in addresses apart."""
        configs = [channel.config for channel in self.channels]
        values = [getattr(self.service, item.name) for item in fields(self.service)]
        values += [getattr(config, item.name) for config in configs for item in fields(config)]
        values += [target.api_key for target in self.targets]
        stores = [source for source in self.sources if isinstance(source, HttpSource)]
        for store in stores:
            values += [store.api_key, store.password, *store.headers.values()]
        texts = [value.reveal() for value in values if isinstance(value, Secret)]
        addresses = [value.reveal() for value in values if isinstance(value, SecretUrl)]
        addresses += [target.url or target.dns for target in self.targets] + [store.url for store in stores]
        passwords = [urlsplit(address).password for address in addresses]
        return (*texts, *(word for word in passwords if word))


def address_of(host: str, port: int) -> str:
    """The address to open for a place to listen on."""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - a name to replace, not a bind
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def load_settings(file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the file and the environment over it.

    The file is the given one, else that of ``DRAFTSCOPE_CONFIG``, else ``draftscope.toml`` in the
    current folder, else in the user's configuration folder, else none.

    Raises:
        UnreadableInput: the file that was named cannot be read.
        MalformedInput: it is no TOML, or a value does not fit its key.
        UnknownName: a key does not exist.
    """
    path, table = _read_file(file, environ)
    where = str(path) if path else ""
    top = [item.name for item in fields(Service)]
    refuse_unknown(table, [*top, "thresholds", "exporter", "alerts", "retention", "targets", "sources"], where)
    service = {key: table[key] for key in top if key in table}
    thresholds = _table(table, "thresholds", where)
    place = where
    for name, value in _variables(environ):
        if name.startswith("THRESHOLDS_"):
            key = name.removeprefix("THRESHOLDS_").lower()
            thresholds[key] = from_text(typing.get_type_hints(Thresholds)[key], value)
        else:
            service[name.lower()] = from_text(typing.get_type_hints(Service)[name.lower()], value)
        place = f"{where} and the environment" if where else "the environment"
    settings = Settings(
        read_table(Service, service, place),
        read_table(Thresholds, thresholds, f"{place}, [thresholds]"),
        _alerts(table, where),
        _retention(table, where),
        _channels(table, where),
        read_targets(table.get("targets", []), where),
        read_sources(table.get("sources", []), where),
        exporter=read_choices(_table(table, "exporter", where), f"{where}, [exporter]"),
    )
    _check(settings.service, place)
    return settings


def variables() -> tuple[str, ...]:
    """The environment variables that set something."""
    keys = [item.name for item in fields(Service)]
    limits = [f"thresholds_{item.name}" for item in fields(Thresholds)]
    return tuple(PREFIX + key.upper() for key in (*keys, *limits))


def _read_file(file: Path | None, environ: Mapping[str, str]) -> tuple[Path | None, dict[str, Any]]:
    named = file or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    path = named or next((place for place in _usual_places() if place.is_file()), None)
    if path is None:
        return None, {}
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "check the path" if file else f"check {CONFIG_VARIABLE}" if named else "check its permissions"
        raise UnreadableInput(
            "the settings cannot be read", why=error.strerror or "", where=str(path), hint=hint
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise MalformedInput(
            "the settings are no TOML", why=why, where=str(path), hint="see docs/settings.md"
        ) from None


def _usual_places() -> tuple[Path, ...]:
    from platformdirs import user_config_path

    return Path(FILE_NAME), user_config_path("draftscope", appauthor=False) / FILE_NAME


def _variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names without the prefix, and their texts; empty ones count as not given.

    Other programs put names with our prefix into the environment (Kubernetes does so for a service
    called draftscope), so only what looks like a slip of the pen is an error.

    Raises:
        UnknownName: a name is nearly one of ours.
    """
    known = [name.removeprefix(PREFIX) for name in variables()]
    found = []
    for variable, text in environ.items():
        name = variable.removeprefix(PREFIX)
        if variable in (name, CONFIG_VARIABLE):
            continue
        if name in known:
            found += [(name, text.strip())] if text.strip() else []
        elif near := difflib.get_close_matches(name, known, 1, 0.85):
            hint = f"did you mean {PREFIX}{near[0]}?"
            raise UnknownName(f"no setting is named {variable}", where="the environment", hint=hint)
    return found


def _table(table: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise MalformedInput(f"{key} is not a table", where=where, hint=f"write it under [{key}]")
    return dict(value)


def _alerts(table: Mapping[str, Any], where: str) -> Alerts:
    place = f"{where}, [alerts]"
    alerts = _table(table, "alerts", where)
    refuse_unknown(alerts, [*(item.name for item in fields(Alerts)), "channel"], place)
    return read_table(Alerts, {key: value for key, value in alerts.items() if key != "channel"}, place)


def _retention(table: Mapping[str, Any], where: str) -> Retention:
    place = f"{where}, [retention]"
    limits = read_table(Retention, _table(table, "retention", where), place)
    if not 2 <= limits.raw_hours <= 24 * limits.minute_days <= 24 * limits.hour_days:
        raise MalformedInput(
            "a coarser tier is kept for less long than a finer one",
            why=f"raw {limits.raw_hours:g} hours, minutes {limits.minute_days:g} days, hours {limits.hour_days:g} days",
            where=place,
            hint="raw_hours at least 2, then minute_days, then hour_days",
        )
    return limits


def _channels(table: Mapping[str, Any], where: str) -> tuple[Channel, ...]:
    alerts = _table(table, "alerts", where)
    entries = alerts.get("channel", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise MalformedInput("alerts.channel is not a list of tables", where=where, hint="write [[alerts.channel]]")
    channels: list[Channel] = []
    for number, entry in enumerate(entries, 1):
        channel = _channel(entry, f"{where}, [[alerts.channel]] number {number}")
        if channel.config.name in (other.config.name for other in channels):
            raise MalformedInput(
                f"two alert channels are named {channel.config.name!r}", where=where, hint="give each a name of its own"
            )
        channels.append(channel)
    return tuple(channels)


def _channel(entry: Mapping[str, Any], where: str) -> Channel:
    kinds = sink_kinds()
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        stated = "the kind of the channel is missing" if kind is None else f"no alert channel is of kind {kind!r}"
        raise UnknownName(stated, where=where, hint=f"kind is one of: {', '.join(sorted(kinds))}")
    sink = kinds[kind]
    config = read_table(sink.Config, {key: value for key, value in entry.items() if key != "kind"}, where)
    problem = config.problem() or sink.check(config) if config.name.strip() else "name is empty"
    if config.group_seconds and not sink.groups:
        problem = f"group_seconds does nothing here: a message of {kind} tells of one finding"
    if problem:
        raise MalformedInput(f"the alert channel cannot be used: {problem}", where=where, hint="see docs/alerts.md")
    return Channel(kind, config)


def _check(service: Service, where: str) -> None:
    if not 0 <= service.port <= 65535:
        raise MalformedInput(f"port {service.port} is no port", where=where, hint="0 to 65535; 0 takes a free one")
    if service.database_url is not None:
        try:
            urlsplit(service.database_url.reveal())
        except ValueError:
            raise MalformedInput("database_url is no address", where=where, hint=_DATABASE_EXAMPLE) from None
    if service.scrape_client not in SCRAPE_CLIENTS:
        raise MalformedInput(
            f"scrape_client {service.scrape_client!r} is none", where=where, hint=f"one of: {', '.join(SCRAPE_CLIENTS)}"
        )
    if service.public_url:
        try:
            parts = urlsplit(service.public_url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        except ValueError:
            usable = False
        if not usable:
            raise MalformedInput(
                "public_url is no address", where=where, hint='public_url = "https://draftscope.example.org"'
            )
