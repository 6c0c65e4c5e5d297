"""The page for a new model in a browser: editor, graph, errors at their line, live parts, and a start."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.waiting import PROCESS_S, wait_until

NETWORK_MS = 120_000
"""The framework is loaded for each look at a network."""


@pytest.fixture(autouse=True)
def _no_draft(server: Any) -> None:
    """Let each test begin with an untouched form."""
    httpx.post(f"{server.address}/models/new/reset", timeout=60)


def choose_linear(page: Any) -> None:
    """Choose the smallest network, which stands behind the others."""
    page.locator("#more-networks summary").click()
    page.get_by_label("Linear classifier").check()


@pytest.mark.nightly
def test_a_late_answer_changes_nothing_typed_since(server: Any, page: Any, digits: str) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    held: list[Any] = []
    page.route("**/models/new/network", lambda route: held.append(route))
    with page.expect_request("**/models/new/network"):
        choose_linear(page)
    page.locator("#learning_rate").fill("0.1, 0.03")
    page.locator("#learning_rate").press("Tab")
    expect(page.locator("#rate polyline")).to_have_count(2)
    with page.expect_response("**/models/new/rate"), page.expect_response("**/models/new/quick"):
        held[0].continue_()
    expect(page.locator("#learning_rate")).to_have_value("0.1, 0.03")
    expect(page.locator("#rate-words")).to_contain_text("0.1, 0.03")
    expect(page.locator("#start")).to_have_text("Train 2 models")


def test_a_training_is_put_together_and_started(server: Any, page: Any, digits: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    expect(page.locator("#dataset-summary .stats")).to_contain_text("Training images")
    choose_linear(page)
    page.locator("#learning_rate").fill("0.1, 0.01")
    expect(page.locator("#rate polyline")).to_have_count(2)
    page.locator("#fold-schedule-line").click()
    page.locator("#schedule").select_option("poly")
    expect(page.locator("#schedule-poly-power")).to_be_visible()
    expect(page.locator("#schedule-step-gamma")).to_be_hidden()
    expect(page.locator("#rate-words")).to_contain_text("poly")
    expect(page.locator("#start")).to_have_text("Train 2 models")
    expect(page.locator("#learning_rate")).to_have_value("0.1, 0.01")
    page.locator("#epochs").fill("0")
    page.locator("#epochs").press("Tab")
    expect(page.locator("#preflight")).to_contain_text("Epochs must be at least 1")
    expect(page.locator("#epochs")).to_have_attribute("aria-invalid", "true")
    page.locator("#epochs").fill("1")
    page.locator("#epochs").press("Tab")
    expect(page.locator("#preflight .finding").first).to_be_visible()
    check_page(page)
    page.locator("#learning_rate").fill("0.1")
    page.locator("#learning_rate").press("Tab")
    expect(page.locator("#start")).to_have_text("Train")
    page.locator("#start").click()
    page.wait_for_url(re.compile(r"/models/\d{8}-\d{6}-[0-9a-f]{8}$"))
    job = server.client.job(page.url.rpartition("/")[2])
    assert job["spec"]["learning_rate"] == 0.1
    assert job["spec"]["network"] == {"source": "zoo", "name": "linear"}
    assert job["depends_on"] == [digits]


def _misspell_a_member(page: Any) -> Any:
    """Take the last letter of ``self.nclasses`` away in the code of a network, and return the editor."""
    page.get_by_role("button", name="Customize the code").click()
    code = page.locator(".cm-content")
    expect(code).to_contain_text("class UserModel(Tower):")
    page.locator(".cm-line", has_text="return slim.fully_connected").click()
    page.keyboard.press("End")
    for _ in range(len(', activation_fn=None, scope="fc2")')):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasse,"))
    return code


def test_a_mistake_is_marked_and_the_graph_shown_once_mended(server: Any, page: Any, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    code = _misspell_a_member(page)
    expect(page.locator("#code-findings .finding.warning")).to_contain_text("Did you mean self.nclasses?")
    page.locator(".cm-lintRange-warning").hover()
    expect(page.locator(".cm-tooltip-lint")).to_be_visible()
    check_page(page)
    code.focus()
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(code).not_to_be_focused()
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasses,"))
    page.get_by_role("button", name="Visualize", exact=True).click()
    graph = page.locator(".graph")
    expect(graph).to_have_attribute("data-drawn", re.compile(r"\d+"), timeout=NETWORK_MS)
    expect(page.locator(".cm-lintRange-error, .cm-lintRange-warning")).to_have_count(0)
    expect(page.locator("#network-fine")).to_contain_text("431,080")
    before = int(graph.get_attribute("data-drawn"))
    page.locator('[data-scope="conv1"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator('[data-scope="conv1"]')).to_have_attribute("aria-expanded", "true")
    assert int(graph.get_attribute("data-drawn")) > before
    check_page(page)


@pytest.mark.nightly
def test_an_error_of_the_framework_is_marked_at_its_line(server: Any, page: Any, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    code = _misspell_a_member(page)
    page.get_by_role("button", name="Visualize", exact=True).click()
    problem = page.locator("#network-problem")
    expect(problem).to_contain_text("Line 21", timeout=NETWORK_MS)
    expect(problem).to_contain_text("Did you mean self.nclasses?")
    expect(page.locator(".editor[data-of=network_text]")).to_have_attribute("data-problem-line", "21")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    check_page(page)
    page.get_by_role("button", name="Go to line 21").click()
    expect(code).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasses,"))


def test_lines_that_a_network_lacks_are_added(server: Any, page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator("#framework-torch").click()
    code = page.locator(".cm-content")
    expect(code).to_contain_text("class UserModel(nn.Module):")
    page.locator(".cm-line", has_text="class UserModel(nn.Module):").get_by_text("UserModel").dblclick()
    page.keyboard.type("Mine")
    page.get_by_role("button", name="Add these lines").click()
    expect(code).to_be_focused()
    expect(page.locator("#code-findings .finding")).to_have_count(0)
    added = "class UserModel(Mine):\n    def __init__(self, nclasses, input_shape):\n        super().__init__("
    expect(page.locator("#network_text")).to_have_value(re.compile("\n\n\n" + re.escape(added)))
    page.keyboard.press("Control+z")
    expect(page.locator("#network_text")).to_have_value(re.compile(r"class Mine\(nn\.Module\):"))
    expect(page.get_by_role("button", name="Add these lines")).to_be_visible()


def test_completion_knows_the_contract(server: Any, page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator(".cm-line").last.click()
    page.keyboard.type("self.ncl")
    offered = page.locator(".cm-tooltip-autocomplete li").first
    expect(offered).to_contain_text("nclasses")
    offered.click()  # the key Enter takes it too, but not at once, lest it be pressed by mistake
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasses$"))


def test_the_page_fits_a_small_screen(server: Any, page: Any, digits: str) -> None:
    for width in (400, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{server.address}/models/new?dataset={digits}")
        expect(page.locator("#start")).to_be_in_viewport()
        expect(page.locator("#rate polyline")).to_have_count(1)
        wait_until(lambda width=width: page.evaluate("document.documentElement.scrollWidth") <= width, PROCESS_S)
    assert page.evaluate("document.documentElement.scrollHeight") <= 1400, "closed, at 1440 px"


def test_reload_and_back_bring_everything_back(server: Any, page: Any, digits: str) -> None:
    address = f"{server.address}/models/new?dataset={digits}"
    page.goto(address)
    first = page.locator("#epochs").input_value()
    page.locator("#epochs").fill("77")
    page.locator("#fold-notes-line").click()
    page.locator("#notes").fill("typed")
    expect(page.locator("#fold-notes-summary")).to_have_text("typed")
    expect(page.locator("#draft-state")).to_contain_text("Draft saved")
    for come_back in (page.reload, lambda: (page.goto(server.address), page.go_back())):
        come_back()
        expect(page.locator("#epochs")).to_have_value("77")
        expect(page.locator("#notes")).to_have_value("typed")
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.locator("#epochs")).to_have_value("77")  # the question was answered with no
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.locator("#epochs")).to_have_value(first)
    expect(page.locator("#draft-state")).to_be_empty()


def test_the_last_letters_are_saved_when_a_page_is_left(server: Any, page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    expect(page.locator("[data-island=draft]")).to_have_attribute("data-mounted", re.compile("."))
    page.locator("#fold-notes-line").click()
    page.locator("#notes").press_sequentially("last letters")
    page.goto(f"{server.address}/about")
    saved = f"{server.address}/api/v1/saved/draft"
    wait_until(lambda: "last letters" in httpx.get(saved, timeout=60).text, 60)


def test_a_form_that_is_sent_twice_starts_one_training(server: Any, page: Any, digits: str) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    expect(page.locator("[data-island=draft]")).to_have_attribute("data-mounted", re.compile("."))
    choose_linear(page)
    page.locator("#epochs").fill("1")
    sent: list[Any] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    # At once, as in a double click; then the check of the last letter, which would save the draft again.
    seen = page.evaluate(
        """() => {
            const button = document.querySelector("#start");
            button.form.requestSubmit(button);
            button.form.requestSubmit(button);
            const check = new CustomEvent("htmx:before:request", {bubbles: true, cancelable: true});
            return [button.getAttribute("aria-busy"), document.body.dispatchEvent(check)];
        }"""
    )
    assert seen == ["true", False]
    page.wait_for_url(re.compile(r"/models/\d{8}-\d{6}-[0-9a-f]{8}$"))
    assert len([each for each in sent if each.url.endswith("/models/new")]) == 1
    page.goto(f"{server.address}/models/new")
    expect(page.locator("#draft-state")).to_be_empty()


def test_the_recipe_and_a_preset_fill_the_form(server: Any, page: Any, digits: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    expect(page.locator("#recipe-applied")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("#recipe-applied")).to_have_count(0)
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator("#recipe-applied")).to_be_visible()

    page.locator("#epochs").fill("9")
    page.get_by_role("button", name="Save as preset").click()
    page.locator("#preset_name").fill("Nine")
    page.locator("#preset-save").click()
    expect(page.locator("#preset-said")).to_contain_text("Nine")
    check_page(page)
    page.keyboard.press("Escape")
    page.locator("#epochs").fill("3")
    page.get_by_role("button", name="Load a preset").click()
    page.get_by_role("button", name="Nine", exact=True).click()
    expect(page.locator("#epochs")).to_have_value("9")
    page.get_by_role("button", name="Load a preset").click()
    page.get_by_role("button", name="Delete the preset Nine").click()
    expect(page.locator("#preset-list")).not_to_contain_text("Nine")


def test_a_problem_leads_to_its_field_in_a_closed_section(server: Any, page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.locator("#fold-augmentation-line").click()
    page.locator("#augmentation-hue").fill("3")
    expect(page.locator("#start")).to_be_disabled()
    expect(page.locator("#fold-augmentation-errors")).to_have_text("1 problem")
    page.locator("#fold-augmentation-line").click()
    expect(page.locator("#augmentation-hue")).to_be_hidden()
    page.locator('#preflight a[href="#augmentation-hue"]').click()
    expect(page.locator("#augmentation-hue")).to_be_visible()


def test_two_tabs_have_a_draft_each(page: Page, context: BrowserContext, server: Any) -> None:
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
    locks: str, page: Page, context: BrowserContext, server: Any
) -> None:
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
