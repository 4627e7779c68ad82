"""The page of a run shows the document's figures, in words."""

import json
from dataclasses import replace

import pytest

from dashboard.pages import figures
from dashboard.pages.kept import KeptPages
from dashboard.store import RunReport
from tests.web.pages_read import Page
from tests.web.reports import altered


@pytest.fixture
def page(client_of, kimi) -> Page:
    response = client_of(kimi).get("/runs/17")
    assert response.status_code == 200
    return Page(response.text)


def test_answer_comes_first(page: Page):
    said = page.said("main")
    order = [
        "Two faults",
        "Do next",
        "Is it running what was asked for?",
        "Like with like",
        "Break-even",
        "Asked, predicted, runs",
        "What was read",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places)


def test_answer_says_what_both_repairs_would_give(page: Page):
    said = page.said("main")
    assert "The server makes 54.8 tok/s ; without speculation it makes 89.9" in said
    assert "Repairing either fault alone still loses." in said
    assert "Both together give about 129 tok/s (×1.43)." in said


@pytest.mark.parametrize(
    ("step", "say", "rest"),
    [
        (
            "Turn speculation off for now: 90.0 instead of 54.8 tok/s. (PAY001)",
            "Turn speculation off for now.",
            "90.0 instead of 54.8 tok/s. PAY001",
        ),
        (
            "Check that steps use graphs (cuda graph: True). (PAY002)",
            "Check that steps use graphs (cuda graph: True).",
            "PAY002",
        ),
        ("To judge pay-off: --baseline LOG", "To judge pay-off.", "--baseline LOG"),
        ("Ask for 15 steps; for a tree set top-k. (FLG001)", "Ask for 15 steps; for a tree set top-k.", "FLG001"),
    ],
)
def test_next_step_is_a_statement_and_its_reason(client_of, kimi, step, say, rest):
    def change(document):
        document["next"] = [step]

    page = Page(client_of(altered(kimi, change)).get("/runs/17").text)
    assert f"Do next {say} {rest} Four verdicts" in page.said("main")


def test_like_with_like_holds_length_and_conditional_acceptance_against_validation(page: Page):
    said = page.said("acceptance")
    assert "Acceptance length 1.80 [1.62, 1.98] 2.86 3.27" in said
    assert "Conditional acceptance 0.449 [0.386, 0.502] 0.687 0.747" in said
    assert "Accepted of drafted 16.0% [12.5, 19.5] 37.2% 45.3%" in said
    assert "Kept of promised drafts 35.3% [27.5, 43.1] 82% 100%" in said


def test_pay_off_shows_each_repair_step_cost_and_shares(page: Page):
    said = page.said("payoff")
    assert "1.80 / 2.96 = ×0.609" in said
    assert "Acceptance repaired 87.0 tok/s ×0.967 length 2.86, step as measured. Still a loss." in said
    assert "Step cost repaired 81.0 tok/s ×0.900 2.00 plain steps, assumed; length as measured. Still a loss." in said
    assert "Both 129 tok/s ×1.43" in said
    assert "Drafts rejected 2.86 to 1.80 tokens 54%" in said
    assert "Step too dear 2.00 to 2.96 plain steps 46%" in said
    assert "Plain step without speculation 11.1 ms" in said


def test_two_batch_overlap_is_shown_as_ruled_out(page: Page):
    said = page.said("main")
    assert "two-batch-overlap-bypassed FLG003" in said
    assert "enable_two_batch_overlap is False" in said
    suspected = said.index("Suspected and ruled out")
    assert suspected < said.index("enable_ two_ batch_ overlap", suspected) < said.index("As asked")


def test_every_finding_of_the_document_is_there_with_its_evidence(page: Page, kimi: RunReport):
    for finding in kimi.document["findings"]:
        said = page.said(finding["rule"])
        assert finding["title"] in said
        assert finding["confidence"] in said
        for advice in (*finding["fix"], *finding["verify"]):
            assert " ".join(advice.split()) in said
        for line in finding["evidence"]:
            assert line["source"] in said
            assert "".join(line["text"].split()) in "".join(said.split())


def test_skipped_rules_are_not_shown_as_clear(page: Page, kimi: RunReport):
    said = page.said("skipped")
    assert f"Not judged ({len(kimi.document['skipped'])})" in said
    for rule in kimi.document["skipped"]:
        assert rule["reason"] in said


