"""The page of a run in a real browser."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

DRAWN = ("c-time", "c-positions", "c-spread", "c-context", "c-depth", "c-throughput", "c-running")
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def draw_all(page) -> None:
    """Scroll through the page, so that every chart comes near the window."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg.main-svg").first.wait_for()


@pytest.mark.parametrize("path", ["/runs/17", "/runs/16"])
def test_nothing_overflows_sideways(open_page, path):
    page = open_page(path, width=2560)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    draw_all(page)
    for width in (2560, 1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) == 0, width


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("path", ["/runs/17", "/runs/16"])
def test_answer_and_verdicts_are_in_the_first_900_pixels(open_page, path, width):
    page = open_page(path, width=width, height=900)
    states = page.locator(".verdict .state").all()
    assert len(states) == 4
    for part in (page.locator(".say"), *states):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 900


def test_next_steps_are_in_the_first_view_of_the_reference_width(open_page):
    page = open_page("/runs/17", width=1440, height=900)
    for step in page.locator(".next li").all():
        box = step.bounding_box()
        assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_every_chart_is_drawn_with_its_axes(open_page, width, scheme):
    page = open_page("/runs/17", width=width, color_scheme=scheme)
    draw_all(page)
    for chart in DRAWN:
        plot = page.locator(f"#{chart}")
        titles = " ".join(plot.locator(".g-xtitle, .g-ytitle").all_text_contents())
        asked = json.loads(page.locator(f'script[data-for="{chart}"]').text_content())["layout"]
        for axis in ("xaxis", "yaxis"):
            assert asked[axis].get("title", {}).get("text", "") in titles
    assert page.locator("#c-time .scatterlayer .trace").count() == 2
    assert page.locator("#c-time .scatterlayer .trace").first.locator(".point").count() == 18
    assert page.locator("#c-positions .barlayer .point").count() == 5


def test_labels_in_the_chart_say_the_levels(open_page):
    page = open_page("/runs/17")
    draw_all(page)
    labels = page.locator("#c-time .annotation-text").all_text_contents()
    assert labels == ["validation implies 3.27", "healthy from 2.86", "this run 1.80 [1.62, 1.98]", "pays from 2.96"]


def test_theme_button_changes_page_and_charts_and_is_remembered(open_page):
    page = open_page("/runs/17", color_scheme="light")
    page.locator("#c-time").scroll_into_view_if_needed()
    page.locator("#c-time svg.main-svg").first.wait_for()
    dot = page.locator("#c-time .scatterlayer .point").first
    page_before, dot_before = page.evaluate("getComputedStyle(document.body).backgroundColor"), dot.evaluate(FILL)
    page.locator("[data-theme-toggle]").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != page_before
    expect(dot).not_to_have_css("fill", dot_before)
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("[data-theme-toggle]").get_attribute("aria-pressed") == "true"


FILL = "node => getComputedStyle(node).fill"


def test_a_next_step_leads_to_its_finding_and_its_evidence(open_page):
    page = open_page("/runs/17")
    finding = page.locator("#ACC001")
    assert finding.get_attribute("open") is None
    page.locator(".next a", has_text="ACC001").click()
    finding.locator(".evidence").first.wait_for()
    assert "accept len" in finding.locator("mark").first.text_content()
    expect(finding.get_by_role("heading", level=3)).to_be_in_viewport()
    finding.get_by_role("link", name="About this rule").click()
    assert page.locator("h1").text_content() == "ACC001 acceptance-below-validation"


def test_causes_lead_to_their_findings_and_unfold(open_page):
    page = open_page("/runs/17")
    leading, third = page.locator(".cause").nth(0), page.locator(".cause").nth(2)
    assert leading.get_attribute("open") is not None
    assert third.get_attribute("open") is None
    third.locator("summary").click()
    expect(third.locator("pre").first).to_be_visible()
    leading.locator("a", has_text="DRF001").first.click()
    expect(page.locator("#DRF001")).to_be_in_viewport()


