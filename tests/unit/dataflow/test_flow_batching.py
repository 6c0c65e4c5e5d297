"""Batches: types, lengths, remainders, nested and ragged components, and gathering by index."""

import numpy as np
import pytest

from ziggurat.dataflow import (
    BatchData,
    BatchDataByShape,
    DataFromArrays,
    DataFromGenerator,
    DataFromList,
    MapData,
    SelectComponent,
    UnknownLengthError,
    stack_datapoints,
)
from ziggurat.errors import DataError, UsageError


def in_order(points):
    return DataFromList(points, shuffle=False)


def one_by_one(flow):
    """Take away from a flow that it can be read many at a time, as a user does who defines ``iterate``."""
    usual = type(flow)

    class OneByOne(usual):
        def iterate(self):
            yield from usual.iterate(self)

    flow.__class__ = OneByOne
    return flow


def test_the_tail_is_dropped_or_yielded():
    points = [[n] for n in range(7)]
    dropped = BatchData(in_order(points), 3)
    kept = BatchData(in_order(points), 3, remainder=True)
    assert [batch[0].tolist() for batch in dropped] == [[0, 1, 2], [3, 4, 5]]
    assert [batch[0].tolist() for batch in kept] == [[0, 1, 2], [3, 4, 5], [6]]
    assert (len(dropped), len(kept)) == (2, 3)
    assert len(BatchData(in_order(points[:6]), 3, remainder=True)) == 2


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([True, False], np.bool_),
        ([1, 2**40], np.int64),
        ([1.5, 2], np.float32),
        ([np.uint8(1), np.uint8(2)], np.uint8),
        ([np.float64(1), np.float32(2)], np.float64),
        ([np.int8(1), 2], np.int64),
        ([np.zeros(2, np.float16), np.ones(2, np.float16)], np.float16),
        ([np.zeros(2, np.uint8), np.ones(2, np.float32)], np.float32),
        ([np.array(3, np.int16), np.array(4, np.int16)], np.int16),
        ([[1, 2], [3, 4]], np.int64),
        ([[1.0, 2.0], [3.0, 4.0]], np.float32),
        ([[np.float64(1)], [np.float64(2)]], np.float64),
        ([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")], np.dtype("M8[D]")),
    ],
)
def test_types(values, dtype):
    batch = stack_datapoints([[value] for value in values])[0]
    assert batch.dtype == dtype
    assert batch.tolist() == np.array(values).tolist()


@pytest.mark.parametrize(
    "values", [[b"ab\0", b"c"], ["ab\0", "c"], [None, 3], [{1, 2}, {3}], [np.str_("ab\0"), np.str_("c")]]
)
def test_bytes_text_and_other_objects_stay_as_they_are(values):
    batch = stack_datapoints([[value] for value in values])[0]
    assert batch.dtype == object
    assert list(batch) == values
    assert [type(value) for value in batch] == [type(value) for value in values]


def test_lists_of_text_stay_text():
    assert stack_datapoints([[["a", "bc"]], [["d\0", "e"]]])[0].tolist() == [["a", "bc"], ["d\0", "e"]]


def test_dicts_are_batched_key_by_key_at_any_depth():
    points = [{"image": np.full(2, n), "label": {"class": n, "name": str(n)}} for n in range(2)]
    (batch,) = BatchData(in_order(points), 2)
    assert batch["image"].tolist() == [[0, 0], [1, 1]]
    assert batch["label"]["class"].tolist() == [0, 1]
    assert batch["label"]["name"].tolist() == ["0", "1"]


def test_tuples_and_lists_give_lists():
    (batch,) = BatchData(in_order([(1, 2.0), [3, 4.0]]), 2)
    assert [component.tolist() for component in batch] == [[1, 3], [2.0, 4.0]]


def test_lists_instead_of_arrays_take_any_shapes():
    points = [[np.zeros(2), {"a": 1}], [np.zeros(3), {"a": 2}]]
    (batch,) = BatchData(in_order(points), 2, use_list=True)
    assert [array.shape for array in batch[0]] == [(2,), (3,)]
    assert batch[1] == {"a": [1, 2]}


def test_a_batch_is_new_memory():
    image = np.zeros((1, 2))
    (batch,) = BatchData(in_order([[image]]), 1)
    batch[0][:] = 1
    assert image.tolist() == [[0, 0]]


