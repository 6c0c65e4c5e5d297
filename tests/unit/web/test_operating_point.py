"""The operating point on evaluation pages and over REST: chosen on validation, stale after a new best checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.web.html_page import html_of
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.entities import NewJob
from ziggurat.entities.operating_point import checkpoint_digest, read_operating_point
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import Manifest
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext, task
from ziggurat.worker.results import SampleResults

COUNT = 60
NAMES = ("cat", "dog <b>")
KINDS = {"classification": "image-classification", "multi-label": "image-regression"}


def add_checkpoint(folder: Path, step: int) -> None:
    checkpoint = folder / "checkpoints" / f"step-{step:08d}"
    checkpoint.mkdir(parents=True)
    (checkpoint / "state.json").write_text(f'{{"meta": {{"global_step": {step}, "epoch_num": 1}}}}')
    (folder / "checkpoints" / "names.json").write_text(f'{{"best": "{checkpoint.name}"}}')


@pytest.fixture
def evaluate(studio: Any, pets: str) -> Callable[..., str]:
    """Return what takes in the evaluation of a model of two classes, and returns its id."""
    made: list[str] = []

    def take_in(kind: str, **fields: Any) -> str:
        job_id = f"20260104-000000-{len(made):04d}"
        made.append(job_id)
        folder = studio.root / "jobs" / job_id
        folder.mkdir(parents=True)
        new = NewJob(id=job_id, kind=kind, name=kind, folder=str(folder), created=float(len(made)), **fields)
        return studio.datasets.take_in(new, {}).id

    def make(
        name: str = "classification", *, model: str = "", split: str = "val", names: Any = NAMES, obeyed: Any = ()
    ) -> str:
        model = model or take_in("train", spec={"kind": "train"}, depends_on=(pets,))
        folder = Path(studio.jobs.get(model).folder)
        if not (folder / "checkpoints").exists():
            add_checkpoint(folder, 12)
        spec = {"kind": "evaluate", "split": split, "checkpoint": ""}
        job_id = take_in("evaluate", spec=spec, parent=model, depends_on=(model,))
        schema = Schema(kind=KINDS.get(name, name), class_names=tuple(names))
        context = TaskContext(task(name), schema, Preprocessing(size=(4, 4), channels=3), {"most": 2}, obeyed)
        random = np.random.default_rng(5)
        outputs, targets = values(name, random, len(names))
        results = SampleResults(context, COUNT, 5)
        results.add(list(range(COUNT)), [f"{row}" for row in range(COUNT)], outputs, targets)
        summary = {"kind": "evaluate", "split": split, "data": str(studio.root / "datasets" / pets), "task": name}
        summary |= {"count": COUNT, "skipped": 0, "failures": [], "scalars": {}, "openings": None}
        summary |= {"step": 12, "epoch": 1, "checkpoint": "step-00000012"}
        summary |= dict(context.task.summary_fields(context, True))
        if obeyed:
            point = {"thresholds": {"confidence": obeyed[0]}, "used": True, "problem": ""}
            summary |= {"kind": "infer", "split": "", "operating_point": point}
        if name != "classification":
            found = {}
            for metric in context.task.evaluation_metrics(context):
                metric.update(outputs, targets)
                found |= metric.compute()
            summary |= dict(context.task.summary_metrics(found))
        results.write(studio.root / "jobs" / job_id / "results", summary)
        return job_id

    return make


def values(name: str, random: Any, classes: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return outputs of a model that is often right, and targets."""
    if name == "segmentation":
        return {"output": random.normal(size=(COUNT, 4, 4, 2)).astype(np.float32)}, {
            "y": random.integers(0, 2, (COUNT, 4, 4, 1))
        }
    if name == "multi-label":
        known = random.integers(0, 2, (COUNT, classes)).astype(np.float32)
        return {"output": (known * 2 - 0.3 + random.normal(size=known.shape)).astype(np.float32)}, {"y": known}
    labels = random.integers(0, classes, COUNT)
    scores = random.dirichlet(np.ones(classes), COUNT)
    scores[np.arange(COUNT), labels] += 0.4
    return {"probabilities": (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)}, {"y": labels}


