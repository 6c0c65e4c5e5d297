"""Pages of object detection: boxes over samples of an evaluation, and over an image that was predicted for."""

import json

import numpy as np
import pytest

from tests.unit.web.html_page import html_of
from tests.unit.web.test_task_pages import PNG, evaluation, houses, metrics, model, take_in
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.tasks.detection import DETECTION

__all__ = ["evaluation", "houses", "model", "take_in"]

SCHEMA = Schema(kind="detection", class_names=("cat", "dog <b>"))


@pytest.fixture
def detected(evaluation):
    """Return the id of an evaluation of 14 images of 48 × 64 px: an object that is found in all, another one missed."""
    context = TaskContext(DETECTION, SCHEMA, Preprocessing(size=(48, 64)), {"most": 2})
    y = np.zeros((14, 1, 3, 16), np.float32)
    y[:, 0, 0, :8] = (2, 16, 48, 64, 1, 1, 0, 0)
    y[:, 0, 1, :6] = (4, 6, 20, 20, 0, 0)
    y[:, 0, 2, :6] = (30, 20, 16, 16, 0, 1)
    output = np.zeros((14, 3, 6), np.float32)
    output[:, 0] = (4, 6, 24, 26, 0.8, 0)
    output[:, 1] = (50, 4, 60, 14, 0.4, 0)
    output[:, 2] = (30, 20, 46, 36, 0, 0.2)
    return evaluation("detected", context, {"output": output}, {"y": y})


def test_an_evaluation_shows_metrics_curves_and_tables(visit, detected) -> None:
    answer = visit.get(f"/evaluations/{detected}")

    assert answer.status_code == 200
    page = html_of(answer)
    assert next(iter(metrics(answer))) == "mAP 50:95"
    charts = {each["aria-label"].partition(";")[0]: json.loads(each["data-chart"]) for each in page.all(".task-chart")}
    assert list(charts) == ["Precision and recall", "Choice of the confidence", "Errors", "Confusion"]
    assert charts["Confusion"]["values"] == [[14, 0, 0], [0, 0, 14], [14, 0, 0]]
    assert [each["name"] for each in charts["Choice of the confidence"]["groups"]] == ["Precision", "Recall", "F1"]
    assert [each.text for each in page.all(".classes h2")] == ["Classes", "Best confidence"]
    assert "dog <b>" not in answer.text


def test_samples_show_actual_and_predicted_boxes(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}"))

    tiles = page.all("#samples .tile")
    assert len(tiles) == 12
    drawing = tiles[0].one(".boxes-over svg")
    assert drawing["viewbox"] == "0 0 64 48"
    assert [each["class"] for each in drawing.all("g")] == [
        "actual",
        "actual missed",
        "predicted correct off",
        "predicted wrong",
        "predicted correct",
    ]
    assert [each["data-found"] for each in drawing.all(".actual")] == ["0.8", "0.2"]
    assert drawing.all(".predicted rect")[-1]["width"] == "20.0"
    figures = json.loads(page.one("[data-figures]")["data-figures"])
    at = next(each for each in figures if each["confidence"] == 0.3)
    assert (at["precision"], at["recall"]) == (0.5, 0.5)


def test_other_iou_and_confidence_change_figures_and_tiles(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}", params={"confidence": "0.5"}))

    charts = {each["aria-label"].partition(";")[0]: json.loads(each["data-chart"]) for each in page.all(".task-chart")}
    assert charts["Confusion"]["values"] == [[14, 0, 0], [0, 0, 14], [0, 0, 0]]
    assert charts["Errors"]["y"] == "Errors"
    assert page.one("#field-confidence")["value"] == "0.5"
    assert page.one("[data-confidence]")["value"] == "0.5"
    assert {*(each["class"] for each in page.all("#samples .tile")[0].all(".predicted"))} == {
        "predicted correct off",
        "predicted wrong off",
        "predicted correct",
    }
    refused = visit.get(f"/evaluations/{detected}", params={"iou": "7"})
    assert refused.status_code == 400
    assert "from 0.1 to 0.95" in refused.text


def test_bars_and_cells_lead_to_their_samples(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}", params={"confidence": "0.35"}))
    charts = {each["aria-label"].partition(";")[0]: json.loads(each["data-chart"]) for each in page.all(".task-chart")}

    errors = dict(zip(charts["Errors"]["names"], charts["Errors"]["links"], strict=True))
    assert errors["classification"] is None
    missed = html_of(visit.get(errors["missed"]))
    assert missed.one(".lead").text == "14 samples"
    assert missed.one("#field-errors option[selected]")["value"] == "missed"
    cell = charts["Confusion"]["link"].replace("{row_number}", "2").replace("{column_number}", "0")
    assert "confidence=0.35" in cell
    assert html_of(visit.get(cell)).one(".lead").text == "14 samples"
    empty = charts["Confusion"]["link"].replace("{row_number}", "0").replace("{column_number}", "1")
    assert "No sample is in this range." in visit.get(empty).text


