"""The generic channel: JSON to any address, signed after the Standard Webhooks specification."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dashboard.masked import Secret
from dashboard.sinks.base import HttpConfig, HttpSink, OutgoingRequest
from dashboard.sinks.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig(HttpConfig):
    """A webhook is always signed."""

    secret: Secret


class WebhookSink(HttpSink):
    """Posts the notice's document as it is; ``docs/alerts.md`` describes it."""

    kind = "webhook"
    Config = WebhookConfig

    def render(self, notice: Notice) -> OutgoingRequest:
        """Keys in a fixed order, so that a repetition has the same bytes."""
        return OutgoingRequest(json.dumps(notice.document(), ensure_ascii=False, allow_nan=False).encode())