def test_charts_hold_the_windows_of_the_frame(page: Page, kimi: RunReport):
    frame = kimi.frame()
    counted = frame[frame["counted"]]
    window, left_out = page.charts["c-time"]["data"]
    assert window["y"] == [round(y, 4) for y in counted["acceptance_length"]]
    assert left_out["y"] == [1.78]
    assert left_out["customdata"][0].endswith("input.log:5")
    throughput = page.charts["c-throughput"]["data"]
    assert throughput[0]["y"] == [round(y, 4) for y in counted["generation_throughput"]]


def test_levels_in_the_chart_are_those_of_the_document(page: Page, kimi: RunReport):
    texts = [note["text"] for note in page.charts["c-time"]["layout"]["annotations"]]
    assert texts == ["validation implies 3.27", "healthy from 2.86", "this run 1.80 [1.62, 1.98]", "pays from 2.96"]
    shapes = page.charts["c-time"]["layout"]["shapes"]
    quantities = kimi.subject["quantities"]
    band = shapes[0]
    assert (band["y0"], band["y1"]) == (quantities["acceptance_length"]["low"], quantities["acceptance_length"]["high"])


def test_colours_are_tokens_and_the_server_knows_none(page: Page):
    assert page.charts
    for chart in page.charts.values():
        text = json.dumps(chart)
        assert "rgba(" not in text
        assert '"@measured' in text


def test_figures_of_each_chart_stand_in_a_table_too(page: Page):
    said = page.said("acceptance")
    assert "Figures Time Length tok/s Running Line 14:03:10 1.74 53.0 1 6" in said


def test_wiring_names_the_layers_of_each_reading(page: Page):
    labels = page.values("aria-label")
    assert "captured: output of layer 2, output of layer 30, output of layer 58" in labels
    assert labels.count("captured: embedding, output of layer 2, output of layer 30") == 2
    assert "As trained" in page.said("config")
    assert "provide --training FILE" in page.said("config")


def test_definitions_stand_once_for_each_label(page: Page):
    targets = page.values("popovertarget")
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id", "").startswith("def-")]
    assert sorted(set(targets)) == sorted(ids)
    assert "1 + accepted / verify steps" in page.said("def-acceptance_length")


def test_first_run_says_sixteen_asked_two_run_and_why(client_of, first_run):
    page = Page(client_of(first_run).get("/runs/16").text)
    said = page.said("main")
    assert "Runs with 2 draft tokens, not 16." in said
    assert "2 speculative_num_draft_tokens, 16 asked" in said
    assert "With top-k 1 the engine verifies one chain" in said
    config = page.said("config")
    assert "speculative_ num_ draft_ tokens 16 2 2 Runs with 2 draft tokens, not 16 input.log:4 FLG001" in config


def test_cannot_tell_has_a_hatched_block_and_says_what_would_decide(client_of, first_run):
    page = Page(client_of(first_run).get("/runs/16").text)
    said = page.said("main")
    assert "Cannot tell 1.48 of 2 tokens, nothing to hold it against" in said
    assert "Would decide it: --baseline LOG" in said
    assert page.values("aria-label").count("no figure") == 2
    assert "No comparable run without speculation" in page.said("payoff")


def test_a_page_without_any_window_has_empty_states_and_no_charts(client_of, first_run):
    def strip(document):
        subject = document["runs"][0]
        subject["quantities"] = {}
        subject["arguments"] = {}
        subject["started_at"] = None
        document["findings"] = []
        document["verdicts"]["data"] = {"state": "cannot_tell", "summary": "No source with counts.", "provide": "a log"}
        document["verdicts"]["config"] = {"state": "cannot_tell", "summary": "Nothing.", "provide": "--launch FILE"}

    page = Page(client_of(altered(first_run, strip, frames={})).get("/runs/16").text)
    assert page.charts == {}
    said = page.said("main")
    for words in ("No window with acceptance figures", "No argument is known", "No throughput was read", "SGLang run"):
        assert words in said
    assert "No rule found anything." in page.said("findings")


def test_an_impossible_figure_is_shown_as_it_is(client_of, kimi):
    def spoil(document):
        document["runs"][0]["quantities"]["draft_acceptance_rate"] = {"value": None, "raw": "nan"}

    page = Page(client_of(altered(kimi, spoil)).get("/runs/17").text)
    assert "Accepted of drafted nan impossible" in page.said("acceptance")


