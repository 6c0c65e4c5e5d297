"""What every flow is: passes, old names, users' classes, time per stage, closing, pickling, threads."""

import itertools
import multiprocessing
import pickle
import threading

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    CacheData,
    ConcatData,
    DataFlow,
    DataFromArrays,
    DataFromList,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    MapData,
    ProxyDataFlow,
    RepeatedData,
    RNGDataFlow,
    UnknownLengthError,
)
from ziggurat.errors import UsageError, ZigguratError


def numbers(count=10, shuffle=False):
    return DataFromList([[n] for n in range(count)], shuffle=shuffle)


def add_noise(dp, rng):
    return [dp[0] + rng.rand()]


# ---- passes


def test_old_names_mean_the_same():
    flow = numbers(3)
    flow.reset_state()
    flow.reset_state()
    assert list(flow.get_data()) == [[0], [1], [2]]
    assert flow.size() == len(flow) == 3


def test_passes_are_counted():
    flow = numbers(3)
    assert (flow.pass_index, flow.delivered, flow.ended) == (-1, 0, True)
    items = iter(flow)
    next(items)
    assert (flow.pass_index, flow.delivered, flow.ended) == (0, 1, False)
    assert list(items) == [[1], [2]]
    assert (flow.pass_index, flow.delivered, flow.ended) == (0, 3, True)
    list(flow)
    assert flow.pass_index == 1


def test_a_pass_that_is_broken_off_is_followed_by_a_whole_one():
    flow = BatchData(ConcatData([numbers(3), numbers(4)]), 2)
    next(iter(flow))
    assert [batch[0].tolist() for batch in flow] == [[0, 1], [2, 0], [1, 2]]


def test_a_pass_cannot_go_on_after_the_next_one_began():
    flow = MapData(numbers(3), lambda dp: dp)
    items = iter(flow)
    next(items)
    assert next(iter(flow)) == [0]
    with pytest.raises(UsageError, match=r"one pass at a time \(received: a request to pass 0 after pass 1 began"):
        next(items)
    with flow.read() as reader, pytest.raises(UsageError, match=r"Build another flow for a second reader"):
        list(flow)
        reader.take(1)


def test_reading_many_at_a_time_is_a_pass_too():
    flow = MapData(numbers(7), lambda dp: dp if dp[0] != 3 else None)
    with flow.read() as reader:
        assert reader.take(2) == [[0], [1]]
        assert flow.delivered == 2
        assert reader.take(3) == [[2], [4], [5]]
        assert not flow.ended
        assert reader.take(3) == [[6]]
        assert flow.ended
    with LocallyShuffleData(numbers(4), 1).read() as reader:
        assert (reader.stacks, reader.take(3)) == (False, [[0], [1], [2]])


# ---- users' classes


class OldSource(RNGDataFlow):
    """In the style of the tutorial."""

    def __init__(self):
        self.opened = 0

    def reset_state(self):
        super().reset_state()
        self.opened += 1

    def get_data(self):
        for _ in range(self.size()):
            yield [self.rng.randint(1000), np.zeros((2, 2))]

    def size(self):
        return 4


class Forgetful(ProxyDataFlow):
    """Does not call the base's ``reset_state``."""

    def reset_state(self):
        self.ds.reset_state()

    def __iter__(self):
        for dp in self.ds.get_data():
            yield [dp[0] + 1]


class Both(DataFlow):
    """Keeps both names, as programs do that ran on two versions."""

    def __iter__(self):
        return self.get_data()

    def get_data(self):
        yield [1]
        yield [2]


class Doubled(Both):
    """Extends what its base yields."""

    def __iter__(self):
        for dp in super().__iter__():
            yield dp
            yield dp


class Flattened(Doubled):
    """Extends once more, by the old name."""

    def get_data(self):
        for dp in super().get_data():
            yield from dp


def test_a_source_in_the_old_style_has_all_of_it():
    flow = BatchData(OldSource(), 2).seed(1)
    batches = list(flow)
    assert len(flow) == len(batches) == 2
    assert batches[0][1].shape == (2, 2, 2)
    list(flow)
    assert flow.ds.opened == 1
    assert [b[0].tolist() for b in batches] == [b[0].tolist() for b in BatchData(OldSource(), 2).seed(1)]


def test_a_user_may_forget_the_bases_reset_state():
    assert list(Forgetful(numbers(2))) == [[1], [2]]
    one, other = Forgetful(numbers(9, shuffle=True)).seed(1), Forgetful(numbers(9, shuffle=True)).seed(1)
    one.reset_state()
    assert list(one) == list(other)


def test_classes_may_keep_both_names_and_call_the_class_above():
    assert list(Both()) == list(Both().get_data()) == [[1], [2]]
    assert list(Doubled()) == [[1], [1], [2], [2]]
    assert list(Flattened()) == [1, 1, 2, 2]


def test_a_class_without_a_generator_says_what_is_missing():
    class Nothing(DataFlow):
        pass

    with pytest.raises(ZigguratError, match=r"defines `__iter__`.*class Nothing without it") as caught:
        list(Nothing())
    assert isinstance(caught.value, TypeError)


