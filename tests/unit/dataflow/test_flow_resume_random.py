"""Pipelines put together at random go on exactly where their state was taken."""

import functools
import itertools
import json
import logging
import random

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    BatchDataByShape,
    CacheData,
    ConcatData,
    DataFromArrays,
    DataFromGenerator,
    DataFromList,
    FakeData,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    MapData,
    ProxyDataFlow,
    RandomChooseData,
    RepeatedData,
    RepeatedDataPoint,
    RNGDataFlow,
)
from ziggurat.errors import DataError

LONGEST = 30
"""Passes are looked at this far."""


class Dice(RNGDataFlow):
    """A source as users write it."""

    def get_data(self):
        for _ in range(4):
            yield [self.rng.randint(100)]


class Sums(ProxyDataFlow):
    """A stage with a memory, as users write it."""

    def __iter__(self):
        total = 0
        for dp in super().__iter__():
            total += dp[0]
            yield [total]


def count(number):
    yield from ([n] for n in range(number))


def as_number(dp):
    return [int(np.ravel(dp[0])[0])]


def add_noise(dp, rng):
    return [dp[0] + rng.randint(50)]


def drop_odd(dp):
    return None if dp[0] % 2 else dp


def refuse_threes(dp):
    return [dp[0], 1 // (dp[0] % 3)][:1]


def of_many_shapes(dp):
    return [np.full(1 + dp[0] % 3, dp[0])]


SOURCES = [
    lambda draw: DataFromList([[n] for n in range(draw.randint(1, 9))], shuffle=draw.random() < 0.5),
    lambda draw: DataFromArrays(np.arange(draw.randint(1, 9))),
    lambda draw: DataFromGenerator(functools.partial(count, draw.randint(1, 6))),
    lambda draw: FakeData([[]], size=draw.randint(1, 6), dtype="int64", domain=(0, 50)),
    lambda draw: Dice(),
]

STAGES = [
    lambda ds, draw: MapData(ds, add_noise),
    lambda ds, draw: MapData(ds, drop_odd),
    lambda ds, draw: MapData(ds, refuse_threes, on_error="skip"),
    lambda ds, draw: MapData(BatchData(ds, draw.randint(1, 3), remainder=True), as_number),
    lambda ds, draw: MapData(BatchDataByShape(MapData(ds, of_many_shapes), 2, 0, remainder=True), as_number),
    lambda ds, draw: RepeatedData(ds, draw.randint(1, 3)),
    lambda ds, draw: RepeatedDataPoint(ds, draw.randint(1, 3)),
    lambda ds, draw: FixedSizeData(ds, draw.randint(1, 8), keep_state=draw.random() < 0.7),
    lambda ds, draw: LocallyShuffleData(ds, draw.randint(1, 6), draw.randint(1, 3), draw.choice([None, 1, 2, 5])),
    lambda ds, draw: CacheData(ds, shuffle=draw.random() < 0.5),
    lambda ds, draw: Sums(ds),
    lambda ds, draw: ConcatData([ds, draw.choice(SOURCES)(draw)]),
    lambda ds, draw: JoinData([ds, draw.choice(SOURCES)(draw)]),
    lambda ds, draw: RandomChooseData([ds, draw.choice(SOURCES)(draw)]),
]


def build(number):
    """Return pipeline ``number``: a source and one to five stages."""
    draw = random.Random(number)
    flow = MapData(draw.choice(SOURCES)(draw), as_number)
    for _ in range(draw.randint(1, 5)):
        flow = draw.choice(STAGES)(flow, draw)
    return flow


def look_at(flow):
    return [[int(np.ravel(component)[0]) for component in dp] for dp in itertools.islice(flow, LONGEST)]


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_pipelines_are_resumed_exactly(first, caplog):
    caplog.set_level(logging.ERROR)
    for number in range(first, first + 50):
        try:
            flow = build(number).seed(1)
            passes = [look_at(flow) for _ in range(3)]
        except DataError:  # a stage that dropped everything under one that needs something
            continue
        check_every_position(number, passes)


def check_every_position(number, passes):
    flow = build(number).seed(1)
    for each in range(2):
        items = iter(flow)
        for position in range(len(passes[each]) + 1):
            resumed = build(number)
            resumed.load_state(json.loads(json.dumps(flow.state())))
            assert look_at(resumed)[: LONGEST - position] == passes[each][position:], f"pipeline {number}"
            if len(passes[each]) < LONGEST:
                assert look_at(resumed) == passes[each + 1], f"pipeline {number}"
            if position < min(len(passes[each]) + 1, LONGEST):
                next(items, None)
