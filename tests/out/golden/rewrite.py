"""The golden payloads of all channels: ``python -m tests.out.golden.rewrite`` writes them; read the diff."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.masked import SecretUrl
from dashboard.sinks.apprise import AppriseConfig, AppriseSink
from dashboard.sinks.mail import Encryption, MailConfig, MailSink
from dashboard.sinks.notice import Notice, NoticeType
from tests.out.answers import NOW
from tests.out.channels import HTTP, channel, sink_of
from tests.out.notices import NOTICE

HERE = Path(__file__).parent
KINDS = (*HTTP, "email", "apprise")


def messages() -> dict[str, list[Notice]]:
    """What is rendered for every kind."""
    ended = replace(NOTICE, type=NoticeType.RESOLVED, at=NOW + 3600, cause=None, link=NOTICE.link.partition("#")[0])
    values = {"flag": "speculative_num_draft_tokens", "requested": 16, "effective": 2}
    finding = replace(
        NOTICE.finding, rule="FLG001", name="draft-token-count-overridden", severity="warning", scope="DP1 TP0",
        title="Runs with 2 draft tokens, not 16", values=values,
    )  # fmt: skip
    other = replace(NOTICE, key="0a3c9be24a5d8e1b0c2d4e6f80915f3f", finding=finding, cause=None)
    return {"opened": [NOTICE], "resolved": [ended], "several": [other, ended]}


def rendered(kind: str, notices: list[Notice]) -> Any:
    if kind == "email":
        config = MailConfig(
            name="ops", host="mail.example.org", encryption=Encryption.NONE, sender="draftscope@example.org",
            to=("ops@example.org",),
        )  # fmt: skip
        return MailSink(config).render("msg_1", notices).as_string().splitlines()
    if kind == "apprise":
        return AppriseSink(AppriseConfig(name="ops", url=SecretUrl("json://x.example"))).render(notices)
    request = sink_of(channel(kind, "https://x.example")).render("msg_1", notices, at=NOW)  # type: ignore[attr-defined]
    return json.loads(request.body)


def path_of(kind: str) -> Path:
    return HERE / f"{kind}.json"


def text_of(kind: str) -> str:
    grouped = kind not in ("webhook", "pagerduty")
    parts = {name: rendered(kind, notices) for name, notices in messages().items() if grouped or len(notices) == 1}
    return json.dumps(parts, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in KINDS:
        path_of(each).write_text(text_of(each), encoding="utf-8")