def rest(visit: Any, method: str, model: str, **options: Any) -> Any:
    return visit(method, f"/api/v1/models/{model}/operating-point", headers={"Accept": "application/json"}, **options)


def test_a_threshold_is_chosen_on_the_page(visit: Any, studio: Any, evaluate: Any, pets: str) -> None:
    job_id = evaluate()
    model = studio.jobs.get(studio.jobs.get(job_id).parent)
    before = html_of(visit.get(f"/evaluations/{job_id}"))

    answer = visit.post(f"/evaluations/{job_id}/operating-point", data={"action": "set", "threshold": "0.7"})

    assert answer.status_code == 303, answer.text
    assert before.one("#operating-point-summary").text == "not chosen"
    page = html_of(visit.get(f"/evaluations/{job_id}"))
    assert page.one("#operating-point .chip").text == "in use"
    assert page.one("#operating-point-threshold")["value"] == "0.7"
    point = read_operating_point(JobFolder(Path(model.folder)))
    assert point is not None
    assert (point.names, point.thresholds, point.checkpoint, point.step) == (("dog <b>",), (0.7,), "step-00000012", 12)
    assert point.dataset == Manifest.load(studio.root / "datasets" / pets).id
    assert point.digest == checkpoint_digest(JobFolder(Path(model.folder)), "step-00000012")
    assert studio.people.audit().entries[0].action == "operating-point.set"


def test_the_figures_are_those_of_the_samples(studio: Any, evaluate: Any) -> None:
    job_id = evaluate()
    outputs, targets = values("classification", np.random.default_rng(5), 2)
    scores, labels = outputs["probabilities"][:, 1], targets["y"]

    def f1(threshold: float) -> float:
        chosen = scores >= np.float32(threshold)
        return 2 * (chosen & (labels == 1)).sum() / (chosen.sum() + (labels == 1).sum())

    (row,) = studio.operating_points.choice(job_id).rows

    assert row.figures.f1 == f1(0.5)
    assert row.figures.recall == (scores[labels == 1] >= 0.5).mean()
    assert row.best.f1 == max(f1(each) for each in scores) == f1(row.best.threshold)


def test_every_label_has_a_threshold_and_best_f1_sets_them(visit: Any, studio: Any, evaluate: Any) -> None:
    job_id = evaluate("multi-label")
    model = studio.jobs.get(job_id).parent

    answer = visit.post(f"/evaluations/{job_id}/operating-point", data={"action": "best"})

    assert answer.status_code == 303, answer.text
    rows = studio.operating_points.choice(job_id).rows
    assert [each.name for each in rows] == list(NAMES)
    assert all(each.figures.f1 == each.best.f1 for each in rows)
    assert [each.text for each in html_of(visit.get(f"/evaluations/{job_id}")).all("#operating-point tbody th")] == [
        *NAMES
    ]
    found = rest(visit, "PUT", model, json={"threshold": 0.4, "thresholds": {"cat": 0.9}}).json()
    assert found["thresholds"] == {"cat": 0.9, "dog <b>": 0.4}
    cleared = visit.post(f"/evaluations/{job_id}/operating-point", data={"action": "clear"})
    assert (cleared.status_code, cleared.headers["location"]) == (303, f"/evaluations/{job_id}#operating-point")
    assert rest(visit, "GET", model).json() is None


@pytest.mark.parametrize("split", ["test", "train"])
def test_other_splits_say_why_nothing_is_chosen(visit: Any, studio: Any, evaluate: Any, split: str) -> None:
    job_id = evaluate(split=split)
    page = html_of(visit.get(f"/evaluations/{job_id}"))

    assert "chosen on the validation split" in page.one("#operating-point-refusal").text
    assert not page.has("#operating-point-set")
    refused = rest(visit, "PUT", studio.jobs.get(job_id).parent, json={"threshold": 0.4, "evaluation": job_id})
    assert (refused.status_code, "validation split" in refused.json()["rule"]) == (409, True)


