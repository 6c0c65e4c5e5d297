"""Curves: thinned ones keep what one looks for, several jobs come in one answer."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_samples import new_job, point

from ziggurat.errors import JobError, UnknownNameError, UsageError
from ziggurat.store import Store
from ziggurat.store.curves import thin

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, 1e300]


def values_of(*, at_least: int = 0) -> st.SearchStrategy[np.ndarray]:
    """Random curves of up to 400 points, some of which are no numbers, or twice the same."""

    def make(count: int, seed: int, spots: list[tuple[float, float, float]]) -> np.ndarray:
        values = np.random.default_rng(seed).integers(-50, 50, count).astype(np.float64)
        for begin, width, value in spots:
            values[int(begin * count) : int((begin + width) * count)] = value
        return values

    share = st.floats(0, 1)
    spots = st.lists(st.tuples(share, share.map(lambda part: part / 4), st.sampled_from(SPECIAL)), max_size=4)
    return st.builds(make, st.integers(at_least, 400), st.integers(0, 1000), spots)


@settings(max_examples=100, deadline=None)
@given(values=values_of(), max_points=st.integers(5, 60))
def test_a_thinned_curve_keeps_ends_extremes_and_gaps(values: np.ndarray, max_points: int) -> None:
    kept = thin(values, max_points)
    assert len(kept) <= max_points
    assert np.all(np.diff(kept) > 0)
    if len(values) <= max_points:
        assert kept.tolist() == list(range(len(values)))
        return
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    numbers = values[~np.isnan(values)]
    if len(numbers):
        assert np.nanmin(values[kept]) == numbers.min()
        assert np.nanmax(values[kept]) == numbers.max()
    assert np.isnan(values[kept]).any() == np.isnan(values).any()


@settings(max_examples=40, deadline=None)
@given(values=values_of(at_least=61), max_points=st.integers(5, 60))
def test_each_bucket_keeps_its_own_extremes_and_its_first_gap(values: np.ndarray, max_points: int) -> None:
    kept = set(thin(values, max_points).tolist())
    buckets = (max_points - 2) // 3
    borders = [number * len(values) // buckets for number in range(buckets + 1)]
    for begin, end in pairwise(borders):
        part, chosen = values[begin:end], values[sorted(kept & set(range(begin, end)))]
        if not np.isnan(part).all():
            assert (np.nanmin(part), np.nanmax(part)) == (np.nanmin(chosen), np.nanmax(chosen))
        if np.isnan(part).any():
            assert begin + int(np.flatnonzero(np.isnan(part))[0]) in kept


def test_a_curve_needs_five_points(sqlite_store: Store) -> None:
    for call in (lambda: thin(np.zeros(3), 4), lambda: sqlite_store.curves.many([], "x", max_points=4)):
        with pytest.raises(UsageError, match=r"cannot be thinned to 4 points: 5 is the least"):
            call()


def test_only_what_is_new_is_asked_for(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.events.take("a", 0, 1, [point("loss", step, step / 10, epoch=step // 4) for step in range(10)])
    curve = store.curves.curve("a", "loss", since_step=6)
    assert (curve.tag, curve.total) == ("loss", 3)
    assert (curve.steps.tolist(), curve.values.tolist()) == ([7, 8, 9], [0.7, 0.8, 0.9])
    assert (curve.epochs.tolist(), curve.times.tolist()) == ([1, 2, 2], [107.0, 108.0, 109.0])
    assert [array.dtype for array in (curve.steps, curve.values, curve.epochs, curve.times)] == [
        np.int64, np.float64, np.int32, np.float64
    ]  # fmt: skip
    assert store.curves.curve("a", "loss", since_step=10**30).steps.tolist() == []
    assert store.curves.curve("a", "loss", since_step=-(10**30)).total == 10
    with pytest.raises(UnknownNameError, match=r"`los` is not a known curve of the job. Did you mean `loss`"):
        store.curves.curve("a", "los")


def test_several_curves_of_a_job_at_once(store: Store) -> None:
    store.jobs.add(new_job("a"))
    assert store.curves.some("a") == []
    store.events.take("a", 0, 1, [point(tag, step, float(step)) for tag in ("loss", "Accuracy") for step in (1, 2, 3)])
    assert [curve.tag for curve in store.curves.some("a")] == ["Accuracy", "loss"]
    named = store.curves.some("a", ["loss", "Accuracy"], since_step=1)
    assert [(curve.tag, curve.steps.tolist(), curve.total) for curve in named] == [
        ("loss", [2, 3], 2),
        ("Accuracy", [2, 3], 2),
    ]
    with pytest.raises(UnknownNameError, match="los"):
        store.curves.some("a", ["loss", "los"])
    with pytest.raises(JobError, match="There is no job `gone`"):
        store.curves.some("gone")


def test_the_same_curve_of_many_jobs(store: Store) -> None:
    for job_id, value in (("a", 1.0), ("b", 2.0)):
        store.jobs.add(new_job(job_id))
        store.events.take(job_id, 0, 1, [point("loss", 1, value)])
    store.jobs.add(new_job("c"))
    curves = store.curves.many(["b", "c", "nobody", "a", "b"], "loss")
    assert [(job_id, curve.values.tolist()) for job_id, curve in curves.items()] == [("b", [2.0]), ("a", [1.0])]


def test_a_long_curve_is_thinned_in_the_database(store: Store) -> None:
    store.jobs.add(new_job("a"))
    heights = [math.sin(step / 500) for step in range(30_000)]
    heights[12_345], heights[23_456], heights[7], heights[29_000] = 99.0, -99.0, math.nan, math.inf
    store.events.take("a", 0, 1, [point("loss", 3 * step, height) for step, height in enumerate(heights)])
    curve = store.curves.curve("a", "loss", max_points=100)
    assert curve.total == 30_000
    assert 60 <= len(curve.steps) <= 100
    assert (curve.steps[0], curve.steps[-1]) == (0, 3 * 29_999)
    found = dict(zip(curve.steps.tolist(), curve.values.tolist()))
    assert (found[3 * 12_345], found[3 * 23_456], found[3 * 29_000]) == (99.0, -99.0, math.inf)
    assert math.isnan(found[21])
    assert all(found[step] == heights[step // 3] for step in found if step != 21)
    later = store.curves.curve("a", "loss", since_step=3 * 5000, max_points=20)
    assert (later.total, later.steps[0], later.steps[-1]) == (24_999, 3 * 5001, 3 * 29_999)
    assert {99.0, -99.0, math.inf} <= set(later.values.tolist())
    assert len(later.steps) <= 20


def test_of_many_gaps_in_a_long_curve_each_part_shows_its_first(store: Store) -> None:
    store.jobs.add(new_job("a"))
    heights = [math.nan if step % 2 else 1.0 for step in range(30_000)]
    store.events.take("a", 0, 1, [point("loss", step, height) for step, height in enumerate(heights)])
    curve = store.curves.curve("a", "loss", max_points=32)
    gaps = curve.steps[np.isnan(curve.values)].tolist()
    assert gaps == [*range(1, 30_000, 3000), 29_999]
    assert curve.steps[~np.isnan(curve.values)].tolist() == list(range(0, 30_000, 3000))


def test_steps_of_a_long_curve_may_be_as_large_as_they_can(store: Store) -> None:
    store.jobs.add(new_job("a"))
    far = 2**62 - 1
    steps = [*range(20_001), far]
    store.events.take("a", 0, 1, [point("loss", step, float(step % 7)) for step in steps])
    curve = store.curves.curve("a", "loss", max_points=50)
    assert curve.total == 20_002
    assert curve.steps.tolist() == [0, 6, far]
    assert curve.values.tolist() == [0.0, 6.0, float(far % 7)]
