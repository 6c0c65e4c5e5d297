"""How worker processes are started, and what may be sent to them."""

import os
import threading
from typing import Any

import numpy as np
import pytest
from parallel_samples import double, noisy, numbers, plain, run_script, serial

from ziggurat.dataflow.parallel import MultiProcessMapData
from ziggurat.errors import UsageError


@pytest.mark.parametrize("start_method", ["forkserver", "spawn", "fork"])
def test_every_start_method_gives_the_same_datapoints(start_method):
    with MultiProcessMapData(numbers(30), 2, noisy, start_method=start_method).seed(5) as flow:
        assert plain(flow) == serial(numbers(30), noisy)[0]
        assert len(set(flow.worker_pids())) == 2


@pytest.mark.parametrize("start_method", ["forkserver", "spawn", "fork"])
def test_workers_have_the_environment_and_folder_of_this_one(start_method):
    def where(dp):
        return [os.getpid(), os.environ["TESTED_VALUE"], os.getcwd()]

    os.environ["TESTED_VALUE"] = start_method
    with MultiProcessMapData(numbers(4), 2, where, start_method=start_method) as flow:
        found = list(flow)
        assert {dp[0] for dp in found} <= set(flow.worker_pids())
    del os.environ["TESTED_VALUE"]
    assert {dp[1] for dp in found} == {start_method}
    assert {dp[2] for dp in found} == {os.getcwd()}


def test_lambdas_and_closures_work_without_fork():
    offset = np.arange(3)
    with MultiProcessMapData(numbers(3), 2, lambda dp: [dp[0] + offset], start_method="spawn") as flow:
        assert [dp[0].tolist() for dp in flow] == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_an_unknown_start_method_is_refused():
    unknown: Any = "thread"
    with (
        MultiProcessMapData(numbers(3), 2, double, start_method=unknown) as flow,
        pytest.raises(UsageError, match='`start_method` is one of "forkserver", "spawn" and "fork", or None'),
    ):
        list(flow)


def test_unpicklable_is_refused_where_a_fork_is_not_safe():
    lock, release = threading.Lock(), threading.Event()
    threading.Thread(target=release.wait).start()

    def locked(dp):
        with lock:
            return dp

    try:
        with (
            MultiProcessMapData(numbers(3), 2, locked) as flow,
            pytest.raises(UsageError) as caught,
        ):
            list(flow)
    finally:
        release.set()
    assert "What the workers of MultiProcessMapData run must be picklable (received: " in str(caught.value)
    assert "cannot pickle '_thread.lock' object" in str(caught.value)
    assert 'start_method="fork", which is not chosen by itself because' in str(caught.value)
    with MultiProcessMapData(numbers(3), 2, locked, start_method="fork") as flow:
        assert list(flow) == [[0], [1], [2]]


SCRIPT_WITHOUT_GUARD = """
import dataclasses, enum, sys, threading
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiProcessRunnerZMQ

class Kind(enum.Enum):
    SMALL = 1
    LARGE = 2

@dataclasses.dataclass
class Item:
    number: int
    kind: Kind

class Items(DataFlow):
    def __init__(self, count):
        self.count = count
    def __iter__(self):
        for number in range(self.count):
            yield [Item(number, Kind.LARGE if number > LIMIT else Kind.SMALL)]

LIMIT = 2
print("main")

def grow(dp):
    item = dp[0]
    assert isinstance(item, Item), type(item)
    return [dataclasses.replace(item, number=item.number + 10 * scale(item))]

def scale(item):
    return {Kind.SMALL: 1, Kind.LARGE: 2}[item.kind]

with MultiProcessRunnerZMQ(Items(5), 1) as flow, MultiProcessMapData(flow, 2, grow, start_method=METHOD) as mapped:
    points = [dp[0] for dp in mapped]
assert all(type(item) is Item for item in points)
assert points[3].kind is Kind.LARGE
print([item.number for item in points])
"""


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_a_script_needs_no_main_guard_and_its_own_classes_travel(tmp_path, start_method):
    done = run_script(tmp_path, SCRIPT_WITHOUT_GUARD.replace("METHOD", repr(start_method)))
    assert (done.stdout.split("\n"), done.stderr) == (["main", "[10, 11, 12, 23, 24]", ""], "")


def test_unpicklable_is_forked_where_that_is_safe_and_said(tmp_path):
    done = run_script(
        tmp_path,
        """
import logging, threading
logging.basicConfig(format="%(message)s")
from ziggurat.dataflow.parallel import MultiProcessMapData
from ziggurat.dataflow.sources import DataFromList
lock = threading.Lock()

def locked(dp):
    with lock:
        return dp

with MultiProcessMapData(DataFromList([[0], [1]], shuffle=False), 2, locked) as flow:
    print(list(flow))
""",
    )
    assert done.stdout == "[[0], [1]]\n"
    assert done.stderr == (
        "MultiProcessMapData cannot be pickled (cannot pickle '_thread.lock' object), so this process is forked.\n"
    )


def test_a_framework_forbids_the_fork(tmp_path):
    done = run_script(
        tmp_path,
        """
import sys, threading, types
sys.modules["torch"] = types.ModuleType("torch")
from ziggurat.dataflow.parallel import MultiProcessMapData
from ziggurat.dataflow.sources import DataFromList
lock = threading.Lock()
try:
    list(MultiProcessMapData(DataFromList([[0]]), 2, lambda dp: [lock]))
except Exception as error:
    print(error)
""",
    )
    assert (
        'start_method="fork", which is not chosen by itself because torch is imported, and hangs in a fork.'
        in done.stdout
    )
    assert done.stderr == ""