def test_a_new_best_checkpoint_makes_it_stale(visit: Any, studio: Any, evaluate: Any) -> None:
    job_id = evaluate()
    model = studio.jobs.get(studio.jobs.get(job_id).parent)
    assert rest(visit, "PUT", model.id, json={"threshold": 0.7}).json()["used"] is True

    add_checkpoint(Path(model.folder), 24)

    found = rest(visit, "GET", model.id).json()
    assert found["used"] is False
    assert "best checkpoint is step-00000024 now" in found["problem"]
    page = html_of(visit.get(f"/evaluations/{job_id}"))
    assert page.one("#operating-point .chip").text == "not used"
    assert found["problem"] in page.one("#operating-point .note").text


def test_a_checkpoint_that_was_written_again_is_another_one(visit: Any, studio: Any, evaluate: Any) -> None:
    job_id = evaluate()
    model = studio.jobs.get(studio.jobs.get(job_id).parent)
    rest(visit, "PUT", model.id, json={"threshold": 0.7})

    (Path(model.folder) / "checkpoints" / "step-00000012" / "state.json").write_text("{}")

    assert "written again" in rest(visit, "GET", model.id).json()["problem"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "No threshold is given"),
        ({"threshold": 1.5}, 422, "threshold"),
        ({"threshold": "NaN"}, 422, "threshold"),
        ({"thresholds": {"owl": 0.5}}, 422, "owl"),
        ({"threshold": 0.5, "evaluation": "nobody"}, 404, "nobody"),
    ],
)
def test_what_cannot_be_chosen_is_said(
    visit: Any, studio: Any, evaluate: Any, body: Any, status: int, words: str
) -> None:
    answer = rest(visit, "PUT", studio.jobs.get(evaluate()).parent, json=body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_an_evaluation_of_another_model_is_refused(visit: Any, studio: Any, evaluate: Any) -> None:
    first, second = evaluate(), evaluate()
    body = {"threshold": 0.5, "evaluation": second}
    answer = rest(visit, "PUT", studio.jobs.get(first).parent, json=body)
    assert (answer.status_code, "is of another model" in answer.json()["rule"]) == (409, True)


def test_a_damaged_file_is_an_error_and_not_ignored(visit: Any, studio: Any, evaluate: Any) -> None:
    model = studio.jobs.get(studio.jobs.get(evaluate()).parent)
    JobFolder(Path(model.folder)).operating_point.write_text('{"version": 1, "names": ["dog"], "thresholds": [7]}')
    answer = rest(visit, "GET", model.id)
    assert answer.status_code >= 500
    assert "cannot be read" in answer.json()["rule"]


def test_many_classes_have_a_confidence_and_masks_one_threshold(visit: Any, evaluate: Any) -> None:
    many = html_of(visit.get(f"/evaluations/{evaluate(names=('a', 'b', 'c'))}"))
    masks = html_of(visit.get(f"/evaluations/{evaluate('segmentation')}"))

    assert "less confidence are undecided" in many.one("#operating-point").text
    assert "From this probability on, dog <b> is predicted" in masks.one("#operating-point").text
    assert not many.has("#operating-point-best")
    assert "best F1" in masks.one("#operating-point-form").text
    assert masks.has("#operating-point-best")


def test_predictions_for_many_images_show_what_was_decided(visit: Any, evaluate: Any) -> None:
    job_id = evaluate(names=("a", "b", "c"), obeyed=(0.6,))

    page = html_of(visit.get(f"/evaluations/{job_id}"))
    samples = html_of(visit.get(f"/evaluations/{job_id}/samples")).text

    assert "decided by the threshold 0.6" in page.one("#operating-point-obeyed").text
    assert "undecided" in samples
    assert "decided: b" in samples


def test_who_may_only_look_gets_no_form(visit_as: Any, evaluate: Any) -> None:
    job_id = evaluate()
    viewer = visit_as("viewer")
    assert not html_of(viewer.get(f"/evaluations/{job_id}")).has("#operating-point-set")
    refused = viewer.post(f"/evaluations/{job_id}/operating-point", data={"action": "set", "threshold": "0.7"})
    assert refused.status_code == 403
