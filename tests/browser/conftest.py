"""A real browser in front of a real server with recorded runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dashboard.app import create_app
from tests.browser.screenshots import addresses
from tests.browser.served import ARGUMENTS, CHROMIUM, serving
from tests.web.reports import ListStore, load_report

COLLECT_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(ListStore([load_report("kimi", "17"), load_report("first-run", "16")]))


@pytest.fixture(scope="module")
def address(app: Any) -> Iterator[str]:
    with serving(app) as url:
        yield url


@pytest.fixture
def pages(app: Any) -> dict[str, str]:
    """Every page of an app with runs of logs and watched ones, by name."""
    return addresses(app.state.store.list_runs())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser a module: its event loop must be gone before other tests run theirs."""
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(ARGUMENTS))
        yield started
        started.close()


@dataclass
class Seen:
    """What the browser complained of, and where it went."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(browser, address) -> Iterator[Callable[..., Any]]:
    """Opens a page of a given size in a fresh profile; afterwards nothing may have been complained of."""
    contexts, seen = [], Seen()

    def make(path: str, width: int = 1440, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(40_000)
        page = context.new_page()
        page.add_init_script(COLLECT_VIOLATIONS)
        page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(f"{address}{path}")
        return page

    yield make
    for context in contexts:
        for page in context.pages:
            if page.evaluate("typeof violations") == "object":
                seen.complaints += page.evaluate("violations")
        context.close()
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith((address, "blob:", "data:", "file:"))] == []
