"""What becomes of datapoints that cannot be used: raised with their number, or dropped and counted."""

import logging
import pickle

import pytest

from ziggurat.dataflow import BatchData, DataFromList, ErrorPolicy, IndexedFlow, MapData, MapDataComponent
from ziggurat.dataflow.policy import Failure
from ziggurat.errors import DatapointError, DataWorkerError, MissingDependencyError, UsageError


def numbers(count):
    return DataFromList([[n] for n in range(count)], shuffle=False)


def refuse_odd(dp):
    if dp[0] % 2:
        raise ValueError(f"{dp[0]} is odd")
    return dp


def test_by_default_the_error_names_the_datapoint_and_cause():
    with pytest.raises(DatapointError) as caught:
        list(MapData(numbers(4), refuse_odd))
    assert str(caught.value) == (
        'Datapoint 1 cannot be used: ValueError: 1 is odd. Repair it, or drop such datapoints with `on_error="skip"`.'
    )
    assert caught.value.key == 1
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_number_is_the_one_in_the_batch_and_pass():
    flow = BatchData(MapDataComponent(numbers(8), lambda n: 1 // (6 - n)), 4)
    with pytest.raises(DatapointError, match=r"Datapoint 6 cannot be used: ZeroDivisionError"):
        list(flow)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x"), GeneratorExit])
def test_no_exception_ends_a_pass_silently(error):
    def stop(dp):
        raise error

    with pytest.raises((DatapointError, GeneratorExit)):
        next(iter(MapData(numbers(3), stop)))


def test_skipped_datapoints_are_counted_and_the_first_is_logged(caplog):
    flow = MapData(numbers(7), refuse_odd, on_error="skip")
    with caplog.at_level(logging.WARNING):
        assert [dp[0] for dp in flow] == [0, 2, 4, 6]
    assert [record.getMessage() for record in caplog.records] == [
        "Datapoint 1 was skipped: ValueError: 1 is odd. Further ones are counted only: see `error_counts()`."
    ]
    (row,) = BatchData(flow, 2).seed(0).error_counts()
    assert (row.stage, row.path) == ("MapData", (0,))
    assert row.counts.total == 3
    assert row.counts.by_kind == {"ValueError": 3}
    assert row.counts.first == [
        (1, "ValueError: 1 is odd."),
        (3, "ValueError: 3 is odd."),
        (5, "ValueError: 5 is odd."),
    ]


def test_logging_names_each_datapoint(caplog):
    with caplog.at_level(logging.WARNING):
        list(MapData(numbers(4), refuse_odd, on_error="log"))
    assert [record.getMessage() for record in caplog.records] == [
        "Datapoint 1 was skipped: ValueError: 1 is odd.",
        "Datapoint 3 was skipped: ValueError: 3 is odd.",
    ]


def test_only_first_keys_are_kept_and_many_errors_are_raised():
    policy = ErrorPolicy("skip", at_most=3, remember=2)
    with pytest.raises(DatapointError, match=r"Datapoint 7 .* More than 3 datapoints had to be dropped"):
        list(MapData(numbers(20), refuse_odd, on_error=policy))
    assert policy.counts().total == 3
    assert [key for key, _ in policy.counts().first] == [1, 3]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "error", [MissingDependencyError("h5py", extra="hdf5", purpose="this"), UsageError("No."), MemoryError()]
)
def test_what_is_not_the_datapoints_fault_is_never_skipped(error, batched):
    def fail(dp):
        raise error

    flow = MapData(numbers(3), fail, on_error="skip")
    with pytest.raises(type(error)) as caught:
        list(BatchData(flow, 2) if batched else flow)
    assert caught.value is error
    assert caught.value.__notes__[-1] == "(datapoint 0 of the pass)"


def test_interrupts_are_not_errors_of_a_datapoint():
    def interrupt(dp):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(MapData(numbers(3), interrupt, on_error="skip"))


class Files(IndexedFlow):
    """A reader whose datapoints have keys."""

    def __init__(self, on_error="raise"):
        super().__init__()
        self.policy = ErrorPolicy.of(on_error)

    def __len__(self):
        return 4

    def key(self, index):
        return f"img/{index}.png"

    def datapoint(self, index):
        if index == 1:
            raise OSError("truncated")
        if index == 2:
            raise DatapointError("img/2.png (page 3)", "it is empty.")
        return [index]


@pytest.mark.parametrize("many", [False, True])
def test_sources_name_the_key(many):
    def points(flow):
        return [dp for batch in BatchData(flow, 1, use_list=True) for dp in batch] if many else list(flow)

    with pytest.raises(DatapointError, match=r"Datapoint 'img/1.png' cannot be used: OSError: truncated"):
        points(Files())
    flow = Files("skip")
    assert points(flow) == [[0], [3]]
    assert flow.error_counts()[0].counts.first == [
        ("img/1.png", "OSError: truncated."),
        ("img/2.png (page 3)", "it is empty."),
    ]


def test_the_counts_go_on_after_resuming():
    flow = MapData(numbers(7), refuse_odd, on_error="skip")
    items = iter(flow)
    assert [next(items)[0] for _ in range(3)] == [0, 2, 4]
    resumed = MapData(numbers(7), refuse_odd, on_error="skip")
    resumed.load_state(flow.state())
    assert [dp[0] for dp in resumed] == [6]
    assert resumed.error_counts()[0].counts.total == 3


def test_an_unknown_policy_is_refused():
    with pytest.raises(UsageError, match=r'one of "raise", "skip" and "log" \(received: \'ignore\''):
        MapData(numbers(1), refuse_odd, on_error="ignore")


# ---- failures in workers


def failure_of(error):
    try:
        raise error
    except Exception as caught:
        return pickle.loads(pickle.dumps(Failure.of(caught, key=5)))


def test_a_failure_in_a_worker_is_raised_with_its_traceback():
    with pytest.raises(DatapointError, match=r"Datapoint 5 cannot be used: ValueError: bad") as caught:
        ErrorPolicy().take(failure_of(ValueError("bad")))
    assert "In the worker:\nTraceback" in caught.value.__notes__[0]
    assert "in failure_of" in caught.value.__notes__[0]
    cause = ValueError("bad")
    with pytest.raises(DatapointError) as caught:
        ErrorPolicy().take(failure_of(cause), cause)
    assert caught.value.__cause__ is cause


def test_a_failure_in_a_worker_is_skipped_and_counted():
    policy = ErrorPolicy("skip")
    policy.take(failure_of(DatapointError("a.png", "it is empty.")))
    assert policy.counts().first == [("a.png", "it is empty.")]


def test_another_failure_is_raised_as_it_is_or_in_words():
    error = MissingDependencyError("h5py", extra="hdf5", purpose="this")
    with pytest.raises(MissingDependencyError):
        ErrorPolicy("skip").take(failure_of(error), error)
    with pytest.raises(DataWorkerError, match=r"raised MissingDependencyError at datapoint 5") as caught:
        ErrorPolicy("skip").take(failure_of(error))
    assert "Traceback" in caught.value.worker_traceback


def test_the_limit_of_drops_is_named_with_the_last_error() -> None:
    def refuse(point: list[int]) -> list[int]:
        raise DatapointError(f"key-{point[0]}", "it cannot be read.")

    flow = MapData(DataFromList([[0], [1], [2]], shuffle=False), refuse, on_error=ErrorPolicy("skip", at_most=1))
    with pytest.raises(DatapointError) as caught:
        list(flow)
    assert "More than 1 datapoints had to be dropped: look at the data." in caught.value.__notes__
