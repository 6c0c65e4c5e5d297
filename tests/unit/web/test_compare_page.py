"""The page that compares runs: who is chosen, where they differ, what they came to."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.web.html_page import html_of
from ziggurat.events import AttemptStarted, ScalarLogged
from ziggurat.store import Store
from ziggurat.web.pages.compare.view import chosen_runs, compared, short_names
from ziggurat.workspace.new_jobs import JobRequest


@pytest.fixture
def store(studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def run(studio, store, train) -> Callable[..., Any]:
    """Return what makes a training whose curves came to some values."""

    def make(name: str, curves: dict[str, list[float]], **spec: Any) -> Any:
        job = train(spec={"name": name, **spec})
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
        begun = AttemptStarted(
            time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
        )
        points = [
            ScalarLogged(time=11.0 + step, tag=tag, value=value, step=step, epoch=1)
            for tag, values in curves.items()
            for step, value in enumerate(values, 1)
        ]
        assert store.events.take(job.id, 0, 1, [begun, *points])
        return studio.jobs.get(job.id)

    return make


def _text(answer: Any) -> str:
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def test_without_runs_some_can_be_found_by_name(visit, train):
    first, second = train(spec={"name": "alpha"}), train(spec={"name": "<b>beta</b>"})

    page = visit.get("/compare")
    found = visit.part("/compare?text=alph", "compare-found")
    again = visit.get(f"/compare?choose=1&text=nothing&job={second.id}")

    assert "&lt;b&gt;beta&lt;/b&gt;" in page.text
    assert f'value="{first.id}"' in page.text
    assert f'value="{first.id}"' in found.text
    assert second.id not in found.text
    assert "<html" not in found.text
    assert f'value="{second.id}" checked' in again.text
    assert "nothing" in html_of(again).one("#compare-found .empty").text


def test_an_empty_studio_says_what_to_do(visit):
    assert html_of(visit.get("/compare")).one("#compare-found #empty-action")["href"] == "/"


def test_only_differences_are_shown_and_the_best_is_marked(studio, run, visit):
    good = run("same", {"cost": [2.0, 0.5, 0.7], "validation_accuracy": [0.5, 0.9]}, learning_rate=0.1)
    bad = run("same", {"cost": [2.0, 1.5]}, learning_rate=0.001)

    view = compared(studio, [good, bad])
    page = visit.get(f"/compare?job={good.id}&job={bad.id}&job=nobody")

    assert view.differences == [("learning_rate", ("0.1", "0.001"))]
    assert view.labels == [f"same ({good.id[-4:]})", f"same ({bad.id[-4:]})"]
    assert [(each.tag, each.last, each.best, each.winner) for each in view.results] == [
        ("validation_accuracy", (0.9, None), (0.9, None), None),
        ("cost", (0.7, 1.5), (0.5, 1.5), 0),
    ]
    assert "nobody" in html_of(page).one("#compare-left-out").text
    (best,) = html_of(page).all(".compare-best")
    assert best.has(".chip.ok")
    listed = json.loads(html.unescape(re.search(r'data-runs="([^"]*)"', page.text)[1]))  # pyright: ignore
    assert [each["label"] for each in listed] == view.labels


def test_parallel_coordinates_end_with_the_chosen_metric(studio, run):
    runs = [
        run("one", {"cost": [1.0], "accuracy": [0.5]}, learning_rate=0.1, network="mlp"),
        run("two", {"cost": [float("nan")], "accuracy": [0.7]}, learning_rate=0.001, network="linear"),
    ]

    chart = compared(studio, runs, "cost").chart

    assert chart["axes"] == [
        {"name": "learning_rate", "log": True},
        {"name": "network.name", "categories": ["mlp", "linear"]},
        {"name": "training accuracy"},
        {"name": "training loss"},
    ]
    assert chart["lines"] == [
        {"name": "one", "values": [0.1, "mlp", 0.5, 1.0]},
        {"name": "two", "values": [0.001, "linear", 0.7, None]},
    ]
    assert chart["own_colors"], "each run has the color of its curves"


def test_many_runs_are_colored_by_their_result(studio, run, visit):
    runs = [run(f"run {number}", {"cost": [float(number)]}, learning_rate=0.1 / (1 + number)) for number in range(9)]
    assert not compared(studio, runs).chart["own_colors"]
    page = html_of(visit.get("/compare?" + "&".join(f"job={each.id}" for each in runs)))
    assert "its color is its value on the last axis" in page.text


def test_runs_without_evaluations_have_a_button_that_makes_them(run, visit):
    runs = [run(name, {"cost": [1.0]}, learning_rate=0.1) for name in ("one", "two")]
    page = html_of(visit.get(f"/compare?job={runs[0].id}&job={runs[1].id}"))
    button = page.one("#compare-evaluate")
    assert (button["name"], button["value"]) == ("action", "evaluate")
    assert page.one(".compare-evaluate")["action"] == "/jobs/bulk"


def test_values_without_a_better_have_no_best(studio, run, visit):
    runs = [run(name, {"cost": [1.0], "queue_size": [size]}) for name, size in (("one", 5.0), ("two", 9.0))]

    page = html_of(visit.get("/compare?" + "&".join(f"job={each.id}" for each in runs)))

    found = {each.tag: (each.is_small_good, each.winner) for each in compared(studio, runs).results}
    assert found == {"cost": (True, None), "queue_size": (None, None)}
    assert not page.has(".compare-best")


def test_a_penalty_is_no_result(studio, run):
    runs = [
        run(name, {"cost": [1.0], "validation_regularization": [size]}) for name, size in (("one", 5.0), ("b", 9.0))
    ]

    assert [each.tag for each in compared(studio, runs).results] == ["cost"]


def test_labels_show_what_differs_and_are_cut_in_the_middle():
    sweep = [f"convnet on clothing learning_rate={rate}" for rate in (0.1, 0.01)]

    assert short_names(sweep) == ["convnet … learning_rate=0.1", "convnet … learning_rate=0.01"]
    assert short_names(sweep, is_sweep=True) == ["learning_rate=0.1", "learning_rate=0.01"]
    assert short_names(["lenet", "alexnet"]) == ["lenet", "alexnet"]
    twice = ["LeNet on digits", "LeNet on digits, lower rate"]
    assert short_names(twice) == twice, "dots in place of `on` are no help"
    (long,) = short_names(["a name of a run that is far too long to stand in a legend, 7"])
    assert long.startswith("a name of a")
    assert long.endswith(" … to stand in a legend, 7"), "it is cut between words"
    assert len(long) <= 40


def test_two_runs_can_be_swapped(visit, train):
    first, second = train(spec={"name": "one"}), train(spec={"name": "two"})

    page = html_of(visit.get(f"/compare?job={first.id}&job={second.id}"))

    assert page.one("#compare-swap")["href"] == f"/compare?job={second.id}&job={first.id}"


@pytest.fixture
def sweep(studio, store) -> list[Any]:
    """Return the jobs of a sweep of three learning rates, the second of which has the best value."""
    spec = {"kind": "train", "version": 1, "name": "tiny", "backend": "null", "network": "mlp", "data": "digits"}
    request = JobRequest(spec={**spec, "epochs": 2, "batch_size": 4}, sweep={"learning_rate": [0.001, 0.01, 0.1]})
    jobs = studio.training.create(request, owner="local")
    for job, value in zip(jobs[:2], (0.5, 0.9), strict=True):
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
        point = ScalarLogged(time=11.0, tag="validation_accuracy", value=value, step=1, epoch=1)
        assert store.events.take(job.id, 0, 1, [point])
    return jobs


def test_a_sweep_has_a_page_with_its_best_run_first(visit, sweep):
    page = html_of(visit.get(f"/compare?group={sweep[0].group}"))

    assert page.one("h1").text == "tiny"
    rows = [each["id"] for each in page.all('section[aria-labelledby="runs-title"] tbody tr')]
    assert rows == [f"run-{sweep[place].id}" for place in (1, 0, 2)]
    assert page.one("#sweep-best")["href"] == f"/models/{sweep[1].id}"
    assert "90.0" in page.one("#sweep-best-value").text
    assert page.has("#stop-rest")


def test_parts_that_change_while_runs_train_come_alone(visit, sweep):
    place = f"/compare?group={sweep[0].group}"

    assert html_of(visit.get(place)).one("#compare-live")["hx-get"] == place
    answer = visit.part(place, "compare-live")

    assert "<html" not in answer.text
    targets = re.findall(r'hx-target="#([a-z-]+)"', answer.text)
    assert targets == ["compare-actions", "compare-best", "compare-results"]
    for target in targets:
        assert f'id="{target}"' in answer.text


def test_runs_that_ended_are_not_asked_for_again(visit, store, train):
    jobs = [train(spec={"name": name}) for name in ("one", "two")]
    for job in jobs:
        store.jobs.move(job.id, ("queued",), "stopped", ended=1.0)

    assert not html_of(visit.get(f"/compare?job={jobs[0].id}&job={jobs[1].id}")).has("#compare-live")


def test_comparing_nothing_says_what_is_missing(visit, train):
    train()

    assert not html_of(visit.get("/compare")).has("#compare-none")
    assert html_of(visit.get("/compare?text=")).has("#compare-none")
    assert not html_of(visit.get("/compare?text=&choose=1")).has("#compare-none")


def test_the_rest_of_a_sweep_is_stopped(visit, studio, sweep):
    answer = visit.post("/compare/stop-rest", data={"group": sweep[0].group})

    assert answer.headers["location"] == f"/compare?group={sweep[0].group}"
    assert studio.jobs.get(sweep[1].id).state == "running", "the best one goes on"
    assert studio.jobs.get(sweep[2].id).state == "stopped"
    noted = studio.people.audit(limit=1).entries[0]
    assert (noted.action, sweep[2].id in noted.details["ids"]) == ("jobs.stop", True)


def test_a_sweep_that_is_not_there_is_not_found(visit):
    assert visit.get("/compare?group=nothing").status_code == 404


def test_long_texts_are_told_apart_by_their_digest(studio, train):
    code = "class UserModel:\n    pass\n"
    runs = [
        train(
            spec={
                "name": name,
                "backend": "tensorflow",
                "network": {"source": "file", "path": "n.py", "text": code + extra},
            }
        )
        for name, extra in (("one", ""), ("two", "# other\n"))
    ]

    (text,) = [texts for path, texts in compared(studio, runs).differences if path == "network.text"]

    assert re.fullmatch(r"2 lines, 26 characters \([0-9a-f]{6}\)", text[0])
    assert re.fullmatch(r"3 lines, 34 characters \([0-9a-f]{6}\)", text[1])


def test_the_same_settings_are_said_to_be_the_same(visit, train):
    first, second = train(spec={"name": "one"}), train(spec={"name": "two"})

    page = html_of(visit.get(f"/compare?job={first.id}&job={second.id}"))

    assert page.has('section[aria-labelledby="differences-title"] .empty')
    assert page.has('section[aria-labelledby="samples-title"] .empty')


def test_at_most_twenty_trainings_are_taken_and_nothing_else(studio, train, pets):
    ids = [train(spec={"name": f"run {number}"}).id for number in range(21)]

    runs, left_out = chosen_runs(studio, [pets, *ids, ids[0]])

    assert [job.id for job in runs] == ids[:20]
    assert left_out == [pets, ids[20]]
