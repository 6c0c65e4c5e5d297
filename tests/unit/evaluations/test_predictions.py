"""Results of a job, written by the worker's half and read by the studio's."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.standalone_prediction import decided_class
from ziggurat.errors import DataError, JobError, StorageError, UsageError
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext
from ziggurat.worker.results import SampleResults
from ziggurat.workspace.studio.evaluation_differences import EvaluationDifferences
from ziggurat.workspace.studio.prediction_tables import prediction_table
from ziggurat.workspace.studio.predictions import Predictions, SampleFilter

NAMES = ["ant", "=bee", "cat", "dog", "elk", "fox"]
SUMMARY = {"kind": "evaluate", "split": "val", "data": "pets", "classifier": True, "classes": NAMES}
ORDERS = ("hardest", "surest_wrong", "row")


def context_of(classes):
    schema = Schema(kind="image-classification", class_names=tuple(map(str, range(classes))))
    return TaskContext(CLASSIFICATION, schema, Preprocessing(size=(8, 8), channels=1))


@pytest.fixture
def samples():
    """Return rows with gaps, labels, some unknown, and probabilities of six classes."""
    random = np.random.default_rng(8)
    probabilities = random.dirichlet(np.ones(6), 50).astype(np.float32)
    labels = np.where(random.random(50) < 0.5, probabilities.argmax(axis=1), random.integers(-1, 6, 50))
    rows = [2 * number for number in range(50)]
    keys = [f"pictures/{number}.png" for number in range(49)] + ["-1+cmd|' /C calc'!A0\nnext,\udcff.png"]
    return rows, keys, labels, probabilities


def write(folder, rows, keys, labels, probabilities, thresholds=(), **summary):
    results = SampleResults(replace(context_of(probabilities.shape[1]), thresholds=thresholds), 60, 5)
    for start in range(0, len(rows), 16):
        part = slice(start, start + 16)
        results.add(rows[part], keys[part], {"probabilities": probabilities[part]}, {"y": labels[part]})
    results.write(folder / "results", {**SUMMARY, "count": results.count, **summary})
    return Predictions(folder / "results")


@pytest.fixture
def found(tmp_path, samples):
    return write(tmp_path, *samples)


def test_samples_have_the_decision_of_an_operating_point(tmp_path, samples):
    point = {"thresholds": {"confidence": 0.5}, "used": True, "problem": ""}

    found = write(tmp_path, *samples, thresholds=(0.5,), operating_point=point)

    listed = found.samples(found.select(SampleFilter(order="row")))
    names = [f"class {number}" for number in range(6)]
    expected = [decided_class(row, (0.5,), names)["number"] for row in samples[3]]
    assert [each["decision"]["number"] for each in listed] == expected
    assert None in expected
    assert {each["decision"]["threshold"] for each in listed} == {0.5}
    assert [each["predicted"] for each in listed] == samples[3].argmax(axis=1).tolist()
    rows = list(csv.DictReader(io.StringIO(b"".join(prediction_table(found, "csv")).decode())))
    assert [row["decision"] == "undecided" for row in rows] == [number is None for number in expected]


def test_without_an_operating_point_samples_have_no_decision(found):
    listed = found.samples(found.select(SampleFilter(order="row")))

    assert not any("decision" in each for each in listed)


def test_every_sample_comes_back_as_it_was_said(found, samples):
    rows, keys, labels, probabilities = samples

    listed = found.samples(found.select(SampleFilter(order="row")))

    assert len(found) == len(listed) == 50
    for number, sample in enumerate(listed):
        best = np.argsort(-probabilities[number], kind="stable")[:5]
        assert sample["row"] == rows[number]
        assert sample["key"] == keys[number].replace("\n", "\\n")
        assert sample["label"] == (None if labels[number] < 0 else labels[number])
        assert sample["predicted"] == best[0]
        assert sample["score"] == pytest.approx(float(probabilities[number].max()))
        assert [each["class"] for each in sample["top"]] == best.tolist()
        assert [each["name"] for each in sample["top"]] == [NAMES[each] for each in best]
        assert [each["score"] for each in sample["top"]] == pytest.approx(probabilities[number][best].tolist())


def test_accuracy_and_top_five(found, samples):
    _, _, labels, probabilities = samples
    known = labels >= 0
    ranks = np.argsort(-probabilities, axis=1)[:, :5]

    assert found.figures["accuracy"] == pytest.approx((ranks[:, 0] == labels)[known].mean())
    assert found.figures["top5"] == pytest.approx((ranks == labels[:, None]).any(axis=1)[known].mean())


def test_each_cell_of_the_confusion_opens_its_samples(found):
    for label, row in enumerate(found.figures["confusion"]):
        for predicted, count in enumerate(row):
            places = found.select(SampleFilter(label=label, predicted=predicted))
            assert len(places) == count
            assert (found.labels[places] == label).all()
            assert (found.predicted[places] == predicted).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("only", ["", "wrong", "right"])
def test_filters_and_orders(found, samples, order, only):
    _, _, labels, probabilities = samples
    chosen, best = probabilities.argmax(axis=1), probabilities.max(axis=1)
    is_wrong = (labels >= 0) & (labels != chosen)
    fits = {"": np.ones(50, bool), "wrong": is_wrong, "right": labels == chosen}[only]
    wanted = [number for number in range(50) if fits[number] and 0.3 <= best[number] <= 0.8]

    def rank(number):
        if order == "row":
            return (number,)
        if order == "surest_wrong":
            return (not is_wrong[number], -best[number])
        return (best[number] if labels[number] < 0 else probabilities[number][labels[number]],)

    places = found.select(SampleFilter(only=only, order=order, min_score=0.3, max_score=0.8))

    assert places.tolist() == sorted(wanted, key=rank)


def test_samples_without_a_label_are_asked_for_by_minus_one(found, samples):
    assert found.select(SampleFilter(label=-1, order="row")).tolist() == np.flatnonzero(samples[2] == -1).tolist()


def test_the_surest_of_a_class(found, samples):
    probabilities = samples[3]

    for limit in (3, 1000):
        wanted = np.argsort(-probabilities[:, 2], kind="stable")[:limit]
        assert found.surest_of_class(2, limit).tolist() == wanted.tolist()


def test_curves_say_whether_all_probabilities_were_kept(found, tmp_path, samples):
    assert found.curves(1, 200)["exact"]
    whole = found.curves(1, 200)

    (tmp_path / "results" / "class_scores.npy").unlink()
    partial = Predictions(tmp_path / "results").curves(1, 200)

    assert not partial["exact"]
    # The five best of six classes are kept: only the least of a sample is taken for 0.
    assert whole["average_precision"] == pytest.approx(partial["average_precision"], abs=0.02)


def test_too_many_probabilities_are_not_kept():
    assert "class_scores" in SampleResults(context_of(1000), 20_000, 5)._arrays
    assert "class_scores" not in SampleResults(context_of(1000), 20_001, 5)._arrays
    assert "class_scores" not in SampleResults(context_of(1001), 1, 5)._arrays


def test_a_threshold(found, samples):
    _, _, labels, probabilities = samples
    decided = probabilities.max(axis=1) >= 0.5
    known = decided & (labels >= 0)

    at = found.at_threshold(0.5)

    assert at["coverage"] == pytest.approx(decided.mean())
    assert at["accuracy"] == pytest.approx((probabilities.argmax(axis=1) == labels)[known].mean())


def differences(first, second, which=None, **more):
    """Return how a second evaluation differs; no data is looked at."""
    return EvaluationDifferences(first, second, lambda each: Path(each.summary["data"])).document(
        which, more.get("margin"), slice(0, 1000)
    )


def test_what_a_second_model_changed(found, tmp_path, samples):
    rows, keys, labels, probabilities = samples
    second = write(tmp_path / "second", rows, keys, labels, np.roll(probabilities, 1, axis=1))
    first_right = (labels >= 0) & (probabilities.argmax(axis=1) == labels)
    second_right = (labels >= 0) & (np.roll(probabilities, 1, axis=1).argmax(axis=1) == labels)
    known = labels >= 0
    wanted = {
        "fixed": known & ~first_right & second_right,
        "broken": first_right & ~second_right,
        "still_wrong": known & ~first_right & ~second_right,
    }

    for which, places in wanted.items():
        changed = differences(found, second, which)
        assert [each["row"] // 2 for each in changed["samples"]] == np.flatnonzero(places).tolist()
        assert changed["counts"] == {name: int(each.sum()) for name, each in wanted.items()}
    accuracy = changed["accuracy"]
    assert (accuracy["samples"], accuracy["first_by_second_labels"], changed["versions"]) == (known.sum(), None, None)
    assert accuracy["first"] == pytest.approx(first_right[known].mean())
    assert accuracy["difference"] == pytest.approx(second_right[known].mean() - first_right[known].mean())
    assert accuracy["interval"][0] < accuracy["difference"] < accuracy["interval"][1]


def test_differences_without_labels_have_no_accuracy(tmp_path, samples):
    rows, keys, labels, probabilities = samples
    one, two = (write(tmp_path / name, rows, keys, np.full_like(labels, -1), probabilities) for name in ("one", "two"))

    found = differences(one, two)

    assert (found["accuracy"], found["p_value"], found["total"]) == (None, 1.0, 0)


def test_another_split_is_not_compared(found, tmp_path, samples):
    with pytest.raises(JobError, match=", and evaluations of the same split are compared"):
        differences(found, write(tmp_path / "second", *samples, split="test"))


def test_other_data_is_compared_where_it_is_a_dataset(found, tmp_path, samples):
    fewer = [part[:-1] for part in samples]
    for second in (write(tmp_path / "one", *samples, data="cars"), write(tmp_path / "two", *fewer)):
        with pytest.raises(
            JobError, match="is not there any more, so evaluations of different data cannot be compared"
        ):
            differences(found, second)


def test_the_table_has_every_sample_and_no_formula(found, samples):
    text = b"".join(prediction_table(found, "csv")).decode()
    rows = list(csv.DictReader(io.StringIO(text)))

    assert len(rows) == 50
    for number, row in enumerate(rows):
        label = samples[2][number]
        assert row["label"] == ("" if label < 0 else str(label))
        assert row["label_name"].removeprefix("'") == ("" if label < 0 else NAMES[label])
        assert float(row["score"]) == float(row["top_1_score"]) == pytest.approx(float(found.scores[number]))
    assert {row["predicted_name"] for row in rows} == {"ant", "'=bee", "cat", "dog", "elk", "fox"}
    assert rows[-1]["key"].startswith("'-1+cmd|")
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


def test_the_table_as_json(found):
    listed = json.loads(b"".join(prediction_table(found, "json")))

    assert listed == json.loads(json.dumps(found.samples(np.arange(50))))


def test_numbers_that_are_not_finite_do_no_harm(tmp_path):
    probabilities = np.array([[0.2, 0.8], [np.nan, np.nan], [0.6, 0.4]], np.float32)

    found = write(tmp_path, [0, 1, 2], ["a", "b", "c"], np.array([1, 0, 1]), probabilities, classes=["x", "y"])

    assert found.select(SampleFilter(order="hardest")).tolist() == [1, 2, 0]
    assert found.curves(1, 10)["recall"][-1] == 1.0
    assert found.surest_of_class(0, 3).tolist()[-1] == 1
    assert json.loads(b"".join(prediction_table(found, "json")))[1]["score"] == "NaN"


def test_no_labels_have_no_figures(tmp_path):
    found = write(
        tmp_path, [0], ["a"], np.array([-1]), np.array([[0.2, 0.8]], np.float32), classes=["x", "y"], kind="infer"
    )

    assert found.figures == {"accuracy": None, "top5": None, "confusion": [], "per_class": []}


def test_nothing_that_could_be_read_is_no_error(tmp_path):
    SampleResults(context_of(2), 3, 5).write(tmp_path / "results", {**SUMMARY, "classes": ["x", "y"], "count": 0})
    found = Predictions(tmp_path / "results")

    assert found.samples(found.select(SampleFilter())) == []
    assert list(prediction_table(found, "json")) == [b"[", b"\n]\n"]
    assert found.at_threshold(0.5)["coverage"] is None


def test_results_are_replaced_whole(tmp_path, samples):
    write(tmp_path, *samples)
    again = write(tmp_path, *(part[:10] for part in samples))

    assert len(again) == 10
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_wrong_questions_are_said(found, tmp_path):
    with pytest.raises(UsageError, match=r"There is no class 6: they have numbers from 0 to 5"):
        found.curves(6, 10)
    with pytest.raises(UsageError, match="There is no class 9: they have numbers from 0 to 5"):
        found.select(SampleFilter(label=9))
    with pytest.raises(UsageError, match="is of no sample that was predicted for"):
        found.place_of_row(1)
    assert found.place_of_row(4) == 2
    with pytest.raises(StorageError, match=r"The results in .* cannot be read"):
        Predictions(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"gives a probability for each class of its data.*\(1, 3\) for 2 classes"):
        SampleResults(context_of(2), 1, 5).add([0], ["a"], {"probabilities": np.zeros((1, 3))}, {"y": np.array([0])})
