"""One process serves a workspace, others find it, and what a killed one left counts for nothing."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import pytest

from ziggurat.errors import JobError, StorageError
from ziggurat.workspace.server_process import (
    WorkspaceLock,
    end_server,
    forget_server,
    make_server_state,
    read_server,
    refuse_second,
    running_server,
    write_server,
)

ADDRESS = "http://127.0.0.1:5000/"


@pytest.fixture
def state():
    return make_server_state(ADDRESS, "0.1.0", now=1000.0, database="studio.db")


def test_what_is_written_is_read(tmp_path, state):
    assert running_server(tmp_path) is None
    write_server(tmp_path, state)
    assert read_server(tmp_path) == state
    assert running_server(tmp_path) == state
    assert (state.pid, state.address, state.started) == (os.getpid(), ADDRESS, 1000.0)
    forget_server(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_process_with_the_same_number_is_no_server(tmp_path, state):
    write_server(tmp_path, dataclasses.replace(state, birth=state.birth - 5))
    assert read_server(tmp_path) is not None
    assert running_server(tmp_path) is None


def test_a_process_that_ended_is_no_server(tmp_path, state):
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    write_server(tmp_path, dataclasses.replace(state, pid=int(done.stdout)))
    assert running_server(tmp_path) is None


def test_a_server_of_another_machine_is_taken_to_live(tmp_path, state):
    elsewhere = dataclasses.replace(state, host="elsewhere", pid=2**22 + 1)
    write_server(tmp_path, elsewhere)
    assert running_server(tmp_path) == elsewhere


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\xff", "null"])
def test_a_damaged_file_is_no_server(tmp_path, text):
    (tmp_path / "server.json").write_text(text, encoding="latin-1")
    assert read_server(tmp_path) is None
    assert running_server(tmp_path) is None


@pytest.mark.parametrize(("name", "value"), [("pid", "1"), ("pid", -1), ("pid", True), ("address", 7), ("birth", "x")])
def test_a_file_with_wrong_values_is_no_server(tmp_path, state, name, value):
    (tmp_path / "server.json").write_text(json.dumps(dataclasses.asdict(state) | {name: value}))
    assert read_server(tmp_path) is None


def test_the_file_of_another_server_stays(tmp_path, state):
    write_server(tmp_path, dataclasses.replace(state, pid=state.pid + 1))
    forget_server(tmp_path)
    assert (tmp_path / "server.json").exists()


def test_a_second_server_is_refused_and_told_of_the_first(tmp_path, state):
    with WorkspaceLock(tmp_path):
        write_server(tmp_path, state)
        with pytest.raises(JobError) as caught:
            WorkspaceLock(tmp_path, sleep=lambda _: None)
    assert str(caught.value) == (
        f"Another studio serves {tmp_path} already (received: process {os.getpid()} on {state.host} at "
        f"{ADDRESS}). Use that one, end it with `ziggurat down`, or choose another --workspace."
    )
    assert caught.value.details == {"pid": os.getpid(), "address": ADDRESS}
    WorkspaceLock(tmp_path).close()


def test_a_server_that_has_said_nothing_yet_keeps_others_out_too(tmp_path):
    with WorkspaceLock(tmp_path), pytest.raises(JobError, match="a process that has not said where it is"):
        WorkspaceLock(tmp_path, sleep=lambda _: None)


def test_a_server_that_is_ending_is_waited_for(tmp_path):
    first = WorkspaceLock(tmp_path)
    with WorkspaceLock(tmp_path, sleep=lambda _: first.close()):
        pass


def test_a_killed_process_gives_the_workspace_up(tmp_path):
    code = (
        "import os, signal, subprocess, sys, pathlib\n"
        "from ziggurat.workspace.server_process import WorkspaceLock\n"
        "lock = WorkspaceLock(pathlib.Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '20'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    WorkspaceLock(tmp_path).close()  # although the child, a worker say, still lives
    os.kill(int(done.stdout), 9)


def test_a_workspace_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        WorkspaceLock(tmp_path / "file" / "workspace")


STUBBORN = """
import pathlib, signal, sys, threading
from ziggurat.workspace.server_process import make_server_state, write_server
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
write_server(pathlib.Path(sys.argv[1]), make_server_state("http://127.0.0.1:5000/", "0.1.0", now=1.0))
print("there", flush=True)
threading.Event().wait(60)
"""


@pytest.fixture
def serve(tmp_path):
    """Start a process that says it serves the workspace."""
    processes = []

    def start(kind):
        process = subprocess.Popen([sys.executable, "-c", STUBBORN, str(tmp_path), kind], stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout.readline() == b"there\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_server_is_ended_by_a_signal_and_its_file_goes(tmp_path, serve):
    process = serve("willing")
    with pytest.raises(JobError, match=f"process {process.pid} on "):
        refuse_second(tmp_path)
    assert end_server(tmp_path).pid == process.pid
    assert process.wait(60) == -signal.SIGTERM
    assert not (tmp_path / "server.json").exists()
    refuse_second(tmp_path)


def test_a_server_that_does_not_end_is_named(tmp_path, serve):
    process = serve("stubborn")
    with pytest.raises(JobError) as caught:
        end_server(tmp_path, time_limit_s=0.2)
    assert f"`kill -9 {process.pid}`: nothing is lost, and workers go on." in str(caught.value)


def test_there_must_be_a_server_to_be_ended(tmp_path, state):
    with pytest.raises(JobError, match="No studio serves"):
        end_server(tmp_path)
    write_server(tmp_path, dataclasses.replace(state, host="elsewhere"))
    with pytest.raises(JobError, match="The studio runs on elsewhere"):
        end_server(tmp_path)
