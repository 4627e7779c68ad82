"""Pictures of every page at three widths, light and dark: `make screenshots`, then look at them.

They go to `build/screenshots/`. Of the report and the answer of a check there are pictures too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from collector.storage.engine import open_database
from dashboard.diagnoses import Diagnoses
from dashboard.samples import load_samples
from dashboard.service import build_app
from dashboard.settings import Settings
from tests.browser.conftest import ARGUMENTS, CHROMIUM, serving

WIDTHS = (390, 1440, 2560)
THEMES = ("light", "dark")
FOLDER = Path("build/screenshots")


def addresses(rows: list[str]) -> dict[str, str]:
    """Every page by the name of its picture; ``rows`` are the ids of stored runs, the latest first."""
    return {
        "runs": "/",
        "run": f"/runs/{rows[0]}",
        "compare": f"/compare?run={rows[0]}&run={rows[1]}",
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


def scrolled(page: Any) -> None:
    """Bring everything into view once, so that every plot is drawn."""
    page.evaluate(
        "async () => { for (let y = 0; y < document.body.scrollHeight; y += 700) { scrollTo(0, y);"
        " await new Promise((done) => setTimeout(done, 40)); } scrollTo(0, 0); }"
    )


def main(wanted: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/draftscope.db") as database:
        load_samples(database)
        app = build_app(Diagnoses(database), Settings())
        rows = [row.id for row in app.state.store.list_runs()]
        with serving(app) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            for theme in THEMES:
                page = browser.new_page(color_scheme=theme)
                for name, address in addresses(rows).items():
                    if wanted and name not in wanted:
                        continue
                    page.goto(url + address)
                    if name == "check":
                        page.locator("form .btn-main").click()
                        page.locator(".matrix").wait_for()
                    for width in WIDTHS:
                        page.set_viewport_size({"width": width, "height": 900})
                        scrolled(page)
                        page.screenshot(path=FOLDER / f"{name}-{width}-{theme}.png", full_page=True)
                page.close()
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
