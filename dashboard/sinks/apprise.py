"""Everything else (Discord, Teams, Telegram, ntfy, …) through the library Apprise, an extra of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from dashboard.masked import SecretUrl
from dashboard.sinks import base
from dashboard.sinks.base import SendError, Sink, SinkConfig
from dashboard.sinks.notice import Notice, NoticeType
from dashboard.sinks.words import plain_text, subject_of

_LEVELS: Final = {"critical": "failure", "warning": "warning", "info": "info"}

for _name in ("apprise", "urllib3"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)  # they print whole addresses, which are secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseConfig(SinkConfig):
    """``url`` in the form of Apprise, for instance ``discord://ID/TOKEN``."""

    url: SecretUrl
    group_seconds: float = 30.0


class AppriseSink(Sink):
    """Hands each message to Apprise, which says whether it arrived and not why, so every failure is tried again."""

    kind = "apprise"
    Config = AppriseConfig
    config: AppriseConfig
    groups = True

    @classmethod
    def check(cls, config: AppriseConfig) -> str:
        """The library is there and knows the address."""
        if find_spec("apprise") is None:
            return "it needs the extra: pip install 'draftscope[apprise]'"
        from apprise import Apprise

        return "" if Apprise().add(config.url.reveal()) else "url is no address that Apprise knows"

    def render(self, notices: Sequence[Notice]) -> dict[str, Any]:
        """Title, body and kind of the notification; pure."""
        ended = all(notice.type is NoticeType.RESOLVED for notice in notices)
        gravest = min((notice.finding.severity for notice in notices), key=list(_LEVELS).index)
        return {
            "title": subject_of(notices),
            "body": plain_text(notices),
            "notify_type": "success" if ended else _LEVELS[gravest],
            "body_format": "text",
        }

    async def send(self, message_id: str, notices: Sequence[Notice], *, at: float) -> str:
        """Hand one message over."""
        del message_id, at
        from apprise import Apprise

        messenger = Apprise()
        messenger.add(self.config.url.reveal())
        message = self.render(notices)
        base.refuse_oversize(message["body"].encode())
        try:
            async with asyncio.timeout(base.TIME_LIMIT_SECONDS):
                arrived = await messenger.async_notify(**message)
        except TimeoutError:
            raise SendError(f"no answer within {base.TIME_LIMIT_SECONDS:g} s", permanent=False) from None
        if not arrived:
            raise SendError("Apprise could not deliver it", permanent=False)
        return "accepted by Apprise"
