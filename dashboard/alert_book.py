"""What page, API and command line show of alerts, and what can be done there: silences and test messages."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from collector.domain.errors import MalformedInput, UnknownName
from collector.domain.findings import Severity
from collector.storage import deliveries, silences
from collector.storage.deliveries import Delivery, DeliveryStatus
from collector.storage.engine import Database
from collector.storage.silences import Silence
from dashboard.alerts import Alerting, notice_of, open_subjects, silenced_by
from dashboard.deployments import deployment_of
from dashboard.outbox import Outbox
from dashboard.settings import Channel
from dashboard.sinks.base import FAILURES_TO_PAUSE, SinkConfig
from dashboard.sinks.notice import NoticeType

LONGEST_SILENCE_SECONDS: Final = 30 * 86_400.0
LONGEST_COMMENT: Final = 500
_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
_ALIVE: Final = (NoticeType.OPENED.value, NoticeType.REMINDED.value)


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel of the settings: where it leads (no secret), what it hears of, and how sending went.

    ``state`` is ``unused``, ``ready``, ``failing`` or ``paused``; instants are seconds since 1970.
    """

    name: str
    kind: str
    leads_to: str
    hears: str
    state: str
    waiting: int
    last_success_at: float | None
    last_failure_at: float | None
    last_error: str
    paused_until: float | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One change told to one channel; ``answer`` is what came back at the latest attempt."""

    id: int
    message_id: str
    channel: str
    event: str
    title: str
    deployment: str
    run_id: str
    status: str
    attempts: int
    created_at: float
    next_try_at: float | None
    finished_at: float | None
    answer: str


@dataclass(frozen=True, slots=True)
class FiringRow:
    """A finding that is open: whom it was told, and the silence that keeps it back, if one does."""

    rule: str
    severity: str
    title: str
    deployment: str
    run_id: str
    scope: str
    since: float
    told: tuple[str, ...]
    silence_id: int | None


class AlertBook:
    """Alerts of one database under the settings of this process."""

    def __init__(self, database: Database, alerting: Alerting, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._alerting = alerting
        self._clock = clock

    def channels(self) -> list[ChannelRow]:
        """The channels of the settings, in their order."""
        with self._database.reading() as connection:
            states = {state.name: state for state in deliveries.list_channels(connection)}
            waiting = deliveries.count_unfinished(connection)
        now = self._clock()
        return [
            _channel_row(channel, states.get(channel.config.name), waiting.get(channel.config.name, 0), now)
            for channel in self._alerting.channels
        ]

    def deliveries(
        self, *, channel: str | None = None, status: DeliveryStatus | None = None, limit: int = 100
    ) -> list[DeliveryRow]:
        """The log, the latest first."""
        with self._database.reading() as connection:
            rows = deliveries.list_deliveries(connection, channel=channel, status=status, limit=limit)
        return [_delivery_row(row) for row in rows]

    def firing(self, *, least: Severity = Severity.WARNING) -> list[FiringRow]:
        """Findings that are open now, the gravest first."""
        now = self._clock()
        with self._database.reading() as connection:
            held = silences.list_silences(connection, at=now)
            told: dict[str, list[str]] = {}
            for channel in self._alerting.channels:
                for delivery in deliveries.told_before(connection, channel.config.name, _ALIVE, now):
                    told.setdefault(delivery.subject, []).append(channel.config.name)
            subjects = open_subjects(connection, least=least)
        rows = []
        for subject, (run, stored) in subjects.items():
            finding = stored.finding
            silence = None
            if held:
                silence = silenced_by(held, notice_of(run, stored, NoticeType.OPENED, "", at=now).document())
            rows.append(
                FiringRow(
                    finding.rule,
                    finding.severity.word,
                    finding.title,
                    deployment_of(run),
                    str(run.id),
                    finding.scope,
                    stored.first_seen,
                    tuple(told.get(subject, ())),
                    None if silence is None else silence.id,
                )
            )
        return rows

    def silences(self) -> list[Silence]:
        """The silences that hold now."""
        with self._database.reading() as connection:
            return silences.list_silences(connection, at=self._clock())

    def silence(
        self,
        *,
        seconds: float,
        rule: str = "",
        deployment: str = "",
        run: str = "",
        labels: Mapping[str, str] | None = None,
        comment: str = "",
    ) -> Silence:
        """Keep findings quiet for a while.

        Raises:
            MalformedInput: it would hold for no time or too long, or says not what to keep quiet.
        """
        if not 0 < seconds <= LONGEST_SILENCE_SECONDS:
            raise MalformedInput("a silence holds for up to 30 days", why=f"{seconds:g} s were asked for", hint="2h")
        if not (rule or deployment or run or labels):
            raise MalformedInput("nothing says what to keep quiet", hint='a rule such as PAY001, or "*" for everything')
        now = self._clock()
        with self._database.transaction() as connection:
            return silences.add_silence(
                connection, rule=rule.strip(), deployment=deployment.strip(), run=run.strip(), labels=labels,
                comment=comment.strip()[:LONGEST_COMMENT], at=now, until=now + seconds,
            )  # fmt: skip

    def end_silence(self, silence_id: int) -> None:
        """End a silence now.

        Raises:
            UnknownName: none of this id holds.
        """
        with self._database.transaction() as connection:
            silences.end_silence(connection, silence_id, at=self._clock())

    def test(self, name: str) -> DeliveryRow:
        """Send a channel a test message and wait for the answer.

        Raises:
            UnknownName: no channel of the settings has this name.
        """
        channel = self._channel(name)

        async def once() -> Delivery:
            outbox = Outbox(self._database, [channel], clock=self._clock)
            try:
                return await outbox.send_test(channel, self._alerting.public_url)
            finally:
                await outbox.close()

        return _delivery_row(asyncio.run(once()))

    def _channel(self, name: str) -> Channel:
        known = {channel.config.name: channel for channel in self._alerting.channels}
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"channels are: {', '.join(known) or 'none'}"
            raise UnknownName(f"no alert channel is named {name!r}", hint=hint)
        return known[name]


def duration(text: str) -> float:
    """Seconds of ``30m``, ``2h`` or ``1d``.

    Raises:
        MalformedInput: it is no duration.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mhd])", text.strip().lower())
    if found is None:
        raise MalformedInput(f"{text!r} is no duration", hint="30m, 2h or 1d")
    return float(found[1]) * _UNITS[found[2]]


