"""Pictures of every page at three widths, light and dark: `make screenshots`, then look at them.

They go to `build/screenshots/`. Of the report and the answer of a check there are pictures too.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from collector.storage.engine import Database, open_database
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import judge_runs
from dashboard.samples import load_samples
from dashboard.service import build_app
from dashboard.settings import Settings
from dashboard.store import RunRow
from tests.browser.served import ARGUMENTS, CHROMIUM, serving
from tests.web.watched import watch, windows

WIDTHS = (390, 1440, 2560)
RESIZED_MS = 400
"""Until plots have the size of the page."""
THEMES = ("light", "dark")
FOLDER = Path("build/screenshots")
HOUR = 3600.0


def addresses(rows: list[RunRow]) -> dict[str, str]:
    """Every page by the name of its picture; ``rows`` are the stored runs, the latest first."""
    logs = [row.id for row in rows if not row.group]
    live = [row.id for row in rows if row.group]
    return {
        "runs": "/",
        "run": f"/runs/{logs[0]}",
        "live-run": f"/runs/{live[0]}",
        "live-run-gone": f"/runs/{live[-1]}?range=1h",
        "over-time": f"/runs/{live[0]}/over-time?range=24h",
        "group": f"/groups?{urlencode({'group': next(row.group for row in rows if row.group == 'chat')})}",
        "compare": f"/compare?run={logs[0]}&run={logs[1]}",
        "compare-live": f"/compare?run={live[0]}&run={live[1]}",
        "compare-choose": "/compare",
        "check": "/check",
        "upload": "/upload",
        "drafts": "/drafts",
        "alerts": "/alerts",
        "rules": "/rules",
        "rule": "/rules/FLG001",
        "targets": "/targets",
        "settings": "/settings",
        "definitions": "/definitions",
        "not-found": "/runs/none",
    }


def fill(database: Database) -> None:
    """The shipped samples; two replicas that are watched, one of them worse since six hours; one that is gone for days."""
    load_samples(database)
    now = time.time()
    fair = windows(now - 30 * HOUR, now - 6 * HOUR)
    runs = [
        watch(database, 1, [*fair, *windows(now - 6 * HOUR, now)]),
        watch(database, 2, [*fair, *windows(now - 5.5 * HOUR, now, seed=2, shares=(0.6, 0.3, 0.1))]),
        watch(database, 3, windows(now - 80 * HOUR, now - 76 * HOUR, seed=3), deployment="batch"),
    ]
    judge_runs(Diagnoses(database), runs, Alerting())


def scrolled(page: Any) -> None:
    """Bring everything into view once, so that every plot is drawn."""
    page.evaluate(
        "async () => { for (let y = 0; y < document.body.scrollHeight; y += 700) { scrollTo({top: y, behavior: 'instant'});"
        " await new Promise((done) => setTimeout(done, 40)); } scrollTo({top: 0, behavior: 'instant'}); }"
    )


def main(wanted: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/draftscope.db") as database:
        fill(database)
        app = build_app(Diagnoses(database), Settings())
        rows = app.state.store.list_runs()
        with serving(app) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            for theme in THEMES:
                page = browser.new_page(color_scheme=theme)
                for name, address in addresses(rows).items():
                    if wanted and name not in wanted:
                        continue
                    page.goto(url + address)
                    if name.startswith("live-run"):
                        page.locator("#over-time .ranges").wait_for()
                    if name == "check":
                        page.locator("form .btn-main").click()
                        page.locator(".matrix").wait_for()
                    for width in WIDTHS:
                        page.set_viewport_size({"width": width, "height": 900})
                        page.wait_for_timeout(RESIZED_MS)
                        scrolled(page)
                        page.screenshot(path=FOLDER / f"{name}-{width}-{theme}.png", full_page=True)
                page.close()
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
