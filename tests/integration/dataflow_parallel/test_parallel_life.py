"""Workers live as long as they are needed: over passes, and never longer than their parent."""

import gc
import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from parallel_samples import MAPS, children, double, first_line, numbers, run_script, start_script

from tests.waiting import PROCESS_S, wait_until
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiProcessRunnerZMQ, MultiThreadMapData, MultiThreadRunner

METHODS = ["forkserver", "spawn", "fork"]


def own_descriptors():
    return {link for link in map(_target, os.listdir("/proc/self/fd")) if link}


def _target(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return None


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = {each.pid for each in children()}
    yield
    gc.collect()
    assert wait_until(lambda: {each.pid for each in children()} <= before, PROCESS_S)


@pytest.mark.parametrize("start_method", METHODS)
def test_the_same_workers_serve_all_passes_until_closed(start_method):
    flow = MultiProcessMapData(numbers(20), 2, double, start_method=start_method)
    assert flow.worker_pids() == []
    list(flow)
    pids = flow.worker_pids()
    for _ in range(3):
        list(flow)
    assert flow.worker_pids() == pids
    flow.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert flow.worker_pids() == []
    assert list(flow)[:2] == [[0], [2]]
    assert not set(flow.worker_pids()) & set(pids)
    flow.close()


@pytest.mark.parametrize("start_method", METHODS)
def test_a_flow_that_nobody_has_any_more_frees_its_workers(start_method):
    flow = MultiProcessMapData(numbers(20), 2, double, start_method=start_method)
    list(flow)
    assert len(flow.worker_pids()) == 2
    del flow


@pytest.mark.parametrize("runner", [False, True])
def test_an_iterator_dropped_half_way_frees_the_workers(runner):
    flow = MultiProcessRunnerZMQ(numbers(2000), 2) if runner else MultiProcessMapData(numbers(2000), 2, double)
    iterator = iter(flow)
    next(iterator)
    pids = flow.worker_pids()
    assert pids
    del iterator
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), PROCESS_S)
    assert len(list(flow)) == 2000
    flow.close()


def test_breaking_off_again_and_again_keeps_the_workers():
    with MultiProcessMapData(numbers(2000), 2, double) as flow:
        next(iter(flow))
        pids = flow.worker_pids()
        for _ in range(20):
            assert next(iter(flow)) == [0]
        assert flow.worker_pids() == pids


@pytest.mark.parametrize("drop", ["close", "forget", "break"])
def test_threads_end_too(drop):
    before = threading.active_count()
    flow = MultiThreadMapData(numbers(200), 3, double)
    iterator = iter(flow)
    next(iterator)
    assert threading.active_count() == before + 3
    if drop == "close":
        flow.close()
    elif drop == "forget":
        del flow
    del iterator
    assert wait_until(lambda: threading.active_count() == before, PROCESS_S)


@pytest.mark.parametrize("start_method", METHODS)
def test_workers_started_from_a_thread_outlive_the_thread(start_method):
    # The parent-death signal follows the thread that started a process.
    with MultiProcessMapData(numbers(30), 2, double, start_method=start_method) as flow:
        thread = threading.Thread(target=lambda: list(flow))
        thread.start()
        thread.join()
        pids = flow.worker_pids()
        assert list(flow) == [[2 * number] for number in range(30)]
        assert flow.worker_pids() == pids


def test_two_hundred_passes_leak_nothing():
    process = psutil.Process()
    with (
        MultiProcessMapData(numbers(40), 2, double, buffer_size=10) as by_processes,
        MultiThreadMapData(numbers(40), 2, double, buffer_size=10) as by_threads,
        MultiProcessRunnerZMQ(numbers(40), 1) as run_by_process,
        MultiThreadRunner(lambda: numbers(40), 10, 1) as run_by_thread,
    ):
        flows = [by_processes, by_threads, run_by_process, run_by_thread]

        def figures():
            gc.collect()
            workers = [psutil.Process(pid) for flow in (by_processes, run_by_process) for pid in flow.worker_pids()]
            return (
                process.num_fds(),
                threading.active_count(),
                {each.pid for each in children()},
                [each.num_fds() for each in workers],
                [each.memory_info().rss for each in (process, *workers)],
            )

        def run(passes):
            for flow in passes * flows:
                assert sum(1 for _ in flow) == 40
            return figures()

        *before, memory = run(20)
        *after, memory_after = run(200)
    assert after == before
    assert all(late - early < 4 << 20 for early, late in zip(memory, memory_after, strict=True))


def test_team_after_team_leaks_nothing():
    def once():
        with MultiProcessMapData(numbers(5), 2, double) as flow:
            list(flow)
        with MultiThreadMapData(numbers(5), 2, double) as flow:
            list(flow)

    once()
    before = psutil.Process().num_fds(), threading.active_count(), own_descriptors()
    for _ in range(6):
        once()
    assert (psutil.Process().num_fds(), threading.active_count(), own_descriptors()) == before