def test_flows_in_attributes_are_found_seeded_and_closed():
    closed = []

    class Closing(ProxyDataFlow):
        def close(self):
            closed.append(self.name)
            super().close()

    class Two(DataFlow):
        def __init__(self, flows, other):
            self.flows = flows
            self.other = other

        def __iter__(self):
            for dps in zip(*self.flows, self.other, strict=True):
                yield [dp[0] for dp in dps]

    def build():
        flows = [Closing(MapData(numbers(2), add_noise)) for _ in range(3)]
        for name, flow in zip("abc", flows, strict=True):
            flow.name = name
        return Two(flows[:2], flows[2])

    with build().seed(3) as flow:
        first = list(flow)
    assert closed == ["a", "b", "c"]
    assert first == list(build().seed(3))
    assert len(set(first[0])) == 3


def test_an_exception_in_a_users_generator_is_the_users():
    class Failing(DataFlow):
        def __iter__(self):
            yield [1]
            raise KeyError("x")

    items = iter(MapData(Failing(), lambda dp: dp))
    next(items)
    with pytest.raises(KeyError, match="x"):
        next(items)


def test_the_length_of_an_unsized_flow():
    flow = Both()
    assert list(flow) == [[1], [2]]
    for error in (UnknownLengthError, TypeError, NotImplementedError):
        with pytest.raises(error, match=r"Both has none\. Give the length where it is needed, or define `__len__`"):
            len(flow)


# ---- time, closing


def test_the_time_of_each_stage_is_known():
    flow = BatchData(MapData(JoinData([numbers(10), numbers(10)]), lambda dp: dp), 5)
    list(flow)
    rows = flow.stats()
    assert [(row.stage, row.path, row.datapoints) for row in rows] == [
        ("BatchData", (), 2),
        ("MapData", (0,), 10),
        ("JoinData", (0, 0), 10),
        ("DataFromList", (0, 0, 0), 10),
        ("DataFromList", (0, 0, 1), 10),
    ]
    assert all(0 <= row.own_s <= row.total_s for row in rows)
    assert sum(row.own_s for row in rows) <= rows[0].total_s * 1.01


def test_a_broken_off_pass_ends_the_generators_below_at_once():
    ended = []

    class Source(DataFlow):
        def __iter__(self):
            try:
                for n in itertools.count():
                    yield [n]
            finally:
                ended.append(True)

    for flow in (
        BatchData(MapData(Source(), lambda dp: dp), 2),
        LocallyShuffleData(Source(), 3),
        CacheData(RepeatedData(Source(), 2)),
    ):
        ended.clear()
        for _ in flow:
            break
        assert ended == [True]


# ---- other processes and threads

PIPELINES = {
    "batch": lambda: BatchData(MapData(numbers(20, shuffle=True), add_noise), 3, remainder=True),
    "arrays": lambda: BatchData(DataFromArrays(np.arange(20)), 4),
    "shuffle": lambda: LocallyShuffleData(numbers(20), 5),
    "fixed": lambda: FixedSizeData(numbers(5, shuffle=True), 7),
    "cache": lambda: CacheData(numbers(5), shuffle=True),
    "old": lambda: MapData(OldSource(), add_noise),
}


def look_at(flow):
    return [np.array(dp[0]).tolist() for dp in flow]


@pytest.mark.parametrize("build", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("passes_before", [0, 1])
def test_flows_are_pickled_with_their_seed_and_pass(build, passes_before):
    flow = build().seed(6)
    for _ in range(passes_before):
        list(flow)
    copy = pickle.loads(pickle.dumps(flow))
    assert look_at(copy) == look_at(flow)


@pytest.mark.parametrize("build", PIPELINES.values(), ids=PIPELINES)
def test_a_flow_in_mid_pass_is_pickled_and_resumed_by_its_state(build):
    flow = build().seed(6)
    items = iter(flow)
    next(items)
    state = flow.state()
    copy = pickle.loads(pickle.dumps(flow))
    copy.load_state(state)
    assert look_at(copy) == look_at(items)


def send_first_pass(flow, pipe):
    pipe.send(look_at(flow))


def test_a_spawned_process_sees_the_same_data():
    flow = PIPELINES["batch"]().seed(6)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_first_pass, args=(flow, sender))
    process.start()
    received = receiver.recv()
    process.join()
    assert received == look_at(flow)


def test_a_forked_process_prepares_the_flow_again():
    flow = OldSource()
    list(flow)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: (list(flow), sender.send(flow.opened)))
    process.start()
    assert receiver.recv() == 2
    process.join()


def test_a_state_taken_by_a_thread_is_never_in_the_middle():
    flow = BatchData(MapData(RepeatedData(numbers(7), -1), add_noise), 3)
    stop = threading.Event()

    def consume():
        for _ in flow:
            if stop.is_set():
                return

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        for _ in range(300):
            state = flow.state()
            assert state["delivered"] * 3 == state["children"][0]["delivered"]
    finally:
        stop.set()
        thread.join()
