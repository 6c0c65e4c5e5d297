"""What is done on the first page: the order of the queue, one job, many jobs, names and notes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from home_samples import STARTED, ended_training, rows_of, text_of

from tests.unit.web.html_page import html_of
from ziggurat.entities import Job, JobChange, JobFilter
from ziggurat.events import Progress
from ziggurat.store import Store
from ziggurat.web.pages.home.bulk import change_of
from ziggurat.web.pages.home.queue import move_in_queue, place_in_queue
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.studio import Studio


@pytest.fixture
def store(studio: Studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def ended(studio: Studio, train: Callable[..., Any]) -> Callable[..., Job]:
    """Return what makes a training that is done, with an accuracy that it came to."""
    return functools.partial(ended_training, studio, train)


def _order(studio: Studio) -> list[str]:
    return [job.id for job in studio.jobs.queue()]


# ---- the queue


def test_queue_is_one_line_until_it_is_opened(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    job = train(priority=3)
    store.jobs.note(job.id, reason="needs 2 GPUs; GPU 1 is busy with job a")
    line = html_of(visit.get("/parts/queue"))
    assert not line.has("#queue table")
    assert "1 queued" in line.one("#queue").text
    assert "next: tiny, needs 2 GPUs; GPU 1 is busy with job a" in line.one("#queue").text
    assert line.one("#queue-toggle")["aria-expanded"] == "false"
    opened = visit.get("/parts/queue?waiting=all")
    whole = html_of(opened)
    assert opened.headers["hx-push-url"] == "/?waiting=all"
    assert whole.one(f"#waits-{job.id} .why").text == "needs 2 GPUs; GPU 1 is busy with job a"
    assert whole.one(f"#priority-{job.id}")["aria-label"] == f"Priority 3 of {job.name}: change it"
    assert visit.get("/parts/queue?waiting=line").headers["hx-push-url"] == "/"


def test_news_of_the_list_leave_the_queue_open(visit: Any, train: Callable[..., Any]) -> None:
    train()
    opened = visit.get("/parts/queue?waiting=all", headers={"HX-Request": "true"})
    assert html_of(opened).one("#sort-name")["href"] == "/?sort=name&waiting=all"
    shown = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:5000/?waiting=all"}
    news = visit.get(html_of(opened).one("#results")["hx-get"], headers=shown)
    assert "hx-push-url" not in news.headers
    assert html_of(news).one("#sort-name")["href"] == "/?sort=name&waiting=all"


def test_running_jobs_show_how_far_they_are(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    job = train(project="zoo")
    assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive", devices=[1])
    said = [
        STARTED,
        Progress(time=12.0, epoch=1, global_step=10, total_steps=40, remaining_s=125, steps_per_s=10),
    ]
    assert store.events.take(job.id, 0, 1, said)
    line = html_of(visit.get("/")).one("#queue")
    assert line.one("progress")["value"] == "10"
    assert "1 running" in line.text
    assert "25 %, 2 min left" in line.text
    whole = html_of(visit.get("/?waiting=all"))
    row = whole.one(f"#runs-{job.id}")
    assert "Epoch 1 of 2" in row.text
    assert "GPU 1" in row.text
    assert row.has(f'[value="stop:{job.id}"]')
    assert row.has(f'[value="pause:{job.id}"]')
    assert whole.one(f"#row-{job.id} .state")["title"] == "Running"
    assert whole.one(f"#row-{job.id} .c-epoch").text == "1 / 2"


def test_queued_runs_stand_first_and_say_their_place(visit: Any, ended: Any, train: Callable[..., Any]) -> None:
    ids = [train().id for _ in range(7)]
    done = ended(0.9, spec={"name": "newest"})
    shown = rows_of(visit.get("/"))
    assert shown[:5] == ids[:5]  # the next ones of the queue, then all others by their age
    assert shown[5:] == [done.id, ids[6], ids[5]]
    page = html_of(visit.get("/"))
    assert page.one(f"#row-{ids[1]} .c-spark").text == "2nd in the queue"
    assert page.one(f"#row-{ids[6]} .c-spark").text == "7th in the queue"
    assert rows_of(visit.get("/?kind=all&view=active&state=queued"))[:7] == ids


@pytest.mark.parametrize(
    ("move", "expected"), [("first", "cabd"), ("up", "acbd"), ("down", "abdc"), ("last", "abdc"), ("other", "")]
)
def test_a_button_moves_a_job(visit: Any, studio: Studio, train: Callable[..., Any], move: str, expected: str) -> None:
    ids = dict(zip("abcd", (train(spec={"name": name}).id for name in "abcd"), strict=True))
    answer = visit.post("/jobs/place", data={"move": f"{move}:{ids['c']}"})
    shown = visit.get(answer.headers["location"])
    if not expected:
        assert _order(studio) == list(ids.values())
        assert "other is not a known move. Known: down, first, last, up." in text_of(shown)
        return
    assert _order(studio) == [ids[name] for name in expected]
    assert re.findall(r"\w+", html_of(shown).one("#home-said .note.good").text)[:1] == ["c"]
    assert str(expected.index("c") + 1) in html_of(shown).one("#home-said .note.good").text


def test_a_job_takes_over_the_priority_of_its_new_neighbours(studio: Studio, train: Callable[..., Any]) -> None:
    high, low, last = (train(priority=priority).id for priority in (5, 0, 0))
    assert move_in_queue(studio, LOCAL, last, "first") == 1
    assert _order(studio) == [last, high, low]
    assert studio.jobs.get(last).priority == 5
    assert place_in_queue(studio, LOCAL, high, None) == 3
    assert _order(studio) == [last, low, high]
    assert studio.jobs.get(high).priority == 0
    assert move_in_queue(studio, LOCAL, last, "up") == 1
    assert place_in_queue(studio, LOCAL, high, low) == 2
    assert _order(studio) == [last, high, low]


def test_a_job_that_left_the_queue_is_not_moved(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job, other = train(), train()
    studio.jobs.stop(job.id)
    headers = {"HX-Request": "true"}
    answer = visit("POST", "/jobs/place", headers=headers, data={"job": job.id, "before": other.id})
    assert answer.status_code == 409
    assert "Only jobs in the queue are moved (" in answer.text
    assert '<hx-partial hx-target="#queue"' in answer.text


# ---- one and many


def test_a_button_of_a_row_acts_and_comes_back(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train()
    answer = visit.post("/jobs/bulk", data={"act": f"pause:{job.id}", "back": "kind=all&text=tiny"})
    assert answer.status_code == 303
    target = urlsplit(answer.headers["location"])
    assert parse_qs(target.query)["q"] == ["tiny"]
    assert (studio.jobs.get(job.id).state, studio.jobs.get(job.id).paused) == ("stopped", True)
    assert "tiny" in html_of(visit.get(answer.headers["location"])).one("#home-said .note.good").text
    assert not html_of(visit.get(answer.headers["location"])).one("#home-said").text  # it is said once
    assert studio.people.audit(limit=1).entries[0].action == "job.pause"


def test_many_are_stopped_and_those_that_were_not_are_named(
    visit: Any, studio: Studio, ended: Callable[..., Job], train: Callable[..., Any]
) -> None:
    waiting, done = [train() for _ in range(3)], ended(0.5, spec={"name": "old one"})
    ids = [job.id for job in (*waiting, done)]
    answer = visit.post("/jobs/bulk", data={"action": "stop", "ids": ids})
    assert {studio.jobs.get(job.id).state for job in waiting} == {"stopped"}
    said = html_of(visit.get(answer.headers["location"])).one('#home-said[role="status"]')
    assert said.one(".note.good").text.startswith("3 jobs ")
    (left,) = said.all(".note.warning li")
    assert left.one("a").text == "old one"
    assert "Only a job that is queued or running or stopping can be stopped." in left.text
    assert studio.people.audit(limit=1).entries[0].details["count"] == 3


def test_a_script_gets_the_parts_that_changed(visit: Any, train: Callable[..., Any]) -> None:
    job = train()
    headers = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:5000/?kind=all&text=nobody"}
    answer = visit("POST", "/jobs/bulk", headers=headers, data={"action": "stop", "ids": [job.id], "back": "kind=all"})
    targets = re.findall(r'<hx-partial hx-target="#([\w-]+)"', answer.text)
    assert targets == ["home-said", "home-dialog", "queue", "results"]
    assert rows_of(answer) == []  # the table shows what the address of the page asks for


def test_a_delete_says_first_how_many_and_then_does_it(
    visit: Any, studio: Studio, train: Callable[..., Any], ended: Callable[..., Job]
) -> None:
    ids = [ended(0.5, spec={"name": f"run {number}"}).id for number in range(12)]
    asked = visit.post("/jobs/bulk", data={"action": "delete", "ids": ids})
    said = text_of(asked)
    assert asked.status_code == 200
    assert "Delete 12 jobs?" in said
    assert html_of(asked).has("#asked-final")
    assert "and 2 more" in said
    assert studio.jobs.page(JobFilter()).total == 12

    done = visit.post("/jobs/bulk", data={"action": "delete", "ids": ids, "confirmed": "12"})
    assert html_of(visit.get(done.headers["location"])).one("#home-said .note.good").text.startswith("12 jobs ")
    assert studio.jobs.page(JobFilter()).total == 0


def test_all_that_match_is_asked_again_when_others_match(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    others = [train(spec={"name": "other"}).id for _ in range(2)]
    mine = [train(spec={"name": "mine"}).id for _ in range(3)]
    form = {"action": "stop", "all": "true", "back": "kind=train&text=mine", "ids": others}
    asked = visit.post("/jobs/bulk", data=form)
    assert "Stop 3 jobs?" in text_of(asked)
    assert html_of(asked).has("#asked-all")
    assert not html_of(asked).has("#asked-changed")

    mine.append(train(spec={"name": "mine too"}).id)
    again = html_of(visit.post("/jobs/bulk", data={**form, "confirmed": "3"}))
    assert re.findall(r"\d+", again.one("#asked-changed").text) == ["3", "4"]
    assert {studio.jobs.get(each).state for each in mine} == {"queued"}

    assert visit.post("/jobs/bulk", data={**form, "confirmed": "4"}).status_code == 303
    assert {studio.jobs.get(each).state for each in mine} == {"stopped"}
    assert {studio.jobs.get(each).state for each in others} == {"queued"}


def test_all_that_match_a_filter_with_a_mistake_is_nobody(
    visit: Any, studio: Studio, train: Callable[..., Any]
) -> None:
    job = train()
    form = {"action": "delete", "all": "true", "confirmed": "1", "back": "kind=train&q=nonsense+>+1"}
    answer = visit("POST", "/jobs/bulk", headers={"HX-Request": "true"}, data=form)
    assert answer.status_code == 400
    assert "Unknown name <code>nonsense</code>." in answer.text
    assert studio.jobs.get(job.id).state == "queued"


def test_tags_and_projects_of_many(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    ids = [train(tags=tags).id for tags in (("a", "b"), ("b",), ())]
    form = {"action": "describe", "ids": ids, "add_tags": "new, b", "remove_tags": "a", "project": "zoo"}
    answer = visit.post("/jobs/bulk", data=form)
    assert html_of(visit.get(answer.headers["location"])).one("#home-said .note.good").text.startswith("3 jobs ")
    jobs = [studio.jobs.get(each) for each in ids]
    assert [job.tags for job in jobs] == [("b", "new"), ("b", "new"), ("new", "b")]
    assert {job.project for job in jobs} == {"zoo"}
    visit.post("/jobs/bulk", data={"action": "describe", "ids": ids[:1], "project": "-"})
    assert studio.jobs.get(ids[0]).project == ""
    assert change_of({"project": "zoo", "add_tags": "b"}, jobs[0]) is None
    assert change_of({"project": "-"}, jobs[0]) == JobChange(project="")


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ({"action": "stop"}, "No job is chosen."),
        ({"action": "fly", "ids": "x"}, "fly"),
        ({"action": "describe", "ids": "x", "add_tags": " , "}, "Nothing was entered."),
        ({"action": "describe", "ids": "x", "add_tags": "y" * 201}, "A tag has at most 200 characters ("),
        ({"action": "describe", "ids": "x", "project": "y" * 201}, "A project has a name of at most 200 characters ("),
        ({"action": "compare", "ids": "x"}, "2 to 20 can be compared."),
        ({"action": "delete", "ids": "x"}, "The jobs that were chosen are not there any more."),
    ],
)
def test_what_cannot_be_done_is_said(visit: Any, form: dict[str, str], rule: str) -> None:
    answer = visit.post("/jobs/bulk", data=form)
    assert answer.status_code == 303
    assert rule in text_of(visit.get(answer.headers["location"]))


def test_one_is_cloned_and_models_are_evaluated(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    ids = [train().id for _ in range(2)]
    cloned = visit.post("/jobs/bulk", data={"action": "clone", "ids": ids[:1]})
    assert cloned.headers["location"] == f"/models/new?clone={ids[0]}"
    both = visit.post("/jobs/bulk", data={"action": "clone", "ids": ids})
    assert "One job is cloned at a time (" in text_of(visit.get(both.headers["location"]))
    tested = visit.post("/jobs/bulk", data={"action": "evaluate", "ids": ids})
    said = html_of(visit.get(tested.headers["location"])).one("#home-said")
    assert len(said.all(".note.warning li")) == 2  # neither has a checkpoint yet
    assert studio.jobs.totals().kinds == {"train": 2}


def test_chosen_jobs_are_compared(visit: Any, visit_as: Callable[[str], Any], train: Callable[..., Any]) -> None:
    ids = [train().id for _ in range(2)]
    answer = visit.post("/jobs/bulk", data={"action": "compare", "ids": ids})
    assert answer.headers["location"] == f"/compare?job={ids[0]}&job={ids[1]}"
    viewer = visit_as("viewer")
    assert viewer.post("/jobs/compare", data={"ids": ids}).headers["location"] == answer.headers["location"]


def test_a_viewer_looks_and_changes_nothing(
    visit_as: Callable[[str], Any], studio: Studio, train: Callable[..., Any]
) -> None:
    job = train()
    viewer = visit_as("viewer")
    page = viewer.get("/")
    assert page.status_code == 200
    for word in ('value="delete', "data-menu", 'id="bulk-stop"', "data-handle"):
        assert word not in page.text, word
    assert viewer.post("/jobs/bulk", data={"act": f"stop:{job.id}"}).status_code == 403
    assert viewer.post(f"/jobs/{job.id}/edit", data={"name": "x"}).status_code == 403
    assert studio.jobs.get(job.id).state == "queued"


# ---- names and notes


def test_a_name_is_changed_in_its_place(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train()
    shown = visit.get(f"/?rename={job.id}")
    assert 'aria-label="New name of tiny"' in shown.text
    path = f"/jobs/{job.id}/edit"
    headers = {"HX-Request": "true", "HX-Target": "section#results", "HX-Current-URL": "http://127.0.0.1:5000/?text=t"}
    form = {"in_place": "true", "back": "kind=train", "name": "  "}
    wrong = visit("POST", path, headers=headers, data=form)
    assert wrong.status_code == 422
    assert "A name has 1 to 200 characters." in wrong.text
    right = visit("POST", path, headers=headers, data={**form, "name": " better tiny "})
    assert right.headers["hx-push-url"] == "/?q=t"
    assert studio.jobs.get(job.id).name == "better tiny"
    assert "better tiny" in right.text


def test_notes_are_changed_and_nothing_typed_is_lost(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train(tags=("a",))
    path = f"/jobs/{job.id}/edit"
    page = visit.get(path, params={"back": "kind=all"})
    assert "Change tiny" in text_of(page)
    assert 'href="/?kind=all"' in page.text
    typed = {
        "name": "n",
        "notes": "seen <i>",
        "tags": "a, c,",
        "project": "zoo",
        "priority": "soon",
        "back": "kind=all",
    }
    wrong = visit.post(path, data=typed)
    assert wrong.status_code == 422
    assert "A priority must be a whole number, such as 0 or -5." in wrong.text
    assert "seen &lt;i&gt;</textarea>" in wrong.text
    large = visit.post(path, data={**typed, "priority": "5000"})
    assert large.status_code == 303, "as the form of a new model takes it"
    done = visit.post(path, data={**typed, "priority": "-2"})
    assert done.status_code == 303
    changed = studio.jobs.get(job.id)
    assert (changed.name, changed.notes, changed.tags, changed.project, changed.priority) == (
        "n",
        "seen <i>",
        ("a", "c"),
        "zoo",
        -2,
    )
    assert studio.people.audit(limit=1).entries[0].action == "job.change"
    dialog = visit.part(path, "home-dialog")
    assert dialog.text.startswith("<dialog")
