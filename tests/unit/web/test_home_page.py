"""The first page: what its address asks for, its tables and their columns, and the strip."""

from __future__ import annotations

import dataclasses
import functools
import html
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from home_samples import STARTED, ended_training, rows_of, text_of, words_of
from sqlalchemy import Engine, event
from starlette.datastructures import QueryParams
from starlette.requests import Request

from tests.unit.map_samples import add_map
from tests.unit.web.html_page import html_of
from ziggurat.entities import Job, JobChange, JobFilter, NewJob
from ziggurat.events import ScalarLogged
from ziggurat.store import Store
from ziggurat.web.columns import best_of, column_choices, value_of
from ziggurat.web.pages.home.query import HomeQuery, query_of, query_of_text
from ziggurat.web.pages.home.view import clock_duration, distinct_titles, short_duration
from ziggurat.web.rendering import StatusBar, part
from ziggurat.web.sparklines import sparkline_of
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
    address = "kind=all&state=done&state=failed&project=-&q=a+b+and+x%3E1&sort=name&by=group&column=c&days=7"
    query = query_of(QueryParams(f"{address}&limit=50&offset=120"))
    assert query == HomeQuery(
        kind="all",
        states=("done", "failed"),
        project="-",
        q="a b and x>1",
        sort="name",
        by="group",
        columns=("c",),
        days="7",
        limit=50,
        offset=100,
    )
    assert query_of_text(query.text_form) == query
    chosen = query.chosen(now=10 * 86400.0)
    assert chosen.project == ""
    assert chosen.words == ("a b",)
    assert chosen.conditions == (("x", ">", 1), ("ended", ">", 3 * 86400.0))


def test_addresses_of_before_mean_the_same() -> None:
    assert query_of(QueryParams("text=a&where=x+>+1")).q == "x > 1 and a"
    assert query_of(QueryParams("kind=test&text=a")).values() == {"q": "a"}
    assert query_of(QueryParams("kind=test")).page.path == "/evaluations"


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
        "days=3",
        "shape=odd",
    ],
)
def test_what_an_address_cannot_mean_is_left_out(address: str) -> None:
    assert query_of(QueryParams(address)) == HomeQuery()


def test_a_change_of_the_address_begins_at_the_first_page() -> None:
    query = HomeQuery(offset=50, rename="x", columns=("a", "b"))
    assert query.values(sort="name") == {"column": ["a", "b"], "sort": "name"}
    assert query.values(offset=100)["offset"] == 100


@pytest.mark.parametrize(("kind", "path"), [("dataset", "/datasets"), ("test", "/evaluations"), ("model", "/models")])
def test_lists_of_other_kinds_have_their_own_address(visit: Any, kind: str, path: str) -> None:
    answer = visit.get(f"/?kind={kind}&sort=name")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{path}?sort=name"
    page = html_of(visit.get(path))
    assert page.has("#results")
    assert not page.has("#queue")


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


def test_an_empty_studio_offers_three_ways_to_a_model(visit: Any) -> None:
    answer = visit.get("/")
    page = html_of(answer)
    assert answer.status_code == 200
    assert len(page.all("#first-starts .start")) == 3
    assert not page.has("#results"), "there is nothing to list"
    assert not page.has("#queue-toggle")
    assert [each["id"] for each in page.all(".primary")] == ["first-digits"]
    assert visit.get("/first/digits.png").headers["content-type"] == "image/png"
    form = page.one("#start-images")
    assert (form["action"], form.one("#source")["name"]) == ("/datasets/new", "source")


def test_the_digits_are_trained_once_however_often_one_clicks(visit: Any, studio: Studio) -> None:
    with ThreadPoolExecutor(2) as clicks:
        first, second = clicks.map(lambda _: visit.post("/first/digits"), range(2))

    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    (training,) = studio.jobs.page(JobFilter(kinds=("train",))).jobs
    (dataset,) = studio.jobs.page(JobFilter(kinds=("dataset",))).jobs
    assert first.headers["location"] == f"/models/{training.id}"
    assert training.depends_on == (dataset.id,)
    assert html_of(visit.get("/parts/first")).has("#first-live a"), "the page of another tab tells of it"
    assert not html_of(visit.get("/")).has("#first-starts")


