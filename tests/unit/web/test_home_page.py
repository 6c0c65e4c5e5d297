"""The first page: what its address asks for, the tables, many jobs at once, the order of the queue, and the strip."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy
from starlette.datastructures import QueryParams

from ziggurat.entities import Job, JobChange, JobFilter
from ziggurat.events import AttemptEnded, AttemptStarted, Progress, ScalarLogged
from ziggurat.store import Store
from ziggurat.web.home_bulk import change_of
from ziggurat.web.home_columns import best_of, column_choices, value_of
from ziggurat.web.home_query import HomeQuery, query_of, query_of_text
from ziggurat.web.home_queue import move_in_queue, place_in_queue
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.new_jobs import JobRequest


@pytest.fixture
def store(studio: Studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def ended(studio: Studio, store: Store, train: Callable[..., Any]) -> Callable[..., Job]:
    """Return what makes a training that is done, with an accuracy that it came to."""

    def make(accuracy: float, **fields: Any) -> Job:
        job = train(**fields)
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
        said = [
            AttemptStarted(
                time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
            ),
            ScalarLogged(time=11.0, tag="validation_accuracy", value=accuracy, step=20, epoch=1),
            ScalarLogged(time=12.0, tag="validation_accuracy", value=accuracy - 0.1, step=40, epoch=2),
            AttemptEnded(time=75.0, outcome="done", exit_code=0, global_step=40, epoch=2),
        ]
        assert store.events.take(job.id, 0, 1, said)
        store.jobs.move(job.id, ("running",), "done", ended=75.0)
        return studio.jobs.get(job.id)

    return make


def _text(answer: Any) -> str:
    """Return the words of an answer as people read them."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def _rows(answer: Any) -> list[str]:
    """Return the ids of the table's rows in their order."""
    return re.findall(r'<tr id="row-([^"]+)"', answer.text)


def _order(studio: Studio) -> list[str]:
    return [job.id for job in studio.jobs.queue()]


# ---- the address


def test_an_address_is_understood_and_made_again() -> None:
    address = "kind=all&state=done&state=failed&project=-&text=a+b&where=x%3E1&sort=name&by=group&column=c&offset=120"
    query = query_of(QueryParams(address))
    assert query == HomeQuery(
        kind="all",
        states=("done", "failed"),
        project="-",
        text="a b",
        where="x>1",
        sort="name",
        by="group",
        columns=("c",),
        offset=100,
    )
    assert query_of_text(query.text_form) == query
    assert query.chosen().project == ""
    assert query.chosen().conditions == (("x", ">", 1),)


@pytest.mark.parametrize(
    "address",
    ["", "kind=nothing", "state=odd", "by=owner", "offset=-3", "offset=9999999999999", "sort=-", "column=&column=+"],
)
def test_what_an_address_cannot_mean_is_left_out(address: str) -> None:
    assert query_of(QueryParams(address)) == HomeQuery()


def test_the_tab_follows_what_there_is() -> None:
    nothing = QueryParams("")
    assert query_of(nothing, {"dataset": 1}).kind == "dataset"
    assert query_of(nothing, {"dataset": 1, "train": 1}).kind == "train"


def test_a_change_of_the_address_begins_at_the_first_page() -> None:
    query = HomeQuery(offset=50, rename="x", columns=("a", "b"))
    assert query.values(sort="name") == {"kind": "train", "column": ["a", "b"], "sort": "name"}
    assert query.values(offset=100)["offset"] == 100


# ---- columns


def test_a_column_is_a_field_of_the_spec_or_a_curve(ended: Callable[..., Job]) -> None:
    job = ended(0.9, spec={"learning_rate": 0.5, "optimizer": {"name": "momentum", "nesterov": True}})
    assert value_of(job, "learning_rate", {}) == 0.5
    assert value_of(job, "optimizer.nesterov", {}) == "yes"
    assert value_of(job, "optimizer", {}) == "momentum"
    assert value_of(job, "validation_accuracy", {}) == pytest.approx(0.8)
    assert value_of(job, "facts.classes", {"classes": 7}) == 7
    assert value_of(job, "nothing.there", {}) is None
    best = best_of(job)
    assert best is not None
    assert (best.tag, best.value, best.word) == ("validation_accuracy", 0.9, "highest")


