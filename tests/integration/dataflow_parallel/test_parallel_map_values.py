"""A parallel map yields what a serial one yields, whatever the number of workers, the buffer, or who is faster."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from parallel_samples import MAPS, double, noisy, numbers, odd_only, plain, serial

from tests.waiting import take_time
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiProcessMapDataZMQ, MultiThreadMapData
from ziggurat.dataflow.sources import DataFromList
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.dataflow.stages.repeating import FixedSizeData
from ziggurat.errors import UsageError

pytestmark = pytest.mark.usefixtures("fork_server")


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("parallel_map", MAPS)
def test_same_seed_gives_the_serial_datapoints_by_any_workers(parallel_map, workers):
    expected = serial(numbers(150, shuffle=True), noisy, seed=5, passes=2)
    with parallel_map(numbers(150, shuffle=True), workers, noisy).seed(5) as flow:
        assert [plain(flow) for _ in range(2)] == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize("buffer_size", [1, 2, 5, 1000])
@pytest.mark.parametrize("parallel_map", MAPS)
def test_any_buffer_size_will_do(parallel_map, buffer_size):
    with parallel_map(numbers(40), 3, double, buffer_size=buffer_size) as flow:
        assert list(flow) == [[2 * number] for number in range(40)]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_results_come_in_order_though_later_ones_are_ready_first(parallel_map):
    def earlier_is_slower(dp):
        take_time(0.02 if dp[0] % 4 == 0 else 0)
        return dp

    with parallel_map(numbers(24), 4, earlier_is_slower) as flow:
        assert list(flow) == [[number] for number in range(24)]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_slow_consumer_with_a_small_buffer_gets_everything(parallel_map):
    # The program of Tensorpack's issue 1501: replies beyond a high-water mark were dropped there.
    with parallel_map(numbers(20), 2, double, buffer_size=5) as flow:
        for _ in range(15):
            got = []
            for dp in flow:
                if len(got) in (0, 7):
                    take_time(0.01)
                got.append(dp)
            assert got == [[2 * number] for number in range(20)]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_fast_consumer_with_a_slow_map_gets_everything(parallel_map):
    def slow(dp):
        take_time(0.002)
        return dp

    with parallel_map(numbers(20), 4, slow, buffer_size=2) as flow:
        for _ in range(3):
            assert list(flow) == [[number] for number in range(20)]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_dropped_datapoints_leave_others_random_numbers_alone(parallel_map):
    with parallel_map(numbers(60), 3, odd_only).seed(5) as flow:
        assert plain(flow) == serial(numbers(60), odd_only)[0]
        assert len(flow) == 60


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("parallel_map", MAPS)
def test_unordered_delivers_every_datapoint_once(parallel_map, workers):
    with parallel_map(numbers(100), workers, noisy, ordered=False).seed(5) as flow:
        got = plain(flow)
    assert sorted(got, key=lambda dp: dp[0]) == serial(numbers(100), noisy)[0]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_endless_repeats_the_flow_in_order(parallel_map):
    with parallel_map(numbers(5), 2, double, endless=True) as flow:
        assert len(flow) == 5
        assert list(itertools.islice(flow, 12)) == [[2 * (number % 5)] for number in range(12)]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_not_strict_means_without_order_and_end(parallel_map):
    with parallel_map(numbers(5), 2, double, strict=False) as flow:
        counts = Counter(dp[0] for dp in itertools.islice(flow, 200))
    assert set(counts) == {0, 2, 4, 6, 8}


@pytest.mark.parametrize("parallel_map", MAPS)
def test_an_empty_flow_gives_an_empty_pass(parallel_map):
    with parallel_map(DataFromList([], shuffle=False), 2, double) as flow:
        assert list(flow) == []
        assert list(flow) == []


@pytest.mark.parametrize("parallel_map", MAPS)
def test_any_datapoint_and_array_size_comes_back_as_it_was(parallel_map):
    rng = np.random.default_rng(3)
    points = [
        {"image": rng.integers(0, 256, (size, size, 3), np.uint8), "label": size, "name": f"n{size}"}
        for size in (1, 300, 2, 600, 40, 900)
    ]
    tuples = [(1, 2.5, None, b"bytes", "text", np.float32(3)), (np.arange(10)[::2], np.zeros((0, 3)))]
    with parallel_map(DataFromList([*points, *tuples], shuffle=False), 2, lambda dp: dp) as flow:
        assert plain(flow) == plain([*points, *tuples])


@pytest.mark.parametrize("parallel_map", MAPS)
def test_the_function_may_change_its_datapoint_not_the_source(parallel_map):
    def change(dp):
        dp[0] = "changed"
        return dp

    source = [[number] for number in range(4)]
    with parallel_map(DataFromList(source, shuffle=False), 2, change) as flow:
        assert list(flow) == [["changed"]] * 4
    assert source == [[0], [1], [2], [3]]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_breaking_off_a_pass_does_not_change_the_next(parallel_map):
    expected = serial(numbers(50, shuffle=True), noisy, passes=3)
    with parallel_map(numbers(50, shuffle=True), 2, noisy).seed(5) as flow:
        assert plain(itertools.islice(flow, 7)) == expected[0][:7]
        assert plain(flow) == expected[1]
        assert plain(itertools.islice(flow, 1)) == expected[2][:1]


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_child_over_passes_goes_on_after_what_was_delivered(parallel_map):
    def passes(flow):
        return [plain(itertools.islice(flow, count)) for count in (2, 3, 1, 6, 6)]

    expected = passes(MapData(FixedSizeData(numbers(10), 6), double))
    with parallel_map(FixedSizeData(numbers(10), 6), 2, double) as flow:
        assert passes(flow) == expected


def test_a_newer_iterator_ends_the_older_with_a_clear_error():
    with MultiThreadMapData(numbers(50), 2, double) as flow:
        older = iter(flow)
        next(older)
        assert next(iter(flow)) == [0]
        with pytest.raises(Exception, match="one pass at a time"):
            list(older)


def test_names_and_arguments_of_tensorpack():
    assert MultiProcessMapDataZMQ is MultiProcessMapData
    with pytest.raises(UsageError, match=r"MultiThreadMapData needs a function: `map_func=…` \(received: None"):
        MultiThreadMapData(numbers(3), 2)
    with pytest.raises(UsageError, match=r"`buffer_size` is 1 or more \(received: 0"):
        MultiProcessMapData(numbers(3), 2, double, buffer_size=0)
    with pytest.raises(UsageError, match=r"`num_thread` is 0 .* or more \(received: -1"):
        MultiThreadMapData(numbers(3), -1, double)
    with pytest.raises(UsageError, match=r"`buffer_bytes` is at least 1 MiB \(received: 5"):
        MultiProcessMapData(numbers(3), 2, double, buffer_bytes=5)
    old_name: Any = {"nr_thread": 2}
    with pytest.raises(TypeError, match="nr_thread"):
        MultiThreadMapData(numbers(3), 1, double, **old_name)
