"""Logs of this machine that patterns find, stored as they are written; files that appear later as well."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from collector.domain.errors import InputError
from collector.following import LogFollower
from collector.log_writer import Owner
from collector.sources.rotation import rotated_sets


class FollowedLogs:
    """Every log of some patterns (``/var/log/sglang/*.log``). Call :meth:`step` from time to time."""

    def __init__(self, owner: Owner, patterns: Sequence[str]) -> None:
        """Nothing is opened yet."""
        self._owner = owner
        self._patterns = tuple(patterns)
        self._followers: dict[Path, LogFollower] = {}
        self._strange: dict[Path, int] = {}
        """Files that are no logs, by the number the system has for them: another file of that name may be one."""
        self.problems: dict[str, str] = {}
        """Patterns that find nothing and files that cannot be read, and why."""

    @property
    def run_ids(self) -> list[int]:
        """The runs of all logs."""
        logs = [log for follower in self._followers.values() for log in follower.logs]
        return [run.id for log in logs for run in log.runs]

    def step(self) -> bool:
        """Store what was appended since the last call; whether anything was.

        Raises:
            StorageError: the database refused; what was committed before stays.
        """
        self._look()
        return sum(self._poll(path) for path in list(self._followers)) > 0

    def close(self) -> None:
        """Let the files go."""
        for follower in self._followers.values():
            follower.close()

    def _look(self) -> None:
        """Begin with files that are new."""
        for pattern in self._patterns:
            matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - a pattern may begin at the root
            found = [path for path in map(Path, matches) if path.is_file()]
            if not found:
                self.problems[pattern] = f"{pattern}: no file is there (yet)"
                continue
            self.problems.pop(pattern, None)
            for log in rotated_sets(found):
                if log.newest in self._followers or self._strange.get(log.newest) == _number(log.newest):
                    continue
                try:
                    self._followers[log.newest] = LogFollower(self._owner, [*log.older, log.newest])
                except InputError as error:
                    self._leave(log.newest, error)

    def _poll(self, path: Path) -> int:
        try:
            count = self._followers[path].poll()
        except InputError as error:
            self._leave(path, error)
            return 0
        self.problems.pop(str(path), None)
        return count

    def _leave(self, path: Path, error: InputError) -> None:
        follower = self._followers.pop(path, None)
        if follower is not None:
            follower.close()
        self._strange[path] = _number(path)
        self.problems[str(path)] = f"{path}: {error.what}"


def _number(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
