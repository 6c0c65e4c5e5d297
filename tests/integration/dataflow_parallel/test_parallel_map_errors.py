"""Whatever goes wrong in a worker reaches the consumer: which worker, which datapoint, why, and the traceback."""

import logging
import os
import signal

import pytest
from parallel_samples import MAPS, double, numbers

from tests.waiting import PROCESS_S, take_time, wait_until
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.errors import DatapointError, DataWorkerError

pytestmark = pytest.mark.usefixtures("fork_server")


def fails_at_7(dp):
    if dp[0] == 7:
        raise ValueError("seven is bad")
    return dp


class UnpicklableError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.lock = open(os.devnull)  # noqa: SIM115 (it cannot be pickled)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("parallel_map", MAPS)
def test_an_exception_has_type_message_traceback_and_index(parallel_map, workers):
    with parallel_map(numbers(50), workers, fails_at_7) as flow:
        got = []
        with pytest.raises(DataWorkerError) as caught:
            for dp in flow:
                got.append(dp)
    assert got == [[number] for number in range(7)]
    error = caught.value
    assert "raised ValueError at datapoint 7 of the pass (received: seven is bad)." in str(error)
    assert error.details["index"] == 7
    assert error.details["type"] == "ValueError"
    assert "in fails_at_7" in error.worker_traceback
    assert "in fails_at_7" in error.__notes__[0]
    assert isinstance(error.__cause__, ValueError)
    assert isinstance(error, DatapointError)


@pytest.mark.parametrize("parallel_map", MAPS)
def test_the_pass_after_an_error_is_a_pass_like_any_other(parallel_map):
    with parallel_map(numbers(50), 2, fails_at_7) as flow:
        for _ in range(3):
            with pytest.raises(DataWorkerError, match="datapoint 7"):
                list(flow)
            assert flow.delivered == 7


def test_an_exception_that_cannot_be_pickled_comes_in_words():
    def fails(dp):
        raise UnpicklableError("this", "that")

    with MultiProcessMapData(numbers(5), 2, fails) as flow, pytest.raises(DataWorkerError) as caught:
        list(flow)
    assert "raised UnpicklableError at datapoint 0 of the pass (received: this and that)." in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("parallel_map", MAPS)
def test_leaving_the_interpreter_in_a_map_is_an_error_too(parallel_map):
    def leaves(dp):
        raise SystemExit(3)

    with parallel_map(numbers(5), 2, leaves) as flow, pytest.raises(DataWorkerError, match="SystemExit: 3"):
        list(flow)


class OwnError(Exception):
    pass


def test_an_exception_of_ones_own_class_is_the_cause():
    def fails(dp):
        raise OwnError("mine")

    with MultiProcessMapData(numbers(5), 2, fails) as flow, pytest.raises(DataWorkerError) as caught:
        list(flow)
    assert isinstance(caught.value.__cause__, OwnError)


def test_a_result_that_cannot_be_sent_names_the_reason():
    with (
        MultiProcessMapData(numbers(5), 1, lambda dp: [open(os.devnull)]) as flow,
        pytest.raises(DataWorkerError, match="cannot be sent to another process: cannot pickle"),
    ):
        list(flow)


@pytest.mark.parametrize("parallel_map", MAPS)
def test_the_policy_skips_and_counts(parallel_map, caplog):
    with parallel_map(numbers(20), 3, fails_at_7, on_error="skip") as flow:
        assert [dp[0] for dp in flow] == [number for number in range(20) if number != 7]
        assert [dp[0] for dp in flow][6:8] == [6, 8]
        rows = flow.error_counts()
    assert [(row.stage, row.counts.total, row.counts.by_kind) for row in rows] == [
        (parallel_map.__name__, 2, {"ValueError": 2})
    ]
    assert "Datapoint 7 was skipped: ValueError: seven is bad" in caplog.text


@pytest.mark.parametrize("parallel_map", MAPS)
def test_the_policy_may_have_had_enough(parallel_map):
    def fails(dp):
        raise ValueError("no")

    with (
        parallel_map(numbers(20), 2, fails, on_error=ErrorPolicy("skip", at_most=3)) as flow,
        pytest.raises(DataWorkerError, match="More than 3 datapoints had to be dropped"),
    ):
        list(flow)


