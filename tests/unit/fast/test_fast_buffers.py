"""Memory of batches is used again when nobody sees it any more, and not before."""

import pickle

import numpy as np

from ziggurat.dataflow.stages.batching import BatchBuffers, is_pooled


def test_arrays_are_aligned():
    buffers = BatchBuffers((3, 5, 7, 3), keep=2)
    held = [buffers.take() for _ in range(4)]
    assert all(array.shape == (3, 5, 7, 3) and array.ctypes.data % 64 == 0 for array in held)


def test_what_is_held_is_never_handed_out_again():
    buffers = BatchBuffers((4,), keep=2)
    held = []
    for number in range(50):
        array = buffers.take()
        array[:] = number
        held.append(array if number % 2 else array[1:3])
        del array
    assert [int(array[0]) for array in held] == list(range(50))


def test_what_is_dropped_is_handed_out_again():
    buffers = BatchBuffers((4,), keep=2)
    places = set()
    for _ in range(20):
        array = buffers.take()
        places.add(array.ctypes.data)
        del array
    assert len(places) == 1


def test_numbers_of_any_type_fit():
    array = BatchBuffers((3, 5), keep=2, dtype=np.float32).take()
    array[:] = 0.5
    assert (array.dtype, array.shape, array.ctypes.data % 64, array.sum()) == (np.float32, (3, 5), 0, 7.5)


def test_an_array_of_the_pool_is_known():
    array = BatchBuffers((4,), keep=2).take()
    assert is_pooled(array)
    assert is_pooled(array[1:3][:1])
    assert not is_pooled(np.zeros(4))
    assert not is_pooled(np.zeros(4)[1:])


def test_clearing_leaves_what_is_held():
    buffers = BatchBuffers((4,), keep=2)
    held = buffers.take()
    held[:] = 7
    buffers.clear()
    buffers.take()[:] = 0
    assert held.tolist() == [7] * 4


def test_memory_is_not_pickled():
    buffers = BatchBuffers((1000,), keep=2)
    held = buffers.take()
    assert len(pickle.dumps(buffers)) < held.nbytes
    assert pickle.loads(pickle.dumps(buffers)).take().shape == (1000,)
