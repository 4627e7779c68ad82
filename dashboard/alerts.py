"""Alerts: which changes of findings are told, to which channels, when, and in which words.

Messages are queued in the transaction that stores the judgement, and held until it is sure that they
have to be sent; :mod:`dashboard.outbox` sends them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection

from analysis.causes.weighing import NONE_OF_THESE, WeighedCause
from collector.domain.findings import Severity
from collector.domain.runs import Role
from collector.storage.bulk import digest_of
from collector.storage.deliveries import Delivery, DeliveryStatus, drop, enqueue, last_told, save_channel
from collector.storage.findings import FindingState, StoredFinding, Transitions, load_findings
from collector.storage.runs import StoredRun, load_stored_runs
from collector.storage.silences import Silence
from dashboard import names
from dashboard.deployments import deployment_of, model_of, place_of
from dashboard.settings import Channel
from dashboard.sinks.base import SinkConfig
from dashboard.sinks.notice import Notice, NoticedCause, NoticedFinding, NoticedRun, NoticeType

_SAME_MOMENT_SECONDS: Final = 0.001
"""Instants are stored to the microsecond, so one that comes back may lie a little later."""
_OF_OTHER_RUNS: Final = frozenset({Role.PREVIOUS.value, Role.BASELINE.value})


@dataclass(frozen=True, slots=True)
class Alerting:
    """Where alerts go, the address that their links begin with, and until when nothing new is told."""

    channels: tuple[Channel, ...] = ()
    public_url: str = ""
    quiet_until: float = 0.0


def queue_alerts(
    connection: Connection,
    run: StoredRun,
    transitions: Transitions,
    alerting: Alerting,
    *,
    at: float,
    causes: Sequence[WeighedCause] = (),
) -> int:
    """Queue a message for every channel that wants a change; returns how many.

    A channel hears of a finding that it wants, once, and of its end if it has heard of it. What ends
    before it was told is not told, and what returns before its end was told goes on. Sample runs are
    never told of, nor are findings about the previous run or the baseline. ``causes`` are those of the
    diagnosis, the likeliest first.
    """
    if run.sample or not alerting.channels:
        return 0
    queued = 0
    for channel in alerting.channels:
        config = channel.config
        save_channel(connection, config.name, channel.kind)
        for kind, stored in _wanted(transitions):
            heard = last_told(connection, config.name, subject_of(run, stored))
            notice = notice_of(run, stored, kind, alerting.public_url, at=at, causes=causes)
            if kind is NoticeType.RESOLVED:
                queued += _queue_end(connection, config, notice, stored, heard, at=at)
            elif wants(config, notice):
                begin = max(at + config.open_after_seconds, alerting.quiet_until)
                queued += _queue_beginning(connection, config, notice, stored, heard, begin=begin, at=at)
    return queued


def _queue_beginning(
    connection: Connection, config: SinkConfig, notice: Notice, stored: StoredFinding, heard: Delivery | None,
    *, begin: float, at: float,
) -> bool:  # fmt: skip
    if heard is not None and heard.event != NoticeType.RESOLVED.value:
        return False
    if heard is not None and _is_held(heard, at):
        drop(connection, [heard.id], "it returned before its end was told", at=at)
        return False
    _enqueue(connection, config, notice, stored, hold_until=begin, at=at)
    return True


def _queue_end(
    connection: Connection, config: SinkConfig, notice: Notice, stored: StoredFinding, heard: Delivery | None, *, at: float
) -> bool:  # fmt: skip
    if heard is None or heard.event == NoticeType.RESOLVED.value:
        return False
    if heard.event == NoticeType.OPENED.value and _is_held(heard, at):
        drop(connection, [heard.id], "it ended before it was told", at=at)
        return False
    if heard.event == NoticeType.REMINDED.value and heard.status is DeliveryStatus.HELD:
        drop(connection, [heard.id], "it ended before the reminder was sent", at=at)
    end = at + config.resolve_after_seconds
    _enqueue(connection, config, as_told(notice, heard.payload), stored, hold_until=end, at=at)
    return True


def _is_held(delivery: Delivery, at: float) -> bool:
    return delivery.status is DeliveryStatus.HELD and delivery.next_try > at + _SAME_MOMENT_SECONDS


def _enqueue(
    connection: Connection, config: SinkConfig, notice: Notice, stored: StoredFinding, *, hold_until: float, at: float
) -> None:
    if config.group_seconds:
        # What happens within one span becomes due together, and so travels together.
        hold_until = math.ceil(hold_until / config.group_seconds) * config.group_seconds
    enqueue(
        connection, config.name, notice.type.value, notice.document(),
        finding_id=stored.id, subject=notice.key, hold_until=hold_until, at=at,
    )  # fmt: skip


def wants(config: SinkConfig, notice: Notice) -> bool:
    """Whether a channel is to hear of a finding."""
    finding = notice.finding
    if not any(finding.severity == level.word for level in type(config.min_severity) if level >= config.min_severity):
        return False
    if config.rules and not any(_fits_rule(pattern, finding.rule, finding.name) for pattern in config.rules):
        return False
    return _fit_labels(config.labels, notice.labels)


def silenced_by(silences: Sequence[Silence], payload: Mapping[str, Any]) -> Silence | None:
    """The silence that keeps a message back for the longest, if one does."""
    data = payload["data"]
    finding = data["finding"]
    fitting = [
        silence
        for silence in silences
        if (not silence.rule or _fits_rule(silence.rule, finding["rule"], finding["name"]))
        and (not silence.deployment or fnmatchcase(data["deployment"], silence.deployment))
        and (not silence.run or silence.run == data["run"]["id"])
        and _fit_labels(silence.labels, data["labels"])
    ]
    return max(fitting, key=lambda silence: silence.ends_at, default=None)


def _fits_rule(pattern: str, rule: str, name: str) -> bool:
    return fnmatchcase(rule, pattern.upper()) or fnmatchcase(name, pattern)


def _fit_labels(patterns: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(name in labels and fnmatchcase(labels[name], pattern) for name, pattern in patterns.items())


def open_subjects(
    connection: Connection, *, least: Severity = Severity.INFO
) -> dict[str, tuple[StoredRun, StoredFinding]]:
    """What of this severity and graver is open now, by what its messages are about."""
    stored = [item for item in load_findings(connection, state=FindingState.OPEN, least=least) if _is_of_the_run(item)]
    runs = {run.id: run for run in load_stored_runs(connection, sorted({item.run_id for item in stored}))}
    return {
        subject_of(runs[item.run_id], item): (runs[item.run_id], item)
        for item in stored
        if not runs[item.run_id].sample
    }


def as_told(notice: Notice, payload: Mapping[str, Any]) -> Notice:
    """A later notice of the same finding, under the severity, deployment and labels that its beginning was told with.

    Receivers route by these, and find what to close.
    """
    data = payload["data"]
    finding = replace(notice.finding, severity=data["finding"]["severity"])
    return replace(notice, finding=finding, deployment=data["deployment"], labels=data["labels"])


def notice_of(
    run: StoredRun,
    stored: StoredFinding,
    kind: NoticeType,
    public_url: str,
    *,
    at: float,
    causes: Sequence[WeighedCause] = (),
) -> Notice:
    """What is told about one change; a finding that ended has no cause any more."""
    finding = stored.finding
    page = f"{public_url}/runs/{quote(str(run.id))}"
    return Notice(
        type=kind,
        at=at,
        key=subject_of(run, stored),
        deployment=deployment_of(run),
        run=NoticedRun(
            id=str(run.id),
            engine=run.engine,
            engine_version=None if run.engine_version is None else str(run.engine_version),
            method=run.serving.method,
            model=model_of(run),
            draft=names.model(run.serving.draft_model),
            source=run.source,
            started_at=run.started_at,
        ),
        finding=NoticedFinding(
            rule=finding.rule,
            name=finding.name,
            severity=finding.severity.word,
            confidence=finding.confidence.word,
            scope=finding.scope,
            title=finding.title,
            why=finding.why,
            values=finding.values,
            fix=finding.fix,
        ),
        link=page if kind is NoticeType.RESOLVED else f"{page}#{finding.rule}",
        labels=run.labels,
        cause=None if kind is NoticeType.RESOLVED else _cause_of(finding.rule, causes),
    )


def _cause_of(rule: str, causes: Sequence[WeighedCause]) -> NoticedCause | None:
    """The likeliest cause that rests on this rule, else the likeliest of all."""
    offered = [cause for cause in causes if cause.id != NONE_OF_THESE]
    resting = (cause for cause in offered if any(reason.rule == rule for reason in cause.reasons_for))
    cause = next(resting, offered[0] if offered else None)
    return None if cause is None else NoticedCause(cause.id, cause.title, cause.standing)


def subject_of(run: StoredRun, stored: StoredFinding) -> str:
    """The same for a problem from its opening to its end, also where a restart lies between.

    A finding that goes on in the next run keeps when it was first seen.
    """
    return digest_of(run.engine, place_of(run), stored.first_seen, *stored.finding.identity)


def _wanted(transitions: Transitions) -> Sequence[tuple[NoticeType, StoredFinding]]:
    opened = [(NoticeType.OPENED, stored) for stored in (*transitions.opened, *transitions.raised)]
    resolved = [(NoticeType.RESOLVED, stored) for stored in transitions.resolved]
    return [(kind, stored) for kind, stored in (*opened, *resolved) if _is_of_the_run(stored)]


def _is_of_the_run(stored: StoredFinding) -> bool:
    return stored.finding.scope not in _OF_OTHER_RUNS


def test_notice(public_url: str, *, key: str, at: float) -> Notice:
    """What a channel is tried with."""
    run = NoticedRun("", "", None, None, "", "", "", None)
    finding = NoticedFinding(
        rule="TEST", name="test", severity="info", confidence="high", scope="run",
        title="draftscope can reach this channel", why="Somebody asked for this message; nothing is wrong.",
        values={}, fix=(),
    )  # fmt: skip
    return Notice(NoticeType.TEST, at, key, "test", run, finding, f"{public_url}/alerts", {})
