"""Prometheus Alertmanager: alerts posted to its API, version 2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from dashboard.masked import Secret
from dashboard.sinks.notice import Notice, NoticeType
from dashboard.sinks.posting import HttpConfig, HttpSink, OutgoingRequest, as_json
from dashboard.sinks.words import told

ALERT_NAME: Final = "DraftscopeFinding"
STANDS_SECONDS: Final = 7 * 86_400.0
"""How long an alert fires if its end is never posted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerConfig(HttpConfig):
    """``url`` is Alertmanager's own address; ``token`` is sent as a bearer token.

    Alertmanager forgets its alerts when it restarts, so what is open is posted again every hour.
    """

    token: Secret | None = None
    remind_after_hours: float = 1.0


class AlertmanagerSink(HttpSink):
    """Posts findings as alerts that fire until their end is posted.

    Source: the OpenAPI description of Alertmanager's API v2 (``postableAlerts``).
    """

    kind = "alertmanager"
    Config = AlertmanagerConfig
    config: AlertmanagerConfig
    groups = True

    def render(self, message_id: str, notices: Sequence[Notice], *, at: float) -> OutgoingRequest:
        """All notices as one list of alerts."""
        del message_id
        token = self.config.token
        headers = {} if token is None else {"Authorization": f"Bearer {token.reveal()}"}
        alerts = [_alert(notice, until=at + STANDS_SECONDS) for notice in notices]
        return OutgoingRequest(as_json(alerts), "/api/v2/alerts", headers)


def _alert(notice: Notice, *, until: float) -> dict[str, Any]:
    one, data = told(notice), notice.document()["data"]
    annotations = {
        "summary": notice.finding.title,
        "description": "\n".join(one.lines()),
        "figures": one.figures,
        "cause": one.cause,
        "fix": one.fix,
        "run": notice.run.id,
    }
    alert: dict[str, Any] = {
        "labels": _labels(notice, data["deployment"], data["labels"]),
        "annotations": {name: text for name, text in annotations.items() if text},
        "generatorURL": notice.link,
    }
    if notice.type is NoticeType.RESOLVED:
        return {**alert, "endsAt": _instant(notice.at)}
    return {**alert, "startsAt": _instant(notice.at), "endsAt": _instant(until)}


def _labels(notice: Notice, deployment: str, labels: dict[str, str]) -> dict[str, str]:
    """What makes two alerts the same to Alertmanager: equal at the beginning and the end of a finding."""
    own = {
        "alertname": ALERT_NAME,
        "rule": notice.finding.rule,
        "name": notice.finding.name,
        "severity": notice.finding.severity,
        "scope": notice.finding.scope,
        "deployment": deployment,
        "engine": notice.run.engine,
        "model": notice.run.model,
        "finding": notice.key,
    }
    given = {re.sub(r"[^a-zA-Z0-9_]|^(?=\d)", "_", name): value for name, value in labels.items() if name}
    return {name: value for name, value in {**given, **own}.items() if value}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
