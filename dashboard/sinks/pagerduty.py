"""PagerDuty: the Events API, version 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dashboard.masked import Secret, SecretUrl
from dashboard.sinks.notice import Notice, NoticeType
from dashboard.sinks.posting import HttpConfig, HttpSink, OutgoingRequest, as_json
from dashboard.sinks.words import cut, told

EVENTS: Final = "https://events.pagerduty.com/v2/enqueue"
LONGEST_SUMMARY: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerDutyConfig(HttpConfig):
    """``routing_key`` is the integration key of a service; ``url`` is another one in the EU region."""

    url: SecretUrl = field(default_factory=lambda: SecretUrl(EVENTS))
    routing_key: Secret


class PagerDutySink(HttpSink):
    """Triggers an incident when a finding opens and resolves it when it ends.

    Source: PagerDuty's description of the Events API v2 (alert events).
    """

    kind = "pagerduty"
    Config = PagerDutyConfig
    config: PagerDutyConfig

    def render(self, message_id: str, notices: Sequence[Notice], *, at: float) -> OutgoingRequest:
        """One event; what belongs together bears the same ``dedup_key``."""
        del message_id, at
        (notice,) = notices
        event: dict[str, Any] = {"routing_key": self.config.routing_key.reveal(), "dedup_key": notice.key}
        if notice.type is NoticeType.RESOLVED:
            return OutgoingRequest(as_json({**event, "event_action": "resolve"}))
        return OutgoingRequest(as_json({**event, "event_action": "trigger", **_described(notice)}))


def _described(notice: Notice) -> dict[str, Any]:
    document = notice.document()
    data, one = document["data"], told(notice)
    finding = data["finding"]
    details = {"figures": one.figures, "cause": one.cause, "why": finding["why"], "fix": finding["fix"],
               "values": finding["values"], "run": data["run"], "labels": data["labels"]}  # fmt: skip
    return {
        "client": "draftscope",
        "client_url": notice.link,
        "links": [{"href": notice.link, "text": "The finding in draftscope"}],
        "payload": {
            "summary": cut(notice.finding.title, LONGEST_SUMMARY),
            "source": one.where or "draftscope",
            "severity": notice.finding.severity,
            "timestamp": document["timestamp"],
            "component": notice.run.model,
            "group": data["deployment"],
            "class": notice.finding.rule,
            "custom_details": {name: value for name, value in details.items() if value},
        },
    }