def _channel_row(channel: Channel, state: deliveries.Channel | None, waiting: int, now: float) -> ChannelRow:
    config = channel.config
    shown = ChannelRow(
        config.name, channel.kind, _leads_to(config), _hears(config), "unused", waiting, None, None, "", None
    )
    if state is None or (state.last_success is None and state.last_failure is None):
        return shown
    paused = state.paused_until is not None and state.paused_until > now
    failing = "failing" if state.last_error else "ready"
    return ChannelRow(
        shown.name, shown.kind, shown.leads_to, shown.hears,
        "paused" if paused or state.failures_in_a_row >= FAILURES_TO_PAUSE else failing,
        waiting, state.last_success, state.last_failure, state.last_error, state.paused_until if paused else None,
    )  # fmt: skip


def _leads_to(config: SinkConfig) -> str:
    """The receiver without anything secret."""
    recipients: tuple[str, ...] = getattr(config, "to", ())
    return ", ".join(recipients) if recipients else str(getattr(config, "url", ""))


def _hears(config: SinkConfig) -> str:
    parts = [
        {Severity.INFO: "everything", Severity.WARNING: "warnings and critical"}.get(
            config.min_severity, "critical only"
        )
    ]
    parts += [f"rules {', '.join(config.rules)}"] if config.rules else []
    parts += [f"{name}={pattern}" for name, pattern in config.labels.items()]
    return "; ".join(parts)


def _delivery_row(row: Delivery) -> DeliveryRow:
    data = row.payload["data"]
    waits = row.status in (DeliveryStatus.HELD, DeliveryStatus.PENDING)
    return DeliveryRow(
        row.id, row.message_id, row.channel, row.event.removeprefix("finding."), data["finding"]["title"], data["deployment"],
        data["run"]["id"], row.status.value, row.attempts, row.created_at, row.next_try if waits else None, row.finished_at,
        row.answer or row.last_error,
    )  # fmt: skip
