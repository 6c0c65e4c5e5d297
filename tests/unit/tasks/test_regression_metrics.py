"""Metrics of regression, against scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from tests.unit.tasks.metric_parts import assert_close, measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks.regression_metrics import RegressionMetric


def _make():
    return RegressionMetric(["width", "height", "age"])


def _one():
    return RegressionMetric(["width"])


def _batch(count=50, seed=0):
    chance = np.random.default_rng(seed)
    target = chance.normal([3, -70, 1000], [1, 20, 0.5], (count, 3)).astype(np.float32)
    return {"output": target + chance.normal(0, [0.5, 10, 0.1], (count, 3)).astype(np.float32)}, {"y": target}


def test_regression_values_are_those_of_scikit_learn():
    outputs, targets = _batch()
    values = measured(_make, outputs, targets)
    # In float64, as the metric computes: scikit-learn stays in float32.
    target, output = targets["y"].astype(np.float64), outputs["output"].astype(np.float64)
    scores = {"rmse": root_mean_squared_error, "mae": mean_absolute_error, "r2": r2_score}
    for name, score in scores.items():
        assert values[name] == pytest.approx(score(target, output), rel=1e-9)
        found = [row[name] for row in values["values"]]
        np.testing.assert_allclose(found, score(target, output, multioutput="raw_values"), rtol=1e-9)
    assert [row["name"] for row in values["values"]] == ["width", "height", "age"]
    assert values["counts"] == {"values": 150, "unknown": 0, "not_finite": 0}
    json.dumps(values)


def test_regression_parts_merge_to_one_pass():
    outputs, targets = _batch()
    targets["y"][::7, 1] = np.nan
    for seed in range(4):
        assert_close(merged(_make, outputs, targets, seed), measured(_make, outputs, targets), 1e-11)


@given(st.floats(-1e9, 1e9), st.integers(0, 5))
def test_r2_is_stable_far_from_zero(offset, seed):
    chance = np.random.default_rng(seed)
    target = offset + chance.normal(0, 1, 40)
    outputs, targets = {"output": target + chance.normal(0, 0.5, 40)}, {"y": target}
    wanted = r2_score(target, outputs["output"])
    assert measured(_one, outputs, targets)["r2"] == pytest.approx(wanted, abs=1e-9)
    assert merged(_one, outputs, targets, seed)["r2"] == pytest.approx(wanted, abs=1e-9)


def test_unknown_targets_are_left_out_and_counted():
    outputs, targets = _batch()
    targets["y"][3, 0] = np.nan
    targets["y"][5:10, 1] = np.nan
    targets["y"][4, 2] = np.inf
    values = measured(_make, outputs, targets)
    assert values["counts"] == {"values": 143, "unknown": 7, "not_finite": 0}
    assert [row["count"] for row in values["values"]] == [49, 45, 49]
    for number, row in enumerate(values["values"]):
        known = np.isfinite(targets["y"][:, number])
        target, output = (array[known, number].astype(np.float64) for array in (targets["y"], outputs["output"]))
        assert row["r2"] == pytest.approx(r2_score(target, output), rel=1e-9)
        assert row["rmse"] == pytest.approx(root_mean_squared_error(target, output), rel=1e-9)


def test_one_value_needs_no_second_axis():
    flat = measured(_one, {"output": np.array([1.0, 2, 4])}, {"y": np.array([1.0, 2, 3])})
    assert flat == measured(_one, {"output": np.array([[1.0], [2], [4]])}, {"y": np.array([1.0, 2, 3])})
    assert "values" not in flat
    assert flat["r2"] == pytest.approx(0.5)


@pytest.mark.parametrize("target", [[0.1] * 7, [5.0], [1e9 + 0.3] * 3])
def test_r2_is_undefined_for_equal_targets(target):
    output = np.array(target) + 1
    values = measured(_one, {"output": output}, {"y": np.array(target)})
    assert values["r2"] is None
    assert values["mae"] == pytest.approx(1)
    if len(target) > 1:
        assert merged(_one, {"output": output}, {"y": np.array(target)})["r2"] is None


def test_a_prediction_that_is_not_finite_hides_nothing():
    outputs, targets = _batch()
    outputs["output"][2, 0] = np.nan
    values = measured(_make, outputs, targets)
    assert (values["rmse"], values["mae"], values["r2"]) == (None, None, None)
    assert values["values"][0]["rmse"] is None
    assert values["values"][1]["rmse"] > 0
    assert values["counts"]["not_finite"] == 1


def test_a_value_without_targets_is_not_part_of_the_mean():
    outputs, targets = _batch()
    targets["y"][:, 1] = np.nan
    values = measured(_make, outputs, targets)
    row = values["values"][1]
    assert row == {"name": "height", "rmse": None, "mae": None, "r2": None, "count": 0, "unknown": 50}
    assert values["mae"] == pytest.approx(np.mean([values["values"][number]["mae"] for number in (0, 2)]))


def test_without_known_targets_there_are_no_figures():
    assert _make().compute() == {}
    nothing = measured(_one, {"output": np.ones(2)}, {"y": np.full(2, np.nan)})
    assert nothing == {"counts": {"values": 0, "unknown": 2, "not_finite": 0}}
    assert measured(_one, {"output": np.ones(0)}, {"y": np.ones(0)}) == {}


def test_values_of_another_number_are_refused():
    with pytest.raises(UsageError, match=r"The output has shape \(4, 2\), not one number for each of 3 values"):
        measured(_make, {"output": np.ones((4, 2))}, {"y": np.ones((4, 3))})
    with pytest.raises(UsageError, match=r"output \(4, 3\) for target \(5, 3\)"):
        measured(_make, {"output": np.ones((4, 3))}, {"y": np.ones((5, 3))})
    with pytest.raises(UsageError, match="1 and 3 values"):
        _make().merge(_one().state())
