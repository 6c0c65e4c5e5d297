"""Numbers are described by mean, spread and quantiles, and drawn with bins that suit them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ziggurat.datasets.statistics.model import bars_of, describe, histogram_of


def test_numbers_are_described() -> None:
    found = describe([1.0, 2.0, 3.0, 4.0, float("nan")], missing=2)
    assert found is not None
    assert (found.count, found.missing, found.mean, found.minimum, found.maximum) == (4, 3, 2.5, 1.0, 4.0)
    assert found.deviation == pytest.approx(1.118, abs=1e-3)
    assert found.median == 2.5
    assert describe([]) is None
    assert describe([float("inf")]) is None


def test_few_whole_numbers_have_a_bin_each() -> None:
    found = histogram_of(np.array([1.0, 1.0, 3.0]))
    assert (found.edges, found.counts) == ((0.5, 1.5, 2.5, 3.5), (2, 0, 1))


def test_many_whole_numbers_share_bins_of_one_whole_width() -> None:
    found = histogram_of(np.arange(100.0))
    assert found.edges[:3] == (-0.5, 3.5, 7.5)
    assert sum(found.counts) == 100
    assert set(found.counts) == {4}


def test_sizes_over_powers_of_ten_have_bins_that_grow() -> None:
    found = histogram_of(10.0 ** np.arange(6.0))
    assert found.logarithmic
    assert (found.edges[0], found.edges[-1], sum(found.counts)) == (1.0, 1e5, 6)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30))
def test_every_number_is_in_a_bin(values: list[float]) -> None:
    found = histogram_of(np.array(values))
    assert sum(found.counts) == len(values)
    assert len(found.edges) == len(found.counts) + 1
    assert list(found.edges) == sorted(set(found.edges))


def test_bars_are_the_most_frequent_values() -> None:
    bars, others = bars_of("abracadabra", at_most=2)
    assert [(bar.name, bar.count) for bar in bars] == [("a", 5), ("b", 2)]
    assert others == 4
