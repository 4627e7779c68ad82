"""The service watches targets: from settings to judged runs, and other targets after a signal."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.live.recorded import recorded
from tests.out.test_serve import Place


def test_engines_of_the_settings_become_judged_runs_until_the_settings_change(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with recorded("vllm/eagle3") as first, recorded("llamacpp/draft-near") as second:
        text = '[[targets]]\nurl = "{}"\ninterval_seconds = 1\ndeployment = "chat"\napi_key = "s3cret-key"\n'
        place.settings(text.format(first.url))
        with place.serving() as running:

            def targets() -> dict[str, Any]:
                return {row["address"]: row for row in running.client.get("/api/v1/targets").json()["targets"]}

            row = running.until(lambda: next((row for row in targets().values() if row["scrapes"]), None))
            assert (row["address"], row["engine"], row["deployment"], row["error"]) == (first.url, "vllm", "chat", "")
            run = running.until(lambda: running.client.get("/api/v1/runs").json()["runs"])[0]
            document = running.until(lambda: running.client.get(f"/api/v1/runs/{run['id']}/diagnosis").json())
            assert document["runs"][0]["engine"] == "vllm"

            place.settings("[[targets]]\nurl = 3\n")
            running.process.send_signal(signal.SIGHUP)
            running.until(lambda: "cannot be used" in running.log)
            assert list(targets()) == [first.url]

            refused = running.client.post("/api/v1/targets/reload")
            assert refused.status_code == 400
            assert "url is not" in refused.json()["error"]["why"]
            assert list(targets()) == [first.url]

            place.settings(text.format(second.url))
            assert running.client.post("/api/v1/targets/reload").json() == {"targets": 1, "sources": 0}
            running.until(lambda: list(targets()) == [second.url])
            running.until(lambda: targets()[second.url]["engine"] == "llamacpp")
            everything = running.client.get("/api/v1/targets").text + running.client.get("/").text
    assert "s3cret-key" not in everything + running.log
