"""Metrics of multi-label classification, against scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from tests.unit.tasks.metric_parts import measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks.multilabel_metrics import MultiLabelMetric

_NAMES = ["indoor", "person", "dog", "night"]


def _make():
    return MultiLabelMetric(_NAMES)


def _batch(count=120, seed=0):
    chance = np.random.default_rng(seed)
    target = (chance.random((count, 4)) < [0.1, 0.3, 0.5, 0.9]).astype(np.float32)
    output = np.clip(0.3 * target + 0.7 * chance.random((count, 4)), 0, 1).astype(np.float32)
    return {"output": output}, {"y": target}


def test_multilabel_values_are_those_of_scikit_learn():
    outputs, targets = _batch()
    values = measured(_make, outputs, targets)
    target, output = targets["y"], outputs["output"]
    assert values["mean_ap"] == pytest.approx(average_precision_score(target, output), rel=1e-12)
    taken = output >= 0.5
    assert values["f1_macro"] == pytest.approx(f1_score(target, taken, average="macro"), rel=1e-12)
    assert values["f1_micro"] == pytest.approx(f1_score(target, taken, average="micro"), rel=1e-12)
    wanted = {
        "ap": average_precision_score(target, output, average=None),
        "precision": precision_score(target, taken, average=None),
        "recall": recall_score(target, taken, average=None),
        "f1": f1_score(target, taken, average=None),
        "positives": target.sum(axis=0),
        "predicted": taken.sum(axis=0),
    }
    for name, figures in wanted.items():
        np.testing.assert_allclose([each[name] for each in values["classes"]], figures, rtol=1e-12)
    assert values["counts"] == {"samples": 120, "labels": 480, "unknown": 0, "not_finite": 0}
    json.dumps(values)


def test_multilabel_parts_merge_to_one_pass():
    outputs, targets = _batch()
    outputs["output"] = np.round(outputs["output"], 1)  # many equal probabilities
    targets["y"][::7, 1] = np.nan
    for seed in range(4):
        assert merged(_make, outputs, targets, seed) == measured(_make, outputs, targets)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=20))
def test_average_precision_holds_for_equal_probabilities(samples):
    output = np.array([[sample[0]] for sample in samples])
    target = np.array([[sample[1]] for sample in samples], np.float64)
    values = measured(lambda: MultiLabelMetric(["one"]), {"output": output}, {"y": target})
    if target.any():
        wanted = average_precision_score(target[:, 0], output[:, 0])
        assert values["mean_ap"] == pytest.approx(wanted, rel=1e-12)
        assert values["f1_macro"] == pytest.approx(f1_score(target[:, 0], output[:, 0] >= 0.5), rel=1e-12)
    else:
        assert (values["mean_ap"], values["f1_macro"]) == (None, None)


def test_unknown_labels_are_left_out_and_counted():
    outputs, targets = _batch()
    targets["y"][::3, 2] = np.nan
    known = ~np.isnan(targets["y"][:, 2])
    values = measured(_make, outputs, targets)
    wanted = average_precision_score(targets["y"][known, 2], outputs["output"][known, 2])
    assert values["classes"][2]["ap"] == pytest.approx(wanted, rel=1e-12)
    assert values["classes"][2]["predicted"] == (outputs["output"][known, 2] >= 0.5).sum()
    assert values["counts"] == {"samples": 120, "labels": 440, "unknown": 40, "not_finite": 0}


def test_classes_without_positives_are_not_part_of_means():
    outputs, targets = _batch()
    targets["y"][:, 0] = 0
    values = measured(_make, outputs, targets)
    assert values["classes"][0]["ap"] is None
    assert values["classes"][0]["recall"] is None
    wanted = average_precision_score(targets["y"][:, 1:], outputs["output"][:, 1:])
    assert values["mean_ap"] == pytest.approx(wanted, rel=1e-12)


def test_the_threshold_decides_what_is_predicted():
    outputs, targets = {"output": np.array([[0.2], [0.7]])}, {"y": np.array([[1.0], [1.0]])}
    for threshold, wanted in ((0.2, 1.0), (0.5, 2 / 3)):
        metric = MultiLabelMetric(["one"], threshold)
        metric.update(outputs, targets)
        assert metric.compute()["f1_micro"] == pytest.approx(wanted)


def test_probabilities_that_are_nan_are_counted():
    outputs, targets = _batch()
    outputs["output"][5, 0] = np.nan
    values = measured(_make, outputs, targets)
    assert values["counts"]["not_finite"] == 1
    wanted = average_precision_score(targets["y"][:, 0], np.nan_to_num(outputs["output"][:, 0]))
    assert values["classes"][0]["ap"] == pytest.approx(wanted, rel=1e-12)


def test_a_multilabel_metric_begins_empty():
    assert _make().compute() == {}


@pytest.mark.parametrize(
    ("output", "target", "text"),
    [
        (np.full((2, 4), 3.5), np.ones((2, 4)), r"from 0 to 1 \(received: 3\.5\)\. Apply a sigmoid"),
        (np.ones((2, 4)), np.full((2, 4), 2.0), r"1, 0, or NaN where it is not known \(received: 2\.0"),
        (np.ones((2, 4)), np.full((2, 4), -1.0), r"1, 0, or NaN where it is not known \(received: -1\.0"),
        (np.ones((2, 3)), np.ones((2, 3)), r"shape \(2, 3\) are not one for each of 4 classes"),
        (np.ones((2, 4)), np.ones((3, 4)), r"output \(2, 4\) for target \(3, 4\)"),
    ],
)
def test_labels_of_another_form_are_refused(output, target, text):
    with pytest.raises(UsageError, match=text):
        measured(_make, {"output": output}, {"y": target})


def test_multilabel_states_of_other_classes_are_refused():
    with pytest.raises(UsageError, match=r"shape \(0, 1\) are not one for each of 4 classes"):
        _make().merge(MultiLabelMetric(["one"]).state())
