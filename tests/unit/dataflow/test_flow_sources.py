"""Sources: what they yield, in which order, how long they are, and what they refuse."""

import itertools
import queue
import subprocess
import sys

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    DataFromArrays,
    DataFromGenerator,
    DataFromIterable,
    DataFromList,
    DataFromQueue,
    FakeData,
    IndexedFlow,
    UnknownLengthError,
)
from ziggurat.errors import DataError, DatapointError, UsageError


def test_a_list_is_shuffled_by_default_anew_in_each_pass():
    points = [[n] for n in range(50)]
    flow = DataFromList(points).seed(1)
    first, second = list(flow), list(flow)
    assert first != points
    assert first != second
    assert sorted(first) == sorted(second) == points
    assert len(flow) == flow.size() == 50


def test_a_list_in_order_yields_the_objects_themselves():
    points = [["a"], ("b",), {"c": 1}]
    flow = DataFromList(points, shuffle=False)
    assert all(one is other for one, other in zip(flow, points, strict=True))


@pytest.mark.parametrize("wrong", [{"a": 1}, "text", iter([[1]]), 7])
def test_a_list_source_refuses_what_has_no_numbered_items(wrong):
    with pytest.raises(UsageError, match=r"takes a list of datapoints.*received: .*Use `DataFromIterable`"):
        DataFromList(wrong)


def test_sequences_that_read_lazily_name_the_item_that_fails():
    class Lazy:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 1:
                raise OSError("disk gone")
            return [index]

    with pytest.raises(DatapointError, match=r"Datapoint 1 cannot be used: OSError: disk gone") as caught:
        list(BatchData(DataFromList(Lazy(), shuffle=False), 3))
    assert isinstance(caught.value.__cause__, OSError)
    flow = DataFromList(Lazy(), shuffle=False, on_error="skip")
    assert list(flow) == [dp for batch in BatchData(flow, 1, use_list=True) for dp in batch] == [[0], [2]]
    assert flow.error_counts()[0].counts.first == [(1, "OSError: disk gone.")] * 2


def test_arrays_are_yielded_row_by_row_in_memory_of_their_own():
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    labels = np.array([5, 6, 7, 8])
    flow = DataFromArrays(images, labels, shuffle=False)
    for number, (image, label) in enumerate(flow):
        assert image.dtype == np.uint8
        assert image.tolist() == images[number].tolist()
        assert label == labels[number]
        assert isinstance(label, np.int64)
        image[:] = 0
    assert images[3].tolist() == [[18, 19, 20], [21, 22, 23]]
    assert len(flow) == 4


def test_arrays_take_nested_lists_too():
    assert [[x.tolist(), y] for x, y in DataFromArrays([[1, 2], [3, 4]], [0, 1], shuffle=False)] == [
        [[1, 2], 0],
        [[3, 4], 1],
    ]


@pytest.mark.parametrize(
    ("wrong", "received"),
    [([], "of no array"), ([[1, 2], [1, 2, 3]], r"\(2,\), \(3,\)"), ([np.float32(1)], r"\(\)")],
)
def test_arrays_need_the_same_number_of_rows(wrong, received):
    with pytest.raises(UsageError, match=rf"same number of rows \(received: shapes {received}"):
        DataFromArrays(*wrong)


def test_a_generator_function_begins_anew_in_every_pass():
    def count():
        yield from ([n] for n in range(3))

    flow = DataFromGenerator(count)
    assert list(flow) == list(flow) == [[0], [1], [2]]
    with pytest.raises(UnknownLengthError, match=r"`len\(\)` needs a data flow of known length"):
        len(flow)
    assert [batch[0].tolist() for batch in BatchData(flow, 2)] == [[0, 1]]


def test_an_iterable_has_the_length_that_it_has():
    assert len(DataFromIterable([[1], [2]])) == len(DataFromGenerator([[1], [2]])) == 2
    with pytest.raises(UnknownLengthError):
        len(DataFromIterable(iter([[1]])))


