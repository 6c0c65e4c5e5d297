"""The graph of a network that is not trained is opened in TensorBoard, from the page for a new model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")

NETWORK_MS = 120_000
"""The framework is loaded for each look at a network, and TensorBoard for its graph."""


@pytest.mark.nightly
def test_the_graph_of_a_network_is_opened_in_tensorboard(server: Any, page: Any, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.get_by_label("LeNet").first.check()
    page.locator("#fold-process-line").click()
    page.locator("#look_limit_s").fill("300")  # a machine that has much to do is no error of the network
    page.get_by_role("button", name="Visualize", exact=True).click()
    way = page.get_by_role("link", name="Open the graph in TensorBoard")
    expect(way).to_be_visible(timeout=NETWORK_MS)
    check_page(page)
    with page.context.expect_page() as opened:
        way.click()
    board = opened.value
    with board.expect_response(re.compile(r"/data/plugin/graphs/graph\?run=lenet"), timeout=NETWORK_MS) as drawn:
        board.wait_for_url(re.compile(r"/models/graphs/[0-9a-f]{32}/tensorboard/.*#graphs"), timeout=NETWORK_MS)
    assert drawn.value.status == 200
    assert 'name: "val/model/conv1/Conv2D"' in drawn.value.text()
    place = board.url.partition("/tensorboard/")[0]
    assert list(board.request.get(f"{place}/tensorboard/data/plugin/graphs/info").json()) == ["lenet"]
    expect(board.get_by_text("Main Graph")).to_be_visible(timeout=NETWORK_MS)
    assert page.url.partition("?")[0].endswith("/models/new")


@pytest.mark.nightly
def test_it_works_without_a_script(server: Any, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.address}/models/new")
    page.get_by_label("LeNet").first.check()
    page.locator("#fold-process-line").click()
    page.locator("#look_limit_s").fill("300")  # a machine that has much to do is no error of the network
    page.get_by_role("button", name="Visualize", exact=True).click(timeout=NETWORK_MS)
    way = page.get_by_role("link", name="Open the graph in TensorBoard")
    expect(way).to_be_visible(timeout=NETWORK_MS)
    with context.expect_page() as opened:
        way.click()
    opened.value.wait_for_url(re.compile(r"/tensorboard/#graphs$"), timeout=NETWORK_MS)
    context.close()
