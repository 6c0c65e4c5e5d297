"""The next step after a finished training, and the simple models that it stands beside, on the page of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.checkpoint_samples import write_checkpoint
from tests.unit.studio_samples import add_photos
from tests.unit.web.html_page import html_of
from tests.unit.web.test_job_page import begun, store
from ziggurat.entities.baselines import JobBaseline, JobBaselines, write_baselines
from ziggurat.events import CheckpointSaved, ScalarLogged
from ziggurat.layout import JobFolder

__all__ = ["begun", "store"]


def test_a_finished_training_stands_beside_its_baselines(visit, store, begun):
    job = begun()
    found = JobBaselines(
        metric="rmse",
        mode="min",
        title="RMSE",
        value=2.171,
        checkpoint="step-00000020",
        baselines=(JobBaseline(name="boosting", title="gradient boosting", scores={"rmse": 2.231}),),
    )
    write_baselines(JobFolder(Path(job.folder)), found)
    assert not html_of(visit.get(f"/models/{job.id}")).has("#job-baselines"), "it is not done"
    assert store.jobs.move(job.id, ("running",), "done", ended=20.0)

    line = "RMSE 2.171 against 2.231 (gradient boosting)"
    assert html_of(visit.get(f"/models/{job.id}")).one("#job-baselines").text == line
    assert visit.get(f"/api/v1/jobs/{job.id}").json()["baselines"] == line
    assert {each["baselines"] for each in visit.get("/api/v1/jobs").json()["jobs"]} == {""}


def _with_result(job: Any, value: float, baseline: float) -> None:
    found = JobBaselines(
        metric="accuracy",
        mode="max",
        title="accuracy",
        value=value,
        checkpoint="step-00000020",
        baselines=(JobBaseline(name="majority", title="most frequent class", scores={"accuracy": baseline}),),
    )
    write_baselines(JobFolder(Path(job.folder)), found)
    write_checkpoint(job.folder, 20, 1, validation_accuracy=value)


@pytest.mark.parametrize(
    ("value", "rule", "path"),
    [
        (0.96, "good", "/models/{job}/take-away?publish_checkpoint=step-00000020#publish"),
        (0.3, "low", "/models/{job}/test?tab=splits"),
        (0.1, "baseline", "/models/new?clone={job}"),
    ],
)
def test_a_finished_training_has_one_next_step(visit, visit_as, store, begun, value, rule, path):
    job = begun(CheckpointSaved(time=12.0, name="step-00000020", step=20, epoch=1, reason="epoch"))
    _with_result(job, value, 0.103)
    assert not html_of(visit.get(f"/models/{job.id}")).has("#next-step"), "it is not done"
    assert store.jobs.move(job.id, ("running",), "done", ended=20.0)

    page = html_of(visit.get(f"/models/{job.id}"))
    assert page.one("#next-step")["data-rule"] == rule
    assert page.one("#next-action")["href"] == path.format(job=job.id)
    assert [each["id"] for each in page.all(".primary")] == ["next-action"]
    assert visit.get(f"/api/v1/jobs/{job.id}").json()["next_step"]["rule"] == rule
    assert {each["next_step"] for each in visit.get("/api/v1/jobs").json()["jobs"]} == {None}

    viewed = html_of(visit_as("viewer").get(f"/models/{job.id}"))
    assert viewed.one("#next-step")["data-rule"] == rule
    assert not viewed.has("#next-action"), "it would change something"
    assert [each["id"] for each in viewed.all(".primary")] == ["job-test"]


def test_few_photos_from_scratch_lead_to_pretrained_weights(visit, studio, store, begun, tmp_path):
    dataset = add_photos(studio, tmp_path / "photos")
    if not studio.training.recipe(dataset).fields.get("pretrained"):
        pytest.skip("needs the package with the weights of the recipe")
    job = begun(dataset=dataset)
    _with_result(job, 0.7, 0.1)
    assert store.jobs.move(job.id, ("running",), "done", ended=20.0)

    page = html_of(visit.get(f"/models/{job.id}"))

    assert page.one("#next-step")["data-rule"] == "from_scratch"
    assert page.one("#next-action")["href"] == f"/models/new?dataset={dataset}"
    form = html_of(visit.get(page.one("#next-action")["href"]))
    assert form.has('[name="weights"][value="pretrained"][checked]')


def test_curves_tell_of_overfitting_and_of_improvement(visit, store, begun):
    train, val = [0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99], [0.5, 0.8, 0.79, 0.78, 0.77, 0.76, 0.75]
    curves = {"overfitting": (train, val), "improving": (train, [each - 0.01 for each in train])}
    for rule, pair in curves.items():
        points = [
            ScalarLogged(time=20.0 + epoch, tag=tag, value=value, step=20 * epoch, epoch=epoch)
            for tag, values in zip(("accuracy", "validation_accuracy"), pair, strict=True)
            for epoch, value in enumerate(values, 1)
        ]
        job = begun(*points, spec={"name": rule})
        _with_result(job, 0.8, 0.1)
        assert store.jobs.move(job.id, ("running",), "done", ended=40.0)

        assert html_of(visit.get(f"/models/{job.id}")).one("#next-step")["data-rule"] == rule


def test_training_on_begins_at_the_newest_checkpoint(visit, store, begun):
    job = begun(spec={"epochs": 7, "learning_rate": 0.02})
    _with_result(job, 0.8, 0.1)
    assert store.jobs.move(job.id, ("running",), "done", ended=40.0)
    query = {"clone": job.id, "model": job.id, "checkpoint": "step-00000020"}

    form = html_of(visit.get("/models/new", params=query))

    assert (form.one("#epochs")["value"], form.one("#learning_rate")["value"]) == ("7", "0.02")
    assert form.has("#method-previous[checked]")
