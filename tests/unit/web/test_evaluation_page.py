"""Pages of what a model said of many samples, over results that are written here: every figure is computed again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.web.html_page import errors_of, html_of
from ziggurat.dataflow.dataset import SklearnDigits
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.entities import NewJob
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext
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
        schema = Schema(kind="image-classification", class_names=tuple(names))
        context = TaskContext(CLASSIFICATION, schema, Preprocessing(size=(8, 8), channels=3))
        results = SampleResults(context, len(labels), 5)
        keys = [f"pictures/{row}.png" for row in range(len(labels))]
        results.add(list(range(len(labels))), keys, {"probabilities": scores}, {"y": labels})
        no_dataset = given.get("data", "/pictures")
        data = str(studio.root / "datasets" / given["dataset"]) if given.get("dataset") else no_dataset
        summary = {"kind": kind, "split": split, "data": data, "classifier": True, "classes": names}
        summary |= {"count": len(labels), "skipped": 1, "failures": [{"key": "<i>.png", "reason": "It is no image."}]}
        summary |= {"scalars": {"cost": 0.5}, "openings": 3, "step": 120, "epoch": 2, "checkpoint": "step-120"}
        results.write(studio.root / "jobs" / job_id / "results", summary | ({"root": "/"} if kind == "infer" else {}))
        return job_id

    return make


@pytest.fixture
def done(evaluation: Callable[..., str], pets: str) -> str:
    return evaluation("first", *said(1), dataset=pets)


def figures(answer: Any) -> dict[str, str]:
    """Return name and value of the metrics, with the context of each."""
    stats = html_of(answer).all(".metrics .stats div")
    return {each.one("dt").text: " ".join(dd.text for dd in each.all("dd")).replace("\u202f", " ") for each in stats}


def cells(answer: Any) -> list[tuple[str, int]]:
    """Return address and count of the cells of the matrix that filter the samples."""
    return [(each["href"].partition("#")[0], int(each.text)) for each in html_of(answer).all("table.confusion td a")]


def keys(answer: Any) -> list[str]:
    """Return the rows of the samples that are shown, by their keys."""
    return [each["title"].removeprefix("pictures/").removesuffix(".png") for each in html_of(answer).all(".file .cut")]


def test_every_figure_is_that_of_the_samples(visit: Any, done: str) -> None:
    labels, scores = said(1)
    answer = visit.get(f"/evaluations/{done}")

    assert answer.status_code == 200
    right = scores.argmax(axis=1) == labels
    shown = figures(answer)
    assert shown["Accuracy"].startswith(f"{100 * right.mean():.1f} % {right.sum()} of 60 95 % interval ")
    losses = -np.log(scores[np.arange(COUNT), labels].astype(float))
    assert shown["Log loss"] == f"{losses.mean():.3f}"
    page = html_of(answer)
    assert [page.one(f"#fact-{name}").text for name in ("samples", "unreadable", "openings")] == ["60", "1", "3 times"]
    assert page.one("dd.scalar").text == "0.5"
    assert page.one("#evaluation-failures li").text == "<i>.png : It is no image."
    assert "bee &lt;b&gt;" in answer.text
    assert "bee <b>" not in answer.text


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_each_cell_filters_its_samples(visit: Any, done: str, threshold: float) -> None:
    labels, scores = said(1)
    decided = scores.max(axis=1) >= threshold
    answer = visit.get(f"/evaluations/{done}?threshold={threshold}")

    found = cells(answer)
    assert sum(count for _, count in found) == decided.sum()
    for address, count in found:
        label, predicted = (int(re.search(f"{name}=([0-9]+)", address)[1]) for name in ("label", "predicted"))  # type: ignore[index]
        assert count == (decided & (labels == label) & (scores.argmax(axis=1) == predicted)).sum()
        shown = html_of(visit.part(address, "evaluation-results"))
        assert shown.one("td.current a")["href"] == f"{address}#samples"
        assert len(shown.all("#samples .tile")) == min(count, 10)
        everything = visit.get(shown.one("#show-all")["href"])
        assert html_of(everything).all(".lead strong")[0].text == f"{count} sample{'s' if count > 1 else ''}"
        assert everything.text.count('<li class="tile') == min(count, 48)


def test_the_threshold_moves_everything(visit: Any, done: str) -> None:
    labels, scores = said(1)
    decided = scores.max(axis=1) >= 0.7
    answer = visit.part(f"/evaluations/{done}?threshold=0.7&class=1&sort=recall&down=true", "evaluation-results")

    assert "<html" not in answer.text
    page = html_of(answer)
    right = (scores.argmax(axis=1) == labels)[decided]
    said_there = page.one("#threshold-figures")
    assert said_there.has("strong")
    assert [each.text.replace("\u202f", " ") for each in said_there.all("strong")] == [
        f"{100 * decided.mean():.1f} %",
        f"{100 * right.mean():.1f} %",
        str(60 - decided.sum()),
    ]
    assert said_there["hx-swap-oob"] == "outerMorph"
    rows = page.all(".classes tbody tr")
    recalls = {
        n: (decided & (labels == n) & (scores.argmax(axis=1) == n)).sum() / (labels == n).sum() for n in range(3)
    }
    wanted = sorted(range(3), key=lambda number: -recalls[number])
    assert [(row.one("th a")["id"], row.all("td")[1].text) for row in rows] == [
        (f"class-{number}", f"{100 * recalls[number]:.1f}") for number in wanted
    ]
    assert page.one('.classes th[aria-sort="descending"] a')["id"] == "sort-recall"
    kept = {each["name"]: each["value"] for each in page.all('input[form="threshold-form"]')}
    assert kept == {"class": "1", "sort": "recall", "down": "true"}
    assert page.has(".curve circle")


def test_values_and_curve_of_the_page_are_chosen(visit: Any, done: str) -> None:
    labels, scores = said(1)
    page = html_of(visit.get(f"/evaluations/{done}?values=percent&curve=roc"))

    row = [each.text for each in page.all("table.confusion tbody tr")[0].all("td")][:3]
    hits = [((labels == 0) & (scores.argmax(axis=1) == n)).sum() / (labels == 0).sum() for n in range(3)]
    assert row == [f"{100 * share:.0f}" if share else "" for share in hits]
    assert page.has(".curve .chance")
    assert page.one("#curve-roc")["aria-current"] == page.one("#values-percent")["aria-current"] == "true"
    assert len(page.all(".curve polyline")) == 3
    assert len(page.all("#curve-values table")) == 3


def test_a_class_is_colored_and_its_surest_samples_shown(visit: Any, evaluation: Any) -> None:
    names = [f"class {number}" for number in range(8)]
    labels, scores = said(3, 8)
    job_id = evaluation("eight", labels, scores, names=names)
    page = html_of(visit.get(f"/evaluations/{job_id}"))
    worst = {each.attributes["class"] for each in page.all(".curve polyline")}
    assert worst == {"series-1", "series-2", "series-3", "context"}

    best = page.all(".classes tbody th a")[-1]
    chosen = visit.get(best["href"] + "&show=highest")
    number = int(best["id"].removeprefix("class-"))
    page = html_of(chosen)
    assert page.one(".classes tr.chosen th a")["id"] == best["id"]
    assert page.has(".classes tr.chosen path.series-4")
    assert keys(chosen) == [str(row) for row in np.argsort(-scores[:, number], kind="stable")[:10]]


def test_pictures_and_pages_of_samples_are_those_of_the_data_set(visit: Any, done: str, pets: str) -> None:
    text = visit.get(f"/evaluations/{done}/samples?order=row").text

    assert f'href="/datasets/{pets}/samples/val/0"' in text
    assert f'src="/api/v1/datasets/{pets}/pictures/val/0?max_side_px=160"' in text
    assert visit.get(f"/api/v1/datasets/{pets}/pictures/val/0?max_side_px=160").status_code == 200
    assert visit.get(f"/api/v1/datasets/{pets}/pictures/val/0?original=true").status_code == 200
    assert f'href="/api/v1/datasets/{pets}/pictures/val/0?original=true"' in text
    assert "1 to 48 of 60" in text


def test_samples_are_filtered_and_ordered(visit: Any, done: str) -> None:
    labels, scores = said(1)
    said_class = scores.argmax(axis=1)
    wrong = np.flatnonzero(said_class != labels)
    surest = wrong[np.argsort(-scores[wrong].max(axis=1), kind="stable")]

    listed = visit.get(f"/evaluations/{done}/samples?only=wrong&order=surest_wrong")
    shown = visit.get(f"/evaluations/{done}")

    assert keys(listed) == [str(row) for row in surest]
    assert keys(shown) == [str(row) for row in surest[:10]]
    tile = html_of(shown).all("#samples .tile")[0]
    assert tile.one(".said strong")["title"] == NAMES[labels[surest[0]]]
    assert tile.one(".bad")["title"] == f"predicted {NAMES[said_class[surest[0]]]}"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("?threshold=2", 422),
        ("?threshold=nan", 422),
        ("?class=99", 400),
        ("?sort=nothing", 422),
        ("?label=99&predicted=1", 400),
        ("/samples?label=x", 422),
        ("/samples?label=7", 400),
        ("/samples?label=&predicted=&only=&order=&min_score=&max_score=&offset=", 200),
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


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("?threshold=2", "threshold must be less than or equal to 1."),
        ("/samples?label=x", "label has a value that it cannot have."),
        ("/samples?offset=x", "offset must be a valid integer."),
        ("/samples?only=x", "only must be '', 'wrong' or 'right'."),
        ("/differences", "other is required."),
    ],
)
def test_a_mistyped_address_is_explained(visit: Any, done: str, path: str, rule: str) -> None:
    note = html_of(visit.get(f"/evaluations/{done}{path}", headers={"Accept": "text/html"})).one(".note.error")
    assert note.one("strong").text == rule
    assert note.all("p")[-1].text == "Correct it in the address, or go back and choose again."


def test_what_is_no_evaluation_is_sent_on_or_refused(visit: Any, pets: str) -> None:
    answer = visit.get(f"/evaluations/{pets}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{pets}")
    assert visit.get(f"/evaluations/{pets}/samples").status_code == 409
    assert visit.get("/evaluations/nobody").status_code == 404


def test_a_picture_shows_many_classes_and_a_click_opens_a_cell(visit: Any, evaluation: Any) -> None:
    names = [f"class {number}" for number in range(50)]
    labels, scores = said(3, 50)
    job_id = evaluation("many", np.roll(labels, 1), scores, names=names)
    answer = visit.get(f"/evaluations/{job_id}")
    page = html_of(answer)

    assert not page.has("table.confusion")
    assert page.one("img[ismap]")["src"] == f"/evaluations/{job_id}/matrix.png"
    assert len(page.all(".curve polyline")) == 3
    assert len(page.all(".pairs tbody tr")) > 0
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

    page = visit.get(f"/evaluations/{second}")
    assert [each["value"] for each in html_of(page).all("#against option")] == ["none", first]
    assert html_of(page).one("#against option[selected]")["value"] == first
    counts = [(~was & now).sum(), (was & ~now).sum(), (~was & ~now).sum()]
    links = html_of(page).all(".changes a")
    assert [int(each.text.split()[0]) for each in links] == counts
    points = 100 * (now.mean() - was.mean())
    change = html_of(page).all(".metrics .large .context span")[0]
    assert change.text == (f"{abs(points):.1f} points {'better' if points > 0 else 'worse'}")
    assert change["class"] == change.text.split()[-1]
    lost = html_of(visit.get(f"/evaluations/{second}?against=deleted"))
    assert lost.has("#compared-lost")
    assert lost.one("#against option[selected]")["value"] == first
    assert not html_of(page).has("#compared-lost")
    alone = html_of(visit.part(f"/evaluations/{second}?against=none", "evaluation"))
    assert not alone.has(".changes")
    assert alone.one("#evaluation-head[hx-swap-oob]").one("#evaluation-report")["href"].endswith("?against=none")
    assert html_of(page).one("#evaluation-report")["href"].endswith(f"?against={first}")

    changed = visit.get(links[1]["href"])
    tabs = [each.text for each in html_of(changed).all(".tabs a")]
    assert tabs == [f"{w}: {n}" for w, n in zip(("Fixed", "Broken", "Still wrong"), counts, strict=True)]
    assert keys(changed) == [str(row) for row in np.flatnonzero(was & ~now)]
    for path in (f"{first}/differences?other={elsewhere}", f"{first}?against={elsewhere}"):
        refused = visit.get(f"/evaluations/{path}")
        assert refused.status_code == 409
        assert errors_of(refused)


def test_the_report_is_a_table_for_other_pages(visit: Any, evaluation: Any, pets: str) -> None:
    labels, scores = said(1)
    first = evaluation("a | b", labels, said(2)[1], dataset=pets)
    job_id = evaluation("c", labels, scores, dataset=pets)

    answer = visit.get(f"/evaluations/{job_id}/report.md")

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    rows = [line for line in answer.text.splitlines() if line.startswith("|")]
    assert rows[0] == r"| Metric | Value | Against a \| b |"
    assert {row.count("|") - row.count(r"\|") for row in rows[: rows.index(next(r for r in rows if "Class" in r))]} == {
        4
    }
    assert sum(row.startswith(("| ant", r"| bee \<b>", "| cat")) for row in rows) >= 3
    assert visit.get(f"/evaluations/{first}/report.md?against=none").text.startswith("# a ")


def test_another_checkpoint_is_evaluated_on_the_same_split(visit: Any, visit_as: Any, studio: Any, train: Any) -> None:
    model = train()
    for step in (10, 20):
        (Path(model.folder) / "checkpoints" / f"step-000000{step}").mkdir(parents=True)
    job = studio.evaluations.create(model.id, split="test", checkpoint="step-00000010")

    early = visit.post(f"/evaluations/{job.id}/checkpoint", data={"checkpoint": "step-00000020"})

    assert early.status_code == 409  # it has no results yet
    assert visit_as("viewer").post(f"/evaluations/{job.id}/checkpoint").status_code == 403


def test_pictures_without_a_truth_have_no_matrix(visit: Any, evaluation: Any) -> None:
    _, scores = said(1)
    job_id = evaluation("many", np.full(COUNT, -1), scores, kind="infer", split="")
    text = visit.get(f"/evaluations/{job_id}?threshold=0.6").text

    assert html_of(text).has("#no-truth")
    assert not html_of(text).has("table.confusion")
    assert html_of(text).one("#samples-title").text == "Least confident predictions"
    decided = scores.max(axis=1) >= 0.6
    for number in range(3):
        assert f'value="{(decided & (scores.argmax(axis=1) == number)).sum()}"' in text
    assert f'src="/api/v1/evaluations/{job_id}/pictures/' in text


def test_a_job_that_waits_is_alive_and_has_its_buttons(visit: Any, studio: Any, visit_as: Any, train: Any) -> None:
    model = train()
    (Path(model.folder) / "checkpoints" / "step-00000020").mkdir(parents=True)
    job = studio.evaluations.create(model.id, split="val")
    text = visit.get(f"/evaluations/{job.id}").text

    assert html_of(text).has('#evaluation-state[data-state="queued"] .is-queued')
    assert f'hx-get="/evaluations/{job.id}" hx-trigger="notice-job from:body throttle:1s"' in text
    assert "Stop</button>" in text
    assert '<div id="evaluation" hx-get' in visit.part(f"/evaluations/{job.id}", "evaluation").text
    studio.jobs.stop(job.id)
    stopped = visit.part(f"/evaluations/{job.id}", "evaluation").text
    assert "hx-get" not in stopped
    assert html_of(stopped).has('#evaluation-state[data-state="stopped"] .is-stopped')
    other = studio.evaluations.create(model.id, split="test")
    assert "Stop</button>" not in visit_as("viewer").get(f"/evaluations/{other.id}").text


def test_shades_and_pairs_of_a_matrix() -> None:
    matrix = [[10, 0, 1], [9, 1, 0], [0, 0, 0]]

    rows = confusion_rows(matrix, NAMES)
    pairs = confused_pairs(matrix, NAMES)

    assert [(row.total, row.cells) for row in rows] == [
        (11, [(10, 10, 10 / 11), (0, 0, 0), (1, 2, 1 / 11)]),
        (10, [(9, 10, 0.9), (1, 1, 0.1), (0, 0, 0)]),
        (0, [(0, 0, 0), (0, 0, 0), (0, 0, 0)]),
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
    assert picture[0, 0].tolist() == [174, 95, 11, 255]
    assert picture[0, -1, 3] == 0
    assert picture[-1, 0].tolist() == [29, 39, 192, 255]
    assert picture[-1, -1, 3] == 0
    for text, wanted in ((f"{side},0", (0, 1)), ("0,0", (0, 0)), (f"{2 * side},0", None), ("a,1", None), ("", None)):
        assert cell_at(text, 2) == wanted


def _rule(page: Any) -> str:
    return page.one("#next-step")["data-rule"]


def test_a_class_that_is_never_predicted_leads_to_its_samples(visit, evaluation, pets):
    labels, scores = said(1)
    scores[:, 2] = 0
    job = evaluation("without cats", labels, scores, dataset=pets)

    page = html_of(visit.get(f"/evaluations/{job}"))

    assert _rule(page) == "unpredicted"
    assert page.one("#next-action")["href"] == f"/datasets/{pets}/explore?split=val&class_name=cat"
    assert page.has("#evaluation-publish")
    assert [each["id"] for each in page.all(".primary")] == ["next-action"], "to publish it is no main action"


def test_only_a_good_evaluation_asks_to_publish(visit, evaluation, pets):
    labels, _ = said(1)
    scores = np.full((COUNT, 3), 0.1, np.float32)
    scores[np.arange(COUNT), labels] = 0.8
    scores[:20] = scores[:20, [1, 2, 0]]  # a third is wrong
    page = html_of(visit.get(f"/evaluations/{evaluation('poor', labels, scores, dataset=pets)}"))

    assert _rule(page) == "low"
    assert page.one("#next-action")["href"].endswith("/samples")
    assert "primary" not in page.one("#evaluation-publish")["class"].split()


def test_an_evaluation_of_the_digits_shows_them(visit: Any, studio: Any, evaluation: Callable[..., str]) -> None:
    job_id = evaluation("digits", *said(1), data="digits")
    page = html_of(visit.get(f"/evaluations/{job_id}"))
    assert not page.has(".no-picture")
    source = page.all(".tile img")[0]["src"]
    assert source.startswith(f"/api/v1/evaluations/{job_id}/pictures/")
    answer = visit.get(source)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    shown = decode_image(answer.content, channels=1)
    row = int(source.partition("?")[0].rpartition("/")[2])
    assert np.array_equal(shown, list(SklearnDigits("val", shuffle=False, size=28))[row][0])
    assert visit.get(f"/api/v1/evaluations/{job_id}/pictures/5000").status_code == 400
