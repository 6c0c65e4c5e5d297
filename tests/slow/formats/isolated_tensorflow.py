"""Flows and ``tf.data``; run by ``test_adapters_tensorflow.py`` in a process of its own."""

import json

import numpy as np
import pytest

import tensorflow as tf
from ziggurat.dataflow.adapters import dataflow_to_dataset, from_tf_dataset, to_tf_dataset
from ziggurat.dataflow.sources import DataFromArrays, DataFromList
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError, DatapointError

POINTS = [[np.full((2, 3), number, np.uint8), number, f"n{number}", 0.5] for number in range(6)]


def failing(point):
    if point[1] == 3:
        raise DatapointError("three.jpg", "it is broken.")
    return point


def test_the_first_datapoint_tells_the_signature():
    dataset = to_tf_dataset(DataFromList(POINTS, shuffle=False))
    assert dataset.element_spec == (
        tf.TensorSpec((None, None), tf.uint8),
        tf.TensorSpec((), tf.int64),
        tf.TensorSpec((), tf.string),
        tf.TensorSpec((), tf.float32),
    )
    rows = list(dataset.as_numpy_iterator())
    assert [row[1] for row in rows] == list(range(6))
    assert [row[2] for row in rows][:2] == [b"n0", b"n1"]
    assert (rows[4][0] == 4).all()


def test_each_iteration_is_the_next_pass_and_none_is_lost():
    flow = DataFromArrays(np.arange(10)).seed(1)
    expected = [[int(dp[0]) for dp in flow] for _ in range(2)]
    dataset = to_tf_dataset(DataFromArrays(np.arange(10)).seed(1))
    assert [[int(row[0]) for row in dataset.as_numpy_iterator()] for _ in range(2)] == expected


def test_a_signature_may_be_given_and_batches_are_passed_on():
    signature = (tf.TensorSpec((None, 2, 3), tf.uint8), tf.TensorSpec((None,), tf.int64))
    flow = BatchData(MapData(DataFromList(POINTS, shuffle=False), lambda dp: dp[:2]), 4, remainder=True)
    batches = list(to_tf_dataset(flow, signature).as_numpy_iterator())
    assert [batch[0].shape for batch in batches] == [(4, 2, 3), (2, 2, 3)]


def test_datapoints_may_be_dicts():
    flow = DataFromList([{"image": np.zeros((2, 2)), "label": 3}], shuffle=False)
    (row,) = to_tf_dataset(flow).as_numpy_iterator()
    assert row["label"] == 3
    assert row["image"].shape == (2, 2)


def test_dataflow_to_dataset_takes_types():
    flow = DataFromList([[n, "a", [1.5] * n] for n in range(3)])
    dataset = dataflow_to_dataset(flow, [tf.int32, tf.string, "float32"])
    rows = list(dataset.as_numpy_iterator())
    assert sorted(row[0] for row in rows) == [0, 1, 2]
    assert {row[2].dtype for row in rows} == {np.dtype(np.float32)}
    assert len(list(dataset.as_numpy_iterator())) == 3


def test_an_empty_flow_tells_no_signature():
    with pytest.raises(DataError, match="Give `output_signature`"):
        to_tf_dataset(DataFromList([]))
    assert list(to_tf_dataset(DataFromList([]), (tf.TensorSpec((), tf.int32),))) == []


@pytest.mark.parametrize("prefetch", [False, True])
def test_errors_reach_the_consumer_with_type_and_message(prefetch):
    for dataset in (
        to_tf_dataset(MapData(DataFromList(POINTS, shuffle=False), failing)),
        dataflow_to_dataset(
            MapData(DataFromList(POINTS, shuffle=False), failing), [tf.uint8, tf.int64, tf.string, tf.float32]
        ),
    ):
        taken = []
        rows = dataset.prefetch(2) if prefetch else dataset
        with pytest.raises(
            tf.errors.OpError, match=r"DatapointError: Datapoint 'three.jpg' cannot be used: it is broken"
        ):
            taken.extend(int(row[1]) for row in rows.as_numpy_iterator())
        assert all(number < 3 for number in taken)


def test_a_data_set_becomes_a_flow():
    dataset = tf.data.Dataset.from_tensor_slices({"x": [1, 2, 3], "name": ["a", "b", "c"]})
    flow = from_tf_dataset(dataset)
    assert len(flow) == 3
    assert list(flow) == [{"x": 1, "name": b"a"}, {"x": 2, "name": b"b"}, {"x": 3, "name": b"c"}]
    batches = list(from_tf_dataset(tf.data.Dataset.range(5).map(lambda n: (n, n * n)).batch(2)))
    assert [[part.tolist() for part in batch] for batch in batches][1] == [[2, 3], [4, 9]]
    with pytest.raises(NotImplementedError):
        len(from_tf_dataset(tf.data.Dataset.range(5).filter(lambda n: n > 2)))
    assert [dp[0] for dp in from_tf_dataset(tf.data.Dataset.range(3))] == [0, 1, 2]


def test_a_flow_from_tensorflow_resumes_exactly():
    flow = from_tf_dataset(tf.data.Dataset.range(6))
    items = iter(flow)
    next(items)
    next(items)
    resumed = from_tf_dataset(tf.data.Dataset.range(6))
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert [int(dp[0]) for dp in resumed] == [2, 3, 4, 5]


def test_tensorflow_reads_our_records(tmp_path):
    from ziggurat.dataflow.formats import TFRecordData
    from ziggurat.records import create_records

    with create_records(tmp_path / "ours", "tfrecord") as writer:
        for number in range(5):
            writer.append(None, b"x" * number)
    ours = [record.numpy() for record in tf.data.TFRecordDataset(str(tmp_path / "ours"))]
    assert ours == [b"x" * number for number in range(5)]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as theirs:
        for number in range(5):
            theirs.write(b"y" * number)
    assert list(TFRecordData(tmp_path / "theirs")) == [[b"y" * number] for number in range(5)]
