"""The trash on pages: *Undo* after a deletion, the list of what can be restored, and removal for good."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.unit.web.html_page import html_of
from tests.unit.weights.weight_samples import add_entry


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
    assert "is not in the trash any more" in page.one("#home-said .warning").text
    assert not page.has("tbody tr")


def test_an_evaluation_is_taken_back_on_its_list(visit, studio, train):
    job = studio.evaluations.create(train().id, after_training=True)
    said = visit.post(f"/jobs/{job.id}/delete", data={"force": "true"}).headers["location"]
    assert said.startswith("/evaluations?said=")
    assert html_of(visit.get(said)).one('#undo input[name="ids"]')["value"] == job.id
    back = visit.post("/trash/restore", data={"ids": job.id}).headers["location"]
    assert back.startswith("/evaluations?said=")
    assert f"{job.name} is back." in visit.get(back).text
    assert studio.jobs.get(job.id).kind == "evaluate"


def test_no_undo_is_offered_where_nothing_is_kept(visit, studio, train):
    studio.settings = dataclasses.replace(studio.settings, trash_days=0)
    form = {"action": "delete", "ids": train().id, "confirmed": "1"}
    done = html_of(visit.post("/jobs/bulk", data=form, follow_redirects=True))
    assert "deleted" in done.one("#home-said").text
    assert not done.has("#undo")
    said = visit.post(f"/jobs/{train().id}/delete").headers["location"]
    assert not html_of(visit.get(said)).has("#undo")


def an_upload(studio):
    with studio.uploads.add("pets/1.png") as incoming:
        incoming.write(b"12345")
    return incoming.upload_id


def some_weights(studio):
    add_entry(studio.root)


def a_view(studio):
    studio.saved.put("local", "view", "Mine", {"query": "q=x"})


@pytest.mark.parametrize(
    ("make", "path", "fields", "there", "shown_on", "row"),
    [
        (some_weights, "/pretrained/small/delete", {}, "small", "/pretrained", "#weights-small"),
        (a_view, "/views", {"delete": "Mine", "back": ""}, "Mine", "/", "#delete-view-1"),
        (an_upload, "/uploads/{}/delete", {}, "pets", "/uploads", "tbody th"),
    ],
)
def test_other_deletions_are_taken_back_too(visit, studio, train, make, path, fields, there, shown_on, row):
    train()  # the list of runs shows no views before
    made = make(studio)
    said = visit.post(path.format(made), data=fields).headers["location"]
    assert said.startswith(f"{shown_on}?said=")
    page = html_of(visit.get(said))
    assert page.one("#undo").text.startswith(f"{there} was deleted.")
    item_id = page.one('#undo input[name="ids"]')["value"]
    assert not html_of(visit.get(shown_on)).has(row)

    listed = html_of(visit.get("/trash"))
    assert [each.text for each in listed.all("tbody th")] == [f"{there} {item_id}"]
    back = visit.post("/trash/restore", data={"ids": item_id}).headers["location"]
    assert back.startswith(f"{shown_on}?said=")
    assert html_of(visit.get(shown_on)).has(row)
    assert not html_of(visit.get("/trash")).has("tbody tr")

    visit.post(path.format(made), data=fields)
    again = html_of(visit.get("/trash")).one('[name="ids"]')["value"]
    emptied = visit.post("/trash/remove", data={"ids": again})
    assert "Removed for good." in visit.get(emptied.headers["location"]).text
    assert not list((studio.root / ".trash").iterdir())


def test_all_is_removed_at_once(visit, studio, train):
    some_weights(studio)
    studio.weights.remove("small")
    visit.post(f"/jobs/{train().id}/delete")
    studio.saved.put("other", "view", "Theirs", {})
    studio.saved.delete("other", "view", "Theirs")
    assert html_of(visit.get("/trash")).one("form.actions")["action"] == "/trash/empty"
    said = visit.post("/trash/empty").headers["location"]
    assert "2 items removed for good." in visit.get(said).text
    assert [each.name for each in studio.deleted.list("other")] == ["Theirs"]


def test_a_preset_is_taken_back_from_its_message(visit, studio):
    studio.saved.put("local", "preset", "Mine", {"page": "new-model", "fields": []})
    gone = html_of(visit.post("/models/new/presets/delete", data={"preset": "Mine"}))
    visit.post("/trash/restore", data={"ids": gone.one("#preset-undo")["value"], "name": "x"})
    assert [each.name for each in studio.saved.list("local", "preset")] == ["Mine"]


def test_a_viewer_takes_back_only_own_views(visit_as, studio):
    some_weights(studio)
    viewer = visit_as("viewer")
    name = studio.people.users()[-1].name
    for owner in (name, "first"):
        studio.saved.put(owner, "view", f"of {owner}", {})
    ids = [studio.saved.delete(owner, "view", f"of {owner}") for owner in (name, "first")]
    weights_id = studio.weights.remove("small")
    page = html_of(viewer.get("/trash"))
    assert [each["value"] for each in page.all('tbody input[name="ids"]')] == ids[:1]
    assert viewer.post("/trash/restore", data={"ids": weights_id}).status_code == 403
    assert viewer.post("/trash/remove", data={"ids": weights_id}).status_code == 403
    viewer.post("/trash/remove", data={"ids": ids[1]})
    viewer.post("/trash/restore", data={"ids": ids})
    assert [each.name for each in studio.saved.list(name, "view")] == [f"of {name}"]
    assert [each.name for each in studio.deleted.list("first")] == ["small", "of first"]


def test_the_page_of_uploads_says_how_long_they_are_kept(visit, studio):
    an_upload(studio)
    assert "Each is removed 7 days after it was sent" in html_of(visit.get("/uploads")).one("main").text
    studio.limits.choose({"uploads_kept_s": 5400})
    assert "Each is removed 1 h 30 min after it was sent" in html_of(visit.get("/uploads")).one("main").text
