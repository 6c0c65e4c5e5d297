"""Shows that two tabs with the same form keep a draft each."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import RunningStudio


def test_two_tabs_have_a_draft_each(page: Page, context: BrowserContext, server: RunningStudio) -> None:
    other = context.new_page()
    for tab in (page, other):
        tab.goto(f"{server.address}/models/new")
        tab.wait_for_url("**draft=*")
    assert page.url != other.url

    for tab, epochs in ((page, "31"), (other, "42")):
        tab.get_by_label("Epochs", exact=True).fill(epochs)
        expect(tab.locator("#draft-state")).to_contain_text("Draft saved")
    for tab, epochs in ((page, "31"), (other, "42")):
        tab.reload()
        expect(tab.get_by_label("Epochs", exact=True)).to_have_value(epochs)

    kept = other.url
    other.close()
    page.close()
    again = context.new_page()
    again.goto(f"{server.address}/models/new")
    again.wait_for_url(kept)  # no tab holds it any more
