"""The first page: what its address asks for, its tables and their columns, and the strip."""

from __future__ import annotations

import dataclasses
import functools
import html
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from home_samples import STARTED, ended_training, rows_of, text_of, words_of
from sqlalchemy import Engine, event
from starlette.datastructures import QueryParams
from starlette.requests import Request

from tests.unit.web.html_page import html_of
from ziggurat.entities import Job
from ziggurat.events import ScalarLogged
from ziggurat.store import Store
from ziggurat.web.columns import best_of, column_choices, value_of
from ziggurat.web.pages.home.view import HomeQuery, query_of, query_of_text
from ziggurat.web.rendering import StatusBar, part
from ziggurat.workspace.new_jobs import JobRequest
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


# ---- the address


def test_an_address_is_understood_and_made_again() -> None:
    address = "kind=all&state=done&state=failed&project=-&text=a+b&where=x%3E1&sort=name&by=group&column=c"
    query = query_of(QueryParams(f"{address}&limit=50&offset=120"))
    assert query == HomeQuery(
        kind="all",
        states=("done", "failed"),
        project="-",
        text="a b",
        where="x>1",
        sort="name",
        by="group",
        columns=("c",),
        limit=50,
        offset=100,
    )
    assert query_of_text(query.text_form) == query
    assert query.chosen().project == ""
    assert query.chosen().conditions == (("x", ">", 1),)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "kind=nothing",
        "state=odd",
        "by=owner",
        "offset=-3",
        "offset=9999999999999",
        "sort=-",
        "column=&column=+",
        "limit=7",
        "limit=x",
    ],
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
    page = html_of(answer)
    assert answer.status_code == 200
    assert page.has(".first-steps ol li")
    assert page.has("#queue .quiet-queue")
    assert page.one("#results .empty a")["href"] == "/models/new"
    assert 'href="/datasets/new"' in answer.text


def test_home_page_says_what_is_to_know_of_the_workspace(visit: Any, studio: Studio) -> None:
    (remark,) = studio.remarks  # the workspace of these tests is a copy
    assert remark in words_of(visit.get("/").text)


def test_the_steps_are_gone_with_the_first_training(visit: Any, train: Callable[..., Any]) -> None:
    train()
    assert "three steps" not in visit.get("/").text


def test_models_are_listed_with_what_they_came_to(
    visit: Any, ended: Callable[..., Job], train: Callable[..., Any], pets: str
) -> None:
    job = ended(0.91, tags=("night",), project="zoo", notes="a <b>note</b>", dataset=pets)
    answer = visit.get("/")
    said = text_of(answer)
    assert rows_of(answer) == [job.id]
    for words in (
        "tiny",
        "mlp",
        "NumPy",
        "pets",
        "0.91 validation accuracy, epoch 1 checkpoint not kept",
        "night",
        "zoo",
        "1 min 05 s",
    ):
        assert words in said
    assert "a &lt;b&gt;note" in answer.text
    assert f'href="/models/{job.id}"' in answer.text
    assert f'href="/models/new?clone={job.id}"' in visit.part(f"/parts/menu/{job.id}").text


def test_data_sets_are_listed_with_their_counts(visit: Any, pets: str, train: Callable[..., Any]) -> None:
    train(dataset=pets)
    answer = visit.get("/?kind=dataset")
    assert rows_of(answer) == [pets]
    assert f'href="/datasets/new?clone={pets}"' in visit.part(f"/parts/menu/{pets}").text
    cells = re.findall(r'<td class="number">(.*?)</td>', answer.text, re.S)
    assert "1" in cells  # one training needs it


def test_chosen_columns_are_shown_and_sorted_by(visit: Any, ended: Callable[..., Job]) -> None:
    jobs = [ended(0.9, spec={"learning_rate": rate}) for rate in (0.2, 0.7, 0.5)]
    answer = visit.get("/?column=learning_rate&column=validation_accuracy&sort=-learning_rate")
    assert rows_of(answer) == [jobs[1].id, jobs[2].id, jobs[0].id]
    assert 'aria-sort="descending"><a id="sort-learning_rate"' in answer.text
    assert "sort=learning_rate" in answer.text  # the same header turns the order round
    assert re.findall(r'<td class="number">([\d.]+)</td>', answer.text)[:2] == ["0.7", "0.8"]


def test_conditions_choose_and_what_is_wrong_stands_at_the_field(visit: Any, ended: Callable[..., Job]) -> None:
    good, _ = ended(0.95), ended(0.5)
    assert rows_of(visit.get("/", params={"where": "validation_accuracy > 0.8 and epochs = 2"})) == [good.id]
    empty = visit.get("/", params={"where": "better than last time"})
    assert empty.status_code == 400
    assert rows_of(empty) == []
    assert 'aria-invalid="true" aria-describedby="where-problem"' in empty.text
    assert "A condition is a name, an operator and a value. Received: `better than last time`." in text_of(empty)


def test_a_filter_that_leaves_nothing_offers_to_be_cleared(visit: Any, train: Callable[..., Any]) -> None:
    train()
    answer = visit.get("/?text=nobody&kind=train")
    assert html_of(answer).has("#results .empty")
    assert re.search(r'id="clear-empty" href="/\?kind=train"', answer.text)