def test_a_label_opens_its_definition_beside_it(open_page):
    page = open_page("/runs/17")
    label = page.locator("#acceptance .term", has_text="Conditional acceptance").first
    label.click()
    definition = page.locator("#def-conditional_acceptance_rate")
    assert definition.is_visible()
    assert "a with 1 + a + a^2 + ... + a^k = acceptance length" in definition.text_content()
    spot, box = label.bounding_box(), definition.bounding_box()
    assert abs(box["y"] - spot["y"] - spot["height"]) < 40
    page.keyboard.press("Escape")
    assert not definition.is_visible()


def test_keys(open_page):
    page = open_page("/runs/17", color_scheme="light")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    assert page.locator(".finding:not([open])").count() == 0
    for _ in ("causes", "acceptance", "payoff"):
        page.keyboard.press("]")
    expect(page.locator("#payoff")).to_be_focused()
    page.keyboard.press("[")
    expect(page.locator("#acceptance")).to_be_focused()
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_everything_is_reached_by_tab_and_shows_its_focus(open_page):
    page = open_page("/runs/17")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        what = page.evaluate(
            """() => { const at = document.activeElement; const style = getComputedStyle(at);
            return [at.tagName + "." + at.className, at.textContent.trim().slice(0, 40), style.outlineStyle]; }"""
        )
        if what[0].startswith("BODY"):
            break
        assert what[2] != "none", what
        reached.add((what[0].split(".")[0], what[1]))
    tags = {tag for tag, _ in reached}
    assert {"A", "BUTTON", "SUMMARY"} <= tags
    assert any(text.startswith("Acceptance length") for tag, text in reached if tag == "BUTTON")
    assert any("Speculation makes this server" in text for tag, text in reached if tag == "SUMMARY")


def test_figures_of_a_chart_are_saved_as_csv(open_page):
    page = open_page("/runs/17")
    with page.expect_download() as started:
        page.locator('[data-save="csv"][data-of="c-time"]').click()
    lines = started.value.path().read_text().splitlines()
    assert lines[0] == 'series,"time on 9 April 2026, server clock","acceptance length, tokens per step"'
    assert lines[1] == "window,2026-04-09 14:03:10,1.74"
    assert len(lines) == 1 + 18 + 1


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_chart_is_saved_as_a_picture(open_page, form):
    page = open_page("/runs/17")
    with page.expect_download() as started:
        page.locator(f'[data-save="{form}"][data-of="c-time"]').click()
    content = started.value.path().read_bytes()
    assert content.startswith(b"\x89PNG" if form == "png" else b"<svg")
    assert len(content) > 5_000


def test_without_scripts_the_figures_are_there(open_page):
    page = open_page("/runs/17", java_script_enabled=False)
    assert not page.locator("#c-time").is_visible()
    table = page.locator("figure", has=page.locator("#c-time")).get_by_role("table")
    assert table.is_visible()
    assert "14:03:10" in table.text_content()
    assert page.locator("#PAY001 .why").is_visible()


def test_printed_page_unfolds_findings_and_has_no_chrome(open_page):
    page = open_page("/runs/17", color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    assert page.locator("#MEA001 .why").is_visible()


def test_no_script_of_a_hostile_name_runs(browser):
    from dashboard.app import create_app
    from tests.browser.served import serving
    from tests.web.reports import ListStore, load_report
    from tests.web.test_safety import poisoned

    with serving(create_app(ListStore([poisoned(load_report("kimi", "17"))]))) as address:
        page = browser.new_page()
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        for path in ("/", "/runs/17"):
            page.goto(f"{address}{path}")
            page.wait_for_load_state("networkidle")
            assert "alert(1)" in page.locator("main").text_content()
        draw_all(page)
        assert page.locator("main img").count() == 0
        page.close()
    assert dialogs == []
