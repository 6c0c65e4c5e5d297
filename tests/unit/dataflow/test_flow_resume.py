"""Every stage goes on exactly where its state was taken: at every position, in any pass, through JSON."""

import itertools
import json

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    BatchDataByShape,
    CacheData,
    ConcatData,
    DataFlow,
    DataFromArrays,
    DataFromGenerator,
    DataFromIterable,
    DataFromList,
    FakeData,
    FixedSizeData,
    IndexedFlow,
    JoinData,
    LocallyShuffleData,
    MapData,
    MapDataComponent,
    PrintData,
    ProcessOnce,
    ProxyDataFlow,
    RandomChooseData,
    RandomMixData,
    RepeatedData,
    RepeatedDataPoint,
    RNGDataFlow,
    SelectComponent,
    TestDataSpeed,
)
from ziggurat.dataflow.pair_flow import PairsOfClasses
from ziggurat.errors import DataError

LONGEST = 40
"""Endless passes are looked at this far."""


def numbers(count=7, shuffle=True):
    return DataFromList([[n] for n in range(count)], shuffle=shuffle)


def arrays(count=10):
    return DataFromArrays(np.arange(count * 6).reshape(count, 2, 3), np.arange(count, dtype=np.uint8))


def add_noise(dp, rng):
    return [dp[0], *dp[1:], round(float(rng.standard_normal()), 6)]


def drop_odd(dp):
    return None if dp[0] % 2 else dp


def refuse_multiples_of_three(dp):
    if dp[0] % 3 == 0:
        raise ValueError("a multiple of three")
    return dp


def shapes(dp):
    return [np.full(1 + dp[0] % 3, dp[0])]


class OldSource(RNGDataFlow):
    """A source as Tensorpack's users write it."""

    def get_data(self):
        order = list(range(6))
        self.rng.shuffle(order)
        for number in order:
            yield [number, self.rng.randint(1000)]

    def size(self):
        return 6


class OldStage(ProxyDataFlow):
    """A stage with a memory of its own, as Tensorpack's users write it."""

    def __iter__(self):
        total = 0
        for dp in super().__iter__():
            total += dp[0]
            yield [total]


class Pairs(DataFlow):
    """A stage that keeps its flows in attributes and tells nobody."""

    def __init__(self, first, others):
        self.first = first
        self.others = others

    def __iter__(self):
        for dps in zip(self.first, *self.others, strict=False):
            yield [dp[0] for dp in dps]


class Broken(IndexedFlow):
    """A source of which some datapoints cannot be read."""

    def __len__(self):
        return 9

    def datapoint(self, index):
        return refuse_multiples_of_three([index])


def broken():
    source = Broken(shuffle=True)
    source.policy = type(source.policy)("skip")
    return source


def pairs(source, shuffle=True):
    return PairsOfClasses(source, [n % 3 for n in range(len(source))], pairs_per_sample=2, seed=8, shuffle=shuffle)


