"""Slack: an incoming webhook with blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.sinks.notice import Notice
from dashboard.sinks.posting import HttpConfig, HttpSink, OutgoingRequest, as_json
from dashboard.sinks.words import SHORT, cut, subject_of, told

LONGEST_TEXT: Final = 2900
"""Characters of one block; Slack takes 3,000."""
LINES_A_BLOCK: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackConfig(HttpConfig):
    """People read it, so what happens together is told together."""

    group_seconds: float = 30.0


class SlackSink(HttpSink):
    """Posts to the address that Slack gives for one of its channels.

    Source: Slack's reference of incoming webhooks and of Block Kit.
    """

    kind = "slack"
    Config = SlackConfig
    groups = True

    def render(self, message_id: str, notices: Sequence[Notice], *, at: float) -> OutgoingRequest:
        """One finding in full, or several in a line each."""
        del message_id, at
        blocks = _in_full(notices[0]) if len(notices) == 1 else _in_lines(notices)
        return OutgoingRequest(as_json({"text": _escaped(subject_of(notices)), "blocks": blocks}))


def _in_full(notice: Notice) -> list[dict[str, Any]]:
    one = told(notice)
    labelled = (("", one.figures), ("", one.why), ("*Likely cause:* ", one.cause), ("*Do:* ", one.fix))
    parts = "\n".join(label + cut(_escaped(text), 900) for label, text in labelled if text)
    head = f"*{_linked(notice.link, one.headline)}*\n{_escaped(one.where)}"
    blocks = [_section(head), *([_section(parts)] if parts else [])]
    about = [notice.finding.rule, *(f"{name}={value}" for name, value in sorted(notice.labels.items()))]
    context = {"type": "mrkdwn", "text": cut(_escaped(" · ".join(about)), LONGEST_TEXT)}
    return [*blocks, {"type": "context", "elements": [context]}]


def _in_lines(notices: Sequence[Notice]) -> list[dict[str, Any]]:
    lines = [
        f"• {_linked(notice.link, cut(told(notice).headline, SHORT))} {_escaped(cut(told(notice).where, SHORT))}"
        for notice in notices
    ]
    stacks = [lines[at : at + LINES_A_BLOCK] for at in range(0, len(lines), LINES_A_BLOCK)]
    return [_section(f"*{_escaped(subject_of(notices))}*"), *(_section("\n".join(stack)) for stack in stacks)]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, LONGEST_TEXT)}}


def _linked(link: str, text: str) -> str:
    words = _escaped(cut(text, 1000)).replace("|", "¦")
    return f"<{_escaped(link)}|{words}>" if link else words


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
