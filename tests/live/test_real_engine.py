"""A real engine is watched while it answers, where one is at hand.

``DRAFTSCOPE_TEST_ENGINE_URL`` names a llama-server (``--metrics``), vLLM or SGLang (``--enable-metrics``) that nobody else uses;
``DRAFTSCOPE_TEST_ENGINE_MINUTES`` says for how long, 3 by default.
"""

from __future__ import annotations

import os
import time
from typing import Any

import httpx
import pytest

from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database
from collector.storage.runs import load_run

ENGINE = os.environ.get("DRAFTSCOPE_TEST_ENGINE_URL", "")
MINUTES = float(os.environ.get("DRAFTSCOPE_TEST_ENGINE_MINUTES", "3"))
SETTLED_SECONDS = 3.0
"""Until counters have what was answered."""


def answer(client: httpx.Client, model: str, number: int) -> dict[str, Any]:
    asked = {"model": model, "prompt": f"Count on from {number}: " + "1 2 3 " * 8, "max_tokens": 64, "temperature": 0}
    reply = client.post("/v1/completions", json=asked)
    reply.raise_for_status()
    document: dict[str, Any] = reply.json()
    return document


@pytest.mark.skipif(not ENGINE, reason="DRAFTSCOPE_TEST_ENGINE_URL names no running engine")
def test_what_is_stored_is_what_the_engine_answered(sqlite_database: Database) -> None:
    with httpx.Client(base_url=ENGINE, timeout=120) as client, Endpoint(ENGINE) as endpoint:
        model = client.get("/v1/models").json()["data"][0]["id"]
        answer(client, model, 0)
        time.sleep(SETTLED_SECONDS)
        watch = Watch(sqlite_database, Scraper(endpoint))
        begun = watch.take()
        answers: list[dict[str, Any]] = []
        until = time.monotonic() + 60 * MINUTES
        while time.monotonic() < until:
            answers.append(answer(client, model, len(answers)))
            watch.take()
        time.sleep(SETTLED_SECONDS)
        ended = watch.take()
    assert ended.run_id == begun.run_id
    with sqlite_database.reading() as connection:
        record = load_run(connection, ended.run_id)
    windows = [window for window in record.windows if window.at > begun.scrape.state.at]
    answered = sum(document["usage"]["completion_tokens"] for document in answers)
    stored = sum(window.generated_tokens or 0 for window in windows)
    assert answered - len(answers) <= stored <= answered, "no token but the first of each answer is left out"
    timings = [document["timings"] for document in answers if "draft_n" in document.get("timings", {})]
    if timings:  # llama-server says of each answer what it drafted
        assert sum(window.accepted_tokens or 0 for window in windows) == sum(one["draft_n_accepted"] for one in timings)
        assert sum(window.drafted_tokens or 0 for window in windows) == sum(one["draft_n"] for one in timings)
