"""What users ask of ``tf.data``, in a few lines of Python each, up to the graph that it feeds."""

import numpy as np
import pytest
from input_trainings import trained

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import (
    BatchData,
    DataFlow,
    DataFromList,
    HDF5Serializer,
    LMDBSerializer,
    LocallyShuffleData,
    MapData,
    NumpySerializer,
    RandomMixData,
    TFRecordSerializer,
)
from ziggurat.engine.callback import Callback
from ziggurat.errors import DataError
from ziggurat.tf.inputs.queue import QueueInput

NUMBERS = [[np.float32(number)] for number in range(10)]


class Fed(Callback):
    """Notes what each step was fed."""

    def __init__(self):
        self.batches = []

    def trigger_step(self):
        self.batches.append(self.trainer.batch)


def fed(flow, inputs=None, steps=None):
    """Return the arrays of one epoch that a graph was fed from a flow."""
    inputs = inputs or [tf.TensorSpec(None, tf.float32, "x")]

    def cost(*tensors):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        total = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float32)) for each in tensors if each.dtype != tf.string])
        return tf.multiply(total, w, name="cost")

    note = Fed()
    trained(
        lambda: QueueInput(flow),
        cost=cost,
        inputs=lambda: inputs,
        steps=steps or len(flow),
        epochs=1,
        callbacks=[note],
        optimizer=lambda: tf.train.GradientDescentOptimizer(0.0),
    )
    return note.batches


def test_tutorial_17a_other_padding():
    def padded(batch):
        longest = max(len(row) for row in batch[0])
        return [np.stack([np.pad(row, (0, longest - len(row)), constant_values=-1) for row in batch[0]])]

    rows = [[np.arange(length, dtype="f4")] for length in (1, 3, 2, 2)]
    flow = MapData(BatchData(DataFromList(rows, shuffle=False), 2, use_list=True), padded)
    batches = fed(flow, [tf.TensorSpec((None, None), tf.float32, "x")])
    assert [batch[0].tolist() for batch in batches] == [[[0, -1, -1], [0, 1, 2]], [[0, 1], [0, 1]]]


def test_tutorial_17b_other_shuffling():
    near = fed(LocallyShuffleData(DataFromList(NUMBERS, shuffle=False), 3).seed(1))
    order = [int(batch[0]) for batch in near]
    assert sorted(order) == list(range(10)) != order
    assert all(number <= place + 3 for place, number in enumerate(order))  # nothing comes before it was read
    mixed = RandomMixData([DataFromList(NUMBERS[:5], shuffle=False), DataFromList(NUMBERS[5:], shuffle=False)]).seed(1)
    order = [int(batch[0]) for batch in fed(mixed)]
    assert [number for number in order if number < 5] == [0, 1, 2, 3, 4]
    assert [number for number in order if number >= 5] == [5, 6, 7, 8, 9]


def test_tutorial_17c_any_value():
    class Anything(DataFlow):
        def __len__(self):
            return 3

        def __iter__(self):
            for number in range(3):
                yield [{"words": f"number {number}", "value": 2 + number}]  # Python objects, until they meet the graph

    flow = MapData(Anything(), lambda point: [point[0]["words"].encode(), point[0]["value"]])
    inputs = [tf.TensorSpec((), tf.string, "words"), tf.TensorSpec((), tf.float32, "value")]
    assert [(words.item(), value.item()) for words, value in fed(flow, inputs)] == [
        (b"number 0", 2.0),
        (b"number 1", 3.0),
        (b"number 2", 4.0),
    ]


def test_tutorial_17d_sizes_that_are_no_multiple():
    flow = BatchData(DataFromList(NUMBERS, shuffle=False), 4, remainder=True)
    assert [batch[0].tolist() for batch in fed(flow)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_tutorial_17e_sorting_and_skipping():
    class Sorted(DataFlow):
        def __iter__(self):
            yield from sorted(DataFromList(NUMBERS, shuffle=True), key=lambda point: -point[0])

    odd = MapData(Sorted(), lambda point: point if point[0] % 2 else None)
    assert [int(batch[0]) for batch in fed(odd, steps=5)] == [9, 7, 5, 3, 1]


@pytest.mark.parametrize("serializer", [LMDBSerializer, TFRecordSerializer, NumpySerializer, HDF5Serializer])
def test_tutorial_17f_data_written_to_a_file(serializer, tmp_path):
    path = str(tmp_path / "numbers")
    arguments = [["x"]] if serializer is HDF5Serializer else []
    serializer.save(DataFromList(NUMBERS, shuffle=False), path, *arguments)
    batches = fed(serializer.load(path, *arguments, shuffle=False))
    assert [float(batch[0]) for batch in batches] == list(range(10))


def test_a_flow_without_batches_is_an_error():
    with pytest.raises(DataError, match="at least one batch in every pass"):
        trained(lambda: QueueInput(DataFromList([])))
