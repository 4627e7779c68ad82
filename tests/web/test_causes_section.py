"""The causes of a run page: ranked, ruled out, with experiments, known faults and the case history."""

from dataclasses import replace

from analysis.compare import ChangeEffect, Difference
from analysis.history import Fate, Offered, Step
from collector.domain.quantities import Estimate
from dashboard.pages.causes import causes_section
from dashboard.store import HistoryEntry, RunReport
from tests.web.pages_read import Page
from tests.web.reports import altered

OFFERED = Offered("expert-growth", "Verifying several tokens reads more experts of the target", "possible")


def page_of(client_of, report: RunReport) -> Page:
    response = client_of(report).get(f"/runs/{report.id}")
    assert response.status_code == 200
    return Page(response.text)


def test_causes_stand_after_the_verdicts_and_before_the_charts(client_of, kimi):
    said = page_of(client_of, kimi).said("main")
    order = [
        "Can the figures be trusted?",
        "The draft is fed other layers",
        "None of these explains it",
        "Like with like",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places)


def test_every_cause_of_the_document_is_there_with_its_reasons(client_of, kimi):
    page = page_of(client_of, kimi)
    said = page.said("causes")
    for cause in kimi.document["causes"]:
        assert cause["title"] in said
        for reason in (*cause["for"], *cause["against"]):
            assert " ".join(reason["text"].split()) in said
    for cause in kimi.document["refuted_causes"]:
        assert cause["title"] in said
    for fault in kimi.document["known_faults"]:
        assert fault["title"] in said
        assert fault["link"] in said
    assert "enable_two_batch_overlap is off" in said


def test_experiments_are_commands_with_what_each_outcome_would_mean(client_of, kimi):
    said = page_of(client_of, kimi).said("cause-capture-layers-wrong")
    assert "draftscope diagnose REPLAY_LOG --validation-accuracy 0.747 --temperature 0" in said
    assert "If one set matches training these are the layers; keep them" in said


def test_the_two_that_lead_are_open(kimi):
    section = causes_section(kimi)
    assert [cause.open for cause in section.causes] == [True, True, False, False, False]
    assert section.lead == "The draft is fed other layers than it was trained on: the likeliest, not proven."
    assert 0 < section.likely_at < 100
    widths = [cause.width for cause in section.causes]
    assert widths == sorted(widths, reverse=True)


def test_a_certain_cause_is_called_so(client_of, first_run):
    section = causes_section(first_run)
    assert section.lead == "The engine runs with other values than were asked for: the evidence suffices by itself."
    assert section.none_of_these == ()
    assert "certain" in page_of(client_of, first_run).said("cause-flag-overridden")


def test_a_healthy_run_has_no_such_section(client_of, kimi):
    healthy = altered(kimi, lambda document: document.update(causes=[], refuted_causes=[], known_faults=[]))
    page = page_of(client_of, healthy)
    assert "causes" not in page.text_of
    assert "#causes" not in page.values("href")


def test_nothing_fits_says_so(client_of, kimi):
    def only_none(document):
        document["causes"] = document["causes"][-1:]
        document.update(refuted_causes=[], known_faults=[])

    said = page_of(client_of, altered(kimi, only_none)).said("causes")
    assert "none that is known fits" in said
    assert "None of these explains it" in said


def test_the_history_tells_changes_effects_figures_and_hypotheses(client_of, kimi):
    before, after = Estimate(1.9, 1.8, 2.0), Estimate(1.8, 1.7, 1.9)
    changes = tuple(
        ChangeEffect(f"--flag-{i}", "1", "2", "no" if i == 0 else "yes", "because of that") for i in range(6)
    )
    step = Step(
        "16",
        "17",
        changes,
        (Difference("acceptance_length", before, after, -0.1, 0.14, "no difference"),),
        (Fate(OFFERED, "survived", "now possible"),),
    )
    figures = {"acceptance_length": {"value": 1.8, "low": 1.7, "high": 1.9}}
    history = (
        HistoryEntry("16", 1_775_700_000.0, "0.5.9", "", {}, None),
        HistoryEntry("17", 1_775_743_330.0, None, "eagle3", figures, step),
    )
    page = page_of(client_of, replace(kimi, history=history))
    said = page.said("causes")
    assert "no speculation, 0.5.9" in said
    assert "EAGLE-3, release not printed" in said
    assert "--flag-0 1 → 2 not in effect" in said
    assert "2 more" in said
    assert "1.80 tokens [1.70, 1.90] no difference" in said
    assert "Verifying several tokens reads more experts of the target: survived: now possible" in said
    assert "/runs/16" in page.values("href")
    assert said.index("EAGLE-3, release") < said.index("no speculation, 0.5.9"), "the latest first"