def test_an_iterator_is_read_once_and_not_silently_empty():
    flow = DataFromIterable(iter([[1], [2]]))
    assert list(flow) == [[1], [2]]
    with pytest.raises(DataError, match=r"one pass only.*a second pass over a list_iterator.*DataFromGenerator"):
        list(flow)


def test_a_queue_is_read_until_none_comes():
    source = queue.Queue()
    for item in ([1], [2], None, [3], None):
        source.put(item)
    flow = DataFromQueue(source)
    assert list(flow) == [[1], [2]]
    assert list(flow) == [[3]]


@pytest.mark.skipif(not hasattr(queue, "ShutDown"), reason="queues can be shut down since Python 3.13")
def test_a_queue_that_is_shut_down_ends_the_pass():
    source = queue.Queue()
    source.put([1])
    source.shutdown()
    assert list(DataFromQueue(source)) == [[1]]


def test_made_up_data_has_the_types_shapes_and_ranges_asked_for():
    flow = FakeData([[4, 3], [], [2]], size=20, dtype=["uint8", "float32", "float64"], domain=[(5, 9), (-1, 1), (3, 3)])
    points = list(flow.seed(2))
    assert len(flow) == len(points) == 20
    for image, scalar, constant in points:
        assert (image.dtype, image.shape) == (np.uint8, (4, 3))
        assert (scalar.dtype, scalar.shape) == (np.float32, ())
        assert constant.tolist() == [3.0, 3.0]
        assert 5 <= image.min() <= image.max() <= 8
        assert -1 <= scalar < 1
    assert len({dp[1].item() for dp in points}) == 20


def test_made_up_copies_are_equal_but_share_no_memory():
    first, second = FakeData([[2]], size=2, random=False)
    before = second[0].tolist()
    assert first[0].tolist() == before
    first[0][:] = 7
    assert second[0].tolist() == before


def test_made_up_data_wants_one_type_for_each_shape():
    with pytest.raises(UsageError, match=r"`FakeData` got 1 of `dtype` for 2 shapes"):
        FakeData([[1], [1]], dtype=["uint8"])


class Squares(IndexedFlow):
    """A reader that can gather."""

    gathers = True

    def __len__(self):
        return 10

    def datapoint(self, index):
        return [np.int64(index**2)]

    def gather(self, indices):
        return [indices.astype(np.int64) ** 2]


class Negative(Squares):
    """A reader that changes how one datapoint is read, and says nothing about many."""

    def datapoint(self, index):
        return [-super().datapoint(index)[0]]


def test_a_reader_that_gathers_gives_the_batches_of_one_by_one():
    flow = Squares(shuffle=True).seed(4)
    one_by_one = [dp[0] for dp in flow]
    gathered = [batch[0].tolist() for batch in BatchData(Squares(shuffle=True), 5).seed(4)]
    assert sorted(one_by_one) == sorted(itertools.chain(*gathered)) == [n**2 for n in range(10)]


def test_a_subclass_changing_datapoints_is_not_bypassed():
    assert [batch[0].tolist() for batch in BatchData(Negative(), 5)] == [
        [0, -1, -4, -9, -16],
        [-25, -36, -49, -64, -81],
    ]


def test_a_list_subclass_changing_datapoints_is_not_bypassed():
    class Doubled(DataFromList):
        def datapoint(self, index):
            return [2 * super().datapoint(index)[0]]

    assert [batch[0].tolist() for batch in BatchData(Doubled([[1], [2]], shuffle=False), 2)] == [[2, 4]]


def test_an_epoch_over_a_million_entries_needs_little_memory():
    program = """
import resource
from ziggurat.dataflow import BatchData, DataFromList
flow = DataFromList(range(1_000_000)).seed(0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(flow) == 499_999_500_000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60  # MiB
