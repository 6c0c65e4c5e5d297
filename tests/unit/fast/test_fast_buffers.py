"""Memory of batches is used again when nobody sees it any more, and not before."""

from ziggurat.dataflow.fast.buffers import BatchBuffers


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
