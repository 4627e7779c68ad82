"""What an alert says, before a channel gives it its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Self

LONGEST_TEXT: Final = 2000
"""Characters of one text; what is longer is cut."""
LONGEST_WORD: Final = 200
"""Characters of names, labels and texts among the figures."""
MOST_ITEMS: Final = 32
"""Entries of one list or table."""
MOST_FIXES: Final = 8
MOST_FIGURES: Final = 8000
"""Characters of all figures as JSON; beyond it those that are lists or tables are left out."""


class NoticeType(StrEnum):
    """What happened."""

    OPENED = "finding.opened"
    RESOLVED = "finding.resolved"
    REMINDED = "finding.reminded"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class NoticedRun:
    """The run an alert is about. ``started_at`` is seconds since 1970; "" where a text is not known."""

    id: str
    engine: str
    engine_version: str | None
    method: str | None
    model: str
    draft: str
    source: str
    started_at: float | None


@dataclass(frozen=True, slots=True)
class NoticedFinding:
    """The finding: words as in its :class:`collector.domain.findings.Finding`."""

    rule: str
    name: str
    severity: str
    confidence: str
    scope: str
    title: str
    why: str
    values: Mapping[str, Any]
    fix: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoticedCause:
    """What most likely lies behind the finding; ``standing`` is ``certain``, ``likely`` or ``possible``."""

    id: str
    title: str
    standing: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert. ``key`` is the same when the problem opens and when it is resolved; ``at`` is seconds since 1970."""

    type: NoticeType
    at: float
    key: str
    deployment: str
    run: NoticedRun
    finding: NoticedFinding
    link: str
    labels: Mapping[str, str]
    cause: NoticedCause | None = None

    def document(self) -> dict[str, Any]:
        """The payload of ``docs/alerts.md``, ready for JSON; bounded in size."""
        finding = asdict(self.finding)
        finding |= {key: _cut(finding[key], LONGEST_TEXT) for key in ("title", "why")}
        finding |= {
            "values": _figures(self.finding.values),
            "fix": _bounded(self.finding.fix[:MOST_FIXES], LONGEST_TEXT),
        }
        return {
            "type": self.type.value,
            "timestamp": _instant(self.at),
            "data": {
                "key": self.key,
                "deployment": _cut(self.deployment, LONGEST_WORD),
                "run": _bounded({**asdict(self.run), "started_at": _instant(self.run.started_at)}, LONGEST_WORD),
                "finding": finding,
                "cause": None if self.cause is None else _bounded(asdict(self.cause), LONGEST_WORD),
                "link": self.link,
                "labels": _bounded(self.labels, LONGEST_WORD),
            },
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`document`."""
        data = document["data"]
        run = {**data["run"], "started_at": _seconds(data["run"]["started_at"])}
        finding = {**data["finding"], "fix": tuple(data["finding"]["fix"])}
        cause = data.get("cause")
        at = _seconds(document["timestamp"])
        assert at is not None
        return cls(
            type=NoticeType(document["type"]),
            at=at,
            key=data["key"],
            deployment=data["deployment"],
            run=NoticedRun(**run),
            finding=NoticedFinding(**finding),
            link=data["link"],
            labels=data["labels"],
            cause=None if cause is None else NoticedCause(**cause),
        )


def _instant(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(instant: str | None) -> float | None:
    return None if instant is None else datetime.fromisoformat(instant).timestamp()


def _figures(values: Mapping[str, Any]) -> dict[str, Any]:
    """In the order of their names; non-finite numbers are ``None``, as in the diagnosis document."""
    from analysis.documents import plain

    figures: dict[str, Any] = _bounded(plain(dict(sorted(values.items()))), LONGEST_WORD)
    if len(json.dumps(figures)) <= MOST_FIGURES:
        return figures
    return {key: value for key, value in figures.items() if not isinstance(value, (list, dict))}


def _bounded(value: Any, longest: int) -> Any:
    """The same with long texts, lists and tables cut, so that no message outgrows what receivers take."""
    if isinstance(value, str):
        return _cut(value, longest)
    if isinstance(value, Mapping):
        return {_cut(key, LONGEST_WORD): _bounded(item, longest) for key, item in list(value.items())[:MOST_ITEMS]}
    if isinstance(value, (list, tuple)):
        return [_bounded(item, longest) for item in value[:MOST_ITEMS]]
    return value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
