"""Pages of what a model said of many samples, over results that are written here: every figure is computed again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.web.html_page import errors_of, html_of
from ziggurat.entities import NewJob
from ziggurat.web.pages.evaluation.confusion import (
    cell_at,
    cell_side_px,
    confused_pairs,
    confusion_picture,
    confusion_rows,
)
from ziggurat.worker.results import SampleResults

NAMES = ["ant", "bee <b>", "cat"]
COUNT = 60


def said(seed: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of a model that is often right."""
    random = np.random.default_rng(7)
    labels = random.integers(0, classes, COUNT)
    scores = np.random.default_rng(seed).dirichlet(np.ones(classes), COUNT)
    scores[np.arange(COUNT), labels] += 0.4
    return labels, (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def evaluation(studio: Any) -> Callable[..., str]:
    """Return what takes in a job that is done, with results, and returns its id."""
    made: list[str] = []

    def take_in(kind: str, name: str, **fields: Any) -> str:
        job_id = f"20260102-000000-{len(made):04d}"
        made.append(job_id)
        folder = studio.root / "jobs" / job_id
        folder.mkdir(parents=True)
        new = NewJob(id=job_id, kind=kind, name=name, folder=str(folder), created=float(len(made)), **fields)
        return studio.datasets.take_in(new, {}).id

    def make(name: str, labels: np.ndarray, scores: np.ndarray, **given: Any) -> str:
        model = take_in("train", f"model of {name}", spec={"kind": "train"}, depends_on=(given.get("dataset", ""),))
        kind, split = given.get("kind", "evaluate"), given.get("split", "val")
        spec = {"kind": kind, "split": split, "source": "/pictures", "checkpoint": ""}
        job_id = take_in(kind, name, spec=spec, parent=model, depends_on=(model,))
        names = given.get("names", NAMES)
        results = SampleResults(len(labels), len(names), min(5, len(names)))
        results.add(list(range(len(labels))), [f"pictures/{row}.png" for row in range(len(labels))], labels, scores)
        data = str(studio.root / "datasets" / given["dataset"]) if given.get("dataset") else "/pictures"
        summary = {"kind": kind, "split": split, "data": data, "classifier": True, "classes": names}
        summary |= {"count": len(labels), "skipped": 1, "failures": [{"key": "<i>.png", "reason": "It is no image."}]}
        summary |= {"scalars": {"cost": 0.5}, "openings": 3, "step": 120, "epoch": 2, "checkpoint": "step-120"}
        results.write(studio.root / "jobs" / job_id / "results", summary | ({"root": "/"} if kind == "infer" else {}))
        return job_id

    return make


@pytest.fixture
def done(evaluation: Callable[..., str], pets: str) -> str:
    return evaluation("first", *said(1), dataset=pets)


def figures(text: str) -> dict[str, str]:
    """Return name and value of what stands in lists of figures."""
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
    return {name: re.sub("<.*?>", "", value).replace("\u202f", " ").strip() for name, value in pairs}


def cells(text: str) -> list[tuple[str, int]]:
    """Return address and count of the cells of the matrix that open their samples."""
    table = text[text.index('<table class="confusion') : text.index("</table>")]
    found = re.findall(r'<a href="([^"]*predicted=[^"]*)"[^>]*>([0-9]+)</a>', table)
    return [(address.replace("&amp;", "&"), int(count)) for address, count in found]


def test_every_figure_is_that_of_the_samples(visit: Any, done: str) -> None:
    labels, scores = said(1)
    answer = visit.get(f"/evaluations/{done}")

    assert answer.status_code == 200
    right = (scores.argmax(axis=1) == labels).mean()
    shown = figures(answer.text)
    assert shown["Accuracy"] == f"{100 * right:.2f} %"
    assert (shown["Samples"], shown["Cost"], shown["Unreadable"]) == ("60", "0.5", "1")
    assert shown["Test split opened"] == "3 times"
    assert "&lt;i&gt;.png</code>: It is no image." in answer.text
    assert "bee &lt;b&gt;" in answer.text
    assert "<b>" not in answer.text


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_each_cell_opens_its_samples(visit: Any, done: str, threshold: float) -> None:
    labels, scores = said(1)
    decided = scores.max(axis=1) >= threshold
    answer = visit.get(f"/evaluations/{done}?threshold={threshold}")

    found = cells(answer.text)
    assert sum(count for _, count in found) == decided.sum()
    for address, count in found:
        label, predicted = (int(re.search(f"{name}=([0-9]+)", address)[1]) for name in ("label", "predicted"))  # type: ignore[index]
        assert count == (decided & (labels == label) & (scores.argmax(axis=1) == predicted)).sum()
        samples = visit.get(address)
        assert f"{count} sample" in samples.text
        assert samples.text.count("<figure") == min(count, 48)


def test_the_threshold_moves_everything(visit: Any, done: str) -> None:
    labels, scores = said(1)
    decided = scores.max(axis=1) >= 0.7
    answer = visit.part(f"/evaluations/{done}?threshold=0.7&class=1&sort=recall&down=true", "evaluation-results")

    assert answer.text.startswith('\n<div id="evaluation-results">') or "<html" not in answer.text
    shown = figures(answer.text)
    assert shown["Decided"] == f"{decided.sum()} of 60"
    assert shown["Coverage"] == f"{100 * decided.mean():.1f} %"
    right = (scores.argmax(axis=1) == labels)[decided].mean()
    assert shown["Accuracy of the decided"] == f"{100 * right:.2f} %"
    rows = re.findall(r'<th scope="row"><a id="class-(\d)".*?</th>.*?</td><td class="number">([\d.]+)', answer.text)
    recalls = {
        n: (decided & (labels == n) & (scores.argmax(axis=1) == n)).sum() / (labels == n).sum() for n in range(3)
    }
    wanted = sorted(range(3), key=lambda number: -recalls[number])
    assert [(int(number), share) for number, share in rows] == [(n, f"{100 * recalls[n]:.1f}") for n in wanted]
    assert 'aria-sort="descending"' in answer.text
    assert 'name="class" value="1" form="threshold-form"' in answer.text
    assert "<circle" in answer.text


def test_pictures_and_pages_of_samples_are_those_of_the_data_set(visit: Any, done: str, pets: str) -> None:
    text = visit.get(f"/evaluations/{done}/samples?order=row").text

    assert f'href="/datasets/{pets}/samples/val/0"' in text
    assert f'src="/api/v1/datasets/{pets}/pictures/val/0?max_side_px=160"' in text
    assert visit.get(f"/api/v1/datasets/{pets}/pictures/val/0?max_side_px=160").status_code == 200
    assert 'href="/evaluations' in text
    assert "1 to 48 of 60" in text


def test_samples_are_filtered_and_ordered(visit: Any, done: str) -> None:
    labels, scores = said(1)
    said_class = scores.argmax(axis=1)
    wrong = np.flatnonzero(said_class != labels)
    surest = wrong[np.argsort(-scores[wrong].max(axis=1), kind="stable")]

    text = visit.get(f"/evaluations/{done}/samples?only=wrong&order=surest_wrong").text

    assert re.findall(r'title="pictures/(\d+)\.png"', text) == [str(row) for row in surest]
    assert "all wrong" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("?threshold=2", 422),
        ("?threshold=nan", 422),
        ("?class=99", 400),
        ("?sort=name", 422),
        ("/samples?label=x", 422),
        ("/samples?label=7", 400),
        ("/samples?min_score=-1", 422),
        ("/differences", 422),
        ("/differences?other=nobody", 404),
        ("/differences?other=../x", 404),
        ("/cell/0.5?9999,1", 303),
        ("/cell/nan", 422),
        ("/matrix.png?threshold=5", 422),
    ],
)
def test_what_cannot_be_asked_is_said(visit: Any, done: str, path: str, status: int) -> None:
    assert visit.get(f"/evaluations/{done}{path}").status_code == status


