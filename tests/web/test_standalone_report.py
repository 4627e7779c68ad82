"""A report as one file: nothing is loaded, nothing leads elsewhere, and only our own code may run."""

import base64
import hashlib
import re

import pytest

from dashboard.formats import find_format
from dashboard.pages.standalone import run_report
from tests.web.pages_read import Page
from tests.web.test_safety import HOSTILE, poisoned


def test_nothing_is_loaded_and_nothing_leads_elsewhere(kimi):
    page = Page(run_report(kimi))
    assert page.values("src", "action") == []
    assert [link for link in page.values("href") if not link.startswith("#")] == []
    assert kimi.document["headline"].split(".")[0] in page.said()
    assert page.charts


def test_policy_allows_exactly_the_code_that_is_there(kimi):
    html = run_report(poisoned(kimi))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    assert "unsafe" not in policy
    allowed = re.search(r"script-src ([^;]*);", policy)[1].split()
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    ] == allowed
    assert HOSTILE in Page(html).text


def test_service_offers_the_file(samples):
    run = samples.get("/api/v1/runs").json()["runs"][0]["id"]
    answer = samples.get(f"/runs/{run}/report")
    assert answer.headers["content-disposition"] == f'attachment; filename="draftscope-run-{run}.html"'
    assert samples.get("/runs/none/report").status_code == 404


@pytest.mark.parametrize("refused", [True, False])
def test_checks_are_reported_too(refused):
    from analysis.check import Given, check
    from collector.launch import find_launches, render

    flags = "--speculative-algorithm EAGLE3 --speculative-num-steps 3" + (
        " --speculative-eagle-topk 0" if refused else ""
    )
    checked = check(find_launches(f"python3 -m sglang.launch_server --model-path m {flags}")[0], Given(), render)
    page = Page(find_format("html").check([checked], None))
    assert checked.headline in page.said()
    assert "form" not in {tag for tag, _ in page.tags}
