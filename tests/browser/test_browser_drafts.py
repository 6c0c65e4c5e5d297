"""Shows that two tabs with the same form keep a draft each, and that what a page shows outlives its next reload."""

from __future__ import annotations

import httpx
import pytest
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


@pytest.mark.parametrize("locks", ["held", "none"])
def test_a_draft_shown_under_a_new_name_outlives_reload(
    locks: str, page: Page, context: BrowserContext, server: RunningStudio
) -> None:
    httpx.post(f"{server.address}/models/new/reset", timeout=60)  # the drafts of another test
    if locks == "none":  # as where pages do not come by HTTPS
        context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    page.goto(f"{server.address}/models/new")
    page.wait_for_url("**draft=*")
    page.get_by_label("Epochs", exact=True).fill("53")
    expect(page.locator("#draft-state")).to_contain_text("Draft saved")
    other = context.new_page()  # while the first still holds the name of the draft
    with other.expect_request("**/models/new/draft") as saved:
        other.goto(f"{server.address}/models/new")
    assert saved.value.response().status == 204
    assert other.url != page.url
    kept = other.url
    for _ in range(2):
        other.reload()
        expect(other.get_by_label("Epochs", exact=True)).to_have_value("53")
        assert other.url == kept or locks == "held"
