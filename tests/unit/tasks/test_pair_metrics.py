"""Metrics of pairs, against scikit-learn and every threshold in turn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import interp1d
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import KNeighborsClassifier

from tests.unit.tasks.metric_parts import measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks import pair_metrics
from ziggurat.tasks.pair_metrics import PairMetric, nearest_neighbor_accuracy, pair_distances


def _batch(count=200, seed=0, spread=2.0):
    chance = np.random.default_rng(seed)
    same = chance.integers(0, 2, count)
    first = chance.normal(size=(count, 5)).astype(np.float32)
    second = first + np.where(same, 1, spread)[:, None] * chance.normal(size=(count, 5))
    return {"output": first, "output_1": second.astype(np.float32)}, {"y": same}


def _at_distances(distances, same):
    """Return the values of pairs that have these distances."""
    second = np.array(distances, float)[:, None]
    return measured(PairMetric, {"output": np.zeros_like(second), "output_1": second}, {"y": np.array(same)})


def test_pair_values_are_those_of_scikit_learn():
    outputs, targets = _batch()
    values = measured(PairMetric, outputs, targets)
    distances = np.linalg.norm(outputs["output"].astype(np.float64) - outputs["output_1"], axis=1)
    np.testing.assert_allclose(pair_distances(outputs["output"], outputs["output_1"]), distances, rtol=1e-12)
    assert values["roc_auc"] == pytest.approx(roc_auc_score(targets["y"], -distances), rel=1e-12)
    false_rate, true_rate, _ = roc_curve(targets["y"], -distances, drop_intermediate=False)
    equal = brentq(lambda x: 1.0 - x - interp1d(false_rate, true_rate)(x), 0.0, 1.0)
    assert values["equal_error_rate"] == pytest.approx(equal, abs=1e-6)
    accuracies = [np.mean((distances <= limit) == targets["y"]) for limit in [-1, *distances]]
    assert values["accuracy"] == pytest.approx(max(accuracies), rel=1e-12)
    assert np.mean((distances <= values["threshold"]) == targets["y"]) == pytest.approx(values["accuracy"], rel=1e-12)
    assert values["counts"] == {"pairs": 200, "same": int(targets["y"].sum()), "unknown": 0, "not_finite": 0}
    json.dumps(values)


def test_pair_parts_merge_to_one_pass():
    outputs, targets = _batch()
    outputs = {name: np.round(values) for name, values in outputs.items()}  # many equal distances
    targets["y"][::9] = -1
    for seed in range(4):
        assert merged(PairMetric, outputs, targets, seed) == measured(PairMetric, outputs, targets)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=20))
def test_pair_figures_hold_for_equal_distances(pairs):
    distances, same = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    values = _at_distances(distances, same)
    accuracies = [np.mean((distances <= limit) == same) for limit in range(-1, 7)]
    assert values["accuracy"] == pytest.approx(max(accuracies), rel=1e-12)
    assert np.mean((distances <= values["threshold"]) == same) == pytest.approx(values["accuracy"], rel=1e-12)
    if same.any() and not same.all():
        assert values["roc_auc"] == pytest.approx(roc_auc_score(same, -distances), abs=1e-12)
        assert 0 <= values["equal_error_rate"] <= 1
    else:
        assert (values["roc_auc"], values["equal_error_rate"]) == (None, None)


def test_separated_pairs_have_a_threshold_in_between():
    values = _at_distances([0, 1, 3, 9], [1, 1, 0, 0])
    wanted = {"accuracy": 1, "threshold": 2, "roc_auc": 1, "equal_error_rate": 0}
    assert {name: values[name] for name in wanted} == wanted
    upside_down = _at_distances([0, 1, 3, 9], [0, 0, 1, 1])
    assert (upside_down["roc_auc"], upside_down["equal_error_rate"]) == (0, 1)


def test_a_threshold_between_neighboring_numbers_holds():
    near = np.nextafter(1.0, 2.0)
    values = _at_distances([1.0, near], [1, 0])
    assert (values["threshold"], values["accuracy"]) == (1.0, 1.0)


def test_pairs_without_an_answer_are_counted():
    assert PairMetric().compute() == {}
    nothing = {"counts": {"pairs": 0, "same": 0, "unknown": 2, "not_finite": 0}}
    assert _at_distances([1, 2], [-1, np.nan]) == nothing


def test_embeddings_that_are_nan_are_far_apart():
    values = _at_distances([0, np.nan, np.inf], [1, 0, 1])
    assert values["counts"]["not_finite"] == 2
    assert values["threshold"] == 0
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert _at_distances([np.nan], [1])["threshold"] is None


@pytest.mark.parametrize("block", [1, 700, 4_000_000])
def test_neighbor_accuracy_is_that_of_scikit_learn(monkeypatch, block):
    monkeypatch.setattr(pair_metrics, "_BLOCK_NUMBERS", block)
    chance = np.random.default_rng(1)
    labels = chance.integers(0, 4, 150)
    points = (100 + chance.normal(size=(150, 6)) + labels[:, None] * 0.7).astype(np.float32)
    neighbors = KNeighborsClassifier(2).fit(points, labels).kneighbors(points, return_distance=False)
    assert (neighbors[:, 0] == np.arange(150)).all()
    wanted = np.mean(labels[neighbors[:, 1]] == labels)
    assert 0.3 < wanted < 0.9
    assert nearest_neighbor_accuracy(points, labels) == pytest.approx(wanted, rel=1e-12)


def test_neighbor_accuracy_leaves_out_unlabeled_samples():
    points = np.array([[0.0], [0.1], [5], [5.2], [0.05]])
    assert nearest_neighbor_accuracy(points, np.array([0, 0, 1, 0, -1])) == 0.5
    assert nearest_neighbor_accuracy(points[:1], np.array([0])) is None
    points[2] = np.nan
    assert nearest_neighbor_accuracy(points, np.array([0, 0, 1, 0, 0])) == 0.8


def test_pairs_of_another_form_are_refused():
    ones = np.ones((2, 3))
    with pytest.raises(UsageError, match=r"output \(2, 3\) for target \(3, 3\)"):
        pair_distances(ones, np.ones((3, 3)))
    with pytest.raises(UsageError, match=r"1 \(same\) or 0 \(different\) \(received: 2"):
        measured(PairMetric, {"output": ones, "output_1": ones}, {"y": np.array([0, 2])})
    with pytest.raises(UsageError, match=r"output \(2,\) for target \(3,\)"):
        measured(PairMetric, {"output": ones, "output_1": ones}, {"y": np.ones(3)})
    with pytest.raises(UsageError, match=r"Embeddings are .* \(received: shape \(2,\)"):
        pair_distances(np.ones(2), np.ones(2))
    with pytest.raises(
        UsageError, match=r"Labels of shape \(3,\) are not one for each of the embeddings, which have shape \(2, 3\)"
    ):
        nearest_neighbor_accuracy(ones, np.ones(3))


def test_an_equal_error_rate_is_at_most_one():
    for count in range(1, 60):
        for early in range(count):
            # The different pairs come first, some of them later than the others: every threshold errs.
            distances = [0.0] * (count - early) + [1.0] * early + [2.0]
            values = _at_distances(distances, [0] * count + [1])
            assert values["equal_error_rate"] <= 1.0