PIPELINES = {
    "list": numbers,
    "list in order": lambda: numbers(shuffle=False),
    "arrays": arrays,
    "generator": lambda: DataFromGenerator(lambda: ([n] for n in range(5))),
    "iterable": lambda: DataFromIterable([[n] for n in range(5)]),
    "iterable flow": lambda: DataFromIterable(numbers()),
    "empty": lambda: DataFromList([]),
    "fake": lambda: FakeData([[2], []], size=5, dtype=["float32", "int64"], domain=[(0, 1), (0, 100)]),
    "fake copies": lambda: FakeData([[2]], size=5, random=False),
    "skipping source": broken,
    "pairs": lambda: pairs(numbers()),
    "fixed pairs": lambda: pairs(numbers(), shuffle=False),
    "pairs of a skipping source": lambda: pairs(broken()),
    "gathered pairs": lambda: BatchData(pairs(arrays()), 3, remainder=True),
    "map": lambda: MapData(numbers(), drop_odd),
    "random map": lambda: MapData(numbers(), add_noise),
    "skipping map": lambda: MapData(numbers(), refuse_multiples_of_three, on_error="skip"),
    "map component": lambda: MapDataComponent(numbers(), lambda n, rng: n + rng.randint(100)),
    "select": lambda: SelectComponent(arrays(), [1, 0]),
    "batch": lambda: BatchData(numbers(), 3),
    "batch remainder": lambda: BatchData(numbers(), 3, remainder=True),
    "gathered batch": lambda: BatchData(arrays(), 3),
    "gathered remainder": lambda: BatchData(SelectComponent(arrays(), [1]), 3, remainder=True),
    "batch of maps": lambda: BatchData(MapData(MapData(numbers(12), drop_odd), add_noise), 2, remainder=True),
    "batch of skips": lambda: BatchData(broken(), 4, remainder=True),
    "batch over passes": lambda: BatchData(RepeatedData(numbers(), 3), 4, remainder=True),
    "batch by shape": lambda: BatchDataByShape(MapData(numbers(14), shapes), 3, 0),
    "batch by shape remainder": lambda: BatchDataByShape(MapData(numbers(14), shapes), 3, 0, remainder=True),
    "repeat": lambda: RepeatedData(numbers(3), 3),
    "repeat for ever": lambda: RepeatedData(numbers(3), -1),
    "repeat points": lambda: RepeatedDataPoint(MapData(numbers(), add_noise), 3),
    "repeat many points": lambda: RepeatedDataPoint(numbers(80), 1),
    "fixed size": lambda: FixedSizeData(numbers(5), 3),
    "fixed size of one pass": lambda: FixedSizeData(numbers(4), 4),
    "fixed size, larger": lambda: FixedSizeData(numbers(3), 7),
    "fixed size anew": lambda: FixedSizeData(numbers(5), 3, keep_state=False),
    "fixed size in a repeat": lambda: RepeatedData(FixedSizeData(numbers(5), 3), 2),
    "choose": lambda: RandomChooseData([(numbers(9), 0.7), (numbers(9), 0.2), (numbers(9), 0.1)]),
    "mix": lambda: RandomMixData([numbers(3), numbers(4)]),
    "concat": lambda: ConcatData([numbers(3), numbers(0), OldSource()]),
    "concat of one twice": lambda: ConcatData([flow := numbers(3), flow]),
    "concat of holding": lambda: ConcatData([RepeatedDataPoint(numbers(2), 2), CacheData(numbers(3))]),
    "join": lambda: JoinData([numbers(5), MapData(numbers(5), add_noise)]),
    "shuffle": lambda: LocallyShuffleData(numbers(20), 5),
    "shuffle more": lambda: LocallyShuffleData(numbers(4), 10),
    "shuffle one": lambda: LocallyShuffleData(numbers(4), 1),
    "shuffle two": lambda: LocallyShuffleData(MapData(numbers(9), add_noise), 2, shuffle_interval=1),
    "shuffle and reuse": lambda: LocallyShuffleData(numbers(9), 4, num_reuse=3, shuffle_interval=2),
    "shuffle and reuse, small": lambda: LocallyShuffleData(numbers(9), 2, num_reuse=5),
    "shuffle for ever": lambda: LocallyShuffleData(numbers(9), 6, endless=True),
    "cache": lambda: CacheData(MapData(numbers(5), add_noise)),
    "cache, shuffled": lambda: CacheData(numbers(5), shuffle=True),
    "once": lambda: ProcessOnce(numbers(), list),
    "print": lambda: PrintData(numbers(), num=0),
    "old source": OldSource,
    "old stage": lambda: OldStage(MapData(OldSource(), add_noise)),
    "old stage on a fixed size": lambda: OldStage(FixedSizeData(numbers(5), 3)),
    "hidden flows": lambda: Pairs(numbers(), [OldSource(), numbers()]),
    "five stages": lambda: BatchData(
        RepeatedDataPoint(
            MapData(LocallyShuffleData(MapData(numbers(23), add_noise), 6), add_noise),
            2,
        ),
        4,
        remainder=True,
    ),
    "cache of a shuffle": lambda: CacheData(LocallyShuffleData(numbers(6), 3), shuffle=True),
    "shuffle of a cache": lambda: LocallyShuffleData(CacheData(numbers(6), shuffle=True), 3),
    "shuffle of fixed sizes": lambda: LocallyShuffleData(FixedSizeData(numbers(6), 4), 3),
}