@pytest.mark.parametrize("parallel_map", MAPS)
def test_a_datapoint_error_keeps_its_key_and_reason(parallel_map):
    def unreadable(dp):
        raise DatapointError("img/7.jpg", "it is empty.")

    with parallel_map(numbers(3), 2, unreadable) as flow, pytest.raises(DatapointError) as caught:
        list(flow)
    assert (caught.value.key, caught.value.reason) == ("img/7.jpg", "it is empty.")
    assert isinstance(caught.value, DataWorkerError)


class FailsAfter(DataFlow):
    def __iter__(self):
        yield from ([0], [1], [2])
        raise OSError("the disk is gone")


@pytest.mark.parametrize("parallel_map", MAPS)
def test_an_error_of_the_child_comes_after_its_datapoints(parallel_map):
    with parallel_map(FailsAfter(), 2, double) as flow:
        got = []
        with pytest.raises(OSError, match="the disk is gone"):
            for dp in flow:
                got.append(dp)
    assert got == [[0], [2], [4]]


def test_a_killed_worker_is_named_with_its_signal_and_work():
    def dies(dp):
        if dp[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return dp

    with MultiProcessMapData(numbers(10), 1, dies, buffer_size=1) as flow, pytest.raises(DataWorkerError) as caught:
        list(flow)
    assert str(caught.value) == (
        "Worker 0 of MultiProcessMapData was killed by signal 9 (SIGKILL) while it worked on datapoint 3. "
        "Out of memory? Use fewer workers or a smaller buffer, or look into the system's log."
    )
    assert caught.value.details == {"worker": 0, "exit_code": -9, "signal": 9, "task": "datapoint 3"}


@pytest.mark.parametrize("start_method", ["forkserver", "spawn", "fork"])
def test_a_killed_worker_ends_the_pass_however_it_was_started(start_method):
    def slow(dp):
        take_time(0.01)
        return dp

    with MultiProcessMapData(numbers(100_000), 2, slow, start_method=start_method) as flow:
        iterator = iter(flow)
        next(iterator)
        os.kill(flow.worker_pids()[1], signal.SIGKILL)
        with pytest.raises(DataWorkerError, match="Worker 1 of MultiProcessMapData was killed by signal 9"):
            for _ in iterator:
                pass
        assert next(iter(flow)) == [0]


def test_a_worker_that_leaves_by_itself_is_an_error():
    with (
        MultiProcessMapData(numbers(3), 1, lambda dp: os._exit(0)) as flow,
        pytest.raises(DataWorkerError, match="Worker 0 of MultiProcessMapData ended by itself with exit code 0"),
    ):
        list(flow)


class CannotBeLoaded:
    def __reduce__(self):
        return (_load, ())

    def __call__(self, dp):
        return dp


def _load():
    raise ImportError("no such library in the worker")


def test_a_worker_that_cannot_begin_says_why():
    with (
        MultiProcessMapData(numbers(3), 2, CannotBeLoaded()) as flow,
        pytest.raises(
            DataWorkerError, match=r"could not begin its work \(received: ImportError: no such library"
        ) as caught,
    ):
        list(flow)
    assert "in _load" in caught.value.worker_traceback


def test_workers_that_died_between_passes_are_replaced(caplog):
    with MultiProcessMapData(numbers(6), 2, double) as flow:
        expected = list(flow)
        os.kill(flow.worker_pids()[0], signal.SIGKILL)
        assert wait_until(lambda: not os.path.exists(f"/proc/{flow.worker_pids()[0]}"), PROCESS_S)
        with caplog.at_level(logging.WARNING):
            assert list(flow) == expected
    assert "new ones are started" in caplog.text


def test_closing_in_mid_pass_ends_the_pass_with_an_error():
    flow = MultiThreadMapData(numbers(100), 2, double, buffer_size=4)
    iterator = iter(flow)
    next(iterator)
    flow.close()
    with pytest.raises(Exception, match="or it was closed"):
        list(iterator)
    assert list(flow)[:2] == [[0], [2]]
    flow.close()
