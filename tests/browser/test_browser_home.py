"""Shows that the first page works in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def test_home_opens(page: Page, server, check_page) -> None:
    page.goto(server.address + "/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    check_page(page)


def test_digits(page: Page, server, digits: str, tiny_model: str, check_page) -> None:
    page.goto(server.address + "/")
    expect(page.get_by_role("link", name="tiny")).to_be_visible()
    check_page(page)
