"""Command palette, search page, list of keys, and notifications: what the server finds for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.web.html_page import Element, html_of
from ziggurat.store import Store


def titles(found: Element) -> list[str]:
    return [each.text for each in found.all('[role="option"] .cut')]


@pytest.fixture
def end(studio: Any) -> Any:
    """Return what ends a job of the queue as a worker would."""
    with Store.open(studio.root / "studio.db") as store:

        def move(job: Any, state: str, ended: float) -> None:
            assert store.jobs.move(job.id, ("queued",), "running", started=ended - 1)
            assert store.jobs.move(job.id, ("running",), state, ended=ended)

        yield move


def test_palette_without_text_shows_recent_jobs_and_commands(visit: Any, pets: str) -> None:
    dialog = html_of(visit.get("/parts/palette?dialog=true"))

    assert dialog.one("dialog#palette input")["aria-controls"] == dialog.one('[role="listbox"]')["id"]
    assert dialog.has('link[rel="stylesheet"]')
    options = dialog.all('a[role="option"]')
    assert options[0]["href"] == f"/datasets/{pets}"
    assert {"New model", "New dataset", "Go to runs", "Switch theme"} <= set(titles(dialog))
    assert len({each["id"] for each in options}) == len(options) <= 20


def test_palette_finds_jobs_by_name_best_match_first(visit: Any, train: Any) -> None:
    middle = train(spec={"name": "my night run"})
    begins = train(spec={"name": "Night shift"})
    train(spec={"name": "other"})

    found = html_of(visit.get("/parts/palette?q=night"))

    assert [each["href"] for each in found.all('a[role="option"]')] == [f"/models/{begins.id}", f"/models/{middle.id}"]
    assert found.one(".palette-group").text == "Runs"


def test_palette_finds_at_most_twenty_results(visit: Any, train: Any) -> None:
    for number in range(25):
        train(spec={"name": f"new {number}"})

    found = html_of(visit.get("/parts/palette?q=new"))

    assert len(found.all('a[role="option"]')) <= 20
    assert "New model" in titles(found)


def test_palette_says_that_nothing_is_found(visit: Any) -> None:
    found = html_of(visit.get("/parts/palette?q=%3Cnobody%3E"))

    assert "<nobody>" in found.one(".palette-nothing").text
    assert visit.get("/parts/palette?q=" + "x" * 201).status_code == 422


def test_palette_offers_only_what_a_role_may_do(visit_as: Any) -> None:
    found = titles(html_of(visit_as("viewer").get("/parts/palette")))

    assert not {"New model", "New dataset", "Settings", "Users"} & set(found)
    assert "My account" in found


def test_search_page_works_without_scripts(visit: Any, pets: str) -> None:
    page = html_of(visit.get("/search?q=pets"))

    assert page.one("#search-text")["value"] == "pets"
    assert page.one(".search-group li a")["href"] == f"/datasets/{pets}"
    assert html_of(visit.get("/search?q=nobody")).has("main .empty")
    assert html_of(visit.get("/search?q=theme")).has("main .empty"), "only a script switches the theme"


def test_list_of_keys_follows_the_switch(visit: Any) -> None:
    assert html_of(visit.get("/parts/shortcuts")).has("dialog#shortcuts kbd")
    assert html_of(visit.get("/account")).one("#single_keys").attributes.get("checked") is not None

    off = visit.post("/account/keyboard")
    assert off.headers["location"] == "/account"
    assert "ziggurat_keys=off" in off.headers["set-cookie"]
    assert "checked" not in html_of(visit.get("/account")).one("#single_keys").attributes

    visit.post("/account/keyboard", data={"single_keys": "true"})
    assert "checked" in html_of(visit.get("/account")).one("#single_keys").attributes


def test_jobs_that_just_ended_are_notifications(visit: Any, studio: Any, train: Any, end: Any) -> None:
    done, failed, old, waits = (train(spec={"name": name}) for name in ("done", "failed", "old", "waits"))
    end(done, "done", studio.clock())
    end(failed, "failed", studio.clock() - 30)
    end(old, "done", studio.clock() - 3600)

    lines = html_of(visit.get("/parts/notifications")).all("li")
    asked = html_of(visit.get(f"/parts/notifications?job={failed.id}&job={waits.id}&job={old.id}")).all("li")

    assert [each["data-text"] for each in lines] == ["done", "failed"]
    assert [each["data-title"] for each in lines] == ["Run finished", "Run failed"]
    assert [each.one("a")["href"] for each in lines] == [f"/models/{done.id}/test", f"/jobs/{failed.id}"]
    assert [each["data-notification"] for each in asked] == [f"{failed.id}-{studio.jobs.get(failed.id).attempt}"]
    assert html_of(visit.get("/parts/notifications?within_s=10")).one("li")["data-text"] == "done"
    assert visit.get("/parts/notifications?within_s=9999").status_code == 422


def test_a_diverged_run_and_a_full_disk_are_notifications(visit: Any, studio: Any, train: Any) -> None:
    job = train(spec={"name": "wild"})
    moment = {"tag": "loss", "value": None, "step": 4, "epoch": 1, "non_finite": "NaN", "learning_rate": 1000.0}
    divergence = {**moment, "best": None, "best_step": 0, "best_epoch": 0, "noticed_step": 4}
    with Store.open(studio.root / "studio.db") as store:
        store.jobs.move(job.id, ("queued",), "running", started=studio.clock())
        store.jobs.move(job.id, ("running",), "stopped", ended=studio.clock(), facts={"divergence": divergence})
    studio.notifications.disk_low_since = 1000.0

    disk, run = html_of(visit.get("/parts/notifications")).all("li")

    assert (run["data-title"], run.one("a")["href"]) == ("Run diverged", f"/jobs/{job.id}")
    assert (disk["data-notification"], disk["data-title"]) == ("disk-1000", "Disk space is low")
    assert disk.one("a")["href"] == "/about"


def test_notifications_are_of_ones_own_jobs(visit_as: Any, studio: Any, train: Any, end: Any) -> None:
    end(train(), "done", studio.clock())

    assert not html_of(visit_as("trainer").get("/parts/notifications")).has("li")