def test_columns_that_differ_are_offered_first(ended: Callable[..., Job]) -> None:
    jobs = [ended(0.9, spec={"learning_rate": rate}) for rate in (0.1, 0.2)]
    metrics, settings, others = column_choices(jobs, ["optimizer.momentum"])
    assert metrics == ["validation_accuracy"]
    assert settings == ["learning_rate", "optimizer.momentum"]
    assert "batch_size" in others
    assert "learning_rate" not in others


# ---- the tables


def test_an_empty_studio_explains_the_three_steps(visit: Any) -> None:
    answer = visit.get("/")
    said = _text(answer)
    assert answer.status_code == 200
    assert "From pictures to a model in three steps" in said
    assert "Nothing runs, and nothing waits." in said
    assert "No model was trained yet." in said
    assert 'href="/datasets/new"' in answer.text


def test_the_steps_are_gone_with_the_first_training(visit: Any, train: Callable[..., Any]) -> None:
    train()
    assert "three steps" not in visit.get("/").text


def test_models_are_listed_with_what_they_came_to(
    visit: Any, ended: Callable[..., Job], train: Callable[..., Any], pets: str
) -> None:
    job = ended(0.91, tags=("night",), project="zoo", notes="a <b>note</b>", dataset=pets)
    answer = visit.get("/")
    said = _text(answer)
    assert _rows(answer) == [job.id]
    for words in ("tiny", "mlp", "no framework", "pets", "0.91 validation_accuracy", "night", "zoo", "1 min 05 s"):
        assert words in said
    assert "a &lt;b&gt;note" in answer.text
    assert f'href="/models/{job.id}"' in answer.text
    assert f'href="/models/new?clone={job.id}"' in answer.text


def test_data_sets_are_listed_with_their_counts(visit: Any, pets: str, train: Callable[..., Any]) -> None:
    train(dataset=pets)
    answer = visit.get("/?kind=dataset")
    assert _rows(answer) == [pets]
    assert f'href="/datasets/new?clone={pets}"' in answer.text
    cells = re.findall(r'<td class="number">(.*?)</td>', answer.text, re.S)
    assert "1" in cells  # one training needs it


def test_chosen_columns_are_shown_and_sorted_by(visit: Any, ended: Callable[..., Job]) -> None:
    jobs = [ended(0.9, spec={"learning_rate": rate}) for rate in (0.2, 0.7, 0.5)]
    answer = visit.get("/?column=learning_rate&column=validation_accuracy&sort=-learning_rate")
    assert _rows(answer) == [jobs[1].id, jobs[2].id, jobs[0].id]
    assert 'aria-sort="descending"><a id="sort-learning_rate"' in answer.text
    assert "sort=learning_rate" in answer.text  # the same header turns the order round
    assert re.findall(r'<td class="number">([\d.]+)</td>', answer.text)[:2] == ["0.7", "0.8"]


def test_conditions_choose_and_what_is_wrong_stands_at_the_field(visit: Any, ended: Callable[..., Job]) -> None:
    good, _ = ended(0.95), ended(0.5)
    assert _rows(visit.get("/", params={"where": "validation_accuracy > 0.8 and epochs = 2"})) == [good.id]
    empty = visit.get("/", params={"where": "better than last time"})
    assert empty.status_code == 400
    assert _rows(empty) == []
    assert 'aria-invalid="true" aria-describedby="where-problem"' in empty.text
    assert "A condition is a name, an operator and a value. Received: `better than last time`." in _text(empty)


def test_a_filter_that_leaves_nothing_offers_to_be_cleared(visit: Any, train: Callable[..., Any]) -> None:
    train()
    answer = visit.get("/?text=nobody&kind=train")
    assert "Nothing matches this filter." in answer.text
    assert re.search(r'id="clear-empty" href="/\?kind=train"', answer.text)


def test_jobs_stand_together_by_project(visit: Any, train: Callable[..., Any]) -> None:
    ids = [train(project=project).id for project in ("b", "", "a", "b")]
    answer = visit.get("/?by=project&sort=created")
    assert _rows(answer) == [ids[2], ids[0], ids[3], ids[1]]
    headings = re.findall(r'<tr class="group".*?</tr>', answer.text, re.S)
    assert [_text(type("Part", (), {"text": each})).strip() for each in headings] == [
        "Project a",
        "Project b",
        "Without a project",
    ]