def mapped_files(pid):
    return {row.path for row in psutil.Process(pid).memory_maps(grouped=False)}


def test_nothing_lies_in_shared_memory_under_a_name():
    before = mapped_files(os.getpid())
    with MultiProcessMapData(numbers(20), 2, double) as flow:
        iterator = iter(flow)
        next(iterator)
        for pid in (os.getpid(), *flow.worker_pids()):
            assert wait_until(lambda pid=pid: any("ziggurat-dataflow" in path for path in mapped_files(pid)), PROCESS_S)
            assert not any(path.startswith("/dev/shm") for path in mapped_files(pid) - before)


PARENT = """
import os, sys, threading, time
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiProcessRunnerZMQ
from ziggurat.dataflow.sources import DataFromList

def slow(dp):
    threading.Event().wait(0.05)
    return dp

inner = MultiProcessMapData(DataFromList([[n] for n in range(10000)], shuffle=False), 2, slow, start_method=METHOD)
flow = MultiProcessRunnerZMQ(inner, 1, start_method=METHOD) if NESTED else inner
iterator = iter(flow)
next(iterator)
print("ready", flush=True)
END
"""


def parent_script(method, *, nested=False, end="threading.Event().wait(60)"):
    return PARENT.replace("METHOD", repr(method)).replace("NESTED", repr(nested)).replace("END", end)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("start_method", METHODS)
def test_a_parent_that_is_killed_leaves_no_process(tmp_path, start_method, nested):
    with start_script(tmp_path, parent_script(start_method, nested=nested)) as parent:
        assert first_line(parent) == "ready\n"
        below = psutil.Process(parent.pid).children(recursive=True)
        assert len(below) >= (3 if nested else 2)
        parent.kill()
        parent.wait()
        assert wait_until(lambda: not any(each.is_running() for each in below), PROCESS_S)


@pytest.mark.parametrize("start_method", METHODS)
def test_ctrl_c_ends_cleanly_with_the_parents_traceback_only(tmp_path, start_method):
    script = parent_script(start_method, end="for dp in iterator: pass")
    with start_script(tmp_path, script, start_new_session=True) as parent:
        assert first_line(parent) == "ready\n"
        below = psutil.Process(parent.pid).children(recursive=True)
        os.killpg(parent.pid, signal.SIGINT)
        _, err = parent.communicate(timeout=60)
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert parent.returncode == -signal.SIGINT
    assert wait_until(lambda: not any(each.is_running() for each in below), PROCESS_S)


@pytest.mark.parametrize("start_method", METHODS)
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_the_interpreter_ends_at_once_in_mid_pass(tmp_path, start_method, end):
    with start_script(tmp_path, parent_script(start_method, end=end)) as parent:
        assert first_line(parent) == "ready\n"
        below = psutil.Process(parent.pid).children(recursive=True)
        _, err = parent.communicate(timeout=60)
    assert (parent.returncode, err) == (3, "")
    assert wait_until(lambda: not any(each.is_running() for each in below), PROCESS_S)


@pytest.mark.parametrize(
    "first", ["import multiprocessing.util, threading, atexit", "import ziggurat.dataflow.parallel"]
)
@pytest.mark.parametrize("parallel_map", MAPS)
def test_the_interpreter_ends_in_any_import_order(tmp_path, first, parallel_map):
    done = run_script(
        tmp_path,
        f"""
{first}
import multiprocessing, concurrent.futures
from ziggurat.dataflow.parallel import {parallel_map.__name__}
from ziggurat.dataflow.sources import DataFromList
flow = {parallel_map.__name__}(DataFromList([[1], [2]], shuffle=False), 2, lambda dp: dp)
print(list(flow))
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[[1], [2]]\n", "")


def test_a_copied_process_neither_uses_nor_ends_the_workers(tmp_path):
    done = run_script(
        tmp_path,
        """
import os, warnings
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.sources import DataFromList
source = DataFromList([[1], [2]], shuffle=False)
flow = MultiProcessMapData(source, 2, lambda dp: [dp[0] * 2])
print(list(flow), flush=True)
pid = os.fork()
if pid == 0:
    print(list(flow), flush=True)
    flow.close()
    raise SystemExit
os.waitpid(pid, 0)
print(list(flow), flush=True)
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[[2], [4]]\n" * 3, "")


def test_a_worker_reads_nothing_from_the_terminal():
    with MultiProcessMapData(numbers(2), 1, lambda dp: [sys.stdin.read()]) as flow:
        assert list(flow) == [[""], [""]]


def test_programs_that_a_map_function_starts_can_be_interrupted():
    def ignored(dp):
        return [subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True).stdout]

    with MultiProcessMapData(numbers(1), 1, ignored) as flow:
        mask = int(next(iter(flow))[0].split()[1], 16)
    assert not mask >> (signal.SIGINT - 1) & 1
    assert not mask >> (signal.SIGTERM - 1) & 1
