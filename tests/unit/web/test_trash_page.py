"""Deleted jobs on pages: *Undo*, the list of what can be restored, and removal for good."""

from __future__ import annotations

from pathlib import Path

from tests.unit.web.html_page import html_of


def test_a_deletion_is_taken_back_by_one_button(visit, studio, train):
    job = train()
    shown = visit.post(f"/jobs/{job.id}/delete")
    page = html_of(visit.get(shown.headers["location"]))
    assert page.one("#undo")["action"] == "/trash/restore"
    assert page.one('#undo input[name="ids"]')["value"] == job.id
    back = visit.post("/trash/restore", data={"ids": job.id})
    assert back.headers["location"].startswith("/?said=")
    assert not html_of(visit.get(back.headers["location"])).has("#undo")
    assert studio.jobs.get(job.id).state == "stopped"


def test_many_deletions_are_taken_back_together(visit, studio, train):
    ids = [train().id for _ in range(3)]
    done = html_of(
        visit.post("/jobs/bulk", data={"action": "delete", "ids": ids, "confirmed": "3"}, follow_redirects=True)
    )
    assert [each["value"] for each in done.all('#undo input[name="ids"]')] == ids
    visit.post("/trash/restore", data={"ids": ids})
    assert {studio.jobs.get(each).state for each in ids} == {"stopped"}


def test_the_list_restores_and_removes(visit, studio, train):
    kept, gone = train(), train()
    folder = Path(studio.jobs.get(gone.id).folder)
    for job in (kept, gone):
        visit.post(f"/jobs/{job.id}/delete")
    assert len(html_of(visit.get("/trash")).all("tbody tr")) == 2
    assert visit.post("/trash/remove", data={"ids": gone.id}).headers["location"].startswith("/trash?said=")
    assert visit.post("/trash/restore", data={"ids": kept.id, "back": "trash"}).status_code == 303
    assert not folder.exists()
    again = visit.post("/trash/restore", data={"ids": gone.id, "back": "trash"})
    page = html_of(visit.get(again.headers["location"]))
    assert "no such deleted job" in page.one("#home-said .warning").text
    assert not page.has("tbody tr")