def test_without_a_framework_the_card_says_what_to_install(
    visit: Any, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "tensorflow"):
        monkeypatch.setitem(sys.modules, module, None)
    page = html_of(visit.get("/"))

    assert "pip install" in page.one("#first-missing").text
    assert not page.has("#first-digits")
    said = html_of(visit.get(visit.post("/first/digits").headers["location"]))
    assert "pip install" in said.one("#home-said").text
    assert studio.jobs.page(JobFilter()).total == 0


def test_a_dataset_without_a_run_leads_on_to_its_training(visit: Any, pets: str) -> None:
    page = html_of(visit.get("/"))

    assert page.one("#first-train")["href"] == f"/models/new?dataset={pets}"
    assert [each["id"] for each in page.all(".primary")] == ["first-train"]


def test_who_may_only_look_gets_no_buttons_of_the_first_screen(visit_as: Any) -> None:
    viewer = visit_as("viewer")
    page = html_of(viewer.get("/"))

    assert page.has("#results")
    assert not page.has("#first-digits")
    assert not page.has("#empty-action")
    assert viewer.post("/first/digits").status_code == 403


def test_empty_lists_lead_on(visit: Any, ended: Callable[..., Job]) -> None:
    empty = {path: html_of(visit.get(path)).one("#empty-action")["href"] for path in ("/datasets", "/models")}
    assert empty == {"/datasets": "/datasets/new", "/models": "/"}
    assert html_of(visit.get("/evaluations")).one("#empty-action")["href"] == "/"
    assert html_of(visit.get("/compare")).one("#empty-action")["href"] == "/"

    job = ended(0.9)
    assert html_of(visit.get("/evaluations")).one("#empty-action")["href"] == f"/models/{job.id}/test?tab=splits"
    assert html_of(visit.get("/compare")).one("#empty-action")["href"] == f"/models/new?clone={job.id}"

    ended(0.8)
    assert len(html_of(visit.get("/compare")).all("#compare-found input[checked]")) == 2


def test_home_page_says_what_is_to_know_of_the_workspace(visit: Any, studio: Studio) -> None:
    (remark,) = studio.remarks  # the workspace of these tests is a copy
    assert remark in words_of(visit.get("/").text)


def test_a_map_is_called_so_in_every_list(visit: Any, studio: Studio, pets: str) -> None:
    job = add_map(studio, pets)
    row = html_of(visit.get("/?kind=all")).one(f"#row-{job.id}")
    assert row.one("span.chip").text == "map"
    assert "map 1 finished map" in html_of(visit.get(f"/datasets/{pets}")).one('[aria-labelledby="users-title"]').text


def test_runs_are_listed_with_what_they_came_to(
    visit: Any, ended: Callable[..., Job], train: Callable[..., Any], pets: str
) -> None:
    job = ended(0.91, tags=("night",), project="zoo", notes="a <b>note</b>", dataset=pets)
    answer = visit.get("/")
    assert rows_of(answer) == [job.id]
    row = html_of(answer).one(f"#row-{job.id}")
    assert "data-row" in row.attributes
    assert row.one(".state")["title"] == "Finished"
    assert row.one(".open")["href"] == f"/models/{job.id}"
    assert row.one(".open")["title"] == "tiny: a <b>note</b>"
    assert row.one("a.chip").text == "night"
    assert row.one(".c-source a")["href"] == f"/datasets/{pets}"
    assert row.one(".c-source img")["src"] == f"/datasets/{pets}/pictures/train/0?max_side_px=48"
    assert row.one(".c-best b").text == "91.0 %"
    assert row.one(".c-best .at").text == "epoch 1* checkpoint not kept"
    assert row.one(".c-metric").text == "Accuracy"
    assert row.one(".c-epoch").text == "2 / 2"
    assert row.one(".c-elapsed").text == "1:05"
    assert row.has(".c-spark svg path")
    assert row.has(".c-spark .best-ring")
    assert row.one(".c-created time")["datetime"]
    assert f'href="/models/new?clone={job.id}"' in visit.part(f"/parts/menu/{job.id}").text


