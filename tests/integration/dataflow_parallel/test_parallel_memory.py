"""Arrays go through shared memory, bounded and used again, and stay right for as long as somebody holds them."""

import itertools
import os

import numpy as np
import psutil
import pytest
from parallel_samples import numbers

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiProcessRunnerZMQ
from ziggurat.dataflow.parallel.shared_memory import Arena, Slot, pack, unpack
from ziggurat.dataflow.sources import DataFromList

pytestmark = pytest.mark.usefixtures("fork_server")

MEBI = 1 << 20


def filled(dp):
    return [dp[0], np.full((MEBI,), dp[0] % 251, np.uint8)]


def is_right(dp):
    return bool((dp[1] == dp[0] % 251).all())


def shared_bytes():
    return sum(row.rss for row in psutil.Process().memory_maps(grouped=False) if "ziggurat-dataflow" in row.path)


def private_bytes():
    rows = psutil.Process().memory_maps(grouped=False)
    return sum(row.private_dirty for row in rows if "ziggurat-dataflow" not in row.path)


def test_arrays_stay_as_they_are_while_the_consumer_holds_them():
    with MultiProcessMapData(numbers(60), 2, filled, buffer_size=4, buffer_bytes=8 * MEBI) as flow:
        held = list(itertools.islice(flow, 30))
        for dp in flow:
            held.append(dp)
            held = held[::2] if len(held) > 40 else held
        assert all(is_right(dp) for dp in held)
    assert all(is_right(dp) for dp in held)


def test_arrays_can_be_written_to_and_views_of_them_keep_them():
    with MultiProcessMapData(numbers(40), 2, filled, buffer_size=4, buffer_bytes=8 * MEBI) as flow:
        iterator = iter(flow)
        _, array = next(iterator)
        view = array[10:20].reshape(2, 5)
        view += 7
        del array
        list(iterator)
        assert view.tolist() == [[7] * 5] * 2


def test_shared_memory_does_not_grow_with_the_passes():
    with MultiProcessMapData(numbers(40), 2, filled, buffer_size=6, buffer_bytes=64 * MEBI) as flow:
        for _ in range(6):
            assert all(is_right(dp) for dp in flow)
            assert 0 < shared_bytes() <= 24 * MEBI


def test_batches_from_a_runner_share_memory_that_does_not_grow():
    class Batches(DataFlow):
        def __iter__(self):
            for number in range(20):
                yield [number, np.full((4, MEBI), number, np.uint8)]

    with MultiProcessRunnerZMQ(Batches(), 1, hwm=50, buffer_bytes=32 * MEBI) as flow:
        private = []
        for _ in range(5):
            for dp in flow:
                assert is_right([dp[0], dp[1][3]])
            private.append(private_bytes())
            assert 0 < shared_bytes() <= 44 * MEBI
    assert private[-1] - private[1] < 2 * MEBI


def test_a_datapoint_larger_than_the_whole_buffer_gets_through():
    def large(dp):
        return [dp[0], dp[1] + 1]

    points = [[number, np.full((3 * MEBI,), number, np.uint8)] for number in range(5)]
    with MultiProcessMapData(DataFromList(points, shuffle=False), 2, large, buffer_bytes=MEBI) as flow:
        for _ in range(3):
            assert [int(dp[1].sum(dtype=np.int64)) for dp in flow] == [3 * MEBI * (number + 1) for number in range(5)]


def test_results_whose_size_nobody_could_foresee_get_through():
    def growing(dp):
        return [np.full((1 << (dp[0] % 22),), dp[0], np.uint8)]

    with MultiProcessMapData(numbers(66), 3, growing, buffer_size=20, buffer_bytes=16 * MEBI) as flow:
        for number, (array,) in enumerate(flow):
            assert (len(array), set(array.tolist())) == (1 << (number % 22), {number})


def test_a_map_function_may_keep_its_input():
    kept = []

    def keeps(dp):
        kept.append(dp[1])
        return [int(first.min()) for first in kept]

    points = [[number, np.full((MEBI // 4,), number, np.uint8)] for number in range(12)]
    with MultiProcessMapData(DataFromList(points, shuffle=False), 1, keeps) as flow:
        assert list(flow)[-1] == list(range(12))


def test_large_arrays_are_not_copied_for_every_worker():
    table = np.zeros(40 * MEBI, np.uint8)

    def touched(dp):
        table[dp[0]] += 1  # a worker's own copy of one page
        return [int(table[dp[0]]), psutil.Process(os.getpid()).memory_full_info().uss]

    with MultiProcessMapData(numbers(8), 2, touched, buffer_size=1) as flow:
        points = list(flow)
    assert {dp[0] for dp in points} == {1}
    assert max(dp[1] for dp in points) < 35 * MEBI
    assert not table.any()


def test_rows_begin_at_multiples_of_64_bytes():
    with MultiProcessMapData(numbers(6), 2, lambda dp: [np.zeros(70_001, np.uint8), np.zeros((5, 99_999))]) as flow:
        assert {array.ctypes.data % 64 for dp in flow for array in dp} == {0}


def test_slots_are_joined_again_when_they_are_freed():
    arena = Arena(MEBI)
    whole = arena.allocate(MEBI)
    assert whole is not None
    assert arena.allocate(1) is None
    arena.free(whole)
    slots = [arena.allocate(MEBI // 4) for _ in range(4)]
    assert arena.allocate(1) is None
    for place in (1, 3, 0, 2):
        slot = slots[place]
        assert slot is not None
        arena.free(slot)
    again = arena.allocate(MEBI)
    assert again == whole
    rest = arena.shrink(whole, 1000)
    assert rest == Slot(whole.offset, 1024)
    beyond = arena.allocate(2 * MEBI, must=True)
    assert beyond is not None
    assert beyond.offset >= whole.offset + MEBI
    assert arena.window.view(beyond.offset, beyond.size_bytes).nbytes == 2 * MEBI


def test_messages_give_back_what_was_packed():
    value = {
        "large": np.arange(10_000),
        "columns": np.asfortranarray(np.ones((200, 300))),
        "strided": np.arange(20_000)[::2],
        "small": np.float32(3),
        "objects": np.array([None, "a"], dtype=object),
        "nothing": np.zeros((0, 7)),
    }
    packed = pack(value)
    target = bytearray(packed.size_bytes)
    packed.write(memoryview(target))
    got = unpack(memoryview(target))
    assert list(got) == list(value)
    for name, array in value.items():
        assert np.array_equal(got[name], array), name
        assert got[name].dtype == array.dtype
    assert got["large"].flags.writeable
