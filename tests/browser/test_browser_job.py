"""The page of a job in a browser: curves that grow live, across a server that was killed, and forms that stay whole."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.waiting import PROCESS_S, wait_until


def _train(server: Any, name: str, **spec: Any) -> str:
    whole = {"kind": "train", "version": 1, "name": name, "backend": "null", "network": "mlp", "data": "digits"}
    whole |= {"epochs": 100_000, "heartbeat_s": 0.2, **spec}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": whole}, timeout=60)
    assert made.status_code == 201, made.text
    return made.json()["jobs"][0]["id"]


@pytest.fixture(scope="module")
def begun(server: Any) -> list[str]:
    """Return the ids of trainings that tests of this file started, the newest last."""
    return []


@pytest.fixture
def running(server: Any, begun: list[str]) -> str:
    """Return the id of a training that has points already: that of the test before, where it still runs."""
    if not begun or server.client.job(begun[-1])["state"] != "running":
        begun.append(_train(server, "long run", machine_load_s=0.2))
    job_id = begun[-1]
    wait_until(lambda: "validation_cost" in server.client.job(job_id)["scalars"], PROCESS_S)
    return job_id


def _last_rate(server: Any, job_id: str) -> float:
    return server.client.job(job_id)["scalars"]["learning_rate"]["last"]


def _stored_steps(server: Any, job_id: str) -> list[int]:
    curves = server.client.curves(job_id, ["cost", "validation_cost"], max_points=100_000)
    return sorted({step for curve in curves.values() for step in curve["steps"]}, reverse=True)


def _shown_steps(page: Any) -> list[int]:
    cells = page.locator('[data-curve="cost"] tbody th').all_text_contents()
    return [int(float(text)) for text in cells]


@pytest.mark.nightly
def test_curves_are_whole_after_the_server_was_killed(server: Any, page: Any, running: str) -> None:
    """No point comes twice and none is missing; the page was never loaded again."""
    page.expected += ["net::ERR_", "htmx:error: Failed to fetch"]
    page.goto(f"{server.address}/models/{running}")
    page.locator("#curve-x-step").check()
    chart = page.locator('[data-curve="cost"]')
    chart.get_by_role("button", name="Loss as a table").click()
    expect(chart.locator("tbody tr").nth(2)).to_be_visible()
    page.evaluate("document.body.dataset.kept = 'yes'")

    server.kill()
    server.start_again()
    at_restart = server.client.job(running)["global_step"]
    wait_until(lambda: server.client.job(running)["global_step"] > at_restart + 40, PROCESS_S)
    wait_until(lambda: (_shown_steps(page) or [0])[0] > at_restart, PROCESS_S)
    server.client.stop(running)
    wait_until(lambda: server.client.job(running)["state"] == "stopped", PROCESS_S)

    wait_until(lambda: _shown_steps(page) == _stored_steps(server, running)[:200], PROCESS_S)
    assert page.locator("body").get_attribute("data-kept") == "yes"
    expect(page.locator("#job-chip")).to_have_text("stopped")


@pytest.mark.smoke
def test_the_learning_rate_acts_while_it_trains(server: Any, page: Any, running: str) -> None:
    page.goto(f"{server.address}/models/{running}")
    slider = page.get_by_label("Learning rate, on a logarithmic scale")
    expect(page.locator("#rate-value")).to_have_value("0.01")

    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")

    expect(page.locator("#rate-value")).to_have_value("0.00794")
    expect(page.locator("[data-rate-set=confirmed]")).to_be_visible()
    wait_until(
        lambda: _last_rate(server, running) == pytest.approx(0.00794, rel=1e-5), PROCESS_S
    )  # slow keys set others before

    page.get_by_role("button", name="Resume schedule").click()

    expect(page.locator("[data-rate-set=schedule]")).to_be_visible()
    expect(page.get_by_role("button", name="Resume schedule")).to_have_count(0)
    expect(page.locator("#rate-value")).to_have_value("0.01")
    wait_until(lambda: _last_rate(server, running) == pytest.approx(0.01, rel=1e-5), PROCESS_S)


def test_what_a_person_opened_typed_and_focused_stays(server: Any, page: Any, running: str) -> None:
    page.goto(f"{server.address}/models/{running}")
    page.get_by_text("Final values").click()
    page.locator("#rate-value").fill("0.5")
    page.locator("#job-pause").focus()
    before = page.locator("#job-state dd").nth(1).text_content()

    expect(page.locator("#job-state dd").nth(1)).not_to_have_text(before or "")
    expect(page.locator("#rate-value")).to_have_value("0.5")
    expect(page.locator("#job-metrics-table")).to_have_attribute("open", "")
    expect(page.locator("#job-pause")).to_be_focused()

    page.get_by_role("link", name="Configuration").click()
    page.locator("#job-edit summary").click()
    page.get_by_label("Notes").fill("Half a sentence")
    before = page.locator("#job-state dd").nth(1).text_content()
    expect(page.locator("#job-state dd").nth(1)).not_to_have_text(before or "")
    expect(page.get_by_label("Notes")).to_have_value("Half a sentence")


def test_a_running_job_and_its_menus_are_accessible(server: Any, page: Any, running: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/{running}")
    expect(page.locator('[data-curve="accuracy"] canvas')).to_be_visible()
    page.locator('[data-curve="cost"]').get_by_role("button", name="Loss as a table").click()
    check_page(page)
    for menu in ("Charts", "Compare", "Export", "More actions"):
        page.get_by_role("button", name=menu, exact=True).click()
        expect(page.locator(":popover-open")).to_have_count(1)
        check_page(page, ":popover-open")
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("dialog").locator("#delete-now")).to_be_visible()
    check_page(page, "dialog[open]")


def test_each_tab_is_shown_in_its_place(server: Any, page: Any, tiny_model: str) -> None:
    page.goto(f"{server.address}/models/{tiny_model}")
    for tab in ("predictions", "checkpoints", "log", "configuration", "system"):
        page.locator(f"#tab-{tab}").click()
        expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-current", "page")
        page.wait_for_url(f"**tab={tab}")


def test_the_browsers_timeline_has_when_the_page_was_usable(server: Any, page: Any, tiny_model: str) -> None:
    page.goto(f"{server.address}/models/{tiny_model}")
    expect(page.locator('[data-curve="accuracy"] canvas')).to_be_visible()
    waiting = page.locator("[data-island]:not([data-when]):not([data-mounted])")
    expect(waiting).to_have_count(0)
    marks = page.evaluate("performance.getEntriesByType('mark').map(({ name, startTime }) => [name, startTime])")
    # Once each, in this order: points, notices and swaps that come later add nothing.
    assert [name for name, _ in sorted(marks, key=lambda mark: mark[1])] == ["usable", "curves drawn"]


def test_a_chart_takes_the_whole_width_until_escape(server: Any, page: Any, tiny_model: str) -> None:
    page.goto(f"{server.address}/models/{tiny_model}")
    chart = page.locator('[data-curve="accuracy"]')
    button = chart.get_by_role("button", name="Accuracy at full width")
    expect(chart.locator("canvas")).to_be_visible()
    before = chart.bounding_box()["width"]

    button.focus()
    page.keyboard.press("Enter")

    expect(button).to_have_attribute("aria-pressed", "true")
    wait_until(lambda: chart.locator("canvas").bounding_box()["width"] > 1.5 * before, PROCESS_S)
    page.keyboard.press("Escape")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(button).to_be_focused()
    wait_until(lambda: chart.bounding_box()["width"] == before, PROCESS_S)


def test_the_tooltip_stands_at_the_cursor_of_one_chart(server: Any, page: Any, tiny_model: str) -> None:
    page.goto(f"{server.address}/models/{tiny_model}")
    chart, other = page.locator('[data-curve="accuracy"]'), page.locator('[data-curve="cost"]')
    expect(chart.locator("canvas")).to_be_visible()
    chart.locator(".curve-plot").focus()
    page.keyboard.press("ArrowLeft")

    tip = chart.locator(".curve-tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("Epoch")
    expect(tip).to_contain_text("Learning rate")
    expect(tip.locator("b").first).to_have_text(re.compile(r"[\d.]+\s%"))
    expect(other.locator(".curve-tip")).to_be_hidden()
    page.keyboard.press("Tab")
    expect(tip).to_be_hidden()


def test_a_run_is_compared_and_a_chart_is_pinned(server: Any, page: Any, tiny_model: str, model: str) -> None:
    page.goto(f"{server.address}/models/{model}")
    loss = page.locator('[data-curve="cost"]')
    expect(loss.locator(".curve-keys li")).to_have_count(2)

    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_label("Compare with").fill("no such run")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#curve-run-problem")).to_contain_text("no such run")
    page.get_by_label("Compare with").fill("tiny")
    expect(page.locator("#curve-run-problem")).to_be_hidden()
    option = page.locator(f'#curve-runs-found option[value="tiny ({tiny_model})"]')
    expect(option).to_be_attached()
    page.get_by_label("Compare with").fill(f"tiny ({tiny_model})")

    expect(loss.locator(".curve-keys")).to_contain_text("Validation: tiny")
    expect(loss.locator(".curve-keys li")).to_have_count(4)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Charts", exact=True).click()
    page.get_by_label("Error", exact=True).check()
    page.get_by_role("button", name="Pin Error").click()
    expect(page.get_by_role("button", name="Pin Error")).to_be_focused()
    expect(page.locator("[data-curve]").first).to_have_attribute("data-curve", "error")
    page.reload()
    expect(page.locator("[data-curve]").first).to_have_attribute("data-curve", "error")


def test_a_compared_run_that_is_deleted_stops_no_curve(server: Any, page: Any, running: str) -> None:
    page.expected.append("404 (Not Found)")
    other = _train(server, "gone soon")  # it waits behind the other one
    page.goto(f"{server.address}/models/{running}")
    expect(page.locator('[data-curve="cost"] .curve-keys li')).to_have_count(2)
    page.get_by_role("button", name="Compare", exact=True).click()
    field = page.get_by_label("Compare with")
    field.fill("nobody")
    field.press("Enter")
    expect(page.locator("#curve-run-problem")).to_contain_text("No run is called")
    field.fill(other)
    field.press("Enter")  # before the list has come
    compared = page.get_by_role("list", name="Compared runs").get_by_role("listitem")
    expect(compared).to_have_count(1)

    server.client.delete(other, force=True)
    chart = page.locator("[data-points]")
    before = int(chart.get_attribute("data-points"))
    wait_until(lambda: int(chart.get_attribute("data-points")) > before, PROCESS_S)
    expect(compared).to_have_count(1)


def test_arrow_keys_read_all_charts_at_one_moment(server: Any, page: Any, running: str) -> None:
    wait_until(lambda: len(server.client.machine_load(running)["times"]) > 3, PROCESS_S)
    page.goto(f"{server.address}/models/{running}")
    section = page.locator("#job-machine-load[data-mounted]")
    chart = section.locator("#load-memory .load-chart")
    chart.focus()
    page.keyboard.press("Home")
    for name in ("memory", "cpu", "throughput"):
        expect(section.locator(f"#load-{name} .load-at")).not_to_be_empty()
        expect(section.locator(f"#load-{name} .load-cursor")).not_to_have_attribute("hidden", "")
    expect(section.locator("#load-cpu .load-now")).to_have_text("–")  # a share needs two samples
    page.keyboard.press("Escape")
    expect(section.locator("#load-memory .load-at")).to_be_empty()
    expect(chart).to_be_focused()


def test_the_slider_shows_an_earlier_epoch_and_stays(server: Any, page: Any, running: str) -> None:
    wait_until(lambda: len(server.client.sample_predictions(running)["records"]) > 3, PROCESS_S)
    page.goto(f"{server.address}/models/{running}")
    section = page.locator("#job-sample-predictions[data-mounted]")
    slider = section.locator("#sample-epoch")
    slider.focus()
    page.keyboard.press("Home")
    expect(section.locator(".preds-epoch")).to_have_text("0")
    first = server.client.sample_predictions(running)
    names, predicted = first["class_names"], first["records"][0]["predictions"]
    for number in (0, 8):
        expect(section.locator(f"#pred-{number} .pred-name")).to_have_text(names[predicted[number]["class"]])

    records = section.get_attribute("data-records")
    expect(section).not_to_have_attribute("data-records", records or "", timeout=30_000)
    expect(section.locator(".preds-epoch")).to_have_text("0")
    expect(slider).to_be_focused()


@pytest.fixture
def ruined(server: Any, running: str) -> str:
    """Return the id of a running training that diverged after a rate was set by hand, and one point more."""
    # A loss that never fell cannot rise: the rate is set once it is well below its first value.
    wait_until(lambda: server.client.job(running)["scalars"]["validation_cost"]["minimum"] < 1, PROCESS_S)
    server.client.set_hyperparameter(running, "learning_rate", 300, force=True)
    wait_until(lambda: server.client.job(running)["divergence"] is not None, PROCESS_S)
    return running


@pytest.mark.nightly
def test_a_diverged_run_is_said_and_marked(server: Any, page: Any, check_page: Any, ruined: str) -> None:
    page.goto(f"{server.address}/models/{ruined}")
    server.client.stop(ruined)

    banner = page.locator("#job-diverged")
    expect(banner).to_be_visible()
    expect(page.locator("#job-state")).to_contain_text("validation loss")
    expect(page.locator("#job-events")).to_contain_text("Learning rate set by hand: 0.01 to 300")
    chart = page.locator('[data-curve="cost"]')
    expect(chart.locator("canvas")).to_be_visible()
    page.locator("#curve-x-step").check()
    _hover_at(chart, "Learning rate set by hand")
    check_page(page)

    page.goto(f"{server.address}/")
    expect(page.locator(f"#row-{ruined}")).to_contain_text("Diverged")


def _hover_at(chart: Any, event: str) -> None:
    """Move the pointer over the plot until the chart names an event."""
    over, mark = chart.locator(".u-over"), chart.locator(".curve-tip")
    box = over.bounding_box()
    for left in range(1, int(box["width"]), 2):
        over.hover(position={"x": left, "y": box["height"] / 2})
        if mark.is_visible() and event in mark.inner_text():
            return
    raise AssertionError(f"No place of the chart names the event: {event}.")