def test_what_is_no_evaluation_is_sent_on_or_refused(visit: Any, pets: str) -> None:
    answer = visit.get(f"/evaluations/{pets}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{pets}")
    assert visit.get(f"/evaluations/{pets}/samples").status_code == 409
    assert visit.get("/evaluations/nobody").status_code == 404


def test_a_picture_shows_many_classes_and_a_click_opens_a_cell(visit: Any, evaluation: Any) -> None:
    names = [f"class {number}" for number in range(50)]
    labels, scores = said(3, 50)
    job_id = evaluation("many", labels, scores, names=names)
    text = visit.get(f"/evaluations/{job_id}").text

    assert '<table class="confusion' not in text
    assert f'<img ismap src="/evaluations/{job_id}/matrix.png"' in text
    picture = visit.get(f"/evaluations/{job_id}/matrix.png")
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    side = cell_side_px(50)
    answer = visit.get(f"/evaluations/{job_id}/cell/0.25?{side * 7 + 2},{side * 4}")
    assert answer.headers["location"] == f"/evaluations/{job_id}/samples?label=4&predicted=7&min_score=0.25"


def test_two_runs_are_compared_sample_by_sample(visit: Any, evaluation: Any, pets: str) -> None:
    labels, before = said(1)
    _, after = said(2)
    first, second = (evaluation(name, labels, each, dataset=pets) for name, each in (("a", before), ("b", after)))
    elsewhere = evaluation("other split", labels, before, dataset=pets, split="test")
    was, now = before.argmax(axis=1) == labels, after.argmax(axis=1) == labels

    page = visit.get(f"/evaluations/{first}").text
    assert f'<option value="{second}">b' in page
    assert f'<option value="{elsewhere}">' not in page
    text = visit.get(f"/evaluations/{first}/differences?other={second}&which=broken").text
    assert f"Fixed: {(~was & now).sum()}<" in text
    assert f"Broken: {(was & ~now).sum()}<" in text
    assert f"Still wrong: {(~was & ~now).sum()}<" in text
    assert re.findall(r'title="pictures/(\d+)\.png"', text) == [str(row) for row in np.flatnonzero(was & ~now)]
    refused = visit.get(f"/evaluations/{first}/differences?other={elsewhere}")
    assert refused.status_code == 409
    assert errors_of(refused)


