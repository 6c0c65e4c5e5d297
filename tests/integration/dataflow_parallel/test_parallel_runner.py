"""A runner yields one serial pass, with any number of workers, and divides the work between them."""

import itertools
import json
import logging
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest
from parallel_samples import double, noisy, numbers, odd_only, plain

from ziggurat.dataflow.base import DataFlow, ProxyDataFlow, RNGDataFlow
from ziggurat.dataflow.parallel import (
    MultiProcessMapData,
    MultiProcessPrefetchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    MultiThreadPrefetchData,
    MultiThreadRunner,
    PrefetchData,
    PrefetchDataZMQ,
)
from ziggurat.dataflow.parallel.flow_program import NOT_MINE
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.dataflow.stages.repeating import FixedSizeData
from ziggurat.errors import DataError, DataWorkerError, UsageError

pytestmark = pytest.mark.usefixtures("fork_server")


class DividedMap(ProxyDataFlow):
    """A map that passes over what is not its worker's, and tells in each datapoint how many it has computed."""

    def __init__(self, ds, drop=()):
        super().__init__(ds)
        self.drop = drop
        self.share: Any = None
        self.computed = 0

    def take_share(self, share):
        self.share = share
        share.offer(self.ds)

    def iterate(self):
        stream = self.stream("map")
        for dp in self.ds:
            index = self.ds.delivered - 1
            if self.share is not None and not self.share.mine:
                yield self.share.NOT_MINE
                continue
            self.computed += 1
            if dp[0] not in self.drop:
                yield [*noisy(dp, stream.seek(self.ds.pass_index, index)), self.computed]
            elif self.share is not None:
                self.share.dropped()


class DividedBatch(ProxyDataFlow):
    """A batch stage that knows shares."""

    share: Any = None

    def __init__(self, ds, size):
        super().__init__(ds)
        self.batch_size = size

    def take_share(self, share):
        self.share = share
        return share.offer(self.ds)

    def iterate(self):
        points = []
        for dp in self.ds:
            points.append(dp)
            if len(points) == self.batch_size:
                mine = self.share is None or self.share.mine
                yield [[dp[0] for dp in points], [dp[1] for dp in points]] if mine else NOT_MINE
                points = []


def threads(build, workers, prefetch=10):
    return MultiThreadRunner(build, prefetch, workers)


def processes(build, workers, prefetch=10):
    return MultiProcessRunner(build(), prefetch, workers)


RUNNERS = [threads, processes]


def serial_passes(build, count=1, seed=5):
    flow = ProxyDataFlow(build()).seed(seed)
    return [plain(flow) for _ in range(count)]


def mapped():
    return DividedMap(numbers(53, shuffle=True))


def batched():
    return DividedBatch(mapped(), 4)


def undivided():
    return BatchData(MapData(numbers(53, shuffle=True), odd_only), 4, remainder=True)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("build", [batched, undivided])
@pytest.mark.parametrize("runner", RUNNERS)
def test_one_pass_is_one_serial_pass_in_its_order(runner, build, workers):
    with runner(build, workers).seed(5) as flow:
        assert [plain(flow) for _ in range(3)] == serial_passes(build, 3)


@pytest.mark.parametrize("prefetch", [1, 2, 3, 100])
@pytest.mark.parametrize("runner", RUNNERS)
def test_any_prefetch_will_do(runner, prefetch):
    with runner(batched, 3, prefetch).seed(5) as flow:
        assert plain(flow) == serial_passes(batched)[0]
        assert plain(itertools.islice(flow, 3)) == serial_passes(batched, 2)[1][:3]
        assert plain(flow) == serial_passes(batched, 3)[2]


