"""Differences between evaluations of two versions of a dataset, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.datasets.small_datasets_for_versions import (
    ANIMALS,
    animals,
    datasets_are_closed,
    opened,
    picture,
    png,
    write_dataset,
)
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.datasets.versions import Exclude, Relabel, RenameClass, make_version
from ziggurat.errors import JobError, UsageError
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext, task
from ziggurat.worker.results import SampleResults, write_results
from ziggurat.workspace.studio.evaluation_differences import EvaluationDifferences
from ziggurat.workspace.studio.predictions import Predictions

__all__ = ["datasets_are_closed"]


def evaluated(folder, dataset, predicted, rows=None):
    """Write what a classifier predicted for the rows of ``val``, and read it."""
    labels = [sample.label for sample in dataset.samples("val")]
    rows = list(range(len(labels))) if rows is None else rows
    keys = [dataset.entry("val", row).key for row in rows]
    names = dataset.schema.class_names
    context = TaskContext(CLASSIFICATION, dataset.schema, Preprocessing(size=(6, 8), channels=3))
    results = SampleResults(context, len(rows), 5)
    scores = np.full((len(rows), len(names)), 0.1, np.float32)
    scores[np.arange(len(rows)), predicted] = 0.8
    results.add(rows, keys, {"probabilities": scores}, {"y": np.array([labels[row] for row in rows])})
    summary = {"kind": "evaluate", "split": "val", "data": str(dataset.folder), "classifier": True}
    results.write(folder, {**summary, "classes": list(names), "count": len(rows)})
    return Predictions(folder)


def differences(first, second):
    return EvaluationDifferences(first, second, lambda found: Path(found.summary["data"]))


def document(first, second, which=None):
    return differences(first, second).document(which, None, slice(0, 100))


@pytest.fixture
def versions(tmp_path):
    """Return a dataset whose ``val`` has the labels 0 1 2 0 1 2, and a version with 0 1 - 1 1 0 and ``puma``."""
    old = write_dataset(tmp_path / "old", {"train": animals(3), "val": animals(6, first=12)})
    make_version(old, [Relabel("val", [3], 1), Relabel("val", [5], 0), Exclude("val", [2])], tmp_path / "new")
    return old, opened(tmp_path / "new")


def test_each_run_is_judged_by_its_own_labels(tmp_path, versions):
    old, new = versions
    first = evaluated(tmp_path / "a", old, [0, 0, 2, 1, 1, 0])  # right, wrong, right, wrong, right, wrong
    second = evaluated(tmp_path / "b", new, [0, 1, 1, 0, 2])  # right, right, right, wrong, wrong

    found = document(first, second)

    assert found["counts"] == {
        "fixed": 2,
        "broken": 1,
        "still_wrong": 1,
        "label_changed": 2,
        "only_first": 1,
        "only_second": 0,
    }
    assert [each["row"] for each in found["samples"]] == [1, 3]
    assert [each["second"]["row"] for each in found["samples"]] == [1, 2]
    assert found["versions"] == {"common": 5, "label_changed": 2, "unmatched": 0}
    accuracy = found["accuracy"]
    assert (accuracy["samples"], accuracy["first"], accuracy["second"]) == (5, 2 / 5, 3 / 5)
    # Against the labels 0 1 1 1 0 the first predictions 0 0 1 1 0 are right but for one.
    assert accuracy["first_by_second_labels"] == 4 / 5


def test_changed_labels_are_listed_with_old_and_new(tmp_path, versions):
    old, new = versions
    first = evaluated(tmp_path / "a", old, [0, 0, 2, 1, 1, 0])
    second = evaluated(tmp_path / "b", new, [0, 1, 1, 0, 2])

    changed = document(first, second, "label_changed")["samples"]

    listed = [(each["row"], each["label_before"], each["label_after"], each["prediction_changed"]) for each in changed]
    assert listed == [(3, "cat", "dog", False), (5, "owl", "cat", True)]
    assert changed[1]["second"]["predicted_name"] == "owl"
    (left,) = document(first, second, "only_first")["samples"]
    assert (left["row"], left["key"]) == (2, "14.png")
    turned = document(second, first, "only_second")
    assert (turned["samples"], turned["total"]) == ([left], 1)


def test_renamed_classes_are_other_labels_with_names(tmp_path, versions):
    old, _ = versions
    make_version(old, [RenameClass("cat", "puma")], tmp_path / "renamed")
    first = evaluated(tmp_path / "a", old, [0, 1, 2, 0, 1, 2])
    second = evaluated(tmp_path / "b", opened(tmp_path / "renamed"), [0, 1, 2, 0, 1, 2])

    found = document(first, second, "label_changed")

    assert [(each["label_before"], each["label_after"]) for each in found["samples"]] == [("cat", "puma")] * 2
    assert found["accuracy"]["first_by_second_labels"] == 4 / 6
    assert found["counts"]["still_wrong"] == found["counts"]["broken"] == 0


def test_rows_that_could_not_be_read_are_only_there(tmp_path, versions):
    old, _ = versions
    first = evaluated(tmp_path / "a", old, [0, 1, 2, 0, 1], rows=[0, 1, 2, 3, 4])
    second = evaluated(tmp_path / "b", old, [1, 2, 0, 1, 2], rows=[1, 2, 3, 4, 5])

    found = document(first, second)

    assert found["counts"] == {
        "fixed": 0,
        "broken": 0,
        "still_wrong": 0,
        "label_changed": 0,
        "only_first": 1,
        "only_second": 1,
    }


def test_contents_that_come_twice_are_counted(tmp_path):
    twice = [("a.png", (png(picture(1)),), 0), ("b.png", (png(picture(1)),), 1), ("c.png", (png(picture(2)),), 2)]
    old = write_dataset(tmp_path / "old", {"val": twice}, ANIMALS)
    new = write_dataset(tmp_path / "new", {"val": [("d.png", *twice[0][1:]), twice[2]]}, ANIMALS)

    found = document(evaluated(tmp_path / "a", old, [0, 1, 2]), evaluated(tmp_path / "b", new, [0, 2]))

    assert found["versions"] == {"common": 2, "label_changed": 0, "unmatched": 1}
    assert (found["counts"]["only_first"], found["counts"]["only_second"]) == (1, 0)


def test_datasets_without_a_common_sample_are_refused(tmp_path, versions):
    old, _ = versions
    other = write_dataset(tmp_path / "other", {"val": animals(3, first=50)})

    with pytest.raises(
        JobError, match="samples have the same content, so evaluations of these datasets cannot be compared"
    ):
        differences(evaluated(tmp_path / "a", old, [0] * 6), evaluated(tmp_path / "b", other, [0] * 3))


def test_a_deleted_version_is_said_in_one_sentence(tmp_path, versions):
    old, new = versions
    first, second = evaluated(tmp_path / "a", old, [0] * 6), evaluated(tmp_path / "b", new, [0] * 5)
    (old.folder / "manifest.json").rename(tmp_path / "away")

    with pytest.raises(JobError, match="is not there any more, so evaluations of different data cannot be compared"):
        differences(first, second)


def test_a_list_that_there_is_not_is_named(tmp_path, versions):
    old, new = versions
    first, second = evaluated(tmp_path / "a", old, [0] * 6), evaluated(tmp_path / "b", new, [0] * 5)

    with pytest.raises(UsageError, match="fixed, broken, still_wrong, label_changed, only_first, only_second"):
        document(first, second, "better")
    with pytest.raises(UsageError, match=r"fixed, broken, still_wrong \(received: label_changed\)."):
        document(first, first, "label_changed")


def regressed(folder, dataset, errors):
    """Write the errors of a regression of the rows of ``val``, and read them."""
    rows = np.arange(len(errors), dtype=np.int32)
    keys = [f"{dataset.entry('val', row).key}\n".encode() for row in range(len(errors))]
    arrays = {"rows": rows, "key_offsets": np.cumsum([0, *map(len, keys)])}
    arrays |= {"score": -np.array(errors, np.float32), "predicted": np.zeros((len(errors), 1), np.float32)}
    summary = {"kind": "evaluate", "split": "val", "data": str(dataset.folder), "classifier": False}
    summary |= {"task": "regression", "count": len(errors), "samples_digest": folder.name}
    write_results(folder, summary, arrays, b"".join(keys))
    return Predictions(folder)


def test_scores_of_two_versions_are_joined(tmp_path):
    assert task("regression").ranked_by == "score"
    schema = Schema(kind="image-regression")
    content = [(f"{number}.png", (png(picture(number)),), [float(number)]) for number in range(4)]
    old = write_dataset(tmp_path / "old", {"val": content}, schema)
    make_version(old, [Exclude("val", [0]), Relabel("val", [2], [9.0])], tmp_path / "new")
    first, second = (
        regressed(tmp_path / "a", old, [4, 1, 2, 3]),
        regressed(tmp_path / "b", opened(tmp_path / "new"), [3, 1, 3]),
    )

    found = differences(first, second).document("label_changed", 0.5, slice(0, 10))

    assert found["counts"] == {
        "better": 1,
        "worse": 1,
        "equal": 1,
        "label_changed": 1,
        "only_first": 1,
        "only_second": 0,
    }
    assert found["mean"] == pytest.approx((-2 + 1 + 0) / 3)
    (changed,) = found["samples"]
    assert (changed["label_before"], changed["label_after"]) == ([2.0], [9.0])
    assert (changed["score"], changed["second"]["score"], changed["difference"]) == (-2, -1, 1)
