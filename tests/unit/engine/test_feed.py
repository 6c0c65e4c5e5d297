"""Feeds: the queue that a thread fills trains as the direct way does, and resumes exactly."""

import threading

import numpy as np
import pytest
from engine_fakes import FakeProgram, make_batches

from tests.waiting import wait_until
from ziggurat.callbacks import Callback, Trainer
from ziggurat.dataflow import DataFromList
from ziggurat.engine.feed import BatchCycle, QueueFeed, held_batch
from ziggurat.errors import DataError


class Queued(FakeProgram):
    def connect(self, batches):
        return QueueFeed(batches, 3)


class StopAfter(Callback):
    def __init__(self, step):
        self.step = step

    def trigger_step(self):
        if self.global_step == self.step:
            self.trainer.request_stop("the test asked for it")


class Seen(Callback):
    def __init__(self):
        self.first = []

    def after_run(self, values):
        self.first.append(float(self.trainer.batch[0][0]))


def list_of_batches():
    return make_batches(6)


def shuffled_flow():
    return DataFromList(make_batches(6), shuffle=True).seed(7)


@pytest.mark.parametrize("data", [list_of_batches, shuffled_flow])
@pytest.mark.parametrize("steps_per_epoch", [6, 4])
def test_a_queue_trains_and_resumes_as_the_direct_feed(data, steps_per_epoch):
    direct = Trainer(FakeProgram(), data(), callbacks=[seen := Seen()], steps_per_epoch=steps_per_epoch)
    direct.train(3)
    for stop in range(1, 3 * steps_per_epoch):
        first = Trainer(Queued(), data(), callbacks=[one := Seen(), StopAfter(stop)], steps_per_epoch=steps_per_epoch)
        first.train(3)
        state = first.state()
        rest = Trainer(Queued(), data(), callbacks=[two := Seen(), StopAfter(0)], steps_per_epoch=steps_per_epoch)
        rest.load_state(state)
        rest.train(3)
        assert one.first + two.first == seen.first
        assert rest.program.weight == direct.program.weight


def test_a_closed_queue_goes_on_behind_the_consumed_batch():
    feed = QueueFeed(BatchCycle(make_batches(6)), 2)
    taken = [feed.next() for _ in range(3)]
    feed.close()
    taken += [feed.next() for _ in range(4)]
    feed.close()
    assert [batch[0][0] for batch in taken] == [0, 2, 4, 6, 8, 10, 0]


def test_a_queue_goes_back_by_the_batch_of_no_step():
    feed = QueueFeed(BatchCycle(make_batches(6)), 2)
    position = [feed.position()]
    for _ in range(3):
        feed.next()
        position.append(feed.position())
    feed.go_back_to(2)
    assert feed.position() == position[2]
    assert feed.next()[0][0] == 4
    feed.go_back_to(1)
    assert feed.position() == position[3]
    feed.close()


def test_an_error_comes_behind_the_batches_before_it():
    def broken():
        yield from make_batches(2)
        raise DataError("the data broke")

    program = Queued()
    with pytest.raises(DataError, match="the data broke"):
        Trainer(program, broken(), steps_per_epoch=4).train(1)
    assert program.steps == 2


def test_a_queue_leaves_no_thread_behind():
    before = set(threading.enumerate())
    Trainer(Queued(), make_batches(6)).train(2)
    assert set(threading.enumerate()) == before


def test_stats_count_what_waits():
    made = threading.Event()

    def batches():
        yield [np.zeros(4, np.float32)]
        yield [np.zeros(4, np.float32)]
        made.set()
        yield [np.zeros(4, np.float32)]

    feed = QueueFeed(BatchCycle(batches()), 1)
    feed.next()
    assert feed.stats().capacity == 1
    feed.next()
    assert made.wait(60)
    assert feed.stats().ready_bytes == 16 * feed.stats().ready
    feed.close()


def test_a_held_batch_has_memory_that_nobody_writes_into():
    own, ring = np.zeros(4), np.zeros((2, 4))
    held = held_batch([own, ring[0], {"key": (ring[1],)}])
    ring[:] = 1
    assert held[0] is own
    assert held[1].tolist() == held[2]["key"][0].tolist() == [0, 0, 0, 0]


def test_a_queue_holds_no_more_bytes_than_it_may():
    made = []

    class Counted(list):
        def __iter__(self):
            for item in super().__iter__():
                made.append(1)
                yield item

    feed = QueueFeed(BatchCycle(Counted([[np.zeros(1000, np.uint8)] for _ in range(9)])), 8, max_bytes=2500)
    try:
        feed.next()
        wait_until(lambda: len(made) == 4)  # one was taken, two wait, and one has no room
        assert (feed.ready, feed.stats().ready_bytes) == (2, 2000)
        feed.next()
        wait_until(lambda: len(made) == 5)
        assert feed.stats().ready_bytes == 2000
    finally:
        feed.close()


def test_a_batch_beyond_the_bound_comes_alone():
    feed = QueueFeed(BatchCycle([[np.zeros(1000, np.uint8)] for _ in range(3)]), 8, max_bytes=10)
    try:
        assert [feed.next()[0].nbytes for _ in range(4)] == [1000] * 4
        wait_until(lambda: feed.ready == 1)
    finally:
        feed.close()


def test_a_refilled_queue_makes_the_next_batches_again():
    scale = [1]

    class Scaled(list):
        def __iter__(self):
            return (scale[0] * item for item in super().__iter__())

    feed = QueueFeed(BatchCycle(Scaled([1, 2, 3, 4])), 2)
    try:
        assert feed.next() == 1
        wait_until(lambda: feed.ready == 2)
        scale[0] = 10
        feed.refill()
        assert [feed.next() for _ in range(4)] == [20, 30, 40, 10]
    finally:
        feed.close()
