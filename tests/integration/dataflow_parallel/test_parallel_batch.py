"""Mapping and batching in one worker gives what a map and a batch stage give."""

import itertools

import pytest
from parallel_samples import noisy, numbers, odd_only, plain

from ziggurat.dataflow.parallel import MultiProcessMapAndBatchData, MultiProcessMapAndBatchDataZMQ, MultiProcessRunner
from ziggurat.dataflow.stages.batching import stack_datapoints
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataWorkerError, UsageError

pytestmark = pytest.mark.usefixtures("fork_server")


def batches(func, size, *, remainder):
    points = list(MapData(numbers(100, shuffle=True), func).seed(4))
    if not remainder:
        points = points[: len(points) // size * size]
    return plain(stack_datapoints(points[start : start + size]) for start in range(0, len(points), size))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("remainder", [False, True])
@pytest.mark.parametrize("func", [noisy, odd_only])
def test_batches_are_those_of_the_serial_stages(func, remainder, workers):
    expected = batches(func, 8, remainder=remainder)
    with MultiProcessMapAndBatchData(numbers(100, shuffle=True), workers, func, 8, remainder=remainder).seed(4) as flow:
        assert plain(flow) == expected
        assert len(flow) == 13 if remainder else 12


@pytest.mark.parametrize("func", [noisy, odd_only])
def test_it_resumes_between_batches_with_dropped_datapoints(func):
    def build(workers):
        return MultiProcessMapAndBatchData(numbers(100, shuffle=True), workers, func, 8, remainder=True).seed(4)

    expected = batches(func, 8, remainder=True)
    with build(2) as flow:
        iterator = iter(flow)
        assert plain(itertools.islice(iterator, 4)) == expected[:4]
        state = flow.state()
    with build(3) as flow:
        flow.load_state(state)
        assert plain(flow) == expected[4:]


def test_the_default_buffer_works_and_none_is_too_small():
    assert MultiProcessMapAndBatchDataZMQ is MultiProcessMapAndBatchData
    for buffer_size in (None, 1, 500):
        with MultiProcessMapAndBatchData(numbers(20), 2, noisy, 6, buffer_size) as flow:
            assert [len(batch[0]) for batch in flow] == [6, 6, 6]
    with pytest.raises(UsageError, match=r"`batch_size` is 1 or more \(received: 0"):
        MultiProcessMapAndBatchData(numbers(20), 2, noisy, 0)


def test_an_error_names_the_datapoint_and_a_policy_skips_it():
    def fails(dp):
        if dp[0] == 9:
            raise ValueError("nine")
        return dp

    with (
        MultiProcessMapAndBatchData(numbers(20), 2, fails, 4) as flow,
        pytest.raises(DataWorkerError, match="raised ValueError at datapoint 9 of the pass"),
    ):
        list(flow)
    with MultiProcessMapAndBatchData(numbers(20), 2, fails, 4, on_error="skip") as flow:
        assert [batch[0].tolist() for batch in flow][2] == [8, 10, 11, 12]


def test_datapoints_that_do_not_fit_into_a_batch_say_so():
    with (
        MultiProcessMapAndBatchData(numbers(20), 2, lambda dp: [list(range(dp[0]))], 4) as flow,
        pytest.raises(DataWorkerError, match="have one shape"),
    ):
        list(flow)


def test_a_runner_may_run_it():
    def build(workers):
        inner = MultiProcessMapAndBatchData(numbers(50), 0, noisy, 4, remainder=True)
        return MultiProcessRunner(inner, 8, workers).seed(6)

    with build(0) as one, build(2) as two:
        assert plain(two) == plain(one)
