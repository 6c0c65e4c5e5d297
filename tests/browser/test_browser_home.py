"""Shows that the first page works in a real browser: live rows, filter and Back, many at once, order of the queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.waiting import PROCESS_S, wait_until


def _train(server: Any, name: str, **fields: Any) -> str:
    spec = {"kind": "train", "version": 1, "name": name, "backend": "null", "network": "mlp", "data": "digits"}
    spec |= {"epochs": 2, "heartbeat_s": 0.2, **fields.pop("spec", {})}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec, **fields}, timeout=60)
    assert made.status_code == 201, made.text
    return made.json()["jobs"][0]["id"]


@pytest.fixture(scope="module")
def runs(server: Any) -> str:
    """Return the id of a training that runs, and takes the only place for one."""
    chosen = httpx.put(f"{server.address}/api/v1/limits", json={"values": {"cpu_slots": 1}}, timeout=60)
    assert chosen.status_code == 200, chosen.text
    job_id = _train(server, "runs", spec={"epochs": 1_000_000})
    wait_until(lambda: server.client.job(job_id)["global_step"] > 0, PROCESS_S)
    return job_id


@pytest.fixture
def queue(server: Any, runs: str) -> Iterator[list[str]]:
    """Return the ids of a training that runs and of three that wait behind it, which are deleted at the end."""
    ids = [runs, *(_train(server, name, spec={"epochs": 1_000_000}) for name in ("first", "second", "third"))]
    yield ids
    for each in reversed(ids[1:]):
        if any(job["id"] == each for job in server.client.jobs()):
            server.client.delete(each, force=True)


def _shown_order(page: Page) -> list[str]:
    return [text.strip() for text in page.locator("#queue-order tr th a").all_text_contents()]


@pytest.mark.smoke
def test_digits(page: Page, server, digits: str, tiny_model: str, check_page) -> None:
    page.goto(server.address + "/")
    expect(page.get_by_role("link", name="tiny", exact=True)).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="Datasets", exact=True).click()
    card = page.locator(f"#row-{digits}")
    expect(card.get_by_role("link", name="digits", exact=True)).to_be_visible()
    expect(card).to_contain_text("400 images")
    expect(card.locator("img")).to_have_count(4)
    check_page(page)
    page.get_by_role("link", name="Table", exact=True).click()
    expect(page.locator(f"#row-{digits} td.number").first).to_have_text("400")
    check_page(page)
    for name in ("Models", "Evaluations"):
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        check_page(page)


def test_rows_and_actions_stand_in_sight(page: Page, server: Any, queue: list[str], check_page: Any) -> None:
    for width, most in ((1440, 400), (400, 260)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(server.address + "/")
        expect(page.locator("#running-now")).to_be_visible()
        first = page.locator("[data-row]").first.bounding_box()
        assert first is not None
        assert first["y"] <= most
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if width > 1000:
            assert round(first["height"]) in (40, 41)
    check_page(page)
    page.set_viewport_size({"width": 1024, "height": 500})
    for path in ("/evaluations", "/models", "/"):
        page.goto(server.address + path)
        name = page.locator("th.c-name")
        if name.count():
            assert name.evaluate("element => element.clientWidth") >= 150
    page.locator(f"#pick-{queue[0]}").check()
    box = page.locator(".bulk").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 500


def test_names_are_completed_by_keyboard(page: Page, server: Any, tiny_model: str, check_page: Any) -> None:
    page.expected.append("400 (Bad")  # type: ignore[attr-defined]
    page.goto(server.address + "/")
    box = page.get_by_role("combobox", name="Search or filter")
    box.press_sequentially("lea", delay=20)
    option = page.get_by_role("option").first
    expect(option).to_be_visible()
    expect(option).to_contain_text("number")
    box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "name-option-1")
    check_page(page)
    box.press("Enter")
    expect(box).to_have_value("learning_rate ")
    expect(page.locator("#names")).to_be_hidden()
    box.press_sequentially("> 5 and", delay=20)
    expect(page.locator("#filter-problem")).to_contain_text("A condition is missing after and.")
    expect(box).to_be_focused()
    box.fill("lr > 0")
    fix = page.locator("#filter-fix")
    expect(fix).to_have_text("learning_rate")
    check_page(page)
    fix.click()
    expect(box).to_have_value("learning_rate > 0")
    expect(page.locator(f"#row-{tiny_model}")).to_be_visible()


def test_a_view_is_saved_and_deleted(page: Page, server: Any, tiny_model: str, check_page: Any) -> None:
    page.goto(server.address + "/?q=tiny&sort=name")
    page.get_by_role("button", name="Save view").first.click()
    page.get_by_label("Name of the view").fill("Tiny ones")
    check_page(page)
    page.get_by_label("Name of the view").press("Enter")
    tab = page.get_by_role("link", name="Tiny ones")
    expect(tab).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="All", exact=True).click()
    tab.click()
    expect(page.get_by_role("combobox", name="Search or filter")).to_have_value("tiny")
    page.get_by_role("button", name="Save view").first.click()
    page.get_by_role("button", name="Delete the view Tiny ones").click()
    expect(tab).to_have_count(0)
    check_page(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Tiny ones is back.")).to_be_visible()
    expect(tab).to_be_visible()
    server.client.saved.delete("view", "Tiny ones", forever=True)
    server.client.empty_trash()


def test_a_filter_stands_in_the_address_and_back_takes_it_away(page: Page, server: Any, tiny_model: str) -> None:
    page.goto(server.address + "/")
    find = page.get_by_label("Search or filter")
    find.press_sequentially("nobody", delay=10)
    expect(page.locator("#clear-empty")).to_be_visible()
    expect(find).to_be_focused()
    expect(find).to_have_value("nobody")
    expect(page).to_have_url(f"{server.address}/?q=nobody")
    page.get_by_role("link", name="Clear the filter").click()
    expect(page.locator(f"#row-{tiny_model}")).to_be_visible()

    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Another setting").fill("learning_rate")
    page.get_by_label("Another setting").press("Enter")
    expect(page.get_by_role("columnheader", name="learning_rate")).to_be_visible()
    page.get_by_role("link", name="learning_rate", exact=True).click()
    expect(page.get_by_role("columnheader", name="learning_rate")).to_have_attribute("aria-sort", "descending")
    expect(page).to_have_url(f"{server.address}/?sort=-learning_rate&column=learning_rate")
    page.go_back()
    expect(page.get_by_role("columnheader", name="learning_rate")).not_to_have_attribute("aria-sort", "descending")
    page.go_back()
    expect(page.get_by_role("columnheader", name="learning_rate")).to_have_count(0)
    expect(page.get_by_role("button", name="Theme: system")).to_be_visible()


def test_news_come_by_themselves_and_leave_what_a_person_is_at(
    page: Page, server: Any, queue: list[str], check_page: Any
) -> None:
    page.goto(server.address + "/?waiting=all")
    page.locator(f"#pick-{queue[1]}").check()
    expect(page.locator("#chosen")).to_have_text("1 selected")
    page.get_by_label("Search or filter").press_sequentially("i")
    expect(page).to_have_url(f"{server.address}/?q=i&waiting=all")
    page.locator(f"#menu-{queue[1]}").click()
    menu = page.locator("#row-menu")
    expect(menu.get_by_role("link", name="Open")).to_be_visible()

    new = _train(server, "came in later")
    expect(page.locator(f"#row-{new}")).to_be_visible()
    expect(page.locator(f"#row-{new} .state").first).to_contain_text("Queued")
    expect(page.locator(f"#runs-{queue[0]} .progress-cell")).to_contain_text("Epoch")
    before = page.locator(f"#runs-{queue[0]} .progress-cell").inner_text()
    expect(page.locator(f"#runs-{queue[0]} .progress-cell")).not_to_have_text(before)
    expect(page.locator(f"#pick-{queue[1]}")).to_be_checked()
    expect(page.get_by_label("Search or filter")).to_have_value("i")
    expect(menu).to_be_visible()
    check_page(page)
    server.client.delete(new)
    expect(page.locator(f"#row-{new}")).to_have_count(0)


def test_the_queue_is_ordered_by_keyboard_and_by_dragging(page: Page, server: Any, queue: list[str]) -> None:
    page.goto(server.address + "/")
    page.get_by_role("button", name="Show queue").click()
    expect(page.locator("#queue-order tr")).to_have_count(3)
    expect(page.get_by_role("button", name="Hide queue")).to_be_focused()
    expect(page.locator("#queue-order .why").first).to_contain_text("waits for the CPU")
    up = page.get_by_role("button", name="Move third up")
    up.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#home-said .note.good")).to_contain_text("third")
    wait_until(lambda: _shown_order(page) == ["first", "third", "second"], PROCESS_S)
    expect(up).to_be_focused()

    page.locator(f"#waits-{queue[2]} [data-handle]").hover()  # it waits until the rows stand still
    page.mouse.down()
    target = page.locator(f"#waits-{queue[1]}").bounding_box()
    assert target is not None
    page.mouse.move(target["x"] + 5, target["y"] + 4, steps=6)
    page.mouse.up()
    expect(page.locator("#home-said .note.good")).to_contain_text("second")
    wait_until(lambda: _shown_order(page) == ["second", "first", "third"], PROCESS_S)
    assert [job["name"] for job in server.client.queue()] == ["second", "first", "third"]


def test_many_are_tagged_and_deleted_after_a_question(
    page: Page, server: Any, queue: list[str], check_page: Any
) -> None:
    page.goto(server.address + "/?state=queued")
    expect(page.locator("#bulk")).to_be_hidden()
    page.get_by_label("Select all on this page").check()
    expect(page.locator("#chosen")).to_have_text("3 selected")
    page.get_by_role("button", name="Tag…").click()
    page.get_by_label("Add tags").fill("night")
    page.get_by_label("Add tags").press("Enter")
    expect(page.locator("#home-said")).to_contain_text("3 jobs")
    assert server.client.job(queue[1])["tags"] == ["night"]
    page.locator(f"#pick-{queue[1]}").uncheck()
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete 2 jobs?")
    check_page(page)
    dialog.get_by_role("button", name="Keep them").click()
    expect(dialog).to_have_count(0)
    page.locator("#bulk-delete").click()
    dialog.get_by_role("button", name="Delete 2 jobs").click()
    expect(page.locator("#home-said")).to_contain_text("2 jobs")
    expect(dialog).to_have_count(0)
    assert [job["id"] for job in server.client.queue()] == [queue[1]]
    expect(page.locator("#results tbody tr")).to_have_count(1)


def test_names_and_notes_are_changed(page: Page, server: Any, tiny_model: str) -> None:
    page.expected.append("422 (Unprocessable")  # type: ignore[attr-defined]
    page.goto(server.address + "/?state=done")
    page.locator(f"#menu-{tiny_model}").click()
    page.locator(f"#rename-{tiny_model}").click()
    name = page.get_by_label("New name of tiny")
    expect(name).to_be_focused()
    name.fill("")
    name.press("Enter")
    expect(page.get_by_text("A name has 1 to 200 characters.")).to_be_visible()
    name.fill("small")
    name.press("Enter")
    expect(page.get_by_role("link", name="small", exact=True)).to_be_visible()
    expect(page).to_have_url(f"{server.address}/?state=done")

    page.locator(f"#menu-{tiny_model}").click()
    page.locator(f"#edit-{tiny_model}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Change small")
    dialog.get_by_label("Notes").fill("a note")
    dialog.get_by_label("Priority").fill("much")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("A priority must be a whole number")
    expect(dialog.get_by_label("Notes")).to_have_value("a note")
    dialog.get_by_label("Priority").fill("2")
    dialog.get_by_label("Name").fill("tiny")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    job = server.client.job(tiny_model)
    assert (job["notes"], job["priority"], job["name"]) == ("a note", 2, "tiny")


def test_a_menu_that_does_not_come_is_not_that_of_another_job(browser: Any, server: Any, queue: list[str]) -> None:
    context = browser.new_context()  # of its own: the browser says in its console that nobody answered
    page = context.new_page()
    page.goto(server.address + "/?waiting=all")
    page.locator(f"#menu-{queue[1]}").click()
    expect(page.locator(f"#act-delete-{queue[1]}")).to_be_visible()
    page.keyboard.press("Escape")
    page.route("**/parts/menu/*", lambda route: route.abort())
    page.locator(f"#menu-{queue[2]}").click()
    expect(page.locator("#sayings")).to_contain_text("The studio did not answer.")
    expect(page.locator("#row-menu")).to_be_hidden()
    expect(page.locator(f"#act-delete-{queue[1]}")).to_have_count(0)
    context.close()


def test_without_a_script_it_is_links_and_forms(browser: Any, server: Any, queue: list[str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.address + "/?waiting=all")
    actions = page.get_by_role("link", name="Actions for third", exact=True)
    assert actions.get_attribute("href") == page.get_by_role("link", name="third", exact=True).last.get_attribute(
        "href"
    )
    page.get_by_role("button", name="Move third to the front").click()
    expect(page.locator("#home-said .note.good")).to_contain_text("third")
    page.get_by_label("Search or filter").fill("second")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.locator(f"#pick-{queue[2]}").check()
    page.get_by_role("button", name="Delete…", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete second?")
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("#home-said .note.good")).to_contain_text("second")
    expect(page.locator("#clear-empty")).to_be_visible()
    context.close()