def test_a_length_above_the_largest_possible_does_not_break_the_page(client_of, kimi):
    def spoil(document):
        document["runs"][0]["quantities"]["acceptance_length"] = {"value": 7.4, "low": 7.2, "high": 7.6}
        document["runs"][0]["quantities"].pop("conditional_acceptance_rate")

    response = client_of(altered(kimi, spoil)).get("/runs/17")
    assert response.status_code == 200
    assert "7.40 [7.20, 7.60]" in Page(response.text).said("acceptance")


def test_values_that_are_no_quantities_have_words_and_units(client_of, kimi):
    values = {"last": 2.0, "lost_share": 0.427, "p_value": 1.1e-7, "windows_needed": 40}
    page = client_of(altered(kimi, lambda document: document["findings"][0].update(values=values))).get("/runs/17")
    said = Page(page.text).said()
    for words in ("Of late 2.00", "Share lost 42.7%", "(p) below 0.0001", "Windows needed 40"):
        assert words in said


def test_a_rule_that_failed_is_reported_as_ours(client_of, kimi):
    def crash(document):
        document["crashed"] = [{"rule": "ACC005", "name": "per-position-cliff", "error": "KeyError: 'x'"}]

    said = Page(client_of(altered(kimi, crash)).get("/runs/17").text).said("findings")
    assert "A fault of draftscope, not of the run." in said
    assert "ACC005 per-position-cliff KeyError: 'x'" in said


def test_units_are_listed_with_their_own_figures(client_of, kimi):
    def split(document):
        document["runs"][0]["units"] = {
            "DP0 TP0": {"quantities": {"acceptance_length": {"value": 1.91, "low": 1.8, "high": 2.0}}},
            "DP1 TP0": {"quantities": {}},
        }

    said = Page(client_of(altered(kimi, split)).get("/runs/17").text).said("acceptance")
    assert "DP0 TP0 1.91 [1.80, 2.00] tokens" in said
    assert "DP1 TP0 cannot tell" in said


def test_counts_per_position_replace_the_implied_ones(client_of, kimi):
    def count(document):
        quantities = document["runs"][0]["quantities"]
        quantities["acceptance_rate_at"] = {"value": [0.5, 0.2, 0.06, 0.03, 0.01]}
        quantities["conditional_acceptance_rate_at"] = {"value": [0.5, 0.4, 0.3, 0.5, 0.3333]}

    page = Page(client_of(altered(kimi, count)).get("/runs/17").text)
    bars = page.charts["c-positions"]["data"][0]
    assert bars["y"] == [0.5, 0.2, 0.06, 0.03, 0.01]
    assert "pattern" not in bars["marker"]
    promised = page.charts["c-conditional"]["data"][1]["y"]
    assert promised == pytest.approx([0.747] * 5, abs=1e-4)


def test_implied_positions_are_hatched(page: Page, kimi: RunReport):
    bars, promised = page.charts["c-positions"]["data"]
    rate = kimi.number("conditional_acceptance_rate")
    assert bars["marker"]["pattern"]["shape"] == "/"
    assert bars["y"] == pytest.approx([rate**i for i in range(1, 6)], abs=1e-5)
    assert promised["y"] == pytest.approx([0.747**i for i in range(1, 6)], abs=1e-5)
    assert 1 + sum(bars["y"]) == pytest.approx(1.8, abs=1e-3)


def test_figure_of_every_tile_is_that_of_the_document(page: Page, kimi: RunReport):
    said = page.said("main")
    length = figures.figure("acceptance_length", kimi.quantity("acceptance_length"))
    assert f"{length.value} {length.interval} of 6 tokens" in said
    assert figures.factor(kimi.number("speedup")) in said
    for verdict in kimi.document["verdicts"].values():
        assert verdict["summary"] in said


def test_a_kept_page_is_good_until_diagnosis_or_history_change(kimi):
    kept, made = KeptPages(most=1), []

    def make(report):
        made.append(report)
        return f"page {len(made)}"

    assert kept.of(kimi, make) == kept.of(replace(kimi), make) == "page 1"
    assert kept.of(altered(kimi, dict), make) == "page 2"
    assert kept.of(replace(kimi, id="18"), make) == "page 3"
    assert kept.of(kimi, make) == "page 4"
