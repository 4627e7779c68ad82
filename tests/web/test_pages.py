"""The other pages: the list, the first run, rules, definitions."""

from dataclasses import replace

import pytest

from analysis.base import catalogue
from collector.domain.quantities import QUANTITIES
from dashboard.pages.fleet import MOST_ROWS
from dashboard.pages.templating import unbroken
from tests.web.pages_read import Page
from tests.web.reports import altered


@pytest.fixture
def client(client_of, kimi, first_run):
    return client_of(kimi, first_run)


def test_without_runs_three_ways_to_start(client_of):
    said = Page(client_of().get("/").text).said("main")
    for command in ("draftscope ingest", "draftscope scrape", "draftscope demo"):
        assert command in said


def test_list_leads_to_each_run_worst_first(client):
    page = Page(client.get("/").text)
    links = [link for link in page.values("href") if link.startswith("/runs/")]
    assert links == ["/runs/17", "/runs/16"]
    said = page.said("main")
    assert "1 of 2 runs is slower than without speculation" in said
    assert "1.80 [1.62, 1.98] healthy from 2.86" in said
    assert "54.8, plain 89.9 tok/s" in said


def test_each_row_has_four_marks_in_words(client):
    labels = Page(client.get("/").text).values("aria-label")
    for words in (
        "Runs what was asked: Problem",
        "Drafts accepted: Cannot tell",
        "Pays: Problem",
        "Figures trusted: OK",
    ):
        assert words in labels


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=39%25+slower", ["17"]),
        ("q=FLG001", ["16"]),
        ("q=kimi+eagle3", ["17", "16"]),
        ("q=nothing-like-this", []),
        ("state=cannot_tell", ["16"]),
        ("state=problem", ["17", "16"]),
        ("state=ok", []),
        ("engine=sglang", ["17", "16"]),
        ("engine=vllm", []),
        ("order=latest", ["17", "16"]),
        ("order=no-such-order", ["17", "16"]),
    ],
)
def test_filters_live_in_the_address(client, query, shown):
    page = Page(client.get(f"/?{query}").text)
    assert [link.removeprefix("/runs/") for link in page.values("href") if link.startswith("/runs/")] == shown
    assert f"{len(shown)} of 2 runs shown" in page.said("rows")


def test_many_runs_stand_on_several_pages(client_of, first_run):
    client = client_of(*(replace(first_run, id=str(number)) for number in range(MOST_ROWS + 3)))

    def rows(address):
        page = Page(client.get(address).text)
        links = [link for link in page.values("href") if link.startswith("/?page=") or "&page=" in link]
        return page.values("data-run"), links, page.said("main")

    shown, links, said = rows("/?order=latest&q=kimi")
    assert shown == [str(number) for number in range(MOST_ROWS)]
    assert f"Runs 1 to {MOST_ROWS} of {MOST_ROWS + 3}" in said
    assert links == ["/?q=kimi&order=latest&page=2"]
    shown, links, said = rows(links[0])
    assert shown == [str(MOST_ROWS + number) for number in range(3)]
    assert f"Runs {MOST_ROWS + 1} to {MOST_ROWS + 3} of {MOST_ROWS + 3}" in said
    assert links == ["/?q=kimi&order=latest&page=1"]
    assert rows("/?order=latest&q=kimi&page=99")[0] == shown
    assert client.get("/?page=0").status_code == 422


def test_words_of_a_command_are_kept_whole_and_escaped():
    assert unbroken("cat  'a<b'\n  --to-log") == (
        "<span>cat</span>  <span>&#39;a&lt;b&#39;</span>\n  <span>--to-log</span>"
    )


def test_row_of_a_run_without_any_figure(client_of, first_run):
    def strip(document):
        document["runs"][0]["quantities"] = {}
        document["runs"][0]["arguments"] = {}

    response = client_of(altered(first_run, strip, frames={})).get("/")
    assert response.status_code == 200
    assert "Target not stated" in Page(response.text).said("main")


def test_run_that_does_not_speculate_is_neither_ok_nor_unknown(client_of, first_run):
    def off(document):
        document["runs"][0]["quantities"] = {}
        document["runs"][0]["method"] = None
        for question in ("acceptance", "payoff"):
            document["verdicts"][question] = {"state": "not_applicable", "summary": "This run does not speculate."}

    client = client_of(altered(first_run, off))
    assert "Pays: Does not apply" in Page(client.get("/").text).values("aria-label")
    page = Page(client.get("/runs/16").text)
    assert "Does not apply none nothing drafted" in page.said("main")
    assert page.said("acceptance") == "Acceptance Does not apply This run does not speculate."
    assert "Cannot tell" not in page.said("payoff")


def test_catalogue_lists_every_rule_with_its_own_words(client):
    page = Page(client.get("/rules").text)
    said = page.said("main")
    for rule in catalogue():
        assert f"{rule.id} {rule.name}" in said
        assert " ".join(rule.page()["Says"].replace("`", "").split()) in said
        assert f"/rules/{rule.id}" in page.values("href")


def test_every_rule_has_a_page_with_all_its_sections(client):
    for rule in catalogue():
        response = client.get(f"/rules/{rule.id}")
        assert response.status_code == 200
        said = Page(response.text).said("main")
        for title in ("Why it matters", "How to fix", "Example", "Source", "What it reads"):
            assert title in said


def test_rule_page_links_to_the_runs_it_was_found_in(client):
    assert "/runs/16#FLG001" in Page(client.get("/rules/FLG001").text).values("href")
    assert client.get("/rules/flg001").status_code == 200
    assert client.get("/rules/draft-token-count-overridden").status_code == 200


def test_definitions_page_has_every_quantity(client):
    page = Page(client.get("/definitions").text)
    for key, quantity in QUANTITIES.items():
        assert quantity.definition in page.said(key)


def test_every_link_of_every_page_leads_somewhere(samples):
    seen: set[str] = set()
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        response = samples.get(path)
        assert response.status_code == 200, path
        if "html" not in response.headers["content-type"]:
            continue
        page = Page(response.text)
        ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
        for link in page.values("href"):
            address, _, fragment = link.partition("#")
            if fragment and not address and not fragment.startswith(("m-", "v-", "chev")):
                assert fragment in ids, f"{path}: {link}"
            if address.startswith("/"):
                waiting.append(address)
    assert len(seen) > 30
