"""Metrics of classifiers: the same values batch by batch, merged in any order, and by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score, recall_score, top_k_accuracy_score

from ziggurat.errors import UsageError
from ziggurat.tasks import ConfusionMetric, MeansMetric, Metric
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

_NAMES = [f"class {number}" for number in range(7)]


def _samples(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    return chance.random((count, len(_NAMES))).astype(np.float32), chance.integers(0, len(_NAMES), count)


def _measured(*batches: tuple[np.ndarray, np.ndarray]) -> ConfusionMetric:
    metric = ConfusionMetric(_NAMES)
    for probabilities, labels in batches:
        metric.update({"probabilities": probabilities}, {"y": labels})
    return metric


def test_its_values_are_those_of_scikit_learn() -> None:
    probabilities, labels = _samples(500)
    predicted = probabilities.argmax(axis=1)
    values = _measured((probabilities, labels)).compute()
    assert values["accuracy"] == pytest.approx(accuracy_score(labels, predicted), abs=1e-12)
    assert values["top_5"] == pytest.approx(top_k_accuracy_score(labels, probabilities, k=5), abs=1e-12)
    assert values["confusion"] == confusion_matrix(labels, predicted).tolist()
    for name, score in (("precision", precision_score), ("recall", recall_score)):
        found = [each[name] for each in values["classes"]]
        np.testing.assert_allclose(found, score(labels, predicted, average=None), atol=1e-12)
    assert [each["samples"] for each in values["classes"]] == np.bincount(labels, minlength=7).tolist()
    assert [each["predicted"] for each in values["classes"]] == np.bincount(predicted, minlength=7).tolist()


def test_parts_that_are_merged_in_any_order_are_one_pass() -> None:
    probabilities, labels = _samples(300)
    whole = _measured((probabilities, labels)).compute()
    parts = [_measured((probabilities[begin : begin + 90], labels[begin : begin + 90])) for begin in range(0, 300, 90)]
    for order in (parts, parts[::-1]):
        merged: Metric = ConfusionMetric(_NAMES)
        for part in order:
            merged.merge(part.state())
        assert merged.compute() == whole


def test_a_state_does_not_follow_what_comes_later() -> None:
    metric = _measured(_samples(10))
    state = metric.state()
    before = int(state["matrix"].sum())
    metric.update({"probabilities": _samples(5)[0]}, {"y": _samples(5)[1]})
    assert int(state["matrix"].sum()) == before


def test_samples_without_a_label_are_not_counted() -> None:
    probabilities, labels = _samples(40)
    known = labels != 3
    some = np.where(known, labels, -1)
    assert _measured((probabilities, some)).compute() == _measured((probabilities[known], labels[known])).compute()
    assert _measured((probabilities, np.full(40, -1))).compute() == {}


@pytest.mark.parametrize("classes", [2, 5])
def test_top_5_is_told_of_more_than_five_classes(classes: int) -> None:
    metric = ConfusionMetric(_NAMES[:classes])
    metric.update({"probabilities": np.eye(classes)}, {"y": np.arange(classes)})
    values: dict[str, Any] = metric.compute()
    assert values["accuracy"] == 1.0
    assert "top_5" not in values


def test_states_of_other_classes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"3 and 7 classes"):
        _measured().merge(ConfusionMetric(_NAMES[:3]).state())


def test_means_count_each_batch_by_its_samples() -> None:
    whole, parts = MeansMetric(), [MeansMetric(), MeansMetric()]
    for number, (cost, count) in enumerate([(1.0, 2), (4.0, 1), (2.5, 5)]):
        batch = ({"cost": np.float32(cost), "probabilities": np.ones((count, 3))}, {"y": np.zeros(count)})
        whole.update(*batch)
        parts[number % 2].update(*batch)
    assert whole.samples == 8
    assert whole.compute() == {"cost": pytest.approx((2 * 1.0 + 4.0 + 5 * 2.5) / 8)}
    merged = MeansMetric()
    for part in parts:
        merged.merge(part.state())
    assert merged.compute() == pytest.approx(whole.compute())
    assert MeansMetric().compute() == {}


def test_means_add_up_sums_and_weights() -> None:
    whole, parts = MeansMetric(), [MeansMetric(), MeansMetric()]
    for number, (total, weight) in enumerate([(1.0, 2.0), (40.0, 10.0), (0.0, 0.0)]):
        cost = WeightedMean(total / (weight or 1.0), [WeightedSum(total, weight, weight or 1e-12)])
        whole.update({"cost": cost}, {"y": np.zeros(4)})
        parts[number % 2].update({"cost": cost}, {"y": np.zeros(4)})
    merged = MeansMetric()
    for part in parts:
        merged.merge(part.state())
    assert merged.compute() == whole.compute() == {"cost": pytest.approx(41.0 / 12.0)}


def test_a_class_that_is_never_predicted_has_no_precision() -> None:
    confusion = ConfusionMetric(["cat", "dog", "cow"])
    probabilities = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]])
    confusion.update({"probabilities": probabilities}, {"y": np.array([0, 0])})
    figures = confusion.compute()
    assert figures["confusion"] == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert figures["accuracy"] == 0.5
    assert "top_5" not in figures, "among three classes it says nothing"
    shares = [(each["class"], each["precision"], each["recall"]) for each in figures["classes"]]
    assert shares == [("cat", 1.0, 0.5), ("dog", 0.0, None), ("cow", None, None)]


def test_very_many_classes_have_only_their_worst_errors() -> None:
    names = [f"class {number}" for number in range(1001)]
    labels = np.array([7, 7, 7, 5, 5, 900, 3])
    probabilities = np.zeros((7, 1001), np.float32)
    probabilities[np.arange(7), [8, 8, 7, 6, 6, 2, 3]] = 1
    metric = ConfusionMetric(names)
    metric.update({"probabilities": probabilities}, {"y": labels})
    values = metric.compute()
    assert "confusion" not in values
    assert [(each["class"], each["predicted"], each["samples"]) for each in values["confused"]] == [
        ("class 5", "class 6", 2),
        ("class 7", "class 8", 2),
        ("class 900", "class 2", 1),
    ]
    assert values["accuracy"] == pytest.approx(2 / 7)
    few = ConfusionMetric(names[:1000])
    few.update({"probabilities": np.eye(1000)[:2]}, {"y": np.array([0, 1])})
    assert np.shape(few.compute()["confusion"]) == (1000, 1000)
    assert "confused" not in few.compute()
