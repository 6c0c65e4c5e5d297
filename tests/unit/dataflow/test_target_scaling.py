"""Scaling of regression targets: its inverse, values that never vary, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ziggurat.dataflow.target_scaling import TargetScaling
from ziggurat.errors import DataError


def test_targets_get_mean_0_and_deviation_1() -> None:
    values = np.random.default_rng(0).normal([5, -1000, 3], [2, 50, 0], (400, 3))
    scaling = TargetScaling.fit(values)
    scaled = scaling.scale(values)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(scaling.unscale(scaled), values, rtol=1e-5)
    np.testing.assert_array_equal(scaling.scale(values[0]), scaled[0])


@given(values=arrays(np.float64, st.tuples(st.integers(1, 9)), elements=st.floats(-1e9, 1e9)))
def test_one_value_a_sample_keeps_its_shape(values: np.ndarray) -> None:
    scaling = TargetScaling.fit(values)
    assert TargetScaling.from_json(json.loads(json.dumps(scaling.as_json()))) == scaling
    scaled = scaling.scale(values)
    assert scaled.shape == values.shape
    assert scaling.scale(values[:, None]).shape == (len(values), 1)
    np.testing.assert_allclose(scaling.unscale(scaled), values, rtol=1e-5, atol=1e-5 * (1 + np.abs(values).max()))


@pytest.mark.parametrize("values", [np.zeros(0), np.array([1.0, np.nan]), np.array([np.inf])])
def test_targets_without_a_mean_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="finite numbers, of one sample at least"):
        TargetScaling.fit(values)


def test_samples_with_other_values_are_refused() -> None:
    with pytest.raises(DataError, match=r"A sample has 2 values.*\(4, 3\)"):
        TargetScaling.fit(np.eye(2)).scale(np.zeros((4, 3)))


@pytest.mark.parametrize(
    "content", [{}, {"mean": [], "deviation": []}, {"mean": [1], "deviation": [0]}, {"mean": [1, 2], "deviation": [1]}]
)
def test_damaged_content_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="is read as it was written"):
        TargetScaling.from_json(content)
