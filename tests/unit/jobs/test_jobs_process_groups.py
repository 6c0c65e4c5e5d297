"""A process that messages go to and come from, and the end of all that it started."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.waiting import PROCESS_S, wait_until
from ziggurat.entities.processes import ProcessGroup, birth_of
from ziggurat.errors import StorageError

ESCAPES = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
print(os.wait()[0], flush=True)
sys.stdin.readline()
"""
"""A process whose grandchild leaves its group and its session."""


def started(text: str, log: Path) -> ProcessGroup:
    return ProcessGroup([sys.executable, "-c", text], dict(os.environ), log)


def _sleepers(session_of: int) -> list[int]:
    """Return the processes of a session, which has the number of the child that made it."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found += [int(name)] if int(fields[3]) == session_of and fields[0] != "Z" else []
    return found


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_what_left_its_group_ends_with_it(tmp_path, end):
    group = started(ESCAPES, tmp_path / "log")
    session = int(group.messages_out.readline())
    assert _sleepers(session)
    if end == "by itself":
        group.messages_in.close()
    assert group.bury(PROCESS_S if end == "by itself" else 0) == (0 if end == "by itself" else -signal.SIGKILL)
    assert group.has_exited()
    wait_until(lambda: not _sleepers(session), PROCESS_S)
    group.messages_in.close()
    group.messages_out.close()


def test_its_number_is_that_of_the_process_and_not_of_its_parent(tmp_path):
    group = started("import os, sys; print(os.getpid(), flush=True); sys.stdin.readline()", tmp_path / "log")
    assert int(group.messages_out.readline()) == group.pid
    assert os.getpgid(group.pid) == group.pid
    assert birth_of(group.pid) is not None
    assert not group.has_exited()
    group.signal(signal.SIGTERM)
    assert group.bury(PROCESS_S) == -signal.SIGTERM
    group.messages_in.close()
    group.messages_out.close()


def test_a_missing_command_leaves_no_descriptor_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StorageError):
        ProcessGroup([str(tmp_path / "nothing")], {}, tmp_path / "log")
    assert len(os.listdir("/proc/self/fd")) == before
