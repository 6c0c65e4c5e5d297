"""Batches that another process makes: the same ones, with positions that any training goes on from."""

import os
import signal

import numpy as np
import psutil
import pytest

from ziggurat.dataflow import BatchData, DataFromList, MapData, MultiProcessMapData, MultiThreadMapData
from ziggurat.engine.apart import ApartCycle
from ziggurat.engine.feed import BatchCycle, QueueFeed
from ziggurat.errors import DataWorkerError

SAMPLES = 22


def with_square(point):
    return [point[0], point[0] ** 2]


def refused(point):
    if point[0][0] == 13:
        raise ValueError("this one is damaged")
    return point


def flow(change=with_square):
    points = [[np.full(3, number)] for number in range(SAMPLES)]
    return BatchData(MapData(DataFromList(points, shuffle=True), change), 4).seed(7)


def numbers(batch):
    return [each.tolist() for each in batch]


def taken(cycle, count):
    items = iter(cycle)
    found = [(numbers(next(items)), cycle.state()) for _ in range(count)]
    cycle.close()
    return found


def test_batches_and_positions_are_those_of_this_process() -> None:
    assert taken(ApartCycle(BatchCycle(flow())), 13) == taken(BatchCycle(flow()), 13)


@pytest.mark.parametrize("kind", [MultiThreadMapData, MultiProcessMapData])
def test_workers_of_the_flow_work_for_it(kind) -> None:
    def with_workers():
        points = DataFromList([[np.full(3, number)] for number in range(SAMPLES)], shuffle=True)
        return BatchData(kind(points, 2, with_square), 4).seed(7)

    cycle = ApartCycle(BatchCycle(with_workers()))
    items, found = iter(cycle), []
    for _ in range(8):
        found.append((numbers(next(items)), cycle.state()))
    working = psutil.Process(cycle.worker_pids()[0]).children(recursive=True)
    cycle.close()
    assert found == taken(BatchCycle(with_workers()), 8)
    _, left = psutil.wait_procs(working, timeout=60)
    assert not left, "a worker outlives the process that it works for"


@pytest.mark.parametrize("at", [0, 3, 5, 9])
def test_either_goes_on_where_the_other_stood(at) -> None:
    expected = taken(BatchCycle(flow()), 14)
    for first, second in ((ApartCycle, BatchCycle), (BatchCycle, ApartCycle)):
        make = {BatchCycle: lambda: BatchCycle(flow()), ApartCycle: lambda: ApartCycle(BatchCycle(flow()))}
        before = make[first]()
        position = taken(before, at)[-1][1] if at else before.state()
        after = make[second]()
        after.load_state(position)
        assert taken(after, 4) == expected[at : at + 4]


def test_it_begins_where_its_cycle_stands() -> None:
    cycle = BatchCycle(flow())
    position = taken(BatchCycle(flow()), 3)[-1][1]
    cycle.load_state(position)
    apart = ApartCycle(cycle)
    assert apart.state() == position
    assert taken(apart, 3) == taken(BatchCycle(flow()), 6)[3:]


def test_a_queue_that_is_closed_goes_on_behind_what_was_consumed() -> None:
    expected = [batch for batch, _ in taken(BatchCycle(flow()), 9)]
    feed = QueueFeed(ApartCycle(BatchCycle(flow())), 2)
    found = [numbers(feed.next()) for _ in range(4)]
    feed.close()
    found += [numbers(feed.next()) for _ in range(5)]
    feed.close()
    assert found == expected


def test_an_error_of_the_data_comes_behind_the_batches_before() -> None:
    cycle = ApartCycle(BatchCycle(flow(refused)))
    items, count = iter(cycle), 0
    with pytest.raises(DataWorkerError, match="this one is damaged") as caught:
        for _ in range(SAMPLES):
            next(items)
            count += 1
    assert caught.value.details["type"] == "DatapointError"
    assert "in refused" in caught.value.worker_traceback
    in_process, expected = iter(BatchCycle(flow(refused))), 0
    with pytest.raises(Exception, match="this one is damaged"):
        for _ in range(SAMPLES):
            next(in_process)
            expected += 1
    assert count == expected


def test_a_killed_process_is_named_and_none_is_left() -> None:
    cycle = ApartCycle(BatchCycle(flow()))
    items = iter(cycle)
    next(items)
    (pid,) = cycle.worker_pids()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(DataWorkerError, match="signal 9"):
        for _ in range(10):
            next(items)
    cycle.close()
    assert cycle.worker_pids() == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
