"""Shows in a real browser that a dataset is seen as a map: points are chosen by pointer and keys, and corrected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import finished


@pytest.fixture(scope="module")
def mapped(server: Any, digits: str) -> str:
    """Return the id of a dataset of digits that has a map by their pixels, by PCA."""
    made = server.client.datasets.maps(digits) or [
        server.client.datasets.create_map(digits, features="own", tsne=False)
    ]
    finished(server, made[0]["id"])
    return digits


def opened(page: Page, server: Any, dataset: str, query: str = "") -> Any:
    """Return the canvas of the map, drawn."""
    page.goto(f"{server.address}/datasets/{dataset}/explore?view=map{query}")
    expect(page.locator("#map")).to_have_attribute("data-drawn", "true")
    return page.locator("#map-canvas")


def drag(page: Page, canvas: Any, *corners: tuple[float, float]) -> None:
    """Drag along corners, as parts of the width and height of the canvas."""
    box = canvas.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()


def test_a_map_is_made_on_the_page_and_comes_by_itself(page: Page, server: Any, digits: str) -> None:
    page.goto(f"{server.address}/datasets/{digits}/maps/new")
    page.get_by_label("Features").select_option("own")
    page.get_by_label("Also place the samples by t-SNE").uncheck()
    page.get_by_role("button", name="Create map").click()
    expect(page.locator("#map")).to_have_attribute("data-drawn", "true")
    assert page.evaluate("performance.getEntriesByName('map').length") == 1


def test_points_are_chosen_by_a_lasso_and_listed(
    page: Page, server: Any, mapped: str, check_page: Callable[[Page], None]
) -> None:
    canvas = opened(page, server, mapped)
    total = page.locator("#found-total")
    expect(total).to_have_text("400")
    drag(page, canvas, (0.05, 0.05), (0.5, 0.05), (0.5, 0.95), (0.05, 0.95), (0.05, 0.1))
    expect(total).not_to_have_text("400")
    expect(page.locator("#class-mix li").first).to_be_visible()
    counts = page.locator("#class-mix .number").all_text_contents()
    assert sum(map(int, counts)) <= int(total.text_content() or "")
    check_page(page)
    chosen = total.text_content() or ""
    page.reload()  # the area is part of the address
    expect(page.locator("#map")).to_have_attribute("data-drawn", "true")
    expect(total).to_have_text(chosen)
    page.locator("#map-rectangle").click()
    drag(page, canvas, (0.3, 0.3), (0.7, 0.7))
    expect(total).not_to_have_text(chosen)
    canvas.focus()
    page.keyboard.press("Escape")
    expect(total).to_have_text("400")


def test_a_selection_is_excluded_in_one_version(page: Page, server: Any, mapped: str) -> None:
    canvas = opened(page, server, mapped)
    page.locator("#map-rectangle").click()
    drag(page, canvas, (0.1, 0.1), (0.45, 0.9))
    expect(page.locator("#found-total")).not_to_have_text("400")
    left_out = int(page.locator("#found-total").text_content() or "")
    page.locator("#correct > summary").click()
    page.locator("#everything").check()
    page.locator("#version-name").fill("without an area")
    page.locator("#exclude-now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("without an area")
    expect(page.locator("#dataset-counts")).to_contain_text(f"{400 - left_out} images")


def test_points_are_walked_by_keys_and_shown(page: Page, server: Any, mapped: str) -> None:
    canvas = opened(page, server, mapped)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#map-said")).to_have_text(re.compile(r"\d"))
    expect(page.locator("#map-tip img")).to_be_visible()
    before = page.locator("#map-said").text_content()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#map-said")).not_to_have_text(before or "")
    page.keyboard.press("+")
    page.keyboard.press("s")
    expect(page.locator("#similar-title")).to_contain_text("Similar to")
    expect(page.locator("#similar li")).to_have_count(9)
    page.keyboard.press("Enter")
    page.wait_for_url("**/samples/**")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.keyboard.press("s")
    page.wait_for_url("**similar=**")
    expect(page.locator(".tile").first).to_be_visible()


def test_colors_follow_the_choice(page: Page, server: Any, mapped: str) -> None:
    opened(page, server, mapped)
    key = page.locator("#map-key")
    page.locator("#map-colors").get_by_text("Split").click()
    expect(key).to_contain_text("test")
    page.locator("#map-colors").get_by_text("Error").click()
    expect(key).to_contain_text("wrong")


def test_without_scripts_the_list_has_the_samples(page: Page, server: Any, mapped: str) -> None:
    page.route("**/static/vendor/**", lambda route: route.abort())
    page.expected += ["Failed to load", "net::ERR_FAILED"]  # type: ignore[attr-defined]
    page.goto(f"{server.address}/datasets/{mapped}/explore?view=map&class_name=3")
    expect(page.locator(".tile").first).to_be_visible()
