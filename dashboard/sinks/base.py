"""What all alert channels share: limits, what an error says, when to try again, and the settings every channel has.

A channel is one module in this package with one class. It renders notices; everything else is here and in
:mod:`dashboard.sinks.posting`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from collector.domain.findings import Severity
from dashboard.sinks.notice import Notice

TIME_LIMIT_SECONDS: Final = 10.0
"""For one attempt as a whole, from looking up the host to the answer's status."""
LARGEST_BODY: Final = 128 * 1024
"""Bytes of one message."""
FIRST_DELAY_SECONDS: Final = 5.0
DELAY_GROWTH: Final = 3.0
LONGEST_DELAY_SECONDS: Final = 3600.0
LONGEST_WAIT_SECONDS: Final = 86_400.0
"""How long a receiver may ask us to wait (``Retry-After``)."""
LONGEST_LIFE_SECONDS: Final = 2 * 86_400.0
"""A message that waited longer, because its channel was paused, is given up."""
FAILURES_TO_PAUSE: Final = 5
"""After so many failures in a row a channel is left alone for a while, and then tried with one message."""
MOST_IN_GROUP: Final = 20
"""Findings in one message."""
MOST_ATTEMPTS: Final = 12
"""After these a message is given up: about five and a half hours with the delays above."""


class SendError(Exception):
    """A message was not accepted. ``permanent``: trying again cannot help. Holds no secret."""

    def __init__(self, reason: str, *, permanent: bool, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after


def retry_delay(attempt: int, jitter: float, retry_after: float | None = None) -> float:
    """Seconds until the next attempt.

    ``attempt`` counts those made, from 1; ``jitter`` lies between 0 and 1 and takes away up to half,
    so that messages that failed together do not come back together. What the receiver asks for
    (``retry_after``) is the least.
    """
    delay = min(FIRST_DELAY_SECONDS * DELAY_GROWTH ** (attempt - 1), LONGEST_DELAY_SECONDS) * (1 - jitter / 2)
    return max(delay, min(retry_after or 0.0, LONGEST_WAIT_SECONDS))


def refuse_oversize(body: bytes) -> None:
    """A message has a largest size.

    Raises:
        SendError: this one is larger.
    """
    if len(body) > LARGEST_BODY:
        raise SendError(f"the message is larger than {LARGEST_BODY // 1024} KiB", permanent=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig:
    """The settings every channel has.

    ``min_severity``, ``rules`` and ``labels`` say what it hears of; patterns may hold ``*``. A finding is
    told once it was open for ``open_after_seconds``, and its end once it was gone for
    ``resolve_after_seconds``; what returns before that was never gone. ``group_seconds`` gathers what
    happens within such a span, for kinds whose messages can tell of several findings.
    """

    name: str
    min_severity: Severity = Severity.WARNING
    rules: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    open_after_seconds: float = 0.0
    resolve_after_seconds: float = 300.0
    remind_after_hours: float = 0.0
    group_seconds: float = 0.0
    most_per_minute: int = 60

    def problem(self) -> str:
        """What is wrong with them; "" if nothing is."""
        waits = (self.open_after_seconds, self.resolve_after_seconds, self.remind_after_hours, self.group_seconds)
        if min(waits) < 0:
            return "no wait can be below 0"
        return "" if self.most_per_minute >= 1 else "most_per_minute is 1 or more"


class Sink(ABC):
    """A channel: where notices go."""

    kind: ClassVar[str]
    Config: ClassVar[type[SinkConfig]]
    groups: ClassVar[bool] = False
    """Whether one message may tell of several findings."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def check(cls, config: Any) -> str:
        """What is wrong with a configuration, in words without secrets; "" if nothing is."""
        del config
        return ""

    @abstractmethod
    async def send(self, message_id: str, notices: Sequence[Notice], *, at: float) -> str:
        """Deliver one message; returns what the receiver answered.

        ``message_id`` is the same at every attempt; ``at`` is the present instant.

        Raises:
            SendError: it was not accepted.
        """

    async def close(self) -> None:  # noqa: B027 - most channels hold nothing open
        """Give back what is held open."""
