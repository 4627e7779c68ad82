"""What comes from logs, configs and names is text; nothing points elsewhere; every answer carries the headers."""

import json
import re

import pytest

from dashboard.api.guard import HEADERS
from tests.web.pages_read import Page
from tests.web.reports import altered

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`${7*7}{{7*7}}<b>"
PAGES = (
    "/", "/runs/17", "/runs/16", "/compare", "/check", "/upload", "/rules", "/rules/FLG001", "/targets", "/settings",
    "/definitions", "/alerts", "/runs/none", "/nowhere",
)  # fmt: skip


@pytest.fixture
def client(client_of, kimi, first_run):
    return client_of(kimi, first_run)


def poisoned(report):
    """Every text of the document that an outsider can influence."""

    def poison(value):
        if isinstance(value, dict):
            return {key: item if key in KEPT else poison(item) for key, item in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return HOSTILE if isinstance(value, str) else value

    def change(document):
        for run in document["runs"]:
            run["source"] = HOSTILE
            run["engine_version"] = HOSTILE
            run["method"] = HOSTILE
            run["arguments"] = {
                HOSTILE: poison(dict(next(iter(run["arguments"].values())))),
                **poison(run["arguments"]),
            }
        for part in ("headline", "next", "findings", "ruled_out", "skipped"):
            document[part] = poison(document[part])
        first, *_ = document["reading"].values()
        document["reading"] = {HOSTILE: poison(first)}
        document["crashed"] = [{"rule": "ACC005", "name": HOSTILE, "error": HOSTILE}]

    frames = {role: frame.assign(unit=HOSTILE) for role, frame in report.frames.items()}
    return altered(report, change, frames=frames, labels={HOSTILE: HOSTILE})


KEPT = {"rule", "severity", "confidence", "scope"}


def test_hostile_text_stays_text(client_of, kimi, first_run):
    client = client_of(poisoned(kimi), poisoned(first_run))
    clean = client_of(kimi, first_run)
    for path in ("/", "/runs/17", "/runs/16"):
        response = client.get(path)
        assert response.status_code == 200
        page = Page(response.text)
        assert HOSTILE in page.text, path
        tags = {tag for tag, _ in page.tags}
        assert tags <= {tag for tag, _ in Page(clean.get(path).text).tags} | {"code"}, path
        scripts = [attributes for tag, attributes in page.tags if tag == "script"]
        assert all(
            attributes.get("src", "").startswith("/static/") or "data-for" in attributes for attributes in scripts
        )
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_hostile_names_in_plot_text_hold_no_markup(client_of, kimi):
    page = Page(client_of(poisoned(kimi)).get("/runs/17").text)
    for chart in page.charts.values():
        text = json.dumps(chart)
        assert set(re.findall(r"<[^>]*>", text)) <= {"<br>", "<extra>", "</extra>"}


def test_chart_data_cannot_end_its_own_element(client_of, kimi):
    html = client_of(poisoned(kimi)).get("/runs/17").text
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert len(blocks) >= 7
    assert not any("<" in block for block in blocks)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_points_to_another_origin(client, path):
    html = client.get(path).text
    page = Page(html)
    for address in page.values("href", "src", "action", "formaction", "poster", "srcset"):
        assert address.startswith(("/", "#")), address
        assert not address.startswith("//")
    outside = re.findall(r"https?://[^\s\"'<]+", html)
    assert [address for address in outside if not address.startswith("http://localhost:30000")] == []


@pytest.mark.parametrize("path", PAGES)
def test_no_page_needs_inline_code_or_style(client, path):
    page = Page(client.get(path).text)
    assert not any(
        "style" in attributes or any(name.startswith("on") for name in attributes) for _, attributes in page.tags
    )
    assert not any(tag == "style" for tag, _ in page.tags)
    for tag, attributes in page.tags:
        if tag == "script":
            assert attributes.get("src") or attributes.get("type") == "application/json"


@pytest.mark.parametrize(
    "path", [*PAGES, "/healthz", "/openapi.json", "/api/v1/runs", "/static/css/draftscope.css", "/api/x"]
)
def test_every_answer_carries_the_headers(client, path):
    headers = client.get(path).headers
    for name, value in HEADERS.items():
        assert headers[name] == value
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_static_files_with_a_version_are_kept_and_others_asked_for(client):
    page = Page(client.get("/").text)
    sheet = next(address for address in page.values("href") if "draftscope.css" in address)
    assert "immutable" in client.get(sheet).headers["cache-control"]
    assert client.get(sheet.partition("?")[0]).headers["cache-control"] == "no-cache"
    assert client.get("/static/../app.py").status_code == 404


def test_first_view_without_plotly_is_small(client):
    page = client.get("/runs/17")
    files = [address for address in Page(page.text).values("href", "src") if address.startswith("/static/")]
    loaded = sum(len(client.get(address).content) for address in files if "plotly" not in address)
    assert len(page.content) + loaded < 400_000
