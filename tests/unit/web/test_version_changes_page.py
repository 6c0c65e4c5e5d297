"""Pages from a cell of the confusion matrix to what changed, over results that are written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.web.html_page import errors_of, html_of
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.entities import NewJob
from ziggurat.specs import TrainSpec
from ziggurat.tasks import CLASSIFICATION, TaskContext
from ziggurat.worker.results import SampleResults
from ziggurat.workspace.new_jobs import JobRequest

SPEC = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "epochs": 2, "batch_size": 4}


class Runs:
    """Makes trainings that are done, with evaluations of the training split, and takes their results as given."""

    def __init__(self, studio: Any) -> None:
        self._studio = studio
        self._count = 0

    def model(self, name: str, dataset: str) -> str:
        data = {"source": str(self._studio.datasets.folder(dataset))}
        spec = TrainSpec.model_validate({**SPEC, "name": name, "data": data}).model_dump(mode="json")
        return self._take_in("train", name, spec, depends_on=(dataset,))

    def evaluation(self, model: str, dataset: str, predicted: list[int]) -> str:
        spec = {"kind": "evaluate", "split": "train", "checkpoint": ""}
        job_id = self._take_in("evaluate", f"evaluation {self._count}", spec, parent=model, depends_on=(model,))
        folder = self._studio.datasets.folder(dataset)
        with self._studio.datasets.opened(dataset) as opened:
            entries = [opened.entry("train", row) for row in range(len(predicted))]
            context = TaskContext(CLASSIFICATION, opened.schema, Preprocessing(size=(8, 8), channels=3))
            names = list(opened.schema.class_names)
        results = SampleResults(context, len(predicted), 5)
        scores = np.full((len(predicted), len(names)), 0.1, np.float32)
        scores[np.arange(len(predicted)), predicted] = 0.9
        labels = np.array([each.label for each in entries])
        results.add(
            list(range(len(predicted))), [each.key for each in entries], {"probabilities": scores}, {"y": labels}
        )
        summary = {"kind": "evaluate", "split": "train", "data": str(folder), "classifier": True, "classes": names}
        summary |= {"count": len(predicted), "skipped": 0, "failures": [], "scalars": {}, "openings": None}
        summary |= {"step": 2, "epoch": 1, "checkpoint": "step-2"}
        results.write(self._studio.root / "jobs" / job_id / "results", summary)
        return job_id

    def _take_in(self, kind: str, name: str, spec: Any, **fields: Any) -> str:
        self._count += 1
        job_id = f"20260102-000000-{self._count:04d}"
        folder = self._studio.root / "jobs" / job_id
        folder.mkdir(parents=True)
        new = NewJob(
            id=job_id, kind=kind, name=name, folder=str(folder), spec=spec, created=float(self._count), **fields
        )
        return self._studio.datasets.take_in(new, {}).id


@pytest.fixture
def runs(studio: Any) -> Runs:
    return Runs(studio)


@pytest.fixture
def labels(studio: Any, pets: str) -> list[int]:
    """Return the labels of the eight training samples."""
    with studio.datasets.opened(pets) as opened:
        return [opened.entry("train", row).label for row in range(opened.size("train"))]


@pytest.fixture
def evaluated(runs: Runs, pets: str, labels: list[int]) -> str:
    """Return an evaluation that takes every cat for a dog."""
    return runs.evaluation(runs.model("first", pets), pets, [1] * len(labels))


def test_a_cell_offers_to_relabel_its_samples(visit: Any, evaluated: str, labels: list[int]) -> None:
    page = html_of(visit.get(f"/evaluations/{evaluated}?label=0&predicted=1"))

    form = page.one("#relabel-cell")
    assert form["action"] == f"/evaluations/{evaluated}/relabel"
    assert form.one("#relabel-to option[selected]").text == "dog"
    assert form.one("#relabel-name")["value"] == "pets v2"
    assert form.one("#relabel-all").text == f"Relabel all {labels.count(0)}"
    assert not html_of(visit.get(f"/evaluations/{evaluated}")).has("#relabel-cell")
    right = html_of(visit.get(f"/evaluations/{evaluated}?label=1&predicted=1"))
    assert not right.has("#relabel-to option[selected]")


def test_the_samples_of_a_cell_become_a_version(visit: Any, studio: Any, evaluated: str, labels: list[int]) -> None:
    sent = {"label": "0", "predicted": "1", "scope": "all", "to": "dog", "version_name": "all dogs"}

    answer = visit.post(f"/evaluations/{evaluated}/relabel", data=sent)

    assert answer.status_code == 303
    place, _, query = answer.headers["location"].partition("?")
    assert query == f"evaluation={evaluated}"
    version = place.rpartition("/")[2]
    with studio.datasets.opened(version) as opened:
        assert [opened.entry("train", row).label for row in range(8)] == [1] * 8
    page = html_of(visit.get(answer.headers["location"]))
    assert page.one("#made-of li").text == f"Gave {labels.count(0)} samples of train the label dog."
    assert page.one('form[action="/datasets/' + version + '/retrain"] input[name="evaluation"]')["value"] == evaluated


def test_chosen_samples_alone_are_relabeled(visit: Any, studio: Any, evaluated: str, labels: list[int]) -> None:
    rows = [row for row, label in enumerate(labels) if label == 0][:2]
    listed = html_of(visit.get(f"/evaluations/{evaluated}/samples?label=0&predicted=1"))
    assert {each["value"] for each in listed.all('.tile input[name="samples"]')} >= {str(row) for row in rows}
    sent = {"label": "0", "samples": [str(row) for row in rows], "scope": "chosen", "to": "dog", "version_name": "two"}

    answer = visit.post(f"/evaluations/{evaluated}/relabel", data=sent)

    version = answer.headers["location"].partition("?")[0].rpartition("/")[2]
    with studio.datasets.opened(version) as opened:
        found = [opened.entry("train", row).label for row in range(8)]
    assert found == [1 if row in rows else label for row, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scope": "chosen"}, "Choose at least one sample"),
        ({"to": ""}, "No label is chosen: choose the label that the samples are to get"),
        ({"to": "owl"}, "is no class of the dataset: choose the label that the samples are to get"),
        ({"version_name": " "}, "A version has a name"),
    ],
)
def test_a_refused_relabeling_keeps_what_was_typed(
    visit: Any, studio: Any, evaluated: str, change: dict[str, str], words: str
) -> None:
    sent = {"label": "0", "scope": "all", "to": "dog", "version_name": "typed", **change}

    answer = visit.post(f"/evaluations/{evaluated}/relabel", data=sent)

    assert words in errors_of(answer)[0]
    shown = html_of(answer).one("#relabel-name")["value"]
    assert shown == ((change.get("version_name", "typed").strip() and "typed") or " ")
    assert studio.jobs.counts()["done"] == 3, "dataset, training and evaluation"


def test_viewers_see_no_form_and_may_not_send_it(visit_as: Any, evaluated: str) -> None:
    viewer = visit_as("viewer")

    assert not html_of(viewer.get(f"/evaluations/{evaluated}?label=0&predicted=1")).has("#relabel-cell")
    assert viewer.post(f"/evaluations/{evaluated}/relabel", data={"scope": "all", "to": "dog"}).status_code == 403
    assert viewer.post("/datasets/x/retrain").status_code == 403


@pytest.fixture
def version(studio: Any, pets: str, labels: list[int]) -> str:
    """Return a version in which the first cat is a dog."""
    return studio.datasets.relabel(pets, [f"train/{labels.index(0)}"], "dog", name="pets 2").id


def test_retraining_leads_to_a_page_that_waits(visit: Any, studio: Any, evaluated: str, version: str) -> None:
    page = html_of(visit.get(f"/datasets/{version}"))
    assert page.one("#retrain-hint a").text == "first"

    answer = visit.post(f"/datasets/{version}/retrain", data={"evaluation": evaluated})
    again = visit.post(f"/datasets/{version}/retrain", data={"evaluation": evaluated})

    assert answer.status_code == 303
    assert again.headers["location"] == answer.headers["location"]
    assert answer.headers["location"].startswith(f"/evaluations/{evaluated}/differences?other=2")
    assert studio.jobs.counts()["queued"] == 2
    waiting = html_of(visit.get(answer.headers["location"]))
    steps = waiting.all("#comparison-waiting .steps li")
    assert [(each.one(".step-title").text, each["data-state"]) for each in steps] == [
        ("Training", "queued"),
        ("Evaluation", "queued"),
    ]
    part = visit.part(answer.headers["location"], "comparison-waiting")
    assert part.text.startswith("<section") or "<html" not in part.text
    assert html_of(visit.get(f"/datasets/{version}")).has("#retrain-changes")
    model = studio.jobs.get(studio.jobs.get(answer.headers["location"].rpartition("=")[2]).parent)
    studio.jobs.stop(model.id)
    assert "cannot be made" in html_of(visit.get(answer.headers["location"])).one("#waiting-title").text


def test_a_retraining_that_is_refused_shows_the_page(visit: Any, studio: Any, version: str) -> None:
    answer = visit.post(f"/datasets/{version}/retrain")

    assert "There is no finished training of a version that" in errors_of(answer)[0]
    assert html_of(answer).has("#made-of")
    assert not html_of(answer).has("#retrain")
    assert studio.jobs.counts()["queued"] == 0


def test_what_changed_between_versions_is_one_page(
    visit: Any, runs: Runs, evaluated: str, version: str, labels: list[int]
) -> None:
    changed = [1 if row == labels.index(0) else label for row, label in enumerate(labels)]
    second = runs.evaluation(runs.model("second", version), version, changed)
    place = f"/evaluations/{evaluated}/differences?other={second}"

    page = html_of(visit.get(place))

    cats = labels.count(0)
    tabs = [each.text for each in page.all(".tabs a")]
    assert tabs == [
        *(f"Fixed: {cats}", "Broken: 0", "Still wrong: 0"),
        *("Label changed: 1", "Only in the first: 0", "Only in the second: 0"),
    ]
    assert page.one("#accuracy-first").text.startswith(f"{100 * labels.count(1) / 8:.1f}")
    assert page.one("#accuracy-second").text.startswith("100.0")
    assert page.one("#relabeled-accuracy").text.startswith(f"{100 * changed.count(1) / 8:.1f}")
    assert page.one("#accuracy-change").text == f"{100 * cats / 8:.1f} points better"
    assert page.one("#difference-interval").text
    is_open = page.one("#difference-interval").text.startswith("-")
    assert page.has("#no-significance") == is_open
    assert page.one("#labels-changed").text == "1"
    assert [each.text for each in page.all(".compared-runs tbody tr")[0].all("td")] == ["first", "second"]
    listed = html_of(visit.get(f"{place}&which=label_changed"))
    assert [each.text for each in listed.all(".tile .relabeled")] == ["label cat → dog"]
    assert html_of(visit.get(f"{place}&which=only_second")).one("p.empty").text.startswith("No sample")
    beside = html_of(visit.get(f"/evaluations/{second}"))
    assert "8 common samples, 1 label changed" in beside.one(".other-version").text
    assert visit.part(place, "comparison-waiting").headers["HX-Refresh"] == "true"
    compared = visit.get(f"/compare?job={runs_of(visit, evaluated)}&job={runs_of(visit, second)}")
    assert html_of(compared).all('section[aria-labelledby="samples-title"] td a')[0]["href"] == place


def runs_of(visit: Any, evaluation: str) -> str:
    """Return the training of an evaluation."""
    return visit.get(f"/api/v1/jobs/{evaluation}", headers={"Accept": "application/json"}).json()["parent"]


def test_other_classes_cannot_take_the_form(visit: Any, studio: Any, evaluated: str, pets: str) -> None:
    (model,) = studio.training.create(JobRequest(spec={**SPEC, "data": "digits"}))

    assert visit.post(f"/evaluations/{model.id}/relabel", data={"scope": "all"}).status_code == 409
    assert visit.post("/evaluations/nobody/relabel", data={"scope": "all"}).status_code == 404