def test_a_sweep_is_shown_with_its_best_job(visit: Any, studio: Studio, store: Store) -> None:
    spec = {"kind": "train", "version": 1, "name": "s", "backend": "null", "network": "mlp", "data": "digits"}
    jobs = studio.training.create(JobRequest(spec=spec, sweep={"learning_rate": [0.1, 0.2]}), owner="local")
    for job, value in zip(jobs, (0.7, 0.8), strict=True):
        said = [
            AttemptStarted(
                time=1.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
            ),
            ScalarLogged(time=2.0, tag="validation_accuracy", value=value, step=1, epoch=1),
        ]
        assert store.events.take(job.id, 0, 1, said)
    answer = visit.get(f"/?group={jobs[0].group}")
    assert sorted(_rows(answer)) == sorted(job.id for job in jobs)
    note = re.search(r'id="sweep">.*?</div>', answer.text, re.S)
    assert note is not None
    assert f'href="/models/{jobs[1].id}"' in note[0]
    assert "the highest validation_accuracy of <strong>0.8</strong>" in note[0]
    assert "2 queued" in note[0]


def test_a_page_behind_the_last_one_becomes_the_last(visit: Any, train: Callable[..., Any]) -> None:
    train()
    assert len(_rows(visit.get("/?offset=5000"))) == 1


def test_the_part_with_the_table_sets_the_address(visit: Any, train: Callable[..., Any]) -> None:
    train()
    headers = {"HX-Request": "true", "HX-Target": "section#results", "HX-Current-URL": "http://127.0.0.1:5000/"}
    part = visit("GET", "/?kind=train&text=&tag=&state=queued", headers=headers)
    assert part.headers["hx-push-url"] == "/?kind=train&state=queued"
    assert part.text.lstrip().startswith("<section")
    again = {**headers, "HX-Current-URL": "http://127.0.0.1:5000/?kind=train&state=queued"}
    assert "hx-push-url" not in visit("GET", "/?kind=train&state=queued", headers=again).headers


def test_the_number_of_questions_does_not_grow_with_the_rows(
    visit: Any, train: Callable[..., Any], ended: Callable[..., Job], pets: str
) -> None:
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    def count() -> int:
        asked.clear()
        assert visit.get("/?kind=all&column=learning_rate").status_code == 200
        return len(asked)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    try:
        ended(0.5)
        for _ in range(6):
            train(dataset=pets)
        few = count()
        for _ in range(6):
            train(dataset=pets)
        ended(0.6)
        assert count() == few
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
    assert few > 5


# ---- the queue