def test_jobs_stand_together_by_project(visit: Any, train: Callable[..., Any]) -> None:
    ids = [train(project=project).id for project in ("b", "", "a", "b")]
    answer = visit.get("/?by=project&sort=created")
    assert rows_of(answer) == [ids[2], ids[0], ids[3], ids[1]]
    headings = re.findall(r'<tr class="group".*?</tr>', answer.text, re.S)
    assert [words_of(each) for each in headings] == [
        "Project a",
        "Project b",
        "Without a project",
    ]


def test_a_sweep_is_shown_with_its_best_job(visit: Any, studio: Studio, store: Store) -> None:
    spec = {"kind": "train", "version": 1, "name": "s", "backend": "null", "network": "mlp", "data": "digits"}
    jobs = studio.training.create(JobRequest(spec=spec, sweep={"learning_rate": [0.1, 0.2]}), owner="local")
    for job, value in zip(jobs, (0.7, 0.8), strict=True):
        said = [
            STARTED,
            ScalarLogged(time=2.0, tag="validation_accuracy", value=value, step=1, epoch=1),
        ]
        assert store.events.take(job.id, 0, 1, said)
    answer = visit.get(f"/?group={jobs[0].group}")
    assert sorted(rows_of(answer)) == sorted(job.id for job in jobs)
    note = re.search(r'id="sweep">.*?</div>', answer.text, re.S)
    assert note is not None
    assert f'href="/models/{jobs[1].id}"' in note[0]
    assert "<strong>0.8</strong>" in note[0]
    assert "2 queued" in note[0]


def test_a_page_behind_the_last_one_becomes_the_last(visit: Any, train: Callable[..., Any]) -> None:
    train()
    assert len(rows_of(visit.get("/?offset=5000"))) == 1


def test_a_page_shows_as_many_jobs_as_were_chosen(visit: Any, train: Callable[..., Any]) -> None:
    for number in range(27):
        train(spec={"name": f"job {number}"})
    first = visit.get("/?sort=name")
    assert len(rows_of(first)) == 25
    assert "1 to 25 of 27" in first.text
    assert 'href="/?kind=train&amp;sort=name&amp;offset=25"' in first.text
    assert len(rows_of(visit.get("/?sort=name&offset=25"))) == 2
    whole = visit.get("/?sort=name&limit=50")
    assert len(rows_of(whole)) == 27
    assert "<option selected>50</option>" in whole.text
    assert "limit=50" in whole.text.split('id="sort-name"')[1][:200]  # it stays when the order changes


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
        if statement.startswith("SELECT"):  # a new connection says more than that
            asked.append(statement)

    def count() -> int:
        asked.clear()
        assert visit.get("/?kind=all&column=learning_rate").status_code == 200
        return len(asked)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        ended(0.5)
        for _ in range(6):
            train(dataset=pets)
        count()  # what is kept afterwards is asked for once
        few = count()
        for _ in range(6):
            train(dataset=pets)
        ended(0.6)
        assert count() == few
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert few > 5


# ---- the strip


def test_a_row_asks_for_its_menu_when_it_is_opened(visit: Any, train: Callable[..., Any], visit_as: Any) -> None:
    job = train()
    assert f'href="/models/{job.id}" data-menu="{job.id}"' in visit.get("/").text
    shown = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:5000/?kind=train&sort=name"}
    menu = visit.get(f"/parts/menu/{job.id}", headers=shown).text
    assert f'<button form="act" name="act" value="stop:{job.id}"' in menu
    assert f'href="/models/new?clone={job.id}"' in menu
    assert f'hx-get="/jobs/{job.id}/edit?back=kind%3Dtrain%26sort%3Dname"' in menu
    assert f'value="delete:{job.id}" class="bad"' in menu
    assert visit.get("/parts/menu/nothing").status_code == 404
    viewer = visit_as("viewer")
    assert viewer.get(f"/parts/menu/{job.id}").status_code == 403
    assert "data-menu" not in viewer.get("/").text


def test_the_strip_counts(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    first, _ = train(), train()
    store.jobs.move(first.id, ("queued",), "running", started=10.0)
    said = text_of(visit.get("/parts/strip"))
    assert "1 running 1 waiting" in said
    assert "Disk" in said


def test_the_strip_names_owners_and_what_is_disabled(studio: Studio, train: Callable[..., Any]) -> None:
    job = dataclasses.replace(train(), remaining_s=600.0)
    device = {"index": 0, "name": "H100", "memory_bytes": 80_000_000_000, "free_bytes": 20_000_000_000}
    machine = {
        **studio.machine.strip(),
        "devices": [{**device, "load": 0.5, "usable": True}, {**device, "index": 1, "load": None, "usable": True}],
        "frameworks": [
            {"backend": "torch", "name": "PyTorch", "sentence": "PyTorch support is disabled. Install it."},
            {"backend": "tensorflow", "name": "TensorFlow", "sentence": ""},
        ],
    }
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
    strip = StatusBar(machine=machine, running=[job], states={"queued": 1200}, owners={0: job})
    shown = html.unescape(bytes(part(request, "parts/strip.html", strip=strip).body).decode())
    assert html_of(shown).one(f'a[href="/models/{job.id}"]').text == "tiny"
    assert "10 min 00 s" in shown
    assert "60.0 GB of 80.0 GB" in shown
    assert "50\u202f% busy" in shown
    assert "<span>free</span>" in shown
    assert "<strong>1\u202f200</strong> waiting" in shown
    assert "PyTorch support is disabled. Install it." in shown
    assert html_of(shown).has("#strip-torch")
    assert not html_of(shown).has("#strip-tensorflow")