@pytest.mark.parametrize("runner", RUNNERS)
def test_each_worker_computes_its_share_only(runner):
    with runner(mapped, 4).seed(5) as flow:
        computed = [dp[3] for dp in flow]
    assert computed == [number // 4 + 1 for number in range(53)]


@pytest.mark.parametrize("runner", RUNNERS)
def test_batches_are_divided_whole(runner):
    class Counting(DividedBatch):
        def iterate(self):
            source: Any = self.ds
            for batch in super().iterate():
                yield [*batch, source.computed] if isinstance(batch, list) else batch

        def take_share(self, share):
            return super().take_share(share)

    def build():
        return Counting(mapped(), 4)

    with runner(build, 3).seed(5) as flow:
        assert [dp[2] for dp in flow] == [4 * (number // 3 + 1) for number in range(13)]


@pytest.mark.parametrize("runner", RUNNERS)
def test_where_a_stage_drops_the_pass_is_still_serial(runner, caplog):
    def build():
        return DividedBatch(DividedMap(numbers(53, shuffle=True), drop=(11, 12, 40)), 3)

    with runner(build, 3).seed(5) as flow:
        assert [plain(flow) for _ in range(2)] == serial_passes(build, 2)
    assert "DividedBatch drops datapoints" in caplog.text


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_indivisible_flow_is_run_by_one_worker_and_said(runner, caplog):
    class Own(DataFlow):
        def __iter__(self):
            for number in range(10):
                yield [number, os.getpid()]

    with runner(Own, 3) as flow:
        points = list(flow)
    assert [dp[0] for dp in points] == list(range(10))
    assert len({dp[1] for dp in points}) == 1
    assert "Own cannot be divided, and one of the 3 workers runs it all" in caplog.text
    caplog.clear()
    with runner(lambda: DividedBatch(Own(), 2), 3) as flow:
        assert [dp[0] for dp in flow] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert "DividedBatch cannot be divided" in caplog.text


def test_a_subclass_with_its_own_iteration_is_not_divided():
    class Filter(DividedMap):
        def __iter__(self):
            for dp in super().__iter__():
                if dp[0] % 2:
                    yield dp

    def build():
        return Filter(numbers(20))

    with processes(build, 2).seed(5) as flow:
        assert plain(flow) == serial_passes(build)[0]


@pytest.mark.parametrize("build", [batched, undivided])
@pytest.mark.parametrize("runner", RUNNERS)
def test_it_resumes_exactly_with_any_number_of_workers(runner, build):
    first, second = serial_passes(build, 2)
    for stop in (0, 1, 4, len(first)):
        with runner(build, 2).seed(5) as flow:
            assert plain(itertools.islice(flow, stop)) == first[:stop]
            state = json.loads(json.dumps(flow.state()))
        for workers in (0, 3):
            with runner(build, workers) as flow:
                flow.load_state(state)
                assert plain(flow) == first[stop:]
                assert plain(flow) == second


@pytest.mark.parametrize("runner", RUNNERS)
def test_it_resumes_between_marks_of_a_long_pass(runner):
    def build():
        return DividedMap(numbers(300, shuffle=True))

    def values(points):
        return [dp[:2] for dp in points]

    expected = values(serial_passes(build)[0])
    with runner(build, 3).seed(5) as flow:
        iterator = iter(flow)
        states = {}
        for number in range(1, 301):
            next(iterator)
            if number in (40, 97, 211):
                states[number] = flow.state()
    for number, state in states.items():
        with runner(build, 2) as flow:
            flow.load_state(state)
            assert values(flow) == expected[number:]


@pytest.mark.parametrize("runner", RUNNERS)
def test_breaking_off_does_not_change_what_follows(runner):
    def build():
        return FixedSizeData(mapped(), 20)

    def cut(flow):
        return [[dp[:2] for dp in itertools.islice(flow, count)] for count in (5, 20, 1, 20)]

    expected = cut(ProxyDataFlow(build()).seed(5))
    with runner(build, 2).seed(5) as flow:
        assert cut(flow) == expected


def test_the_runners_of_tensorpack_and_their_arguments():
    assert MultiProcessPrefetchData is PrefetchData is MultiProcessRunner
    assert PrefetchDataZMQ is MultiProcessRunnerZMQ
    assert MultiThreadPrefetchData is MultiThreadRunner
    for flow in (
        PrefetchData(numbers(4), 3, 1),
        PrefetchDataZMQ(numbers(4), 1),
        PrefetchDataZMQ(numbers(4), num_proc=2, hwm=1),
        MultiThreadRunner(lambda: numbers(4), 3, 1),
    ):
        with flow:
            flow.reset_state()
            flow.reset_state()
            assert len(flow) == 4
            assert list(flow) == [[0], [1], [2], [3]]
    with pytest.raises(UsageError, match="prefetches at least 1 datapoint"):
        MultiProcessRunner(numbers(4), 0, 2)


def test_threads_need_a_flow_each():
    shared = numbers(4)
    with MultiThreadRunner(lambda: shared, 3, 1) as flow:
        assert list(flow) == [[0], [1], [2], [3]]
    with pytest.raises(UsageError, match="`get_df` makes a new flow each time it is called"):
        MultiThreadRunner(lambda: shared, 3, 2)


@pytest.mark.parametrize("runner", RUNNERS)
def test_independent_workers_draw_own_repeatable_numbers(runner):
    class Draws(RNGDataFlow):
        def __iter__(self):
            for _ in range(6):
                yield [int(self.rng.randint(1_000_000))]

        def __len__(self):
            return 6

    def independent(workers=2):
        made = runner(Draws, workers)
        return type(made)(Draws if runner is threads else Draws(), 10, workers, independent=True)

    with independent().seed(3) as flow:
        passes = [list(flow) for _ in range(4)]
    drawn = [dp[0] for dp in itertools.chain(*passes)]
    assert [len(each) for each in passes] == [6, 6, 6, 6]
    assert len(set(drawn)) == 24
    with independent().seed(3) as flow:
        got = list(itertools.islice(flow, 4))
        state = json.loads(json.dumps(flow.state()))
    with independent() as flow:
        flow.load_state(state)
        got += list(flow) + list(flow)
    assert got == passes[0] + passes[1]
    with independent(3) as flow, pytest.raises(DataError, match="goes on with as many as it had"):
        flow.load_state(state)


def test_independent_copies_of_a_flow_without_length_have_no_end():
    class Endless(DataFlow):
        def __iter__(self):
            yield from ([0], [1], [2])

    with MultiProcessRunnerZMQ(Endless(), 2, independent=True) as flow:
        counts = Counter(dp[0] for dp in itertools.islice(flow, 60))
    assert counts == {0: 20, 1: 20, 2: 20}


def test_workers_that_see_different_data_are_found_out():
    class Different(DividedMap):
        def iterate(self):
            count = None
            for number, dp in enumerate(super().iterate()):
                if count is None:
                    count = 10 if self.share.mine else 13
                if number < count:
                    yield dp

        def take_share(self, share):
            super().take_share(share)

    with processes(lambda: Different(numbers(40)), 2) as flow, pytest.raises(DataError) as caught:
        list(flow)
    assert "must get the same datapoints from the flow (received: passes of 10 and 13 datapoints)." in str(caught.value)


def test_global_generators_shuffle_alike_and_draw_apart_after():
    class Permuted(ProxyDataFlow):
        share: Any = None

        def take_share(self, share):
            self.share = share

        def iterate(self):
            for number in np.random.permutation(30):
                mine = self.share is None or self.share.mine
                yield [int(number), np.random.randint(1_000_000)] if mine else NOT_MINE

    with processes(lambda: Permuted(numbers(1)), 3) as flow:
        first, second = list(flow), list(flow)
    assert sorted(dp[0] for dp in first) == list(range(30))
    assert [dp[0] for dp in first] != [dp[0] for dp in second]
    assert len({dp[1] for dp in first[3:]}) == 27


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_error_in_a_flow_comes_after_the_datapoints_before_it(runner):
    class Fails(DividedMap):
        def iterate(self):
            for number, dp in enumerate(super().iterate()):
                if number == 9:
                    raise ValueError("nine is bad")
                yield dp

        def take_share(self, share):
            super().take_share(share)

    for workers in (0, 1, 3):
        with runner(lambda: Fails(numbers(20)), workers) as flow:
            got = []
            with pytest.raises(DataWorkerError, match="raised ValueError at datapoint 9 of the pass") as caught:
                for dp in flow:
                    got.append(dp)
        assert [dp[0] for dp in got] == list(range(9))
        assert "nine is bad" in caught.value.worker_traceback
        assert isinstance(caught.value.__cause__, ValueError)


def test_only_the_workers_prepare_the_flow():
    class Prepared(DataFlow):
        def reset_state(self):
            super().reset_state()
            self.prepared_in = os.getpid()

        def __iter__(self):
            yield [self.prepared_in == os.getpid(), self.prepared_in]

    source = Prepared()
    with MultiProcessRunnerZMQ(source, 1) as flow:
        flow.reset_state()
        ((same, pid),) = list(flow)
    assert same
    assert pid != os.getpid()
    assert not hasattr(source, "prepared_in")


@pytest.mark.parametrize("runner", RUNNERS)
def test_parallel_stages_may_be_nested(runner):
    def build():
        return BatchData(MultiProcessMapData(numbers(30, shuffle=True), 2, noisy), 4)

    with runner(build, 2).seed(5) as flow:
        assert plain(flow) == serial_passes(lambda: BatchData(MapData(numbers(30, shuffle=True), noisy), 4))[0]
    with runner(lambda: MultiProcessRunnerZMQ(numbers(9), 2), 2) as flow:
        assert list(flow) == [[number] for number in range(9)]


@pytest.mark.parametrize("runner", RUNNERS)
def test_statistics_tell_waiting_from_working_stage_by_stage(runner):
    with runner(batched, 2) as flow:
        list(flow)
        rows = flow.stats()
    name = type(flow).__name__
    assert [row.stage for row in rows] == [name, f"{name} workers", "DividedBatch", "DividedMap", "DataFromList"]
    assert [row.path for row in rows] == [(), (), (0,), (0, 0), (0, 0, 0)]
    assert [row.datapoints for row in rows] == [13, 13, 13, 53, 53]
    assert all(row.total_s > 0 for row in rows)
    with MultiProcessMapData(numbers(5), 2, double) as flow:
        list(flow)
        assert [row.stage for row in flow.stats()] == [
            "MultiProcessMapData",
            "MultiProcessMapData workers",
            "DataFromList",
        ]


def test_a_killed_worker_is_named(caplog):
    class Dies(DataFlow):
        def __iter__(self):
            yield [0]
            os.kill(os.getpid(), 9)
            yield [1]

    with (
        caplog.at_level(logging.ERROR),
        MultiProcessRunnerZMQ(Dies(), 2) as flow,
        pytest.raises(DataWorkerError, match="Worker 0 of MultiProcessRunnerZMQ was killed by signal 9"),
    ):
        list(flow)
