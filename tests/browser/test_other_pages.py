"""The list, the catalogue and the rest in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_run_page import SIDEWAYS

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", ["/", "/check", "/alerts", "/rules", "/rules/FLG001", "/definitions"])
def test_nothing_overflows_sideways(open_page, path):
    page = open_page(path)
    for width in (2560, 1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) == 0, width


def test_list_is_filtered_while_typing_and_the_address_follows(open_page):
    page = open_page("/")
    assert page.locator(".fl .name").count() == 2
    page.keyboard.press("/")
    page.keyboard.type("FLG001")
    expect(page.locator(".fl .name")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/\?q=FLG001$"))
    expect(page.locator("#q")).to_be_focused()
    page.locator("#state").select_option("ok")
    page.get_by_text("Nothing matches.").wait_for()
    page.reload()
    assert page.locator("#q").input_value() == "FLG001"
    assert page.locator("#state").input_value() == "ok"


def test_list_is_filtered_without_scripts(open_page):
    page = open_page("/", java_script_enabled=False)
    page.locator("#state").select_option("cannot_tell")
    page.get_by_role("button", name="Apply").click()
    assert page.locator(".fl .name").count() == 1


def test_whole_row_leads_to_the_run(open_page):
    page = open_page("/")
    box = page.locator(".fl .pay").first.bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    expect(page).to_have_url(re.compile(r"/runs/17$"))


def test_a_command_is_copied(open_page, browser):
    page = open_page("/rules/FLG001", permissions=["clipboard-read", "clipboard-write"])
    page.locator("[data-copy]").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "draftscope explain FLG001"


def test_a_command_is_checked_and_a_release_picked_by_keyboard(open_page):
    page = open_page("/check")
    page.locator("#command").focus()
    page.get_by_role("button", name="Check", exact=True).press("Enter")
    page.get_by_role("heading", name="1 of 8 flags will not run as asked").wait_for()
    against = page.locator(".matrix [data-look=against]")
    assert against.inner_text() == "2"
    for width in (2560, 1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) == 0, width
    page.locator(".rel").first.press("Enter")
    page.locator(".rel[aria-pressed=true]").wait_for()
    assert page.locator("#engine_version").input_value() == "0.4.4.post4"