def test_waiting_jobs_say_why(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    job = train(priority=3)
    store.jobs.note(job.id, reason="needs 2 GPUs; GPU 1 is busy with job a")
    answer = visit.get("/parts/queue")
    said = _text(answer)
    assert "0 running, 1 waiting" in said
    assert "1. tiny" in said
    assert "needs 2 GPUs; GPU 1 is busy with job a" in said
    assert f'aria-label="Priority 3 of {job.name}: change it"' in answer.text


def test_running_jobs_show_how_far_they_are(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    job = train(project="zoo")
    assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive", devices=[1])
    said = [
        AttemptStarted(
            time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
        ),
        Progress(time=12.0, epoch=1, global_step=10, total_steps=40, remaining_s=125, steps_per_s=10),
    ]
    assert store.events.take(job.id, 0, 1, said)
    answer = visit.get("/")
    shown = _text(answer)
    assert "25 %" in shown
    assert "epoch 1 of 2" in shown
    assert "2 min 05 s" in shown
    assert "GPU 1" in shown
    assert f'value="stop:{job.id}"' in answer.text
    assert f'value="pause:{job.id}"' in answer.text


def test_only_the_first_of_a_long_queue_are_shown(visit: Any, train: Callable[..., Any]) -> None:
    ids = [train().id for _ in range(7)]
    answer = visit.get("/")
    assert len(re.findall(r'<tr id="waits-', answer.text)) == 5
    assert "and 2 more" in _text(answer)
    assert f'data-next="{ids[5]}"' in answer.text
    assert len(re.findall(r'<tr id="waits-', visit.get("/?waiting=all").text)) == 7


@pytest.mark.parametrize(
    ("move", "expected"), [("first", "cabd"), ("up", "acbd"), ("down", "abdc"), ("last", "abdc"), ("other", "")]
)
def test_a_button_moves_a_job(visit: Any, studio: Studio, train: Callable[..., Any], move: str, expected: str) -> None:
    ids = dict(zip("abcd", (train(spec={"name": name}).id for name in "abcd"), strict=True))
    answer = visit.post("/jobs/place", data={"move": f"{move}:{ids['c']}"})
    shown = visit.get(answer.headers["location"])
    if not expected:
        assert _order(studio) == list(ids.values())
        assert "`other` is not a known move. Known: down, first, last, up." in _text(shown)
        return
    assert _order(studio) == [ids[name] for name in expected]
    assert f"c is number {expected.index('c') + 1} of the queue." in _text(shown)


def test_a_job_takes_over_the_priority_of_those_that_it_is_put_among(studio: Studio, train: Callable[..., Any]) -> None:
    high, low, last = (train(priority=priority).id for priority in (5, 0, 0))
    assert move_in_queue(studio.jobs, last, "first") == 1
    assert _order(studio) == [last, high, low]
    assert studio.jobs.get(last).priority == 5
    assert place_in_queue(studio.jobs, high, None) == 3
    assert _order(studio) == [last, low, high]
    assert studio.jobs.get(high).priority == 0
    assert move_in_queue(studio.jobs, last, "up") == 1
    assert place_in_queue(studio.jobs, high, low) == 2
    assert _order(studio) == [last, high, low]


def test_a_job_that_left_the_queue_is_not_moved(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job, other = train(), train()
    studio.jobs.stop(job.id)
    headers = {"HX-Request": "true"}
    answer = visit("POST", "/jobs/place", headers=headers, data={"job": job.id, "before": other.id})
    assert answer.status_code == 409
    assert "Only jobs in the queue are moved." in answer.text
    assert '<hx-partial hx-target="#queue"' in answer.text


# ---- one and many


def test_a_button_of_a_row_acts_and_comes_back(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train()
    answer = visit.post("/jobs/bulk", data={"act": f"pause:{job.id}", "back": "kind=all&text=tiny"})
    assert answer.status_code == 303
    target = urlsplit(answer.headers["location"])
    assert parse_qs(target.query)["text"] == ["tiny"]
    assert (studio.jobs.get(job.id).state, studio.jobs.get(job.id).paused) == ("stopped", True)
    assert "tiny was asked to pause." in _text(visit.get(answer.headers["location"]))
    assert "was asked to pause" not in visit.get(answer.headers["location"]).text  # it is said once
    assert studio.people.audit(limit=1).entries[0].action == "job.pause"


def test_many_are_stopped_and_those_that_were_not_are_named(
    visit: Any, studio: Studio, ended: Callable[..., Job], train: Callable[..., Any]
) -> None:
    waiting, done = [train() for _ in range(3)], ended(0.5, spec={"name": "old one"})
    ids = [job.id for job in (*waiting, done)]
    answer = visit.post("/jobs/bulk", data={"action": "stop", "ids": ids})
    assert {studio.jobs.get(job.id).state for job in waiting} == {"stopped"}
    said = _text(visit.get(answer.headers["location"]))
    assert "3 jobs were asked to stop." in said
    assert "1 job was left as it was:" in said
    assert "old one : Only a job that is queued or running or stopping can be stopped." in said
    assert studio.people.audit(limit=1).entries[0].details["count"] == 3


def test_a_script_gets_the_parts_that_changed(visit: Any, train: Callable[..., Any]) -> None:
    job = train()
    headers = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:5000/?kind=all&text=nobody"}
    answer = visit("POST", "/jobs/bulk", headers=headers, data={"action": "stop", "ids": [job.id], "back": "kind=all"})
    targets = re.findall(r'<hx-partial hx-target="#([\w-]+)"', answer.text)
    assert targets == ["home-said", "home-dialog", "queue", "results"]
    assert _rows(answer) == []  # the table shows what the address of the page asks for


def test_a_delete_says_first_how_many_and_then_does_it(
    visit: Any, studio: Studio, train: Callable[..., Any], ended: Callable[..., Job]
) -> None:
    ids = [ended(0.5, spec={"name": f"run {number}"}).id for number in range(12)]
    asked = visit.post("/jobs/bulk", data={"action": "delete", "ids": ids})
    said = _text(asked)
    assert asked.status_code == 200
    assert "Delete 12 jobs?" in said
    assert "It cannot be taken back." in said
    assert "and 2 more" in said
    assert studio.jobs.page(JobFilter()).total == 12

    done = visit.post("/jobs/bulk", data={"action": "delete", "ids": ids, "confirmed": "12"})
    assert "12 jobs were deleted." in _text(visit.get(done.headers["location"]))
    assert studio.jobs.page(JobFilter()).total == 0


def test_all_that_match_means_the_filter_and_is_asked_again_when_it_leaves_others(
    visit: Any, studio: Studio, train: Callable[..., Any]
) -> None:
    others = [train(spec={"name": "other"}).id for _ in range(2)]
    mine = [train(spec={"name": "mine"}).id for _ in range(3)]
    form = {"action": "stop", "all": "true", "back": "kind=train&text=mine", "ids": others}
    asked = _text(visit.post("/jobs/bulk", data=form))
    assert "Stop 3 jobs?" in asked
    assert "These are all jobs that the filter leaves" in asked

    mine.append(train(spec={"name": "mine too"}).id)
    again = _text(visit.post("/jobs/bulk", data={**form, "confirmed": "3"}))
    assert "there were 3 jobs, now there are 4." in again
    assert {studio.jobs.get(each).state for each in mine} == {"queued"}

    assert visit.post("/jobs/bulk", data={**form, "confirmed": "4"}).status_code == 303
    assert {studio.jobs.get(each).state for each in mine} == {"stopped"}
    assert {studio.jobs.get(each).state for each in others} == {"queued"}


def test_all_that_match_a_filter_with_a_mistake_is_nobody(
    visit: Any, studio: Studio, train: Callable[..., Any]
) -> None:
    job = train()
    form = {"action": "delete", "all": "true", "confirmed": "1", "back": "kind=train&where=nonsense"}
    answer = visit("POST", "/jobs/bulk", headers={"HX-Request": "true"}, data=form)
    assert answer.status_code == 400
    assert "A condition is a name, an operator and a value." in answer.text
    assert studio.jobs.get(job.id).state == "queued"


def test_tags_and_projects_of_many(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    ids = [train(tags=tags).id for tags in (("a", "b"), ("b",), ())]
    form = {"action": "describe", "ids": ids, "add_tags": "new, b", "remove_tags": "a", "project": "zoo"}
    answer = visit.post("/jobs/bulk", data=form)
    assert "3 jobs were changed." in _text(visit.get(answer.headers["location"]))
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
        ({"action": "describe", "ids": "x", "add_tags": " , "}, "Nothing was typed that could be changed."),
        ({"action": "compare", "ids": "x"}, "2 to 20 jobs are compared."),
        ({"action": "delete", "ids": "x"}, "The jobs that were chosen are not there any more."),
    ],
)
def test_what_cannot_be_done_is_said(visit: Any, form: dict[str, str], rule: str) -> None:
    answer = visit.post("/jobs/bulk", data=form)
    assert answer.status_code == 303
    assert rule in _text(visit.get(answer.headers["location"]))


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
    for word in ("/jobs/place", 'value="delete', "Rename", 'id="bulk-stop"', "data-handle"):
        assert (word in page.text) == (word == "/jobs/place"), word
    assert viewer.post("/jobs/bulk", data={"act": f"stop:{job.id}"}).status_code == 403
    assert viewer.post(f"/jobs/{job.id}/edit", data={"name": "x"}).status_code == 403
    assert studio.jobs.get(job.id).state == "queued"


# ---- names and notes


def test_a_name_is_changed_in_its_place(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train()
    shown = visit.get(f"/?kind=train&rename={job.id}")
    assert 'aria-label="New name of tiny"' in shown.text
    path = f"/jobs/{job.id}/edit"
    headers = {"HX-Request": "true", "HX-Target": "section#results", "HX-Current-URL": "http://127.0.0.1:5000/?text=t"}
    form = {"in_place": "true", "back": "kind=train", "name": "  "}
    wrong = visit("POST", path, headers=headers, data=form)
    assert wrong.status_code == 422
    assert "A name has 1 to 200 characters." in wrong.text
    right = visit("POST", path, headers=headers, data={**form, "name": " better tiny "})
    assert right.headers["hx-push-url"] == "/?kind=train&text=t"
    assert studio.jobs.get(job.id).name == "better tiny"
    assert "better tiny" in right.text


def test_notes_are_changed_and_nothing_typed_is_lost(visit: Any, studio: Studio, train: Callable[..., Any]) -> None:
    job = train(tags=("a",))
    path = f"/jobs/{job.id}/edit"
    page = visit.get(path, params={"back": "kind=all"})
    assert "Change tiny" in _text(page)
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
    assert "A priority is a whole number from -1000 to 1000." in wrong.text
    assert "seen &lt;i&gt;</textarea>" in wrong.text
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


# ---- the strip


def test_the_strip_counts(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    first, _ = train(), train()
    store.jobs.move(first.id, ("queued",), "running", started=10.0)
    said = _text(visit.get("/parts/strip"))
    assert "1 running 1 waiting" in said
    assert "Disk" in said
