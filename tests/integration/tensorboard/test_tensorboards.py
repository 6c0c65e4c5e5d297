"""TensorBoards beside jobs: one for each job that somebody looks at, checked, and gone with all helpers."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import wait_until
from ziggurat.errors import JobError, MissingDependencyError
from ziggurat.services.tensorboard import TENSORBOARD_COMMAND, ProxyTarget, TensorBoardLimits, TensorBoards

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in_board.py")))

Opens = Callable[..., TensorBoards]


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Opens]:
    """Opens managers of stand-ins."""
    opened: list[TensorBoards] = []

    def open_boards(environment: dict[str, str] | None = None, **options: Any) -> TensorBoards:
        chosen = {"command": STAND_IN, "logs": tmp_path / "logs", **options}
        opened.append(TensorBoards(lambda job: tmp_path / job, {**os.environ, **(environment or {})}, **chosen))
        return opened[-1]

    yield open_boards
    for boards in opened:
        boards.close()


def status_of(target: ProxyTarget, path: str) -> int:
    connection = http.client.HTTPConnection(target.host, target.port, timeout=60)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: is_gone(pid), 60)


def helper_of(folder: Path) -> int:
    return int((folder / "tb/helper").read_text())


def test_a_real_board_answers_under_its_prefix_and_ends_whole(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "41/tb").mkdir(parents=True)
    with TensorBoards(lambda job: tmp_path / job, os.environ, prefix="/models/{job_id}/tb") as boards:
        target = boards.proxy_target("41")
        assert (target.host, target.prefix) == ("127.0.0.1", "/models/41/tb")
        assert status_of(target, "/models/41/tb/") == 200
        assert status_of(target, "/models/41/tb/data/runs") == 200
        assert status_of(target, "/") == 404
        assert boards.proxy_target("41") == target
        (status,) = boards.status()
        assert (status.job_id, status.port) == ("41", target.port)
        tree = [status.pid, *(child.pid for child in psutil.Process(status.pid).children(recursive=True))]
    for pid in tree:
        wait_until_gone(pid)


def test_many_who_look_share_one(opens: Opens) -> None:
    boards = opens()
    with ThreadPoolExecutor(8) as threads:
        targets = set(threads.map(boards.proxy_target, ["41"] * 20))
    assert len(targets) == len(boards.status()) == 1
    assert targets.pop().prefix == "/jobs/41/tensorboard"


def test_the_least_recently_used_makes_room(opens: Opens, tmp_path: Path) -> None:
    boards = opens(limits=TensorBoardLimits(most=2))
    for job in ("1", "2"):
        boards.proxy_target(job)
    boards.proxy_target("1")
    boards.proxy_target("3")
    assert [each.job_id for each in boards.status()] == ["1", "3"]
    wait_until_gone(helper_of(tmp_path / "2"))


def test_one_that_nobody_looks_at_is_ended(opens: Opens, tmp_path: Path) -> None:
    boards = opens(limits=TensorBoardLimits(idle_s=0.3))
    boards.proxy_target("41")
    wait_until_gone(helper_of(tmp_path / "41"))


def test_one_that_died_is_started_anew(opens: Opens, tmp_path: Path) -> None:
    boards = opens()
    boards.proxy_target("41")
    helper, pid = helper_of(tmp_path / "41"), boards.status()[0].pid
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    assert status_of(boards.proxy_target("41"), "/jobs/41/tensorboard/") == 200
    assert boards.status()[0].pid != pid
    wait_until_gone(helper)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a system call of Linux ends a single thread")
def test_one_that_is_dying_is_started_anew(opens: Opens, tmp_path: Path) -> None:
    """Of a killed process with threads, the first may be gone while others still hold its sockets open."""
    boards = opens()
    boards.proxy_target("41")
    pid = boards.status()[0].pid
    (tmp_path / "41/tb/half dead").touch()
    wait_until_gone(pid)
    assert status_of(boards.proxy_target("41"), "/jobs/41/tensorboard/") == 200
    assert boards.status()[0].pid != pid


def test_one_that_answers_no_more_is_replaced_at_the_next_check(opens: Opens, tmp_path: Path) -> None:
    now = [0.0]
    boards = opens(clock=lambda: now[0])
    before = boards.proxy_target("41")
    (tmp_path / "41/tb/stuck").touch()
    now[0] = 5.0
    assert boards.proxy_target("41") == before
    now[0] = 20.0
    with pytest.raises(JobError, match=r"TensorBoard did not answer within 60 s \(received"):  # nor does the new one
        boards.proxy_target("41")
    (tmp_path / "41/tb/stuck").unlink()
    assert status_of(boards.proxy_target("41"), "/jobs/41/tensorboard/") == 200


def test_what_it_said_is_shown(opens: Opens) -> None:
    boards = opens({"STAND_IN": "fails"})
    with pytest.raises(JobError) as caught:
        boards.proxy_target("41")
    assert "did not answer within 60 s (received: no such plugin). Look at its output in " in str(caught.value)
    assert boards.status() == [] or not boards.status()[0].port


def test_without_the_package_it_is_said_so(opens: Opens, tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError('No module named tensorboard', name='tensorboard')"
    (tmp_path / "tensorboard.py").write_text(missing)
    boards = opens({"PYTHONPATH": str(tmp_path)}, command=TENSORBOARD_COMMAND)
    with pytest.raises(MissingDependencyError) as caught:
        boards.proxy_target("41")
    assert str(caught.value) == (
        "The package `tensorboard` is needed for opening TensorBoard, and it is not installed. "
        "Install it with: pip install 'ziggurat[studio]'."
    )


@pytest.mark.parametrize("job_id", ["../41", "", "a/b", "-41", "41?x"])
def test_what_is_no_job_id_starts_nothing(opens: Opens, job_id: str) -> None:
    boards = opens()
    with pytest.raises(JobError, match="is no id of a job: it has letters, digits, `-`, `_` and"):
        boards.proxy_target(job_id)
    assert boards.status() == []


def test_a_job_that_is_released_has_none(opens: Opens, tmp_path: Path) -> None:
    boards = opens()
    boards.proxy_target("41")
    boards.release("41")
    assert boards.status() == []
    wait_until_gone(helper_of(tmp_path / "41"))


def test_the_studio_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom ziggurat.services.tensorboard import TensorBoards\n"
        "boards = TensorBoards(lambda job: Path(sys.argv[1]), os.environ, logs=Path(sys.argv[1]))\n"
        "boards.proxy_target('41')\nprint(boards.status()[0].pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, check=False)
    pid = int(done.stdout)
    tree = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    for each in tree:
        wait_until_gone(each)