def test_programs_choose_samples_by_fields_of_the_task(visit, detected) -> None:
    place = f"/api/v1/evaluations/{detected}/samples"
    found = visit.get(place, params={"choose": ["errors=missed", "confidence=0.5"], "limit": 2}).json()
    assert found["total"] == 14
    assert [each["name"] for each in found["fields"]] == ["errors", "actual", "found", "size", "iou", "confidence"]
    assert found["samples"][0]["score"] == pytest.approx(2 / 3)
    assert visit.get(place, params={"limit": 1}).json()["samples"][0]["score"] == pytest.approx(0.5)
    assert visit.get(place, params={"choose": "errors=duplicate"}).json()["total"] == 0
    assert visit.get(place, params={"choose": "errors"}).json()["advice"] == "Such as `choose=errors=missed`."
    assert "Did you mean `errors`" in visit.get(place, params={"choose": "eror=missed"}).json()["advice"]


def test_two_runs_are_compared_by_objects(visit, detected, evaluation) -> None:
    context = TaskContext(DETECTION, SCHEMA, Preprocessing(size=(48, 64)), {"most": 2})
    y = np.zeros((14, 1, 3, 16), np.float32)
    y[:, 0, 0, :8] = (2, 16, 48, 64, 1, 1, 0, 0)
    y[:, 0, 1, :6] = (4, 6, 20, 20, 0, 0)
    y[:, 0, 2, :6] = (30, 20, 16, 16, 0, 1)
    output = np.zeros((14, 1, 6), np.float32)
    output[:, 0] = (30, 20, 46, 36, 0, 0.9)
    second = evaluation("second", context, {"output": output}, {"y": y})

    found = visit.get(f"/api/v1/evaluations/{detected}/differences/{second}").json()
    assert found["changes"] == {
        "objects found now": 14,
        "objects missed now": 14,
        "objects still missed": 0,
        "wrong boxes before": 14,
        "wrong boxes now": 0,
    }
    page = html_of(visit.get(f"/evaluations/{detected}/differences", params={"other": second, "which": "better"}))
    titles = [each.text for each in page.all(".metrics dt")]
    assert "Objects found now" in titles
    assert visit.get(f"/evaluations/{detected}").status_code == 200


@pytest.fixture
def said(studio, monkeypatch):
    """Let every model say the same of every image."""
    boxes = [
        {"class": "dog <b>", "number": 1, "score": 0.91, "box": [2.0, 3.0, 30.5, 40.0], "color": "#e6b434"},
        {"class": "cat", "number": 0, "score": 0.12, "box": [50.0, 3.0, 60.0, 9.0], "color": "#5aaef5"},
    ]

    def predict(job_id, pictures, **options):
        answers = [{"file": name, "size": [48, 64], "boxes": boxes, "picture": None} for name, _ in pictures]
        return {"predictions": answers, "failures": [], "step": 12, "epoch": 2}

    monkeypatch.setattr(studio.models, "predict", predict)


def test_predicted_boxes_lie_over_the_image(visit, model, said) -> None:
    job_id = model("detection", SCHEMA)

    answer = visit.post(f"/models/{job_id}/test/one", files={"picture": ("pet.png", PNG, "image/png")})

    assert answer.status_code == 200, answer.text
    page = html_of(answer)
    drawing = page.one(".detected-image svg")
    assert drawing["viewbox"] == "0 0 64 48"
    assert [each["class"] if "class" in each.attributes else "" for each in drawing.all("g")] == ["off", ""]
    assert [each.text for each in page.all(".detected-list tbody tr")[0].all("td")][1:] == ["2", "3", "28", "37"]
    assert [each["data-class"] for each in page.all("input[data-class]")] == ["1", "0"]
    assert visit.get(page.one(".detected-image img")["src"]).status_code == 200
    assert "dog <b>" not in answer.text


def test_several_images_have_their_boxes_each(visit, model, said) -> None:
    job_id = model("detection", SCHEMA)
    files = [("pictures", (name, PNG, "image/png")) for name in ("a.png", "b.png")]

    page = html_of(visit.post(f"/models/{job_id}/test/few", files=files))

    sources = [each["src"] for each in page.all(".detected-image img")]
    assert len({*sources}) == 2
    assert all(visit.get(each).status_code == 200 for each in sources)
