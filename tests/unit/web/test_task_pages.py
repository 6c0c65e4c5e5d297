"""Pages of tasks other than classification, over results and models that are written here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.evaluations.test_task_results import table_context
from tests.unit.web.html_page import errors_of, html_of
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.records.schema import Column, Schema
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.tasks import TaskContext, task
from ziggurat.web.pages.evaluation.sample_content import contents_of, held_by
from ziggurat.web.pages.evaluation.task_samples import task_tiles
from ziggurat.web.pages.evaluation.view import SampleSource
from ziggurat.web.rendering import _task_template
from ziggurat.worker.results import SampleResults

COUNT = 60
PNG = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()


@pytest.fixture
def take_in(studio: Any) -> Callable[..., str]:
    """Return what takes in a job that is done, and returns its id."""
    made: list[str] = []

    def make(kind: str, name: str, **fields: Any) -> str:
        job_id = f"20260103-000000-{len(made):04d}"
        made.append(job_id)
        folder = studio.root / "jobs" / job_id
        folder.mkdir(parents=True)
        new = NewJob(id=job_id, kind=kind, name=name, folder=str(folder), created=float(len(made)), **fields)
        return studio.datasets.take_in(new, {}).id

    return make


@pytest.fixture
def evaluation(studio: Any, take_in: Callable[..., str]) -> Callable[..., str]:
    """Return what makes an evaluation with results, and returns its id."""

    def make(name: str, context: TaskContext, outputs: Any, targets: Any, **given: Any) -> str:
        dataset = given.pop("dataset", "")
        model = take_in("train", f"model of {name}", spec={"kind": "train"}, depends_on=(dataset,) if dataset else ())
        spec = {"kind": "evaluate", "split": "val", "checkpoint": ""}
        job_id = take_in("evaluate", name, spec=spec, parent=model, depends_on=(model,))
        count = len(next(iter(outputs.values())))
        results = SampleResults(context, count, 5)
        results.add(list(range(count)), [f"row {row}" for row in range(count)], outputs, targets)
        metrics = context.task.metrics(context)
        for metric in metrics:
            metric.update(outputs, targets)
        values = {key: value for metric in metrics for key, value in metric.compute().items()}
        data = str(studio.root / "datasets" / dataset) if dataset else "/data"
        summary = {"kind": "evaluate", "split": "val", "data": data, "task": context.task.name, "count": count}
        summary |= {"skipped": 2, "failures": [], "scalars": {"cost": 0.5}, "openings": None}
        summary |= {"step": 12, "epoch": 2, "checkpoint": "step-00000012"}
        summary |= context.task.summary_fields(context, True) | context.task.summary_metrics(values)
        results.write(studio.root / "jobs" / job_id / "results", summary | given)
        return job_id

    return make


def prices(seed: int) -> tuple[np.ndarray, np.ndarray]:
    known = np.random.default_rng(7).normal(100, 20, (COUNT, 1)).astype(np.float32)
    return known, (known + np.random.default_rng(seed).normal(0, 5 * seed, (COUNT, 1))).astype(np.float32)


@pytest.fixture
def priced(evaluation: Callable[..., str], houses: str) -> str:
    known, found = prices(1)
    return evaluation("first", table_context(), {"output": found}, {"y": known}, dataset=houses)


@pytest.fixture
def houses(studio: Any, tmp_path: Path) -> str:
    """Return the id of a dataset of rows, 60 of them for validation."""
    source = tmp_path / "houses.csv"
    lines = [
        "size,district,garden,price",
        *(f"{row / 4},{'east' if row % 2 else ''},yes,{2 * row + 0.5}" for row in range(80)),
    ]
    source.write_text("\n".join(lines))
    folder = studio.root / "datasets" / "20260101-000000-0003"
    asked = CreationRequest(
        source=str(source), name="houses", rule=SplitRule(val_share=0.75), workers=0, options={"target": "price"}
    )
    create_dataset(asked, folder)
    spec = DatasetSpec(source=str(source), name="houses")
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=folder.name, kind="dataset", name="houses", folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


def metrics(answer: Any) -> dict[str, str]:
    stats = html_of(answer).all(".metrics .stats div")
    return {each.one("dt").text: " ".join(dd.text for dd in each.all("dd")).replace("\u202f", " ") for each in stats}


def test_regression_shows_metrics_chart_and_worst_samples(visit: Any, priced: str) -> None:
    known, found = prices(1)
    answer = visit.get(f"/evaluations/{priced}")

    assert answer.status_code == 200
    errors = np.abs(known - found)[:, 0]
    shown = metrics(answer)
    assert next(iter(shown)) == "RMSE"
    assert float(shown["RMSE"]) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-3)
    assert shown["Samples"] == "60 2 unreadable"
    page = html_of(answer)
    chart, residuals = (json.loads(each["data-chart"]) for each in page.all(".task-chart"))
    assert residuals["y"] == "Predicted − actual"
    assert (chart["kind"], chart["diagonal"], len(chart["groups"][0]["points"])) == ("scatter", True, COUNT)
    assert chart["groups"][0]["points"][3][2:] == ["row 3", "/datasets/20260101-000000-0003/samples/val/3"]
    tiles = page.all("#samples .tile")
    assert len(tiles) == 12
    worst = int(np.argmax(errors))
    assert tiles[0].one(".file .cut")["title"] == f"row {worst}"
    assert "size" in tiles[0].one(".task-row").text
    best = html_of(visit.get(f"/evaluations/{priced}?show=best")).all("#samples .tile")
    assert best[0].one(".file .cut")["title"] == f"row {int(np.argmin(errors))}"
    assert not page.has("#threshold-form")


def test_samples_are_filtered_by_the_error_that_people_see(visit: Any, priced: str) -> None:
    known, found = prices(1)
    errors = np.abs(known - found)[:, 0]
    answer = visit.get(f"/evaluations/{priced}/samples?order=easiest&score_from=2&score_to=6&offset=")

    page = html_of(answer)
    wanted = [row for row in np.argsort(errors, kind="stable").tolist() if 2 <= errors[row] <= 6]
    assert [each["title"] for each in page.all(".file .cut")] == [f"row {row}" for row in wanted][:48]
    assert page.one(".lead strong").text == f"{len(wanted)} samples"
    assert len(html_of(visit.get(f"/evaluations/{priced}/samples?offset=48")).all(".tile")) == COUNT - 48
    assert visit.get(f"/evaluations/{priced}/samples?score_from=x").status_code == 422


def test_two_runs_are_compared_by_their_scores(visit: Any, priced: str, evaluation: Any, houses: str) -> None:
    known, found = prices(1)
    _, worse = prices(3)
    second = evaluation("second", table_context(), {"output": worse}, {"y": known}, dataset=houses)

    page = html_of(visit.get(f"/evaluations/{second}"))
    changes = [int(each.text.split()[0]) for each in page.all(".changes a")]
    gaps = np.abs(known - found)[:, 0] - np.abs(known - worse)[:, 0]
    margin = 0.05 * np.abs(known - found).std()
    assert changes == [(gaps > margin).sum(), (gaps < -margin).sum(), (np.abs(gaps) <= margin).sum()]
    assert "worse" in page.one(".against .context").text
    listed = html_of(visit.get(f"/evaluations/{priced}/differences?other={second}&which=worse&margin=0"))
    assert listed.one("#difference-interval").text
    assert listed.one(".tabs [aria-current]").text == f"Worse: {(gaps < 0).sum()}"
    assert listed.all(".tile")[0].one(".file .cut")["title"] == f"row {int(np.argmin(gaps))}"
    assert "margin is a number" in errors_of(visit.get(f"/evaluations/{priced}/differences?other={second}&margin=x"))[0]
    refused = visit.get(f"/evaluations/{priced}/differences?other={second}&which=fixed")
    assert refused.status_code == 400


def test_a_difference_with_both_signs_is_said_to_be_none(visit: Any, priced: str, evaluation: Any, houses: str) -> None:
    known, found = prices(1)
    alike = known + np.random.RandomState(1).permutation(found - known)  # the same errors, on other samples
    second = evaluation("second", table_context(), {"output": alike}, {"y": known}, dataset=houses)

    assert "no significant difference: mean error" in html_of(visit.get(f"/evaluations/{second}")).one(".against").text
    page = html_of(visit.get(f"/evaluations/{priced}/differences?other={second}"))
    assert page.one("#mean-change").text == "No significant difference"
    clearly = evaluation(
        "third", table_context(), {"output": known + 3 * (found - known)}, {"y": known}, dataset=houses
    )
    page = html_of(visit.get(f"/evaluations/{priced}/differences?other={clearly}"))
    assert page.one("#mean-change").text.endswith("worse")


def test_scores_of_two_versions_are_one_page(
    visit: Any, studio: Any, priced: str, evaluation: Any, houses: str
) -> None:
    version = studio.datasets.correct(houses, {"val/3": 5.0}, ["val/0"], name="houses 2").id
    known, worse = (values[1:] for values in prices(3))
    second = evaluation("second", table_context(), {"output": worse}, {"y": known}, dataset=version)

    place = f"/evaluations/{priced}/differences?other={second}"
    page = html_of(visit.get(f"{place}&which=label_changed"))

    assert [each.text for each in page.all(".tabs a")][3:] == [
        *("Label changed: 1", "Only in the first: 1", "Only in the second: 0")
    ]
    (tile,) = page.all(".tile")
    assert tile.one(".file .cut")["title"] == "row 3"
    with studio.datasets.opened(houses) as dataset:
        before = dataset.entry("val", 3).label
    assert tile.one(".relabeled").text == f"label {before:g} → 5"
    assert "59 samples are in both" in page.one("#joined").text
    only = html_of(visit.get(f"{place}&which=only_first")).all(".tile")
    assert [each.one(".file .cut")["title"] for each in only] == ["row 0"]
    beside = html_of(visit.get(f"/evaluations/{second}"))
    assert beside.one("#against option[selected]")["value"] == priced
    assert "59 common samples, 1 label changed" in beside.one(".other-version").text


def test_the_report_of_a_task_is_markdown(visit: Any, priced: str) -> None:
    answer = visit.get(f"/evaluations/{priced}/report.md")
    lines = answer.text.splitlines()
    assert "- Task: regression" in lines
    assert any(line.startswith("| RMSE | ") for line in lines)


def masks() -> tuple[TaskContext, np.ndarray, np.ndarray]:
    schema = Schema(kind="segmentation", class_names=("road", "tree <b>"), colours=((1, 2, 3), (9, 8, 7)))
    context = TaskContext(task("segmentation"), schema, Preprocessing(size=(4, 4), channels=3))
    random = np.random.default_rng(1)
    return context, random.normal(size=(20, 4, 4, 2)).astype(np.float32), random.integers(0, 2, (20, 4, 4, 1))


@pytest.fixture
def masked(evaluation: Callable[..., str], studio: Any) -> str:
    context, outputs, targets = masks()
    job_id = evaluation("masks", context, {"output": outputs}, {"y": targets})
    model = studio.jobs.get(studio.jobs.get(job_id).parent)
    checkpoint = Path(model.folder) / "checkpoints" / "step-00000012"
    checkpoint.mkdir(parents=True)
    (checkpoint / "state.json").write_text("{}")
    (checkpoint / "arrays.npz").write_bytes(b"")
    return job_id


def test_segmentation_shows_masks_and_each_class(
    visit: Any, studio: Any, masked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def samples(job_id: str, split: str, rows: Any, **options: Any) -> Any:
        asked.append((job_id, split, rows, options["checkpoint"]))
        return {"samples": [{"row": rows[0], "drawn": {"image": PNG, "predicted": PNG}}], "failures": []}

    monkeypatch.setattr(studio.models, "samples", samples)
    answer = visit.get(f"/evaluations/{masked}")
    page = html_of(answer)

    assert {row.one("th").text for row in page.all(".classes tbody tr")} == {"road", "tree <b>"}
    assert "tree <b>" not in answer.text
    assert [each["data-mask-color"] for each in page.all("[data-mask-color]")] == ["#010203", "#090807"]
    sources = [each["src"] for each in page.all("#samples .tile")[0].all("img")]
    assert [source.rpartition("/")[2] for source in sources] == ["image", "target", "image", "predicted"]
    assert page.all("#samples .tile")[0].one(".said").text.endswith("IoU")
    assert visit.get(sources[0]).content == PNG
    assert visit.get(sources[3]).content == PNG
    row = int(sources[0].split("/")[-2])
    assert asked == [(studio.jobs.get(masked).parent, "val", [row], "step-00000012")], "asked once for each sample"
    assert visit.get(f"/evaluations/{masked}/drawn/{row}/other").status_code == 404
    assert visit.get(f"/evaluations/{masked}/drawn/999/image").status_code == 400


def test_segmentation_has_a_confusion_and_all_classes(visit: Any, evaluation: Any) -> None:
    names = tuple(f"class {number}" for number in range(12))
    context = TaskContext(
        task("segmentation"), Schema(kind="segmentation", class_names=names), Preprocessing(size=(4, 6))
    )
    targets = np.tile(np.arange(24).reshape(4, 6) % 12, (13, 1, 1))
    predicted = np.where(targets == 3, 5, targets)  # of class 3 nothing is found
    job_id = evaluation(
        "masks", context, {"output": np.eye(12, dtype=np.float32)[predicted]}, {"y": targets[..., None]}
    )

    page = html_of(visit.get(f"/evaluations/{job_id}"))
    assert [each.text for each in page.all(".confusion thead span")] == [*names, "share"]
    rows = page.all(".confusion tbody tr")
    assert [each.text for each in rows[3].all("td")] == ["", "", "", "", "", "100", *[""] * 6, "8.3"]
    ranked = [row.one("th").text for row in page.all(".classes tbody tr")]
    assert ranked[:2] == ["class 3", "class 5"]
    assert len(ranked) == 12
    pixels = html_of(visit.get(f"/evaluations/{job_id}", params={"values": "count"}))
    assert [each.text for each in pixels.all(".confusion tbody tr")[3].all("td")][5] == "26"


def test_masks_say_what_they_wait_for(visit: Any, studio: Any, masked: str, take_in: Callable[..., str]) -> None:
    tile = html_of(visit.get(f"/evaluations/{masked}")).all("#samples .tile")[0]
    assert [each.text for each in tile.all(".mask-wait")] == ["waiting for the model …"] * 2

    job, source = studio.jobs.get(masked), SampleSource(job=masked, dataset="d", kind="evaluate", tiny=False)
    samples = studio.evaluations.samples(masked, limit=1)["samples"]
    assert task_tiles(studio, job, samples, source, is_drawn=True)[0].base == source.picture(samples[0])
    cropping = take_in("train", "crops", spec={"kind": "train", "preprocessing": {"resize_mode": "crop"}})
    cropped = task_tiles(studio, replace(job, parent=cropping), samples, source, is_drawn=True)[0]
    assert cropped.base == cropped.drawn["image"], "a stretched mask would not fit what was cut"


def test_a_lost_checkpoint_is_one_sentence(visit: Any, studio: Any, masked: str) -> None:
    model = studio.jobs.get(studio.jobs.get(masked).parent)
    shutil.rmtree(Path(model.folder) / "checkpoints")
    page = html_of(visit.get(f"/evaluations/{masked}"))
    assert "step-00000012 is gone" in page.one("#not-drawn").text
    assert not page.has("[data-mask]")
    assert len(page.all("#samples .tile")) == 12


def test_several_labels_have_bars(visit: Any, evaluation: Any) -> None:
    schema = Schema(kind="image-regression", class_names=("sun", "sea"))
    context = TaskContext(task("multi-label"), schema, Preprocessing(size=(4, 4), channels=3))
    random = np.random.default_rng(2)
    outputs, targets = random.normal(size=(9, 2)).astype(np.float32), random.integers(0, 2, (9, 2)).astype(np.float32)
    job_id = evaluation("labels", context, {"output": outputs}, {"y": targets})
    page = html_of(visit.get(f"/evaluations/{job_id}"))
    assert page.all(".label-bars")
    assert next(iter(metrics(visit.get(f"/evaluations/{job_id}")))) == "Mean AP"


@pytest.mark.parametrize("name", ["image-to-image", "pairs"])
def test_other_tasks_have_pages(visit: Any, evaluation: Any, name: str) -> None:
    schema = Schema(kind="image-classification", class_names=("cat", "dog"))
    context = TaskContext(task(name), schema, Preprocessing(size=(12, 12), channels=3))
    random = np.random.default_rng(0)
    if name == "pairs":
        outputs = {key: random.normal(size=(16, 3)).astype(np.float32) for key in ("output", "output_1")}
        targets = {"y": np.arange(16) % 2, "label": random.integers(0, 2, 16)}
    else:
        outputs = {"output": random.uniform(0, 255, (16, 12, 12, 3)).astype(np.float32)}
        targets = {"y": random.uniform(0, 255, (16, 12, 12, 3)).astype(np.float32)}
    job_id = evaluation(name, context, outputs, targets)
    answer = visit.get(f"/evaluations/{job_id}")
    assert answer.status_code == 200, answer.text
    assert len(html_of(answer).all("#samples .tile")) == 12
    charts = [json.loads(each["data-chart"])["kind"] for each in html_of(answer).all(".task-chart")]
    assert charts == (["bar", "scatter"] if name == "pairs" else [])


def test_what_cannot_be_shown_is_said(visit: Any, studio: Any, evaluation: Any) -> None:
    known, found = prices(1)
    lost = evaluation("lost", table_context(), {"output": found}, {"y": known}, task="of-a-plugin")
    page = html_of(visit.get(f"/evaluations/{lost}"))
    assert "of-a-plugin" in page.one(".note.error").text
    assert visit.get(f"/evaluations/{lost}/samples").status_code == 501
    assert visit.get(f"/evaluations/{lost}/report.md").status_code == 200

    damaged = evaluation("damaged", table_context(), {"output": found}, {"y": known})
    (studio.root / "jobs" / damaged / "results" / "summary.json").write_text("{")
    answer = visit.get(f"/evaluations/{damaged}")
    assert answer.status_code == 507
    assert "cannot be read" in errors_of(answer)[0]


def test_a_plug_in_brings_its_own_templates(
    visit: Any, evaluation: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, found = prices(1)
    job_id = evaluation("own", table_context(), {"output": found}, {"y": known})
    assert "predicted" in html_of(visit.get(f"/evaluations/{job_id}")).all("#samples .tile")[0].text
    monkeypatch.setattr(type(task("regression")), "templates", tmp_path)
    assert _task_template("tasks/regression/sample.html") is None
    (tmp_path / "sample.html").write_text("own")
    found_template = _task_template("tasks/regression/sample.html")
    assert found_template is not None
    assert found_template[0] == "own"
    assert _task_template("tasks/../secret.html") is None
    assert _task_template("tasks/nothing/sample.html") is None


# ---- the page of predictions


@pytest.fixture
def model(studio: Any, take_in: Callable[..., str], houses: str) -> Callable[..., str]:
    """Return what makes a model with a checkpoint that learned a task, and returns its id."""

    def make(name: str, schema: Schema) -> str:
        job_id = take_in("train", "a model", spec={"kind": "train"}, depends_on=(houses,))
        folder = studio.root / "jobs" / job_id
        checkpoint = folder / "checkpoints" / "step-00000012"
        checkpoint.mkdir(parents=True)
        (checkpoint / "state.json").write_text("{}")
        (checkpoint / "arrays.npz").write_bytes(b"")
        content = {"version": 1, "task": name, "schema": schema.as_json(), "statistics": {}}
        (folder / "task.json").write_text(json.dumps(content))
        return job_id

    return make


@pytest.fixture
def for_rows(model: Callable[..., str]) -> str:
    columns = (
        Column(name="size", type="number"),
        Column(name="district", type="category", categories=("east", "west")),
        Column(name="garden", type="boolean"),
        Column(name="id", type="identifier"),
        Column(name="price", type="number"),
    )
    return model("regression", Schema(kind="table", columns=columns, target="price"))


def test_a_row_is_typed_and_predicted(visit: Any, studio: Any, for_rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def predict(job_id: str, **options: Any) -> Any:
        asked.append(options)
        said = {"file": "1", "values": [{"name": "price", "value": 181.2875}], "picture": None}
        return {"predictions": [said], "failures": [], "step": 12, "epoch": 2}

    monkeypatch.setattr(studio.models, "predict_values", predict)
    page = html_of(visit.get(f"/models/{for_rows}/test"))
    assert [each["name"] for each in page.all(".columns input")] == ["column-0"]
    assert [each["value"] for each in page.one("#column-1").all("option")] == ["", "east", "west"]
    assert [each.text for each in page.all(".tabs a")[-2:]] == ["One row", "Evaluate"]
    typed = {"column-0": "70.5", "column-1": "east", "column-2": ""}
    answer = visit.post(f"/models/{for_rows}/test/one", data=typed)
    assert asked[0]["rows"] == [{"size": 70.5, "district": "east", "garden": None}]
    shown = html_of(answer)
    assert shown.one(".answer-values dd").text == "181.29"
    assert shown.one("#column-0")["value"] == "70.5"


def test_a_wrong_number_is_said_at_its_field(visit: Any, for_rows: str) -> None:
    answer = visit.post(f"/models/{for_rows}/test/one", data={"column-0": "many"})
    assert answer.status_code == 400
    assert "is a number" in html_of(answer).one("#column-0-problem").text


def test_a_validation_row_fills_the_form(visit: Any, for_rows: str) -> None:
    page = html_of(visit.get(f"/models/{for_rows}/test?fill=61"))
    assert "validation row 1" in page.one("#filled").text
    size = float(page.one("#column-0")["value"])
    assert f"{8 * size + 0.5:g}" in page.one("#filled strong").text
    assert page.one("#one-fill")["href"].endswith("fill=2")


def test_a_text_is_typed(visit: Any, studio: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = model("classification", Schema(kind="text-classification", class_names=("ham", "spam")))
    said = {"file": "1", "classes": [{"class": "spam", "number": 1, "probability": 0.75}], "picture": None}
    answers = {"predictions": [said], "failures": [], "step": 12, "epoch": 2}
    monkeypatch.setattr(studio.models, "predict_values", lambda job_id, **options: answers)
    shown = html_of(visit.post(f"/models/{job_id}/test/one", data={"text": "Win a prize"}))
    assert shown.one("#text").text == "Win a prize"
    assert shown.one(".said .name").text == "spam"
    empty = visit.post(f"/models/{job_id}/test/one", data={"text": " "})
    assert empty.status_code == 400
    assert "Enter a text (received: " in empty.text


def test_an_image_task_shows_its_picture(visit: Any, studio: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = model("segmentation", Schema(kind="segmentation", class_names=("road", "tree")))
    classes = [{"class": "tree", "number": 1, "share": 0.75, "color": "#800000"}]
    said = {"file": "a.png", "size": [4, 4], "classes": classes, "picture": PNG, "input": PNG}
    answers = {"predictions": [said], "failures": [], "step": 12, "epoch": 2}
    monkeypatch.setattr(studio.models, "predict", lambda *_inputs, **options: answers)
    shown = html_of(visit.post(f"/models/{job_id}/test/one", files={"picture": ("a.png", PNG)}))
    assert shown.one("[data-mask]")["src"].endswith("/1")
    assert visit.get(shown.one("[data-mask]")["src"]).content == PNG
    assert shown.one(".said .share").text.startswith("75.0")
    few = html_of(visit.post(f"/models/{job_id}/test/few", files={"pictures": ("a.png", PNG)}))
    assert few.one(".few .said .name").text.strip() == "tree"
    assert "needs a network that classifies" in few.one(".many .empty").text


def test_a_note_on_an_image_is_shown(visit: Any, studio: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = model("classification", Schema(kind="image-classification", class_names=("a", "b")))
    note = "Its values reach 40000, above the 12 bits of the training images: they become white."
    said = {"file": "a.png", "classes": [{"class": "b", "number": 1, "probability": 0.75}], "note": note}
    answers = {"predictions": [said], "failures": [], "step": 12, "epoch": 2}
    monkeypatch.setattr(studio.models, "predict", lambda *_inputs, **options: answers)
    assert (
        html_of(visit.post(f"/models/{job_id}/test/one", files={"picture": ("a.png", PNG)})).one("#one-note").text
        == note
    )
    few = html_of(visit.post(f"/models/{job_id}/test/few", files={"pictures": ("a.png", PNG)}))
    assert few.one(".few .note").text == note


def test_a_network_that_generates_has_sliders(
    visit: Any, studio: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, asked = model("free", Schema(kind="image-classification", class_names=("0", "1"))), []

    def generate(job_id: str, count: int, **options: Any) -> Any:
        asked.append((count, options["seed"], options["first"]))
        inputs = {
            "noise": {"shape": [64], "dtype": "float32"},
            "style": {"shape": [2], "dtype": "float32"},
            "digit": {"shape": [], "dtype": "int64"},
        }
        return {"predictions": [{"file": "1", "picture": PNG}] * count, "inputs": inputs, "step": 12, "epoch": 2}

    monkeypatch.setattr(studio.models, "generate", generate)
    page = html_of(visit.get(f"/models/{job_id}/test"))
    assert [each.text for each in page.all(".tabs a")[-4:]] == ["Generate", "One image", "Many images", "Evaluate"]
    assert page.one(".tabs a[aria-current]").text == "Generate"
    assert not page.all(".made img") + page.all('input[type="range"]')
    place = f"/models/{job_id}/test/generate"
    page = html_of(visit.post(place, data={"seed": "7", "count": "3"}))
    assert asked == [(3, 7, None)]
    assert len(page.all(".made img")) == 3
    assert visit.get(page.all(".made img")[2]["src"]).content == PNG
    assert [each["value"] for each in page.all('fieldset input[type="hidden"]')] == ["noise", "style"]
    assert len(page.all('#sliders-0 input[type="range"]')) == 8
    assert "and 56 numbers from the seed" in page.one("#sliders-0 legend").text
    assert len(page.all('#sliders-1 input[type="range"]')) == 2
    sliders = {"input-0": "noise", "first-0-0": "1.5", "first-0-1": "-3", "input-1": "style", "first-1-0": "0"}
    page = html_of(visit.post(place, data={"seed": "7", "count": "1", "by_hand": "true", **sliders}))
    assert asked[1] == (1, 7, {"noise": [1.5, -3.0], "style": [0.0]})
    assert page.one("#first-0-0")["value"] == "1.5"
    visit.post(place, data={"count": "1", "another": "seed", **sliders})
    assert (asked[2][0], asked[2][2]) == (1, None)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"seed": "x"}, "is not a whole number from 0 to 2147483647, as "),
        ({"count": "65"}, "is not a whole number from 1 to 64, as "),
        (
            {"by_hand": "true", "input-0": "noise", "first-0-0": "4"},
            "A number of an input must be from -3 to 3 (received: ",
        ),
        (
            {"by_hand": "true", "input-0": "noise", "first-0-0": "nan"},
            "A number of an input must be from -3 to 3 (received: ",
        ),
        ({"device": "x"}, "it must be cpu or a number."),
    ],
)
def test_what_cannot_be_generated_is_said(visit: Any, model: Any, typed: dict[str, str], said: str) -> None:
    job_id = model("free", Schema(kind="image-classification", class_names=("0", "1")))
    answer = visit.post(f"/models/{job_id}/test/generate", data=typed)
    assert answer.status_code == 400
    assert said in html_of(answer).one("#generate").text


def test_a_model_of_a_lost_plug_in_is_one_sentence(visit: Any, model: Any) -> None:
    job_id = model("of-a-plugin", Schema(kind="table"))
    answer = visit.get(f"/models/{job_id}/test")
    assert answer.status_code == 501
    assert "of-a-plugin" in errors_of(answer)[0]


def test_lists_and_comparisons_name_the_metric_that_counts(
    visit: Any, studio: Any, priced: str, evaluation: Any, houses: str
) -> None:
    known, _ = prices(1)
    second = evaluation("second", table_context(), {"output": prices(3)[1]}, {"y": known}, dataset=houses)
    jobs = [studio.jobs.get(each) for each in (priced, second)]
    assert studio.jobs.results(jobs)[priced]["primary"] == "rmse"
    listed = visit.get("/evaluations")
    assert listed.status_code == 200
    assert "RMSE" in listed.text
    compared = html_of(visit.get(f"/compare?job={jobs[0].parent}&job={jobs[1].parent}"))
    cells = [each.text for each in compared.all(".compare-scroll td.number a")]
    assert [next(word for word in ("better", "worse", "equal") if word in text) for text in cells] == [
        "better",
        "worse",
        "equal",
    ], cells


def test_samples_of_a_table_have_rows_and_no_image(studio: Any, houses: str) -> None:
    sample = {"split": "val", "row": 0}
    source = SampleSource(job="x", dataset=houses, kind="evaluate", tiny=False, held=held_by(studio, houses))
    assert (source.held, source.picture(sample)) == ("row", "")
    (found,) = contents_of(studio, houses, [sample]).values()
    assert found.cells
    with studio.datasets.opened(houses) as dataset:
        assert dataset.schema.target not in dict(found.cells)
    assert contents_of(studio, "20200101-000000-00000000", [sample]) == {}


def test_the_job_page_lists_the_results_of_its_evaluations(visit: Any, studio: Any, priced: str) -> None:
    model = studio.jobs.get(priced).parent
    rows = html_of(visit.get(f"/models/{model}?tab=predictions")).all("#job-users tbody tr")
    cells = [each.text for each in rows[0].all("td")]
    shown = html_of(visit.get("/evaluations")).all("#results tbody tr")[0]
    assert cells[3] == f"{shown.one('.c-best').text} {shown.one('.c-metric').text}"
    result = studio.jobs.results([studio.jobs.get(priced)])[priced]
    assert float(cells[3].split()[0]) == pytest.approx(result[result["primary"]], rel=0.01)
