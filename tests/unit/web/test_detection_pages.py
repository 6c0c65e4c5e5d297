"""Pages of object detection: boxes over samples of an evaluation, and over an image that was predicted for."""

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


def cells(page):
    return [[cell.text for cell in row.all("td")] for row in page.all(".confusion tbody tr")]


def test_an_evaluation_shows_metrics_curves_and_tables(visit, detected) -> None:
    answer = visit.get(f"/evaluations/{detected}")

    assert answer.status_code == 200
    page = html_of(answer)
    shown = metrics(answer)
    assert next(iter(shown)) == "mAP 50:95"
    assert list(shown)[3:] == ["Small, medium, large", "Precision", "Recall", "F1", "Samples"]
    assert [each.text for each in page.all(".task-panels h2")] == [
        "Confusion",
        "Precision and recall",
        "By confidence",
        "Kinds of errors",
    ]
    assert not page.all(".task-chart")
    assert [each.text for each in page.all(".classes h2")] == ["Average precision by class", "Best confidence by class"]
    assert "dog <b>" not in answer.text


def test_the_confusion_names_all_classes_and_the_background(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}"))

    assert [each.text for each in page.all(".confusion thead th span")] == ["cat", "dog <b>", "background"]
    assert [each.text for each in page.all(".confusion tbody th")] == ["cat", "dog <b>", "background"]
    assert cells(page) == [["14", "", ""], ["", "", "14"], ["14", "", ""]]
    percent = html_of(visit.get(f"/evaluations/{detected}", params={"values": "percent"}))
    assert cells(percent) == [["100", "", ""], ["", "", "100"], ["100", "", ""]]


def test_curves_are_lines_with_a_dot_at_the_confidence(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}"))

    curves = page.one("#precision-recall")
    assert len(curves.all("polyline")) == 2
    assert next(each.text for each in curves.all(".legend li")) == "cat AP50 100.0 %"
    by_confidence = page.one("#by-confidence")
    assert len(by_confidence.all("polyline")) == 3
    assert by_confidence.one("text.at").text == "0.30"
    assert "Highest F1 80.0 % at 0.20" in by_confidence.text
    # One of the classes has no box at this confidence, so it has no precision.
    assert len(curves.all("circle.series-1")) == 1


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


def test_one_slider_moves_figures_charts_and_images(visit, detected) -> None:
    before = html_of(visit.get(f"/evaluations/{detected}"))
    assert len(before.all('input[type="range"]')) == 1
    assert before.one("#threshold-figures").text == "14 correct 14 false 14 missed Highest F1: 0.20"
    assert before.one("#measure-precision").text == "Precision 50.0 % at 0.30 14 of 28 boxes"

    answer = visit.part(f"/evaluations/{detected}", "evaluation-results", params={"confidence": "0.5"})
    page = html_of(answer)
    assert "<html" not in answer.text
    assert cells(page) == [["14", "", ""], ["", "", "14"], ["", "", ""]]
    assert page.one("#by-confidence text.at").text == "0.50"
    assert page.one("#threshold-figures").text == "14 correct 0 false 14 missed Highest F1: 0.20 Reset"
    assert page.one("#measure-precision").text == "Precision 100.0 % at 0.50 14 of 14 boxes"
    assert {*(each["class"] for each in page.all("#samples .tile")[0].all(".predicted"))} == {
        "predicted correct off",
        "predicted wrong off",
        "predicted correct",
    }
    whole = html_of(visit.get(f"/evaluations/{detected}", params={"confidence": "0.5"}))
    assert whole.one("#field-confidence")["value"] == "0.5"
    assert whole.one('input[name="iou"][checked]')["value"] == "0.5"


def test_another_iou_has_curves_of_its_own(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}", params={"iou": "0.9"}))

    assert page.one('input[name="iou"][checked]')["value"] == "0.9"
    assert "AP50" not in page.one("#precision-recall .legend").text
    assert cells(page) == [["14", "", ""], ["", "", "14"], ["14", "", ""]]
    refused = visit.get(f"/evaluations/{detected}", params={"iou": "7"})
    assert refused.status_code == 400
    assert "from 0.1 to 0.95" in refused.text


def test_rows_and_cells_choose_the_images_below(visit, detected) -> None:
    page = html_of(visit.get(f"/evaluations/{detected}", params={"confidence": "0.35"}))

    errors = {row.one("th").text: row for row in page.all("#errors tbody tr")}
    assert not errors["wrong class"].all("a")
    missed = html_of(visit.get(errors["missed object"].one("a")["href"].partition("#")[0]))
    assert missed.one("#show-all").text == "Show all 14"
    assert missed.one("#fields-off").text == "Errors: missed object ×"
    nothing = errors["missed object"].one("a")["href"].partition("#")[0].replace("missed", "duplicate")
    assert "No sample is in this range." in visit.get(nothing).text
    cell = page.one("#cell-2-0")["href"].partition("#")[0]
    assert "confidence=0.35" in cell
    chosen = html_of(visit.get(cell))
    assert chosen.one("#fields-off").text == "Actual class: background, Predicted class: cat ×"
    assert chosen.one(".confusion td.current a")["id"] == "cell-2-0"
    everything = visit.get(chosen.one("#cell-2-0")["href"].partition("#")[0])
    assert not html_of(everything).all("#fields-off")
    listed = html_of(visit.get(missed.one("#show-all")["href"]))
    assert listed.one("#field-errors option[selected]")["value"] == "missed"


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
