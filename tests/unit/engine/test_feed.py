"""Feeds: the queue that a thread fills trains as the direct way does, and resumes exactly."""

import threading

import numpy as np
import pytest
from engine_fakes import FakeProgram, make_batches

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