def plain(value):
    """Return a value in a form that `==` compares."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def through_json(state):
    return json.loads(json.dumps(state))


def look_at(flow):
    return [plain(dp) for dp in itertools.islice(flow, LONGEST)]


@pytest.fixture(params=PIPELINES)
def build(request):
    return PIPELINES[request.param]


@pytest.fixture
def passes(build):
    """Three passes without interruption."""
    flow = build().seed(5)
    return [look_at(flow) for _ in range(3)]


def states_of_passes(flow):
    """Yield (pass, position, state) at every place where a state can be taken, of two passes."""
    for number in range(2):
        if flow.ended:
            yield number, 0, through_json(flow.state())
        items = iter(flow)
        yield number, 0, through_json(flow.state())
        for position, _ in enumerate(itertools.islice(items, LONGEST), 1):
            yield number, position, through_json(flow.state())


def test_a_resumed_flow_yields_the_rest_and_the_next_pass(build, passes):
    for number, position, state in states_of_passes(build().seed(5)):
        resumed = build().seed(99)
        resumed.load_state(state)
        assert look_at(resumed)[: LONGEST - position] == passes[number][position:]
        if len(passes[number]) < LONGEST:
            assert look_at(resumed) == passes[number + 1]


def test_a_state_that_was_loaded_can_be_saved_again_at_once(build, passes):
    for number, position, state in states_of_passes(build().seed(5)):
        first, second = build(), build()
        first.load_state(state)
        second.load_state(through_json(first.state()))
        assert look_at(second)[: LONGEST - position] == passes[number][position:]


def test_a_resumed_flow_can_be_stopped_and_resumed_again(build, passes):
    state = None
    seen = []
    while len(seen) < min(LONGEST, len(passes[0])):
        flow = build().seed(5) if state is None else build()
        if state is not None:
            flow.load_state(state)
        seen.append(plain(next(iter(flow))))
        state = through_json(flow.state())
    assert seen == passes[0]


def test_a_pass_that_was_broken_off_goes_on_by_its_state(build, passes):
    for stop in range(1, min(len(passes[0]), 12)):
        flow = build().seed(5)
        for _ in itertools.islice(flow, stop):
            pass
        resumed = build()
        resumed.load_state(through_json(flow.state()))
        assert look_at(resumed)[: LONGEST - stop] == passes[0][stop:]


def test_a_flow_goes_back_to_a_state_of_its_own(build, passes):
    flow = build().seed(5)
    items = iter(flow)
    taken = len(list(itertools.islice(items, 2)))
    state = through_json(flow.state())
    list(itertools.islice(items, 2))
    flow.load_state(state)
    assert look_at(flow)[: LONGEST - taken] == passes[0][taken:]


def test_after_a_broken_pass_the_states_are_those_of_the_next(build):
    flow = build().seed(5)
    for _ in itertools.islice(flow, 2):
        pass
    items = iter(flow)
    begun = through_json(flow.state())
    following = [plain(dp) for dp in itertools.islice(items, LONGEST)]
    after = through_json(flow.state())

    resumed = build()
    resumed.load_state(begun)
    assert look_at(resumed) == following
    if len(following) < LONGEST:
        resumed = build()
        resumed.load_state(after)
        assert look_at(resumed) == look_at(flow)


def test_the_state_of_another_pipeline_is_refused():
    with pytest.raises(DataError, match=r"same shape only.*MapData with 1 children for DataFromList with 0"):
        numbers().load_state(MapData(numbers(), drop_odd).state())


def test_a_flow_that_became_shorter_is_not_resumed_silently():
    flow = LocallyShuffleData(numbers(20, shuffle=False), 5)
    items = iter(flow)
    list(itertools.islice(items, 10))
    shorter = LocallyShuffleData(numbers(10, shuffle=False), 5)
    shorter.load_state(flow.state())
    with pytest.raises(DataError, match=r"same data.*10 datapoints from DataFromList instead of 15 or more"):
        list(shorter)


def test_measuring_the_speed_changes_nothing():
    flow = MapData(numbers(), add_noise).seed(3)
    first = look_at(flow)
    measured = TestDataSpeed(MapData(numbers(), add_noise), size=20, warmup=3).seed(3)
    before = measured.ds.state()
    measured.start()
    assert measured.ds.state() == before
    assert len(look_at(measured)) == len(first)
