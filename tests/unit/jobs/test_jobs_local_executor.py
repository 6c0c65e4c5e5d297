"""Workers on this machine: they are found again, and nothing is left of them."""

import os
import re
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import wait_until
from ziggurat.entities import Share
from ziggurat.entities.processes import began_at, birth_of, find_worker, is_alive, kill_group
from ziggurat.errors import StorageError
from ziggurat.jobs import Executor, LocalExecutor
from ziggurat.jobs.outcome import outcome_of
from ziggurat.layout import JobFolder
from ziggurat.testing.executor import LocalExecutorConformance

ENVIRONMENT = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "7"}


class TestLocalExecutor(LocalExecutorConformance):
    def executor(self, command):
        return LocalExecutor(command, ENVIRONMENT)


def worker(text, tmp_path, **options):
    """A job folder, and an executor whose workers execute ``text``."""
    folder = tmp_path / "job"
    folder.mkdir()
    return folder, LocalExecutor((sys.executable, "-S", "-c", text), ENVIRONMENT, **options)


def start(executor, folder, devices=()):
    return executor.start(folder, (Share(executor.nodes()[0].name, devices),), {}, attempt=1)


def ended(executor, worker):
    wait_until(lambda: hasattr(executor.poll(worker), "exit_code"))
    return executor.poll(worker).exit_code


def test_it_is_an_executor():
    assert isinstance(LocalExecutor(("true",), {}), Executor)


def test_a_worker_leads_a_session_of_its_own(tmp_path):
    text = "import os, sys; sys.exit(0 if os.getpid() == os.getsid(0) == os.getpgrp() else 1)"
    folder, executor = worker(text, tmp_path)
    assert ended(executor, start(executor, folder)) == 0


def test_a_worker_may_be_nice_to_others(tmp_path):
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    if usual == 19:
        pytest.skip("nothing can be nicer than these tests")
    text = f"import os\nwhile (level := os.getpriority(os.PRIO_PROCESS, 0)) == {usual}: pass\nraise SystemExit(level)"
    folder, executor = worker(text, tmp_path, nice_level=max(usual + 1, 1))
    assert ended(executor, start(executor, folder)) == max(usual + 1, 1)


def test_a_worker_outlives_the_thread_that_asked_for_it(tmp_path):
    # It asks the system for a signal at the death of the thread that started it.
    text = "import ctypes, threading; ctypes.CDLL(None).prctl(1, 9); threading.Event().wait(0.5)"
    folder, executor = worker(text, tmp_path)
    started = []
    thread = threading.Thread(target=lambda: started.append(start(executor, folder)))
    thread.start()
    thread.join()
    assert ended(executor, started[0]) == 0


def test_devices_are_numbered_as_the_drivers_tools_number_them(tmp_path):
    folder, executor = worker("import os, sys; sys.exit(os.environ['CUDA_DEVICE_ORDER'] != 'PCI_BUS_ID')", tmp_path)
    assert ended(executor, start(executor, folder, (0,))) == 0


def test_a_process_is_told_from_a_later_one_with_its_number():
    birth = birth_of(os.getpid())
    assert birth is not None
    assert is_alive(os.getpid(), birth)
    assert not is_alive(os.getpid(), birth + 1)
    kill_group(os.getpid(), birth + 1)  # it is another process, so nobody is hurt


def test_a_worker_is_found_by_its_words(tmp_path):
    text = "import os, sys, threading; os.mkdir(sys.argv[-1] + '/begun'); threading.Event().wait(30)"
    folder, executor = worker(text, tmp_path)
    started = start(executor, folder)
    while not (folder / "begun").exists():  # the system shows its words a moment after its start
        assert not hasattr(executor.poll(started), "exit_code")
    command = (sys.executable, "-S", "-c", text)
    assert find_worker(Path(folder), command) == started.opaque["pid"]
    assert find_worker(tmp_path, command) is None
    executor.kill(started)
    assert ended(executor, started) == -9
    assert find_worker(Path(folder), command) is None


SPAM = """
import os, sys
print("the first line", flush=True)
for number in range(20_000):
    print(f"line {number:06d}: " + 40 * "x")
print("the last line", flush=True)
os._exit(int(sys.argv[-1].endswith("job")))
"""


def test_a_log_keeps_its_beginning_and_its_end(tmp_path):
    folder, executor = worker(SPAM, tmp_path, log_limit_bytes=100_000)
    assert ended(executor, start(executor, folder)) == 1
    text = (folder / "log.txt").read_text()
    assert len(text) <= 100_000
    assert text.startswith("the first line\nline 000000: ")
    assert text.endswith("the last line\n")
    (left_out,) = re.findall(r"^\[Ziggurat: (\d{15}) bytes of output were left out here", text, re.MULTILINE)
    mark = len("[Ziggurat: 000000000000000 bytes of output were left out here: the log is limited.]\n")
    assert int(left_out) + len(text) - mark == len("the first line\nthe last line\n") + 20_000 * 54


def test_a_further_attempt_goes_on_in_the_same_log(tmp_path):
    folder, executor = worker(SPAM, tmp_path, log_limit_bytes=100_000)
    for _ in range(2):
        ended(executor, start(executor, folder))
    text = (folder / "log.txt").read_text()
    assert len(text) <= 100_000
    assert text.count("[Ziggurat: ") == 1
    assert text.startswith("the first line\n")
    assert text.endswith("the last line\n")


def test_what_a_killed_worker_said_last_is_in_its_log(tmp_path):
    text = "import os, signal; os.write(1, b'the last words'); os.kill(os.getpid(), signal.SIGKILL)"
    folder, executor = worker(text, tmp_path)
    assert ended(executor, start(executor, folder)) == -9
    assert (folder / "log.txt").read_text() == "the last words"


def test_executor_ends_a_worker_that_kills_its_shim(tmp_path):
    text = (
        "import os, signal\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    if not os.fork():\n"
        "        open('escaped', 'w').write(str(os.getpid()))\n"
        "        os.rename('escaped', 'there')\n"
        "        signal.pause()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "while not os.path.exists('there'): pass\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "signal.pause()\n"
    )
    folder, executor = worker(f"import os; os.chdir({str(tmp_path)!r})\n{text}", tmp_path)
    code = ended(executor, start(executor, folder))

    assert began_at(int((tmp_path / "there").read_text())) is None
    outcome = outcome_of(JobFolder(folder), code, None)
    assert outcome.event == "lost"
    assert "the parent process of the worker was killed" in outcome.reason
    assert "memory" not in outcome.reason


def test_a_command_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "job").mkdir()
    with pytest.raises(StorageError, match=r"The worker could not be started by /nowhere/python.*No such file"):
        start(LocalExecutor(("/nowhere/python",), ENVIRONMENT), tmp_path / "job")
