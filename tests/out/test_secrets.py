"""Secrets planted wherever one can stand, and found nowhere that people or programs look."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from dashboard.samples import FOLDER
from dashboard.sinks import sink_kinds
from tests.out.channels import PLANTED, SIGNING
from tests.out.receiver import Answer, Receiver
from tests.out.test_serve import Place

PLACES = (
    *PLANTED,
    "TOKENSECRET",
    "DATABASESECRET",
    "TARGETSECRET",
    "TARGETKEYSECRET",
    "APIKEYSECRET",
    "ENVSECRET",
    "HEADERSECRET",
    "APPRISESECRET",
    "LOGSECRET",
)


def channels(good: str, bad: str) -> str:
    """One channel of each kind, and one more of a kind that is refused."""
    tables = {
        "webhook": f'url = "{bad}"\nsecret = "{SIGNING}"',
        "slack": f'url = "{bad}"\ngroup_seconds = 0',
        "pagerduty": f'url = "{good}"\nrouting_key = "ROUTINGSECRET"',
        "alertmanager": f'url = "{bad}"\ntoken = "BEARERSECRET"',
        "email": 'host = "127.0.0.1"\nport = 9\nusername = "ops"\npassword = "MAILSECRET"\nsender = "a@example.org"\n'
        'to = ["ops@example.org"]\ngroup_seconds = 0',
        "apprise": f'url = "{bad.replace("http://", "json://user:APPRISESECRET@")}"\ngroup_seconds = 0',
    }
    assert sorted(tables) == sorted(sink_kinds())
    parts = [f'[[alerts.channel]]\nname = "{kind}"\nkind = "{kind}"\n{body}\n' for kind, body in tables.items()]
    return "\n".join(parts)


def test_no_secret_gets_out(tmp_path: Path, receiver_of: Callable[..., Receiver]) -> None:
    good, bad = receiver_of(Answer(204)), receiver_of(Answer(500, body=b" ".join(word.encode() for word in PLANTED)))
    place = Place(tmp_path)
    place.environ["DRAFTSCOPE_TOKEN"] = "TOKENSECRET"
    place.environ["DRAFTSCOPE_API_KEY"] = "ENVSECRET"
    place.settings(
        channels(good.url, bad.url)
        + '\n[[targets]]\nurl = "http://user:TARGETSECRET@127.0.0.1:9"\napi_key = "TARGETKEYSECRET"\n'
        + '\n[[sources]]\nkind = "prometheus"\nurl = "http://127.0.0.1:9"\nheaders = { X-Key = "HEADERSECRET" }\n'
    )
    shutil.copytree(FOLDER / "kimi-k25-capture-fixed", tmp_path / "bundle")
    launch = tmp_path / "bundle" / "launch.txt"
    secret_launch = "HF_TOKEN=ENVSECRET " + launch.read_text().rstrip() + " \\\n    --api-key APIKEYSECRET\n"
    launch.write_text(secret_launch, encoding="utf-8")
    log = tmp_path / "bundle" / "input.log"
    log.write_text(
        log.read_text().replace("ServerArgs(", "ServerArgs(api_key='LOGSECRET', ", 1) + "\n", encoding="utf-8"
    )

    assert "LOGSECRET" in log.read_text()

    seen: list[str] = []
    with place.serving() as service:
        done = place.run("ingest", "bundle")
        assert done.returncode == 0, done.stderr
        seen += [done.stdout, done.stderr]
        service.until(lambda: good.got)
        service.until(lambda: service.log.count("did not reach") >= len(sink_kinds()) - 1)
        for command in (("alerts", "test"), ("targets", "test")):
            told = place.run(*command)
            seen += [told.stdout, told.stderr]
        document = service.client.get("/openapi.json").json()
        paths = [
            path
            for path, methods in document["paths"].items()
            if "get" in methods and "{" not in path and "event-stream" not in json.dumps(methods["get"])
        ]
        paths += [
            "/",
            "/alerts",
            "/check",
            "/drafts",
            "/rules",
            "/rules/PAY001",
            "/definitions",
            "/settings",
            "/targets",
            "/upload",
            "/nowhere",
            "/openapi.json",
        ]
        for run in service.client.get("/api/v1/runs").json()["runs"]:
            paths += [f"/runs/{run['id']}", f"/api/v1/runs/{run['id']}/diagnosis"]
        answers = {path: service.client.get(path) for path in paths}
        bearer = {"Authorization": "Bearer TOKENSECRET"}
        for kind in sink_kinds():
            path = f"/api/v1/alerts/channels/{kind}/test"
            answers[path] = service.client.post(path, headers=bearer)
            answers[f"{path} refused"] = service.client.post(path, headers={"Authorization": "Bearer WRONG"})
        form = {"channel": "slack", "token": "TOKENSECRET"}
        answers["the page"] = service.client.post("/alerts/test", data=form)
        seen += [answer.text + repr(answer.headers) for answer in answers.values()]
    assert [path for path, answer in answers.items() if answer.status_code >= 500] == []
    seen += [service.printed, service.log]
    connection = sqlite3.connect(tmp_path / "xdg_data_home" / "draftscope" / "draftscope.db")
    seen += list(connection.iterdump())
    connection.close()
    # What goes to a receiver holds none but its own.
    seen += [json.dumps({**json.loads(got.body), "routing_key": ""}) for got in good.got]
    seen += [got.body.decode() for got in bad.got]
    found = {word for word in PLACES for text in seen if word in text}
    assert found == set()
    assert "500 Internal Server Error" in service.log
    assert re.search(r'draftscope_alert_deliveries\{channel="slack",status="failed"\} \d', answers["/metrics"].text)
