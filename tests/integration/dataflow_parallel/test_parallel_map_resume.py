"""Stop anywhere, load the state into a new pipeline with any number of workers: the rest is the same."""

import itertools
import json

import numpy as np
import pytest
from parallel_samples import MAPS, double, noisy, numbers, odd_only, plain, serial

from ziggurat.dataflow.base import ProxyDataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.dataflow.stages.repeating import FixedSizeData, RepeatedData

pytestmark = pytest.mark.usefixtures("fork_server")


def jitter(dp, rng):
    return [dp[0] + rng.randint(3), dp[0]]


def five_stages(parallel_map, workers):
    """Return source, map, repeat, parallel map, batch."""
    ds = MapData(numbers(40, shuffle=True), jitter)
    ds = RepeatedData(ds, 3)
    ds = parallel_map(ds, workers, noisy, buffer_size=25)
    return BatchData(ds, 7, remainder=True)


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_pipeline_of_five_stages_goes_on_where_it_stopped(parallel_map):
    with five_stages(parallel_map, 2).seed(11) as flow:
        whole, second = plain(flow), plain(flow)
    assert len(whole) == 18
    for stop in (0, 1, 5, 9, 17, 18):
        with five_stages(parallel_map, 2).seed(11) as stopped:
            assert plain(itertools.islice(stopped, stop)) == whole[:stop]
            state = json.loads(json.dumps(stopped.state()))
        for workers in (0, 3):
            with five_stages(parallel_map, workers) as resumed:
                resumed.load_state(state)
                assert plain(resumed) == whole[stop:]
                assert plain(resumed) == second


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_resumed_pass_can_be_stopped_again(parallel_map):
    expected = serial(numbers(200, shuffle=True), odd_only, seed=3)[0]
    state, got = None, []
    while True:
        with parallel_map(numbers(200, shuffle=True), 2, odd_only, buffer_size=30).seed(3) as flow:
            if state is not None:
                flow.load_state(state)
            part = plain(itertools.islice(flow, 23))
            got += part
            state = flow.state()
            if len(part) < 23:
                break
    assert got == expected


@pytest.mark.parametrize("parallel_map", MAPS)
def test_without_order_a_resumed_pass_delivers_the_rest_once(parallel_map):
    with parallel_map(numbers(100), 3, double, ordered=False) as flow:
        first = list(itertools.islice(flow, 37))
        state = json.loads(json.dumps(flow.state()))
    with parallel_map(numbers(100), 2, double, ordered=False) as flow:
        flow.load_state(state)
        rest = list(flow)
    assert sorted(first + rest) == [[2 * number] for number in range(100)]
    assert len(rest) == 63


@pytest.mark.parametrize("parallel_map", MAPS)
def test_endless_goes_on_too(parallel_map):
    with parallel_map(numbers(30, shuffle=True), 2, noisy, endless=True).seed(1) as flow:
        whole = plain(itertools.islice(flow, 100))
    with parallel_map(numbers(30, shuffle=True), 2, noisy, endless=True).seed(1) as flow:
        iterator = iter(flow)
        assert plain(itertools.islice(iterator, 70)) == whole[:70]
        state = flow.state()
    with parallel_map(numbers(30, shuffle=True), 1, noisy, endless=True) as flow:
        flow.load_state(state)
        assert plain(itertools.islice(flow, 30)) == whole[70:]


def test_the_state_stays_small_and_is_taken_at_every_datapoint():
    with MultiThreadMapData(numbers(300), 2, double, buffer_size=50) as flow:
        for number, _ in enumerate(flow):
            state = flow.state()
            assert state["delivered"] == number + 1
            assert len(json.dumps(state)) < 500


def test_a_child_over_passes_resumes_exactly_after_a_broken_pass():
    def build(cls, *workers):
        return ProxyDataFlow(cls(FixedSizeData(numbers(10, shuffle=True), 6), *workers, noisy))

    serial_flow = build(MapData).seed(2)
    expected = [plain(itertools.islice(serial_flow, count)) for count in (2, 6, 3, 6)]
    with build(MultiProcessMapData, 2).seed(2) as flow:
        got = [plain(itertools.islice(flow, count)) for count in (2, 6, 3)]
        iterator = iter(flow)
        got.append(plain(itertools.islice(iterator, 4)))
        state = flow.state()
    with build(MultiProcessMapData, 0) as flow:
        flow.load_state(state)
        got[-1] += plain(flow)
    assert got == expected


@pytest.mark.parametrize("cut", [5, 8, 9, 10, 11, 19, 20, 29])
@pytest.mark.parametrize(
    "repeat",
    [lambda ds: RepeatedData(ds, 3), lambda ds: FixedSizeData(ds, 30, keep_state=False)],
    ids=["repeated", "fixed size"],
)
def test_a_repeated_child_goes_on_after_a_broken_pass(cut, repeat):
    """What was read ahead of it may be in the next pass of the repeated flow."""
    serial = MapData(repeat(numbers(10, shuffle=True)), noisy).seed(2)
    expected = [plain(itertools.islice(serial, cut)), plain(serial), plain(serial)]
    with MultiThreadMapData(repeat(numbers(10, shuffle=True)), 2, noisy, buffer_size=4).seed(2) as flow:
        first = plain(itertools.islice(flow, cut))
        state = flow.state()
        assert [first, plain(flow), plain(flow)] == expected
    whole = MapData(repeat(numbers(10, shuffle=True)), noisy).seed(2)
    with MultiThreadMapData(repeat(numbers(10, shuffle=True)), 2, noisy, buffer_size=4) as flow:
        flow.load_state(state)
        assert [first + plain(flow), plain(flow)] == [plain(whole), plain(whole)]


def test_the_position_of_the_child_is_that_of_what_was_delivered():
    with MultiThreadMapData(numbers(500), 2, double, buffer_size=100) as flow:
        iterator = iter(flow)
        for _ in range(10):
            next(iterator)
        state = flow.state()
    child, own = state["children"][0], state["own"]
    assert child["delivered"] + own["skip"] == 10


def test_random_numbers_are_those_of_the_serial_map():
    def pipeline(stage):
        return BatchData(stage, 5).seed(9)

    expected = plain(pipeline(MapData(numbers(40), noisy)))
    for stage in (MultiThreadMapData(numbers(40), 3, noisy), MultiProcessMapData(numbers(40), 2, noisy)):
        with pipeline(stage) as flow:
            assert plain(flow) == expected
    assert not np.array_equal(plain(pipeline(MapData(numbers(40), noisy)).seed(10)), expected)
