"""Results of tasks other than classification, written by the worker's half and read by the studio's."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.errors import JobError, PluginError, StorageError
from ziggurat.records.schema import Column, Schema
from ziggurat.tasks import TaskContext, task
from ziggurat.worker.results import SampleResults, write_results
from ziggurat.workspace.studio.evaluation_differences import EvaluationDifferences
from ziggurat.workspace.studio.prediction_tables import prediction_table
from ziggurat.workspace.studio.predictions import Predictions, SampleFilter
from ziggurat.workspace.studio.score_changes import score_change

COUNT = 40


def nowhere(_found):
    """Return a folder without a dataset."""
    return Path("/nowhere")


def table_context(names=("price",)):
    columns = (Column(name="size", type="number"), *(Column(name=name, type="number") for name in names))
    schema = Schema(kind="table", columns=columns, target=names[0])
    rows = [[float(number), *[float(number)] * len(names)] for number in range(5)]
    preprocessing = TablePreprocessing.fit(columns, names[0], rows)
    statistics = {"target": {"mean": [0.0], "deviation": [1.0], "constant": [False], "count": 5}}
    regression = task("regression")
    return TaskContext(regression, schema, preprocessing, {**statistics, **regression.fit(schema, [[1.0], [2.0]])})


def write(folder, context, outputs, targets, *, extra=None, name="results"):
    count = len(next(iter(outputs.values())))
    results = SampleResults(context, count, 5)
    results.add(list(range(count)), [f"sample {row}" for row in range(count)], outputs, targets)
    metrics = context.task.metrics(context)
    for metric in metrics:
        metric.update(outputs, targets)
    values = {key: value for metric in metrics for key, value in metric.compute().items()}
    summary = {"kind": "evaluate", "split": "val", "data": "here", "task": context.task.name, "count": count}
    summary |= {"skipped": 0, "failures": [], "scalars": {}, "step": 1, "epoch": 1, "checkpoint": "step-1"}
    summary |= context.task.summary_fields(context, True) | context.task.summary_metrics(values)
    results.write(folder / name, summary | (extra or {}))
    return Predictions(folder / name)


@pytest.fixture
def values():
    random = np.random.default_rng(3)
    known = random.normal(10, 3, (COUNT, 1)).astype(np.float32)
    return known, (known + random.normal(0, 1, (COUNT, 1))).astype(np.float32)


@pytest.fixture
def found(tmp_path, values):
    known, predicted = values
    return write(tmp_path, table_context(), {"output": predicted}, {"y": known})


def test_the_worst_samples_come_first(found, values):
    known, predicted = values
    errors = np.abs(known - predicted)[:, 0]

    listed = found.samples(found.select(SampleFilter()))

    assert [each["row"] for each in listed] == np.argsort(-errors, kind="stable").tolist()
    assert [-each["score"] for each in listed] == pytest.approx(sorted(errors.tolist(), reverse=True), rel=1e-5)
    assert listed[0]["values"]["targets"] == pytest.approx(known[listed[0]["row"]].tolist())
    assert listed[0]["values"]["predicted"] == pytest.approx(predicted[listed[0]["row"]].tolist())


def test_scores_are_filtered_by_a_range(found):
    every = found.task_scores
    places = found.select(SampleFilter(order="easiest", min_score=-1.0, max_score=-0.2))

    assert sorted(places.tolist()) == np.flatnonzero((every >= -1) & (every <= -0.2)).tolist()
    assert (np.diff(every[places]) <= 0).all()


def test_classes_cannot_be_asked_for_without_them(found):
    for chosen in (SampleFilter(label=0), SampleFilter(only="wrong"), SampleFilter(order="surest_wrong")):
        with pytest.raises(JobError, match=r"task `regression`; this needs a network that classifies"):
            found.select(chosen)
    with pytest.raises(JobError, match="needs a network that classifies"):
        found.curves(0, 10)
    with pytest.raises(JobError, match="needs a network that classifies"):
        found.at_threshold(0.5)
    assert found.figures["accuracy"] is None


def test_a_table_has_a_column_for_each_number(found, values):
    known, predicted = values
    rows = list(csv.reader(io.StringIO(b"".join(prediction_table(found, "csv")).decode())))

    assert rows[0] == ["split", "row", "key", "score", "predicted_1", "targets_1"]
    assert rows[3][:3] == ["val", "2", "sample 2"]
    assert float(rows[3][4]) == pytest.approx(float(predicted[2, 0]))
    assert float(rows[3][5]) == pytest.approx(float(known[2, 0]))
    assert json.loads(b"".join(prediction_table(found, "json")))[5]["key"] == "sample 5"


def test_the_report_says_what_metrics_and_samples_say(found, values):
    known, predicted = values
    report = found.task.report(found.summary, found.task_arrays)

    first = report.values[0]
    assert (first.name, first.is_primary, first.info.title) == ("rmse", True, "RMSE")
    assert first.value == pytest.approx(float(np.sqrt(np.mean((known - predicted) ** 2))), rel=1e-4)
    chart, residuals = report.charts
    assert [each[:2] for each in residuals.data["groups"][0]["points"]] == [
        [predicted, pytest.approx(predicted - actual, abs=1e-4)]
        for actual, predicted, _ in chart.data["groups"][0]["points"]
    ]
    (group,) = chart.data["groups"]
    assert [point[2] for point in group["points"]] == list(range(COUNT))
    assert group["points"][7][:2] == pytest.approx([float(known[7, 0]), float(predicted[7, 0])])


def test_a_mean_difference_has_an_interval(tmp_path, found, values):
    known, predicted = values
    closer = known + (predicted - known) / 2
    closer[:5] = known[:5] + 2 * (predicted[:5] - known[:5])
    second = write(tmp_path, table_context(), {"output": closer}, {"y": known}, name="second")

    change = score_change(found.task_scores, second.task_scores, 0.0)

    gaps = np.abs(predicted - known)[:, 0].astype(float) - np.abs(closer - known)[:, 0]
    assert change.mean == pytest.approx(gaps.mean(), rel=1e-4)
    half = 1.959964 * gaps.std(ddof=1) / np.sqrt(COUNT)
    assert change.interval == pytest.approx((gaps.mean() - half, gaps.mean() + half), rel=1e-3)
    assert sorted(change.places["worse"].tolist()) == [0, 1, 2, 3, 4]
    assert len(change.places["better"]) + len(change.places["equal"]) == COUNT - 5
    usual = score_change(found.task_scores, second.task_scores)
    assert len(usual.places["equal"]) >= len(change.places["equal"])
    said = EvaluationDifferences(found, second, nowhere).document("worse", 0.0, slice(0, 2))
    assert (said["mean"], said["interval"], said["total"]) == (change.mean, change.interval, 5)
    assert [each["difference"] for each in said["samples"]] == pytest.approx(sorted(gaps[:5])[:2], rel=1e-3)


def test_unknown_scores_are_counted_and_left_out():
    change = score_change(np.array([0.1, np.nan, 0.3]), np.array([0.2, 0.5, -np.inf]), 0.0)

    assert (change.unknown, change.places["better"].tolist(), change.interval) == (2, [0], None)
    assert score_change(np.zeros(0), np.zeros(0)).mean is None
    assert score_change(np.array([1.0, 2.0]), np.array([1.0, 2.0])).places["equal"].tolist() == [0, 1]


def test_other_samples_and_tasks_are_not_compared(tmp_path, found, values):
    known, predicted = values
    fewer = write(tmp_path, table_context(), {"output": predicted[:5]}, {"y": known[:5]}, name="fewer")
    other = write(tmp_path, table_context(), {"output": predicted}, {"y": known}, extra={"task": "free"}, name="other")

    with pytest.raises(JobError, match="is not there any more, so evaluations of different data cannot be compared"):
        EvaluationDifferences(found, fewer, nowhere)
    with pytest.raises(JobError, match=r"The tasks differ, regression and free"):
        EvaluationDifferences(found, other, nowhere)


def test_a_task_that_is_not_installed_is_named(tmp_path, values):
    known, predicted = values
    extra = {"task": "of-a-plugin"}
    lost = write(tmp_path, table_context(), {"output": predicted}, {"y": known}, extra=extra)

    with pytest.raises(PluginError, match=r"`of-a-plugin` is not installed.*Install that package"):
        lost.select(SampleFilter())


@pytest.mark.parametrize("text", ["{", "[]", '{"split": "val"}', '{"split": "val", "count": 1}'])
def test_a_damaged_summary_is_said(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(StorageError, match=r"The results in .* (cannot be read|are not whole)"):
        Predictions(tmp_path)


def test_missing_arrays_are_said_or_are_none(tmp_path, found):
    (tmp_path / "results" / "rows.npy").write_bytes(b"damaged")
    with pytest.raises(StorageError, match="are damaged"):
        found.samples(np.arange(3))
    summary = {"split": "val", "count": 5, "classifier": False, "task": "free", "classes": []}
    write_results(tmp_path / "bare", summary)
    bare = Predictions(tmp_path / "bare")
    assert (bare.has_samples, len(bare), bare.task_scores) == (False, 0, None)
    assert bare.samples(bare.select(SampleFilter())) == []
    assert b"".join(prediction_table(bare, "csv")) == b"split,row,key,score\r\n"


def test_each_class_has_its_iou_in_a_table(tmp_path):
    schema = Schema(kind="segmentation", class_names=("road", "tree"), colours=((1, 2, 3), (9, 8, 7)))
    context = TaskContext(task("segmentation"), schema, Preprocessing(size=(4, 4), channels=3))
    masks = np.random.default_rng(1).integers(0, 2, (6, 4, 4, 1))
    outputs = np.random.default_rng(2).normal(size=(6, 4, 4, 2)).astype(np.float32)

    found = write(tmp_path, context, {"output": outputs}, {"y": masks})
    report = found.task.report(found.summary, found.task_arrays)

    assert [value.name for value in report.values] == ["mean_iou", "pixel_accuracy"]
    (table,) = report.tables
    assert sorted(row["class"] for row in table.rows) == ["road", "tree"]
    assert [row["iou"] for row in table.rows] == sorted(row["iou"] for row in table.rows), "the worst comes first"
    assert {row["class"]: row["color"] for row in table.rows} == {"road": "#010203", "tree": "#090807"}
    right = outputs.argmax(axis=3)[..., None] == masks
    assert found.samples(np.arange(6))[2]["values"]["pixel_accuracy"] == pytest.approx(right[2].mean())
    drawn = context.task.pictures(context, [np.zeros((4, 4, 3), np.uint8), masks[0, ..., 0]], {"output": outputs[0]})
    assert tuple(drawn) == context.task.sample_pictures
    assert (drawn["predicted"] == np.array(schema.colours)[outputs[0].argmax(axis=2)]).all()


def test_pairs_show_distances_and_their_embedding(tmp_path):
    schema = Schema(kind="image-classification", class_names=("cat", "dog"))
    context = TaskContext(task("pairs"), schema, Preprocessing(size=(4, 4), channels=3))
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 30)
    first, second = (random.normal(size=(30, 3)).astype(np.float32) for _ in range(2))
    same = (np.arange(30) % 2).astype(np.int64)

    found = write(tmp_path, context, {"output": first, "output_1": second}, {"y": same, "label": labels})
    distances, embedding = found.task.report(found.summary, found.task_arrays).charts

    assert [sum(each["values"]) for each in distances.data["series"]] == [15, 15]
    counts = [len(group["points"]) for group in embedding.data["groups"]]
    assert counts == np.bincount(labels).tolist()
