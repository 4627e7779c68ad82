"""Runs side by side: the page shows what the comparison says, for stored runs."""

import pytest

from analysis.compare import SCHEMA
from dashboard.pages.compare import _from_to
from dashboard.pages.figures import Figure
from tests.web.pages_read import Page


@pytest.fixture(scope="module")
def runs(samples):
    """Ids of the stored samples by what their logs are."""
    rows = samples.get("/api/v1/runs").json()["runs"]
    return {
        (row["source"].rsplit("/", 1)[-1], row["quantities"].get("draft_depth", {}).get("value")): row["id"]
        for row in rows
    }


@pytest.fixture(scope="module")
def before_and_after(runs):
    return runs["previous.log", 5], runs["input.log", 5]


def test_page_shows_every_difference_with_its_interval_and_word(samples, before_and_after):
    address = f"/compare?run={before_and_after[1]}&run={before_and_after[0]}"
    page = Page(samples.get(address).text)
    document = samples.get(f"/api/v1/compare?run={before_and_after[0]}&run={before_and_after[1]}").json()
    assert document["schema"] == SCHEMA
    (against,) = document["against"]
    length = next(one for one in against["differences"] if one["key"] == "acceptance_length")
    change, half = length["change"], length["half"]
    assert f"{change:+.2f} [{change - half:+.2f}, {change + half:+.2f}] {length['word']}" in page.said()
    for one in against["differences"]:
        assert f"{one['word']} {', ' + one['note'] if one['note'] else ''}".strip() in page.said()
    for effect in against["effects"]:
        assert effect["why"] in page.said()


def test_statement_names_a_shared_unit_once():
    tokens, time = Figure("2.75", unit="tokens"), Figure("900", unit="ms")
    assert _from_to(tokens, Figure("2.61", unit="tokens")) == " from 2.75 to 2.61 tokens"
    assert _from_to(time, Figure("1.20", unit="s")) == " from 900 ms to 1.20 s"
    assert _from_to(None, tokens) == ""


def test_plots_hold_the_windows_of_both_runs(samples, before_and_after):
    page = Page(samples.get("/compare?run={}&run={}".format(*before_and_after)).text)
    lengths = page.charts["c-lengths"]["data"]
    assert [len(trace["y"]) > 10 for trace in lengths] == [True, True]
    assert {trace["x"][0] for trace in lengths} == {0}
    assert lengths[0]["line"]["dash"] != lengths[1]["line"]["dash"]


def test_settings_that_differ_are_listed_and_shared_ones_are_not(samples, runs):
    address = f"/api/v1/compare?run={runs['input.log', 1]}&run={runs['input.log', 5]}"
    settings = {one["name"]: one["values"] for one in samples.get(address).json()["settings"]}
    assert settings["--speculative-num-steps"] == [1, 5]
    assert "--speculative-algorithm" not in settings


def test_runs_are_chosen_from_a_list(samples, runs):
    page = Page(samples.get(f"/compare?chosen={runs['input.log', 5]}").text)
    boxes = [attributes for tag, attributes in page.tags if attributes.get("type") == "checkbox"]
    assert {box["value"] for box in boxes} == set(runs.values())
    assert [box["value"] for box in boxes if "checked" in box] == [runs["input.log", 5]]


def test_an_empty_list_says_what_to_do(client_of):
    assert "no run to compare yet" in Page(client_of().get("/compare").text).said()


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/compare?run=1&run=999999", 404),
        ("/compare?" + "&".join(f"run={number}" for number in range(20)), 400),
        ("/api/v1/compare?run=1", 422),
        ("/api/v1/compare?run=1&run=nothing", 404),
    ],
)
def test_what_cannot_be_compared(samples, address, status):
    assert samples.get(address).status_code == status