def test_pictures_without_a_truth_have_no_matrix(visit: Any, evaluation: Any) -> None:
    _, scores = said(1)
    job_id = evaluation("many", np.full(COUNT, -1), scores, kind="infer", split="")
    text = visit.get(f"/evaluations/{job_id}?threshold=0.6").text

    assert html_of(text).has("#no-truth")
    assert '<table class="confusion' not in text
    decided = scores.max(axis=1) >= 0.6
    for number in range(3):
        assert f'value="{(decided & (scores.argmax(axis=1) == number)).sum()}"' in text
    assert f'src="/api/v1/evaluations/{job_id}/pictures/' in text


def test_a_job_that_waits_is_alive_and_has_its_buttons(visit: Any, studio: Any, visit_as: Any, train: Any) -> None:
    model = train()
    (Path(model.folder) / "checkpoints" / "step-00000020").mkdir(parents=True)
    job = studio.evaluations.create(model.id, split="val")
    text = visit.get(f"/evaluations/{job.id}").text

    assert html_of(text).has("#evaluation-state .badge.queued")
    assert f'hx-get="/evaluations/{job.id}" hx-trigger="notice-job from:body throttle:1s"' in text
    assert "Stop</button>" in text
    assert '<div id="evaluation" hx-get' in visit.part(f"/evaluations/{job.id}", "evaluation").text
    studio.jobs.stop(job.id)
    stopped = visit.part(f"/evaluations/{job.id}", "evaluation").text
    assert "hx-get" not in stopped
    assert html_of(stopped).has("#evaluation-state .badge.stopped")
    other = studio.evaluations.create(model.id, split="test")
    assert "Stop</button>" not in visit_as("viewer").get(f"/evaluations/{other.id}").text


def test_shades_and_pairs_of_a_matrix() -> None:
    matrix = [[10, 0, 1], [9, 1, 0], [0, 0, 0]]

    rows = confusion_rows(matrix, NAMES)
    pairs = confused_pairs(matrix, NAMES)

    assert [(row.total, row.cells) for row in rows] == [
        (11, [(10, 9), (0, 0), (1, 1)]),
        (10, [(9, 9), (1, 1), (0, 0)]),
        (0, [(0, 0), (0, 0), (0, 0)]),
    ]
    assert [(pair.label, pair.predicted, pair.count, pair.share) for pair in pairs] == [
        (1, 0, 9, 0.9),
        (0, 2, 1, 1 / 11),
    ]
    assert confused_pairs([], []) == []


def test_the_picture_of_a_matrix_shows_it() -> None:
    cv2 = pytest.importorskip("cv2")
    content = confusion_picture([[4, 0], [4, 0]])

    picture = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    side = cell_side_px(2)
    assert picture.shape == (2 * side, 2 * side, 4)
    assert picture[0, 0].tolist() == [90, 118, 0, 255]
    assert picture[0, -1, 3] == 0
    assert picture[-1, 0].tolist() == [10, 73, 180, 255]
    assert picture[-1, -1, 3] == 0
    for text, wanted in ((f"{side},0", (0, 1)), ("0,0", (0, 0)), (f"{2 * side},0", None), ("a,1", None), ("", None)):
        assert cell_at(text, 2) == wanted
