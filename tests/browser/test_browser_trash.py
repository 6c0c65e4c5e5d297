"""The trash and the uploads in a browser: read with and without color, and an upload deleted, restored and removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect


def test_an_upload_is_deleted_restored_and_removed(server: Any, page: Page, check_page: Any, tmp_path: Path) -> None:
    (tmp_path / "pets.txt").write_text("cat.png 0")
    server.client.datasets.upload(tmp_path / "pets.txt")
    page.goto(f"{server.address}/uploads")
    check_page(page)
    page.get_by_role("button", name="Delete pets.txt").click()
    page.get_by_role("link", name="Trash").click()
    check_page(page)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Restore pets.txt").click()
    expect(page.get_by_text("pets.txt is back.")).to_be_visible()
    page.goto(f"{server.address}/uploads")
    page.get_by_role("button", name="Delete pets.txt").click()
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name="Remove for good: pets.txt").click()
    expect(page.get_by_text("Removed for good.")).to_be_visible()
    assert server.client.trash() == []
