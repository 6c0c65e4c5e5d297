"""The page of a job in a browser: curves that grow live, across a server that was killed, and forms that stay whole."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.integration.studio.studio_process import wait_for

_BROKEN = '''"""A network with a mistake."""

import nothing_of_that_name


class UserModel:
    """Nothing."""
'''


def _train(server: Any, name: str, **spec: Any) -> str:
    whole = {"kind": "train", "version": 1, "name": name, "backend": "null", "network": "mlp", "data": "digits"}
    whole |= {"epochs": 100_000, "heartbeat_s": 0.2, **spec}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": whole}, timeout=60)
    assert made.status_code == 201, made.text
    return made.json()["jobs"][0]["id"]


@pytest.fixture
def running(server: Any) -> Any:
    """Return the id of a training that has points already; it is stopped at the end."""
    job_id = _train(server, "long run")
    wait_for(lambda: "validation_cost" in server.client.job(job_id)["scalars"])
    yield job_id
    if server.client.job(job_id)["state"] in ("queued", "running"):
        server.client.stop(job_id)
    wait_for(lambda: server.client.job(job_id)["state"] in ("stopped", "done"))


def _last_rate(server: Any, job_id: str) -> float:
    return server.client.job(job_id)["scalars"]["learning_rate"]["last"]


def _stored_steps(server: Any, job_id: str) -> list[int]:
    curves = server.client.curves(job_id, ["cost", "validation_cost"], max_points=100_000)
    return sorted({step for curve in curves.values() for step in curve["steps"]}, reverse=True)


def _shown_steps(page: Any) -> list[int]:
    cells = page.locator('[data-curve="cost"] tbody th').all_text_contents()
    return [int(float(text)) for text in cells]


def test_curves_are_whole_after_the_server_was_killed(server: Any, page: Any, running: str) -> None:
    """No point comes twice and none is missing; the page was never loaded again."""
    page.expected += ["net::ERR_", "htmx:error: Failed to fetch"]
    page.goto(f"{server.address}/models/{running}")
    chart = page.locator('[data-curve="cost"]')
    chart.get_by_text("Values as a table").click()
    expect(chart.locator("tbody tr").nth(2)).to_be_visible()
    page.evaluate("document.body.dataset.kept = 'yes'")

    server.kill()
    server.start_again()
    at_restart = server.client.job(running)["global_step"]
    wait_for(lambda: server.client.job(running)["global_step"] > at_restart + 40)
    wait_for(lambda: (_shown_steps(page) or [0])[0] > at_restart)
    server.client.stop(running)
    wait_for(lambda: server.client.job(running)["state"] == "stopped")

    wait_for(lambda: _shown_steps(page) == _stored_steps(server, running)[:200])
    assert page.locator("body").get_attribute("data-kept") == "yes"
    expect(page.locator("#job-state .badge")).to_have_text("stopped")


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
    wait_for(lambda: _last_rate(server, running) == pytest.approx(0.00794, rel=1e-5))  # slow keys set others before

    page.get_by_role("button", name="Follow the schedule again").click()

    expect(page.locator("[data-rate-set=schedule]")).to_be_visible()
    expect(page.get_by_role("button", name="Follow the schedule again")).to_have_count(0)
    expect(page.locator("#rate-value")).to_have_value("0.01")
    wait_for(lambda: _last_rate(server, running) == pytest.approx(0.01, rel=1e-5))


def test_what_a_person_opened_typed_and_focused_stays(server: Any, page: Any, running: str) -> None:
    page.goto(f"{server.address}/models/{running}")
    page.get_by_text("Add notes, tags, project").click()
    page.get_by_label("Notes").fill("Half a sentence")
    page.get_by_text("Metrics summary").click()
    page.locator("#rate-value").fill("0.5")
    page.locator("#job-pause").focus()
    before = page.locator("#job-state dd").nth(1).text_content()

    expect(page.locator("#job-state dd").nth(1)).not_to_have_text(before or "")
    expect(page.get_by_label("Notes")).to_have_value("Half a sentence")
    expect(page.locator("#rate-value")).to_have_value("0.5")
    expect(page.locator("#job-metrics-table")).to_have_attribute("open", "")
    expect(page.locator("#job-pause")).to_be_focused()


def test_a_running_job_is_open_to_everybody(server: Any, page: Any, running: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/{running}")
    expect(page.locator('[data-curve="accuracy"] canvas')).to_be_visible()
    page.get_by_text("Choose curves").click()
    page.locator('[data-curve="cost"]').get_by_text("Values as a table").click()
    check_page(page)
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog").locator("#delete-now")).to_be_visible()
    check_page(page)


def test_a_run_is_compared_and_a_chart_is_pinned(server: Any, page: Any, tiny_model: str) -> None:
    other = _train(server, "other run", epochs=2)
    wait_for(lambda: server.client.job(other)["state"] == "done")
    page.goto(f"{server.address}/models/{other}")
    loss = page.locator('[data-curve="cost"]')
    expect(loss.locator(".curve-legend li")).to_have_count(2)

    page.get_by_label("Compare with").fill("tiny")
    option = page.locator(f'#curve-runs-found option[value="tiny ({tiny_model})"]')
    expect(option).to_be_attached()
    page.get_by_label("Compare with").fill(f"tiny ({tiny_model})")

    expect(loss.locator(".curve-legend")).to_contain_text("validation: tiny")
    expect(loss.locator(".curve-legend li")).to_have_count(4)
    page.get_by_text("Choose curves").click()
    page.get_by_label("Error (error, validation_error)").check()
    page.get_by_role("button", name="Pin Error").click()
    expect(page.locator("[data-curve]").first).to_have_attribute("data-curve", "error")
    page.reload()
    expect(page.locator("[data-curve]").first).to_have_attribute("data-curve", "error")


@pytest.mark.tensorflow
def test_a_failure_leads_to_the_users_line(server: Any, page: Any, check_page: Any) -> None:
    network = {"source": "file", "path": "mine.py", "text": _BROKEN}
    job_id = _train(server, "broken", backend="tensorflow", network=network)
    wait_for(lambda: server.client.job(job_id)["state"] == "failed", 120)
    page.goto(f"{server.address}/models/{job_id}")

    expect(page.locator("#job-failure")).to_contain_text("There is no module `nothing_of_that_name`")
    expect(page.locator("#job-failure .line.wrong")).to_have_text("→   3import nothing_of_that_name\n")
    expect(page.locator("#job-mend")).to_have_attribute("href", f"/models/new?clone={job_id}&line=3")
    check_page(page)


@pytest.fixture
def ruined(server: Any, running: str) -> str:
    """Return the id of a running training that diverged after a rate was set by hand, and one point more."""
    server.client.set_hyperparameter(running, "learning_rate", 300, force=True)
    wait_for(lambda: server.client.job(running)["divergence"] is not None)
    return running


def test_a_diverged_run_is_said_and_marked(server: Any, page: Any, check_page: Any, ruined: str) -> None:
    page.goto(f"{server.address}/models/{ruined}")
    server.client.stop(ruined)

    banner = page.locator("#job-diverged")
    expect(banner).to_be_visible()
    expect(page.locator("#job-state")).to_contain_text("validation loss")
    page.locator("#job-marks summary").click()
    expect(page.locator("#job-marks table")).to_contain_text("Learning rate set by hand: 0.01 to 300")
    chart = page.locator('[data-curve="cost"]')
    expect(chart.locator("canvas")).to_be_visible()
    page.locator("#curve-x").select_option("step")
    _hover_at(chart, "Learning rate set by hand")
    check_page(page)

    page.goto(f"{server.address}/")
    expect(page.locator(f"#row-{ruined} .badge.warning")).to_have_text("diverged")


def _hover_at(chart: Any, event: str) -> None:
    """Move the pointer over the plot until the chart names an event."""
    over, mark = chart.locator(".u-over"), chart.locator(".curve-mark")
    box = over.bounding_box()
    for left in range(1, int(box["width"]), 2):
        over.hover(position={"x": left, "y": box["height"] / 2})
        if mark.is_visible() and event in mark.inner_text():
            return
    raise AssertionError(f"No place of the chart names the event: {event}.")
