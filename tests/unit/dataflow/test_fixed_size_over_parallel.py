"""Passes of a fixed size that begin anew, above stages that read ahead: each pass begins at the beginning."""

import functools
import json
import random

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    DataFromArrays,
    FixedSizeData,
    LocallyShuffleData,
    MultiThreadMapData,
    MultiThreadRunner,
    RepeatedData,
)


def source(shuffle=False):
    return DataFromArrays(np.arange(5), shuffle=shuffle)


def same(dp):
    return [dp[0]]


def values(points):
    return [np.ravel(dp[0]).tolist() for dp in points]


def after_resume(make, delivered):
    """Return the rest of a pass and the two passes after it, from a state that was taken in the first pass."""
    with make() as first:
        first.seed(1)
        items = iter(first)
        for _ in range(delivered):
            next(items)
        state = json.loads(json.dumps(first.state()))
    with make() as second:
        second.load_state(state)
        return [values(second) for _ in range(3)]


def passes(make):
    with make() as flow:
        flow.seed(1)
        return [values(flow) for _ in range(3)]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("size", [3, 7])
@pytest.mark.parametrize("shuffle", [False, True])
def test_fixed_size_begins_anew_above_a_runner(workers, size, shuffle):
    def make():
        return FixedSizeData(MultiThreadRunner(lambda: source(shuffle), 8, workers), size, keep_state=False)

    whole = passes(make)
    serial = passes(lambda: FixedSizeData(source(shuffle), size, keep_state=False))
    assert shuffle or whole == serial
    assert not shuffle or len({tuple(map(tuple, each)) for each in whole}) == 3
    for delivered in range(size + 1):
        assert after_resume(make, delivered) == [whole[0][delivered:], *whole[1:]], delivered


@pytest.mark.parametrize("size", [3, 7])
def test_fixed_size_begins_anew_above_a_parallel_map(size):
    def make():
        return FixedSizeData(MultiThreadMapData(source(), 2, same, buffer_size=4), size, keep_state=False)

    whole = passes(make)
    for delivered in range(size + 1):
        assert after_resume(make, delivered) == [whole[0][delivered:], *whole[1:]], delivered


def test_fixed_size_leaves_a_flow_to_the_threads_that_run_it():
    def flow():
        return MultiThreadMapData(FixedSizeData(source(), 20), 2, same, buffer_size=7)

    for _ in range(5):
        with FixedSizeData(MultiThreadRunner(flow, 7, 2), 6, keep_state=False) as fixed:
            assert [len(list(fixed)) for _ in range(3)] == [6, 6, 6]


STAGES = [
    lambda draw, make: lambda: MultiThreadMapData(make(), draw[0] % 3, same, buffer_size=1 + draw[1] % 9),
    lambda draw, make: lambda: MultiThreadRunner(make, 1 + draw[1] % 9, draw[0] % 3),
    lambda draw, make: lambda: FixedSizeData(make(), 1 + draw[0] % 9, keep_state=False),
    lambda draw, make: lambda: BatchData(make(), 1 + draw[0] % 2, remainder=True),
    lambda draw, make: lambda: RepeatedData(make(), 1 + draw[0] % 2),
    lambda draw, make: lambda: LocallyShuffleData(make(), 1 + draw[0] % 4),
]


def pipeline(number):
    """Return what makes a pipeline of random stages, with one of a fixed size above a parallel one."""
    draw = random.Random(number)
    made = functools.partial(source, draw.random() < 0.5)
    below = draw.choices(STAGES, k=draw.randint(0, 2))
    above = draw.choices(STAGES, k=draw.randint(0, 1))
    for stage in (*below, draw.choice(STAGES[:2]), STAGES[2], *above):
        made = stage((draw.randint(0, 99), draw.randint(0, 99)), made)
    return made


@pytest.mark.parametrize("number", range(40))
def test_random_passes_of_a_fixed_size_resume_exactly(number):
    make = pipeline(number)
    whole = passes(make)
    for delivered in {0, 1, len(whole[0]) // 2, len(whole[0])}:
        if delivered <= len(whole[0]):
            assert after_resume(make, delivered) == [whole[0][delivered:], *whole[1:]], delivered
