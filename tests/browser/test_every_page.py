"""Every page of the installed product over stored runs: accessible, by keyboard, of its own origin, and its main task."""

import json
import os

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import expect

from collector.ingest import ingest
from collector.storage.engine import open_database
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import Sweep
from dashboard.samples import FOLDER
from dashboard.service import build_app
from dashboard.settings import Settings
from tests.browser.screenshots import fill
from tests.browser.test_run_page import SIDEWAYS

pytestmark = pytest.mark.browser

SOAK = bool(os.environ.get("DRAFTSCOPE_SOAK"))
IN_THE_DARK = ("run", "live-run", "check")
"""Pages that hold every part; the others are looked at in the dark in the long run alone."""
SERIOUS = ("serious", "critical")
AXE = "() => axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations))"
FOCUSED = "() => document.activeElement?.outerHTML.slice(0, 120)"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The shipped samples and watched runs; uploads go there too."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('pages') / 'draftscope.db'}") as database:
        fill(database)
        yield database


@pytest.fixture(scope="module")
def app(stored):
    return build_app(Diagnoses(stored), Settings())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_violation_and_nothing_overflows(open_page, pages, theme):
    wanted = pages if theme == "light" or SOAK else IN_THE_DARK
    pages = {name: path for name, path in pages.items() if name in wanted and name != "not-found"}
    page = open_page("/", color_scheme=theme)
    found = []
    for name, path in pages.items():
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
        if name.startswith("live-run"):
            page.locator("#over-time .ranges").wait_for()
        if name == "check":
            page.locator("form .btn-main").press("Enter")
            page.locator(".matrix").wait_for()
        page.evaluate(AXE_FILE_PATH.read_text())
        found += [
            f"{name}: {violation['id']} {[node['target'] for node in violation['nodes']]}"
            for violation in json.loads(page.evaluate(AXE))
            if violation["impact"] in SERIOUS
        ]
        for width in (2560, 390, 1440) if theme == "light" else ():
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate(SIDEWAYS):
                found.append(f"{name}: wider than {width}")
    assert found == []


def test_every_control_is_reached_by_tab_and_shows_its_focus(open_page, pages):
    page = open_page(pages["compare-choose"])
    reached = []
    for _ in range(16 + page.locator("input[type=checkbox]").count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    boxes = {html for html in reached if 'type="checkbox"' in html}
    assert len(boxes) == page.locator("input[type=checkbox]").count()
    page.locator("input[type=checkbox]").nth(0).press("Space")
    page.locator("input[type=checkbox]").nth(1).press("Space")
    page.get_by_role("button", name="Compare", exact=True).press("Enter")
    page.get_by_role("heading", name="Did the change take effect?").wait_for()
    page.locator("#c-lengths").scroll_into_view_if_needed()
    page.locator("#c-lengths .main-svg").first.wait_for()


def test_files_are_uploaded_and_land_on_their_run(open_page):
    page = open_page("/upload")
    page.locator("#files").set_input_files(sorted((FOLDER / "kimi-k25-first-run").iterdir()))
    expect(page.locator(".chosen")).to_contain_text("input.log")
    page.get_by_role("button", name="Upload and judge").press("Enter")
    page.wait_for_url("**/runs/*")
    page.get_by_role("heading", name="Four verdicts").wait_for(state="attached")


def test_the_list_tells_of_new_runs_without_moving(open_page, stored, tmp_path):
    page = open_page("/")
    page.locator("[data-live]").wait_for()
    shown = page.locator(".fl .name").count()
    for path in (FOLDER / "kimi-k25-first-run").iterdir():
        text = path.read_text().replace("port=30000", "port=30999")
        (tmp_path / path.name).write_text(text.replace("2026-04-08 09", "2026-04-10 09"))
    ingest(stored, [tmp_path])
    Sweep(Diagnoses(stored), Alerting()).sweep()
    expect(page.locator("[data-live]")).to_contain_text("1 new run")
    assert page.locator(".fl .name").count() == shown
    page.locator("[data-live] a").click()
    expect(page.locator(".fl .name")).to_have_count(shown + 1)


def test_a_report_of_one_file_draws_its_plots_and_loads_nothing(open_page, app, tmp_path):
    from dashboard.pages.standalone import run_report

    run = next(row.id for row in app.state.store.list_runs() if not row.group)
    report = tmp_path / "report.html"
    report.write_text(run_report(app.state.store.report(run)))
    page = open_page("/definitions")
    asked = []  # but the icon of the page before
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.locator("#c-time").scroll_into_view_if_needed()
    page.locator("#c-time .main-svg").first.wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:")) and "icon.svg" not in url] == []
    page.goto("about:blank")
