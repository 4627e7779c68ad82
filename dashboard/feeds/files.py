"""Logs of this machine, followed as they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from collector.domain.errors import InputError
from dashboard.feeds.base import Feed, Source

if TYPE_CHECKING:
    from collector.storage.engine import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSource(Source):
    """Logs in files.

    Attributes:
        paths: files and patterns (``/var/log/sglang/*.log``, ``**`` for folders in folders).
    """

    kind: ClassVar[str] = "files"

    paths: tuple[str, ...]
    interval_seconds: float = 1.0

    @property
    def place(self) -> str:
        """The patterns."""
        return ", ".join(self.paths)

    def check(self) -> None:
        """Also that there are patterns."""
        Source.check(self)
        if not any(path.strip() for path in self.paths):
            raise InputError("paths is empty", hint='paths = ["/var/log/sglang/*.log"]')

    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Read what is there, and follow it."""
        from collector.followed_logs import FollowedLogs
        from collector.log_writer import Owner

        return FollowedLogs(Owner(database, now, self.deployment or None, self.labels), self.paths)
