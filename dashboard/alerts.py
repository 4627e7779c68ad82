"""Alerts: which changes of findings are told, to which channels, and in which words.

Messages are queued in the transaction that stores the judgement; :mod:`dashboard.outbox` sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection

from analysis.causes.weighing import NONE_OF_THESE, WeighedCause
from collector.domain.runs import Role
from collector.storage.bulk import digest_of
from collector.storage.deliveries import enqueue, last_event, save_channel
from collector.storage.findings import StoredFinding, Transitions
from collector.storage.runs import StoredRun
from dashboard import names
from dashboard.deployments import deployment_of, model_of, place_of
from dashboard.settings import Channel
from dashboard.sinks.notice import Notice, NoticedCause, NoticedFinding, NoticedRun, NoticeType

_OF_OTHER_RUNS: Final = frozenset({Role.PREVIOUS.value, Role.BASELINE.value})


@dataclass(frozen=True, slots=True)
class Alerting:
    """Where alerts go, and the address that their links begin with."""

    channels: tuple[Channel, ...] = ()
    public_url: str = ""


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

    A channel hears of a finding once it is grave enough, and of its end if it has heard of it. Sample
    runs are never told of, nor are findings about the previous run or the baseline. ``causes`` are
    those of the diagnosis, the likeliest first.
    """
    if run.sample or not alerting.channels:
        return 0
    queued = 0
    for channel in alerting.channels:
        save_channel(connection, channel.config.name, channel.kind)
        for kind, stored in _wanted(transitions):
            subject = subject_of(run, stored)
            heard = last_event(connection, channel.config.name, subject) == NoticeType.OPENED.value
            grave = stored.finding.severity >= channel.config.min_severity
            if heard if kind is NoticeType.RESOLVED else grave and not heard:
                notice = notice_of(run, stored, kind, alerting.public_url, at=at, causes=causes)
                enqueue(
                    connection, channel.config.name, kind.value, notice.document(),
                    finding_id=stored.id, subject=subject, at=at,
                )  # fmt: skip
                queued += 1
    return queued


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
    return [(kind, stored) for kind, stored in (*opened, *resolved) if stored.finding.scope not in _OF_OTHER_RUNS]