@pytest.mark.parametrize("odd", [(28, 30), (30, 28), (28, 28, 1)])
def test_components_of_different_shapes_are_named_with_advice(odd):
    points = [[n, np.zeros((28, 28))] for n in range(6)]
    points[4][1] = np.zeros(odd)
    with pytest.raises(DataError) as caught:
        list(BatchData(in_order(points), 3))
    assert str(caught.value) == (
        "The components of a batch have one shape "
        f"(received: component [1] of datapoint 4 is of shape {odd}, "
        "where component [1] of datapoint 3 is of shape (28, 28)). "
        "Resize, crop or pad them, use `BatchDataByShape`, or `BatchData` with `use_list=True`."
    )
    assert caught.value.details == {"index": 4, "component": "[1]"}


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[1, 2], [1]], r"same components.*datapoint 1 is a list of 1, where datapoint 0 is a list of 2"),
        ([{"a": 1}, {"b": 1}], r"datapoint 1 is a dict with 'b', where datapoint 0 is a dict with 'a'"),
        ([[1], {"b": 1}], r"datapoint 1 is a dict with 'b', where datapoint 0 is a list of 1"),
        ([[{"a": 1}], [3]], r"component \[0\] of datapoint 1 is a int, where"),
        ([np.zeros(2), np.zeros(2)], r"A datapoint is a list.*datapoint 0 is a ndarray.*yield `\[value\]`"),
        ([[[1, 2]], [[[1], [2, 3]]]], r"rows of one length.*component \[0\] of datapoint 1"),
        ([[1], [2**63]], r"batched as int64.*component \[0\] of datapoint 1 is 9223372036854775808"),
        ([{"x": {"y": np.zeros(1)}}, {"x": {"y": np.zeros(2)}}], r"component \['x'\]\['y'\] of datapoint 1"),
    ],
)
def test_datapoints_that_do_not_fit_are_an_error(points, message):
    with pytest.raises(DataError, match=message):
        list(BatchData(in_order(points), 2))


def test_a_batch_size_that_no_pass_can_fill_is_refused_at_once():
    with pytest.raises(UsageError, match=r"fill at least one batch \(received: batch_size 4 for 3 datapoints"):
        BatchData(in_order([[1]] * 3), 4)
    assert len(list(BatchData(in_order([[1]] * 3), 4, remainder=True))) == 1
    with pytest.raises(UsageError, match=r"`batch_size` is 1 or more \(received: 0"):
        BatchData(in_order([[1]]), 0)


def test_flows_of_unknown_length_are_batched_and_listed():
    flow = BatchData(DataFromGenerator(lambda: ([n] for n in range(5))), 2)
    assert len(list(flow)) == 2
    with pytest.raises(UnknownLengthError):
        len(flow)


def small_images():
    x = np.random.RandomState(0).randint(0, 255, (50, 4, 3)).astype(np.uint8)
    return DataFromArrays(x, np.arange(50), np.linspace(0, 1, 50, dtype=np.float32))


FAST = {
    "arrays": small_images,
    "selected": lambda: SelectComponent(small_images(), [1, 0]),
    "selected twice": lambda: SelectComponent(small_images(), [1, 1]),
    "mapped": lambda: MapData(small_images(), lambda dp: [dp[0][0], dp[1] * 2]),
    "filtered": lambda: MapData(small_images(), lambda dp: dp if dp[1] % 3 else None),
    "random": lambda: MapData(small_images(), lambda dp, rng: [dp[0], rng.rand()]),
    "objects": lambda: DataFromArrays(np.array([b"a\0", b"b"] * 5, dtype=object), np.arange(10)),
    "text": lambda: DataFromArrays(np.array(["ab", "c"] * 5), np.arange(10)),
    "list": lambda: DataFromList([[np.full(3, n), n] for n in range(20)]),
}


@pytest.mark.parametrize("build", FAST.values(), ids=FAST)
@pytest.mark.parametrize("batch_size", [1, 7, 10])
def test_reading_many_gives_exactly_what_one_by_one_gives(build, batch_size):
    fast = BatchData(build(), batch_size, remainder=True).seed(3)
    slow = BatchData(one_by_one(build()), batch_size, remainder=True).seed(3)
    for _ in range(2):
        for one, other in zip(fast, slow, strict=True):
            assert [(type(c), c.dtype, c.tolist()) for c in one] == [(type(c), c.dtype, c.tolist()) for c in other]


def test_a_map_may_change_a_gathered_datapoint_not_the_arrays():
    x = np.zeros((4, 2))

    def fill(dp):
        dp[0][:] = 1
        return dp

    (batch,) = BatchData(MapData(DataFromArrays(x), fill), 4)
    assert batch[0].tolist() == [[1, 1]] * 4
    assert x.tolist() == [[0, 0]] * 4


def test_batches_by_shape():
    widths = [1, 2, 1, 3, 2, 1, 1, 2]
    flow = in_order([{"image": np.full(width, n), "n": n} for n, width in enumerate(widths)])
    assert [b["n"].tolist() for b in BatchDataByShape(flow, 2, "image")] == [[0, 2], [1, 4], [5, 6]]
    assert [b["n"].tolist() for b in BatchDataByShape(flow, 2, "image", remainder=True)] == [
        [0, 2],
        [1, 4],
        [5, 6],
        [3],
        [7],
    ]
    with pytest.raises(UsageError, match=r"no component 'label'.*a dict with the keys 'image', 'n'"):
        list(BatchDataByShape(flow, 2, "label"))


def test_batches_by_shape_name_the_datapoint_that_does_not_fit():
    points = [[np.zeros(1), 1], [np.zeros(2), 1], [np.zeros(1), [1, 2]]]
    with pytest.raises(DataError, match=r"component \[1\] of datapoint 2 is of shape \(2,\), where .* datapoint 0"):
        list(BatchDataByShape(in_order(points), 2, 0))