def test_a_run_says_why_instead_of_its_curve(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    failed, diverged, waiting = train(), train(), train()
    store.jobs.move(failed.id, ("queued",), "failed", reason="the memory of the GPU is full.")
    moment = {"tag": "validation_loss", "value": 948.0, "step": 30, "epoch": 3}
    best = {"best": 1.0, "best_step": 10, "best_epoch": 1, "noticed_step": 40}
    store.jobs.note(diverged.id, facts={"divergence": {**moment, **best}})
    store.jobs.move(diverged.id, ("queued",), "running", started=10.0)
    point = ScalarLogged(time=11.0, tag="validation_accuracy", value=0.148, step=1, epoch=1)
    assert store.events.take(diverged.id, 0, 1, [point])
    store.jobs.move(diverged.id, ("running",), "done")
    page = html_of(visit.get("/"))
    why = page.one(f"#row-{failed.id} td.c-spark")
    assert why["colspan"] == "2"
    assert why.one(".is-failed").text == "The memory of the GPU is full"
    assert page.one(f"#row-{diverged.id} .is-diverged.why").text == "Diverged at epoch 3: loss 948"
    assert page.one(f"#row-{diverged.id} td.c-spark")["colspan"] == "2", "the reason has room beside a value, too"
    assert page.one(f"#row-{diverged.id} .state")["title"] == "Diverged"
    assert page.one(f"#row-{waiting.id} .why").text == "Starts soon"
    assert not page.has("#results .spark")


def test_datasets_are_cards_with_a_strip_of_images(visit: Any, pets: str, train: Callable[..., Any]) -> None:
    train(dataset=pets)
    answer = visit.get("/datasets")
    assert rows_of(answer) == [pets]
    card = html_of(answer).one(f"#row-{pets}")
    assert [each["src"] for each in card.all(".strip-of img")] == [
        f"/datasets/{pets}/pictures/train/{row}?max_side_px=160" for row in (0, 2, 4, 6)
    ]
    assert "10 images · 2 classes" in card.one(".figures").text
    assert "1 run" in card.one(".meta").text
    assert f'href="/datasets/new?clone={pets}"' in visit.part(f"/parts/menu/{pets}").text
    table = visit.get("/datasets?shape=table")
    row = html_of(table).one(f"#row-{pets}")
    assert [each.text for each in row.all("td.number")][:3] == ["10", "2", "1"]


def test_a_filter_keeps_all_states_of_its_tab(visit: Any, train: Callable[..., Any]) -> None:
    page = html_of(visit.get("/?kind=all&view=active&state=queued&state=running&state=stopping"))
    sent = page.one("#state option[selected]")["value"]
    assert query_of_text(f"kind=all&view=active&q=a&state={sent}").states == ("queued", "running", "stopping")


def test_an_unknown_name_to_sort_by_is_said(visit: Any, ended: Callable[..., Job]) -> None:
    rows = [job.id for job in (ended(0.9), ended(0.8))]
    unknown = visit.get("/?sort=-nam")
    assert unknown.status_code == 400
    assert html_of(unknown).one("#filter-problem").text == "The list cannot be sorted by nam . Did you mean name ?"
    assert rows_of(unknown) == rows_of(visit.get("/"))
    assert sorted(rows_of(unknown)) == sorted(rows)
    for name in ("-validation_accuracy", "epochs", "state", "-elapsed", "x&column=x"):
        assert not html_of(visit.get(f"/?sort={name}")).has("#filter-problem")
    assert not html_of(visit.get("/datasets?sort=-facts.samples")).has("#filter-problem")  # there is none yet


def test_classes_without_samples_are_not_counted(visit: Any, studio: Studio, pets: str) -> None:
    samples = [*(f"train/{row}" for row in range(8)), "val/0", "val/1"]
    dogs = studio.datasets.relabel(pets, samples, "dog").id
    assert "1 class ·" in html_of(visit.get("/datasets")).one(f"#row-{dogs} .figures").text
    assert "1 class has no samples." in text_of(visit.get(f"/datasets/{dogs}"))


def test_evaluations_are_listed_with_their_results(
    visit: Any, store: Store, studio: Studio, ended: Callable[..., Job]
) -> None:
    model = ended(0.9)
    result = {"split": "val", "step": 88, "epoch": 8, "count": 146, "accuracy": 0.2603}
    new = NewJob(
        id="20260101-000000-00000001", kind="evaluate", name="tiny on val", folder=str(studio.root / "jobs" / "e"),
        spec={"kind": "evaluate", "split": "val"}, depends_on=(model.id,), parent=model.id,
    )  # fmt: skip
    job = store.jobs.add(new)
    store.jobs.move(job.id, ("queued",), "done", facts=result)
    row = html_of(visit.get("/evaluations")).one(f"#row-{job.id}")
    assert row.one(".c-best b").text == "26.0 %"
    assert row.one(".c-metric").text == "Accuracy"
    assert row.one(".c-source a")["href"] == f"/models/{model.id}"
    assert "step 88 , epoch 8" in row.text
    assert "146" in row.text


def test_models_are_finished_runs(visit: Any, ended: Callable[..., Job], train: Callable[..., Any]) -> None:
    train()
    model = ended(0.9)
    answer = visit.get("/models")
    assert rows_of(answer) == [model.id]
    assert html_of(answer).one(f"#row-{model.id} .c-best b").text == "90.0 %"


def test_chosen_columns_are_shown_and_sorted_by(visit: Any, ended: Callable[..., Job]) -> None:
    jobs = [ended(0.9, spec={"learning_rate": rate}) for rate in (0.2, 0.7, 0.5)]
    answer = visit.get("/?column=learning_rate&column=validation_accuracy&sort=-learning_rate")
    assert rows_of(answer) == [jobs[1].id, jobs[2].id, jobs[0].id]
    assert 'aria-sort="descending"><a id="sort-learning_rate"' in answer.text
    assert "sort=learning_rate" in answer.text  # the same header turns the order round
    assert re.findall(r'<td class="number">([\d.]+)</td>', answer.text)[:2] == ["0.7", "0.8"]


def test_a_column_without_a_value_is_said_and_can_go(visit: Any, ended: Callable[..., Job]) -> None:
    ended(0.9)
    page = html_of(visit.get("/?column=batch_size&column=nonsense.name"))
    line = page.one(".column-line")
    assert line.one("code").text == "nonsense.name"
    assert line.one("a")["href"] == "/?column=batch_size"


def test_conditions_choose_and_what_is_wrong_stands_at_the_field(visit: Any, ended: Callable[..., Job]) -> None:
    good, _ = ended(0.95), ended(0.5)
    assert rows_of(visit.get("/", params={"q": "validation_accuracy > 80 % and epochs = 2 and tiny"})) == [good.id]
    assert rows_of(visit.get("/", params={"q": "accuracy > 0.8"})) == [good.id]
    wrong = visit.get("/", params={"q": "lr > 0.01 and epochs = 2"})
    assert wrong.status_code == 400
    assert rows_of(wrong) == []
    page = html_of(wrong)
    assert page.one("#q")["aria-describedby"] == "filter-problem"
    assert page.one("#filter-problem").text == "Unknown name lr . Did you mean learning_rate ?"
    assert page.one("#filter-fix")["href"] == "/?q=learning_rate+%3E+0.01+and+epochs+%3D+2"
    assert visit.get(page.one("#filter-fix")["href"]).status_code == 200
    missing = html_of(visit.get("/", params={"q": "epochs = 2 and"}))
    assert missing.one("#filter-problem").text.startswith("A condition is missing after and .")


def test_names_are_completed_with_type_and_range(visit: Any, train: Callable[..., Any]) -> None:
    for rate in (0.1, 0.5):
        train(spec={"learning_rate": rate})
    first, *_ = html_of(visit.get("/parts/names", params={"text": "epochs = 2 and lr"})).all('[role="option"]')
    assert first["data-completed"] == "epochs = 2 and learning_rate "
    assert [each.text for each in first.all("span")] == ["number", "0.1 to 0.5"]
    (value, *_) = html_of(visit.get("/parts/names", params={"text": "state = fai"})).all('[role="option"]')
    assert value["data-completed"] == "state = failed "
    assert not html_of(visit.get("/parts/names", params={"text": "learning_rate > 0.1"})).has('[role="option"]')


def test_a_filter_that_leaves_nothing_offers_to_be_cleared(visit: Any, train: Callable[..., Any]) -> None:
    train()
    page = html_of(visit.get("/?q=nobody"))
    assert page.has("#results .nothing")
    assert page.one("#clear-empty")["href"] == "/"
    assert page.one("#filter-clear")["href"] == "/"


def test_an_empty_view_says_what_it_has_none_of(visit: Any, train: Callable[..., Any], studio: Studio) -> None:
    job = train()
    assert html_of(visit.get("/?view=failed&state=failed&days=7")).one(".nothing p").text.startswith("No run failed")
    filtered = html_of(visit.get("/?view=failed&state=failed&days=7&q=x")).one(".nothing p").text
    assert filtered == "Nothing matches this filter."
    assert rows_of(visit.get("/?view=best")) == []  # what waits has no result
    studio.jobs.stop(job.id)


def test_views_are_tabs_with_their_counts(visit: Any, store: Store, train: Callable[..., Any], studio: Studio) -> None:
    job, _ = train(), train()
    now = studio.clock()
    store.jobs.move(job.id, ("queued",), "failed", ended=now - 60)
    tabs = {each.text: each for each in html_of(visit.get("/")).all("#views a")}
    assert list(tabs) == ["All", "Running and queued 1", "Best per dataset", "Sweeps 0", "Failed this week 1"]
    assert tabs["All"]["aria-current"] == "page"
    failed = visit.get(tabs["Failed this week 1"]["href"])
    assert rows_of(failed) == [job.id]
    assert html_of(failed).one('#views [aria-current="page"]')["id"] == "tab-failed"


def test_the_best_run_of_each_dataset(visit: Any, ended: Callable[..., Job], pets: str) -> None:
    _, good = ended(0.5, dataset=pets), ended(0.9, dataset=pets)
    other = ended(0.3)
    assert set(rows_of(visit.get("/?view=best"))) == {good.id, other.id}


def test_a_view_is_saved_used_and_deleted(visit: Any, train: Callable[..., Any]) -> None:
    train()
    back = "kind=train&q=epochs+%3D+2&column=epochs&sort=name&offset=25"
    saved = visit.post("/views", data={"name": "My view", "back": back})
    assert saved.headers["location"] == "/?view=my%3AMy+view&q=epochs+%3D+2&sort=name&column=epochs"
    page = html_of(visit.get(saved.headers["location"]))
    (tab,) = page.all('#views a[aria-current="page"]')
    assert tab.text == "My view"
    assert tab["href"] == saved.headers["location"]
    assert page.one("#view-name")["value"] == "My view"
    nameless = visit.post("/views", data={"name": " ", "back": back})
    assert "A saved item must have a name (" in text_of(visit.get(nameless.headers["location"]))
    visit.post("/views", data={"delete": "My view", "back": back})
    assert len(html_of(visit.get("/")).all("#views a")) == 5


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


@pytest.fixture
def sweep(studio: Studio, store: Store) -> list[Job]:
    """Return the jobs of a sweep; the second one is the best."""
    spec = {"kind": "train", "version": 1, "name": "s", "backend": "null", "network": "mlp", "data": "digits"}
    jobs = studio.training.create(JobRequest(spec=spec, sweep={"learning_rate": [0.1, 0.2]}), owner="local")
    for job, value in zip(jobs, (0.7, 0.8), strict=True):
        said = [
            STARTED,
            ScalarLogged(time=2.0, tag="validation_accuracy", value=value, step=1, epoch=1),
        ]
        assert store.events.take(job.id, 0, 1, said)
    return jobs


def test_a_sweep_is_one_row_that_opens(visit: Any, sweep: list[Job]) -> None:
    page = html_of(visit.get("/"))
    (row,) = page.all("[data-row]")
    assert row["id"] == f"row-{sweep[1].id}-sweep"  # by its best job
    assert row.one(".open").text == "s"
    assert row.one(".open")["href"] == f"/?group={sweep[0].group}"
    assert row.one(".c-best b").text == "80.0 %"
    assert row.one(".c-rate").text == "2 values"
    opener = row.one(f"#sweep-{sweep[0].group}")
    assert opener.text == "Sweep, 2 trials"
    assert opener["aria-expanded"] == "false"
    opened = html_of(visit.get(opener["href"]))
    assert opened.one(f"#sweep-{sweep[0].group}")["aria-expanded"] == "true"
    assert [each.one(".open").text for each in opened.all("tr.trial")] == ["learning_rate=0.1", "learning_rate=0.2"]
    assert rows_of(visit.get("/?view=sweeps")) == [sweep[1].id]
    assert len(rows_of(visit.get("/?q=learning_rate+>+0"))) == 2  # a filter is about runs


def test_a_sweep_says_how_many_of_its_runs_diverged(visit: Any, store: Store, sweep: list[Job]) -> None:
    loss = {"tag": "loss", "value": 948.0, "step": 30, "epoch": 3}
    best = {"best": 1.0, "best_step": 10, "best_epoch": 1, "noticed_step": 40}

    def diverge(job: Job) -> Any:
        store.jobs.note(job.id, facts={"divergence": {**loss, **best}})
        store.jobs.move(job.id, ("queued",), "done")
        (row,) = html_of(visit.get("/")).all("[data-row]")
        assert row.one(f"#sweep-{job.group}").text.startswith("Sweep, 2 trials, ")
        return row

    row = diverge(sweep[0])
    assert "1 diverged" in row.one(f"#sweep-{sweep[0].group}").text
    assert row.one(".state")["title"] == "Queued"
    row = diverge(sweep[1])
    assert "2 diverged" in row.one(f"#sweep-{sweep[0].group}").text
    assert row.one(".state")["title"] == "Diverged"


def test_a_sweep_alone_names_its_best_job(visit: Any, sweep: list[Job]) -> None:
    answer = visit.get(f"/?group={sweep[0].group}")
    assert sorted(rows_of(answer)) == sorted(job.id for job in sweep)
    line = html_of(answer).one("#sweep")
    assert line.one("a.link")["href"] == f"/models/{sweep[1].id}"
    assert line.one("b").text == "80.0 %"
    assert "2 queued" in line.text


def test_a_long_sweep_opens_in_part_and_links_to_all(visit: Any, studio: Studio) -> None:
    spec = {"kind": "train", "version": 1, "name": "s", "backend": "null", "network": "mlp", "data": "digits"}
    rates = [number / 1000 for number in range(1, 53)]
    group = studio.training.create(JobRequest(spec=spec, sweep={"learning_rate": rates}), owner="local")[0].group
    page = html_of(visit.get(f"/?open={group}"))
    assert len(page.all("tr.trial[data-row]")) == 50
    assert page.one("#more-trials a").text == "All 52 trials"
    assert page.one("#more-trials a")["href"] == f"/?group={group}"


def test_names_of_trials_show_what_differs() -> None:
    names = ["net on data learning_rate=0.1 epochs=5", "net on data learning_rate=0.2 epochs=5"]
    assert distinct_titles(names) == ["learning_rate=0.1 epochs=5", "learning_rate=0.2 epochs=5"]
    assert distinct_titles(["a", "a"]) == ["a", "a"]
    assert distinct_titles(["a", "a b"]) == ["a", "b"]


def test_a_sparkline_fits_its_box() -> None:
    line = sparkline_of(((0, 1.0), (10, 3.0), (20, 2.0)), (10, 3.0), rises=True)
    assert line.path == "M2 21L63 4L124 12.5"
    assert (line.best, line.end) == ((63.0, 4.0), (124.0, 12.5))
    assert sparkline_of(((5, 1.0),), None, rises=True).path == "M124 12.5h.01"
    # A value far worse than the others is cut off, so that these are seen.
    losses = tuple(enumerate([948.0, 1.4, 1.3, 1.2, 1.1, 1.0, 0.9]))
    heights = [float(each.split()[1]) for each in sparkline_of(losses, None, rises=False).path[1:].split("L")]
    assert heights[0] == 4.0
    assert heights[-1] - heights[1] > 5


def test_durations_are_short() -> None:
    assert [short_duration(each) for each in (None, 0.2, 80, 125, 5400, 200_000)] == [
        "",
        "1 s",
        "80 s",
        "2 min",
        "2 h",
        "2 days",
    ]
    assert [clock_duration(each) for each in (None, 9, 190, 4325)] == ["\u2013", "0:09", "3:10", "1:12:05"]


def test_a_page_behind_the_last_one_becomes_the_last(visit: Any, train: Callable[..., Any]) -> None:
    train()
    assert len(rows_of(visit.get("/?offset=5000"))) == 1


def test_a_page_shows_as_many_jobs_as_were_chosen(visit: Any, train: Callable[..., Any]) -> None:
    for number in range(27):
        train(spec={"name": f"job {number}"})
    first = visit.get("/?sort=name")
    assert len(rows_of(first)) == 25
    assert "1 to 25 of 27" in first.text
    assert html_of(first).one("#page-after")["href"] == "/?sort=name&offset=25"
    assert len(rows_of(visit.get("/?sort=name&offset=25"))) == 2
    whole = visit.get("/?sort=name&limit=50")
    assert len(rows_of(whole)) == 27
    assert "<option selected>50</option>" in whole.text
    assert "limit=50" in whole.text.split('id="sort-name"')[1][:200]  # it stays when the order changes


def test_the_part_with_the_table_sets_the_address(visit: Any, train: Callable[..., Any]) -> None:
    train()
    headers = {"HX-Request": "true", "HX-Target": "section#results", "HX-Current-URL": "http://127.0.0.1:5000/"}
    part = visit("GET", "/?kind=train&q=&tag=&state=queued", headers=headers)
    assert part.headers["hx-push-url"] == "/?state=queued"
    assert part.text.lstrip().startswith("<section")
    again = {**headers, "HX-Current-URL": "http://127.0.0.1:5000/?state=queued"}
    assert "hx-push-url" not in visit("GET", "/?state=queued", headers=again).headers


def test_the_number_of_questions_does_not_grow_with_the_rows(
    visit: Any, train: Callable[..., Any], ended: Callable[..., Job], pets: str
) -> None:
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("SELECT"):  # a new connection says more than that
            asked.append(statement)

    addresses = (f"/?kind=all&column=learning_rate&rename={number}" for number in itertools.count())

    def count() -> int:
        asked.clear()
        assert visit.get(next(addresses)).status_code == 200  # a new one each time: a list is kept until it changes
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
        count()  # the outline of a curve is read once
        assert count() <= few
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert few > 5


def test_a_list_is_kept_until_anything_changes(
    visit: Any, train: Callable[..., Any], store: Store, studio: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studio, "clock", lambda: 1e9)  # it is kept for seconds at most
    job = train()
    store.jobs.change(job.id, JobChange(name="first name"), 0.0)
    assert "first name" in visit.get("/").text
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert "first name" in visit.get("/").text
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert asked
    assert not [each for each in asked if "ORDER BY jobs.created" in each]

    store.jobs.change(job.id, JobChange(name="second name"), 0.0)  # without news, as another process does
    text = visit.get("/").text
    assert "second name" in text
    assert "first name" not in text


# ---- the strip


def test_a_row_asks_for_its_menu_when_it_is_opened(visit: Any, train: Callable[..., Any], visit_as: Any) -> None:
    job = train()
    assert html_of(visit.get("/")).one(f"#menu-{job.id}")["href"] == f"/models/{job.id}"
    shown = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:5000/?sort=name"}
    menu = visit.get(f"/parts/menu/{job.id}", headers=shown).text
    assert f'<button form="act" name="act" value="stop:{job.id}"' in menu
    assert f'href="/models/new?clone={job.id}"' in menu
    assert f'hx-get="/jobs/{job.id}/edit?back=kind%3Dtrain%26sort%3Dname"' in menu
    assert html_of(menu).one(f"#rename-{job.id}")["href"] == f"/?sort=name&rename={job.id}"
    assert f'value="delete:{job.id}" class="bad"' in menu
    assert visit.get("/parts/menu/nothing").status_code == 404
    viewer = visit_as("viewer")
    assert viewer.get(f"/parts/menu/{job.id}").status_code == 403
    assert "data-menu" not in viewer.get("/").text


def test_the_strip_counts(visit: Any, store: Store, train: Callable[..., Any]) -> None:
    first, _ = train(), train()
    store.jobs.move(first.id, ("queued",), "running", started=10.0)
    said = text_of(visit.get("/parts/strip"))
    assert "1 running , 1 queued" in said
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
    assert html_of(shown).one("#strip-gpu-1 .under").text.endswith("free")
    assert "1,200 queued" in shown
    assert "PyTorch support is disabled. Install it." in shown
    assert html_of(shown).has("#strip-torch")
    assert not html_of(shown).has("#strip-tensorflow")


def test_a_kept_row_shows_what_changed(visit: Any, ended: Callable[..., Job], store: Store) -> None:
    job = ended(0.5)
    assert "50.0 %" in text_of(visit("GET", "/"))
    assert 'id="new-name"' in visit("GET", f"/?rename={job.id}").text
    assert 'id="new-name"' not in visit("GET", "/").text
    store.jobs.change(job.id, JobChange(name="renamed elsewhere"), 0.0)
    assert "renamed elsewhere" in text_of(visit("GET", "/"))
    assert "renamed elsewhere" in text_of(visit("GET", "/?kind=all"))
    assert store.events.take(
        job.id, 1, 2, [ScalarLogged(time=90.0, tag="validation_accuracy", value=0.75, step=60, epoch=3)]
    )
    assert "75.0 %" in text_of(visit("GET", "/"))


def test_a_kept_row_is_as_old_as_its_job(visit: Any, ended: Callable[..., Job], monkeypatch: Any) -> None:
    job = ended(0.5)
    monkeypatch.setattr("ziggurat.web.pages.home.routes._KEPT_S", 1e-6)  # each visit makes the list anew from its rows
    for passed_s, words in ((30.0, "just now"), (150.0, "2 min ago"), (7300.0, "2 h ago")):
        monkeypatch.setattr("ziggurat.formatting.time.time", lambda passed_s=passed_s: job.created + passed_s)
        assert words in text_of(visit("GET", "/"))
