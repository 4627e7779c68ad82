"""The generic channel: JSON to any address, signed after the Standard Webhooks specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.masked import Secret
from dashboard.sinks.notice import Notice
from dashboard.sinks.posting import HttpConfig, HttpSink, OutgoingRequest, as_json
from dashboard.sinks.signing import can_sign, signature_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig(HttpConfig):
    """A webhook is always signed with ``secret``."""

    secret: Secret


class WebhookSink(HttpSink):
    """Posts the notice's document as it is; ``docs/alerts.md`` describes it."""

    kind = "webhook"
    Config = WebhookConfig
    config: WebhookConfig

    @classmethod
    def check(cls, config: Any) -> str:
        """Address and secret are well-formed."""
        if problem := super().check(config):
            return problem
        return "" if can_sign(config.secret) else "secret needs the form whsec_ followed by at least 24 bytes in base64"

    def render(self, message_id: str, notices: Sequence[Notice], *, at: float) -> OutgoingRequest:
        """One notice; a repetition has the same body, and a signature of its own time."""
        (notice,) = notices
        body = as_json(notice.document())
        return OutgoingRequest(body, headers=signature_headers(self.config.secret, message_id, body, at=at))
