"""The pool: one process for each network, shared by threads, ended when nobody needs it, replaced when it died."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from inference_jobs import STAND_IN, is_gone, write_spec

from tests.waiting import PROCESS_S, wait_until
from ziggurat.errors import CheckpointError, JobError, UsageError
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool

Opens = Callable[..., InferencePool]


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Opens]:
    """Opens pools of stand-ins."""
    opened: list[InferencePool] = []

    def open_pool(environment: dict[str, str] | None = None, **options: Any) -> InferencePool:
        opened.append(InferencePool(STAND_IN, {**os.environ, **(environment or {})}, logs=tmp_path / "logs", **options))
        return opened[-1]

    yield open_pool
    for pool in opened:
        pool.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_spec(tmp_path / "job")


def ask(pool: InferencePool, folder: Path, name: str = "a", checkpoint: str | None = None, **options: Any) -> Any:
    return pool.predict(folder, checkpoint, [(name, b"")], **options)


def test_threads_share_one_process_and_get_their_own_answers(opens: Opens, folder: Path) -> None:
    pool = opens()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: ask(pool, folder, str(number)), range(40)))
    assert [each["predictions"] for each in answers] == [[str(number)] for number in range(40)]
    assert len({each["pid"] for each in answers}) == 1
    (status,) = pool.status()
    assert (status.pid, status.answered, status.users, status.is_ready) == (answers[0]["pid"], 40, 0, True)
    assert status.memory_bytes is not None


def test_what_the_process_is_told(opens: Opens, folder: Path) -> None:
    pool = opens(idle_s=20)
    arguments = pool.predict(folder, "min-val/cost", [("a", b"")], device=0)["arguments"]
    assert arguments == [
        *("--checkpoint=min-val/cost", "--device=0", "--idle", "50.0", "--end-with", str(os.getpid())),
        *("--", str(folder)),
    ]


def test_each_checkpoint_and_device_has_a_process_of_its_own(opens: Opens, folder: Path) -> None:
    pool = opens()
    pids = {
        ask(pool, folder, checkpoint=checkpoint, device=device)["pid"]
        for checkpoint in ("best", "latest")
        for device in ("cpu", 0)
    }
    assert len(pids) == 4
    assert {(each.checkpoint, each.device) for each in pool.status()} == {
        ("best", "cpu"),
        ("best", "0"),
        ("latest", "cpu"),
        ("latest", "0"),
    }


def test_the_least_recently_used_makes_room(opens: Opens, folder: Path) -> None:
    pool = opens(most=2)
    first, second = (ask(pool, folder, checkpoint=name)["pid"] for name in ("one", "two"))
    assert ask(pool, folder, checkpoint="one")["pid"] == first
    ask(pool, folder, checkpoint="three")
    assert [each.checkpoint for each in pool.status()] == ["one", "three"]
    assert is_gone(second)
    assert not is_gone(first)


def test_where_all_are_busy_one_waits_and_is_told_after_a_while(opens: Opens, folder: Path) -> None:
    pool = opens(most=1)
    with ThreadPoolExecutor(2) as threads:
        busy = threads.submit(ask, pool, folder, "wait 1.5")
        wait_until(
            lambda: [each for each in pool.status() if each.is_ready and each.users], PROCESS_S, what="a busy process"
        )
        with pytest.raises(JobError) as caught:
            ask(pool, folder, checkpoint="other", timeout_s=0.2)
        assert str(caught.value) == "At most 1 warm networks are there at a time, and all are busy. Ask again later."
        assert ask(pool, folder, checkpoint="other")["predictions"] == ["a"]
        assert busy.result()["predictions"] == ["wait 1.5"]


def test_nobody_asks_so_it_is_freed(opens: Opens, folder: Path) -> None:
    pool = opens(idle_s=0.3)
    pid = ask(pool, folder)["pid"]
    wait_until(lambda: is_gone(pid), PROCESS_S, what="the end of an idle process")
    assert ask(pool, folder)["pid"] != pid


def test_a_busy_process_is_not_idle(opens: Opens, folder: Path) -> None:
    pool = opens(idle_s=0.2)
    assert ask(pool, folder, "wait 1")["predictions"] == ["wait 1"]


def test_killed_in_mid_request_one_is_told_and_the_next_works(opens: Opens, folder: Path) -> None:
    pool = opens()
    ask(pool, folder)
    with pytest.raises(JobError) as caught:
        ask(pool, folder, "kill")
    assert str(caught.value) == (
        f"The warm process of {folder} must answer before it ends (received: it was killed by SIGKILL). "
        "Ask again: a new one is started. Out of memory is the usual reason: free some, or send fewer images."
    )
    assert caught.value.as_dict()["error"] == "job"
    assert ask(pool, folder)["predictions"] == ["a"]


def test_killed_while_nobody_asks_nobody_notices(opens: Opens, folder: Path) -> None:
    pool = opens()
    pid = ask(pool, folder)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(each.is_ready for each in pool.status()), PROCESS_S, what="the end of a killed process")
    assert ask(pool, folder)["pid"] != pid


def test_one_that_retired_just_then_is_replaced_silently(opens: Opens, folder: Path, tmp_path: Path) -> None:
    pool = opens()
    with pytest.raises(JobError, match=r"received: exit code 0\)\."):  # once more it is the same, and that is enough
        ask(pool, folder, "retire")
    assert ask(pool, folder)["predictions"] == ["a"]


def test_one_that_ends_by_itself_leaves_its_last_words(opens: Opens, folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs/job.log"
    with pytest.raises(JobError) as caught:
        ask(opens(), folder, "exit")
    assert str(caught.value) == (
        f"The warm process of {folder} must answer before it ends "
        f"(received: exit code 3; its last line: the last words). Look at its output in {log}."
    )
    assert log.read_text() == "the last words\n"


def test_a_child_that_holds_the_pipe_keeps_nobody_waiting(opens: Opens, folder: Path, tmp_path: Path) -> None:
    pool = opens({"CHILD": str(tmp_path / "child")}, idle_s=60)
    with pytest.raises(JobError, match="it was killed by SIGKILL"):
        ask(pool, folder, "fork and die", timeout_s=60)
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: is_gone(child), PROCESS_S, what="the end of a child")


def test_what_answers_nobody_is_ended_after_a_while(opens: Opens, folder: Path) -> None:
    pool = opens()
    pid = ask(pool, folder)["pid"]
    with pytest.raises(JobError) as caught:
        ask(pool, folder, "hang", timeout_s=0.5)
    assert str(caught.value).startswith(
        f"The warm process of {folder} must answer within 0.5 s "
        "(received: no answer; it did not answer and was killed). Look at its output in "
    )
    assert is_gone(pid)
    assert ask(pool, folder)["predictions"] == ["a"]


def test_who_waits_behind_something_stuck_is_told(opens: Opens, folder: Path) -> None:
    pool = opens()
    pid = ask(pool, folder)["pid"]
    with ThreadPoolExecutor(2) as threads:
        stuck = threads.submit(ask, pool, folder, "hang", timeout_s=1.0)
        wait_until(lambda: any(each.users for each in pool.status()), PROCESS_S, what="a busy process")
        behind = threads.submit(ask, pool, folder, timeout_s=60)
        with pytest.raises(JobError, match="must answer within 1 s"):
            stuck.result()
        with pytest.raises(JobError, match="it did not answer and was killed"):
            behind.result()
    assert is_gone(pid)


def test_a_pipe_that_nobody_reads_does_not_block_for_ever(opens: Opens, folder: Path) -> None:
    pool = opens()
    ask(pool, folder)
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(ask, pool, folder, "hang", timeout_s=60)
        wait_until(lambda: any(each.users for each in pool.status()), PROCESS_S, what="a busy process")
        with pytest.raises(JobError, match=r"must answer within 1 s \(received: no answer; it did not answer"):
            pool.predict(folder, None, [("large", bytes(10 << 20))], timeout_s=1.0)
        with pytest.raises(JobError, match="it did not answer and was killed"):
            stuck.result()
    assert ask(pool, folder)["predictions"] == ["a"]


def test_garbage_in_the_pipe_ends_it(opens: Opens, folder: Path) -> None:
    pool = opens()
    with pytest.raises(JobError, match=r"received: it sent what is no answer and was ended\)\."):
        ask(pool, folder, "garbage", timeout_s=60)
    assert ask(pool, folder)["predictions"] == ["a"]


def test_what_is_never_ready_is_ended(opens: Opens, folder: Path) -> None:
    pool = opens({"STAND_IN": "not ready"}, start_timeout_s=0.5)
    with pytest.raises(JobError, match=r"must be ready within 0\.5 s\. Look at its output in "):
        ask(pool, folder)


def test_closing_ends_everything_that_was_started(opens: Opens, folder: Path) -> None:
    pool = opens()
    answer = ask(pool, folder, "child")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, pool, folder, "hang")
        wait_until(lambda: any(each.users for each in pool.status()), PROCESS_S, what="a busy process")
        pool.close()
        with pytest.raises(JobError, match="it was ended to free what it held"):
            waiting.result()
    assert is_gone(answer["pid"])
    wait_until(lambda: is_gone(answer["child"]), PROCESS_S, what="the end of what it started")
    pool.close()
    with pytest.raises(JobError, match="so no warm networks are started any more"):
        ask(pool, folder)


def test_closing_ends_what_is_just_being_opened(opens: Opens, folder: Path) -> None:
    pool = opens({"STAND_IN": "not ready"})
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, pool, folder)
        pid = wait_until(pool.status, PROCESS_S, what="a process that starts")[0].pid
        pool.close()
        with pytest.raises(JobError, match="it was ended to free what it held"):
            waiting.result()
    assert is_gone(pid)


def test_a_job_that_is_released_has_no_process(opens: Opens, folder: Path, tmp_path: Path) -> None:
    pool = opens()
    other = write_spec(tmp_path / "other")
    gone, stays = (ask(pool, each)["pid"] for each in (folder, other))
    pool.release(folder)
    assert [each.pid for each in pool.status()] == [stays]
    assert is_gone(gone)


def test_the_studio_killed_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom ziggurat.services.inference_pool import InferencePool\n"
        f"pool = InferencePool({STAND_IN!r}, os.environ, logs=Path(sys.argv[2]))\n"
        "print(pool.predict(Path(sys.argv[1]), None, [('a', b'')])['pid'], flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, folder, tmp_path / "logs"], stdout=subprocess.PIPE, check=False)
    pid = int(done.stdout)
    wait_until(lambda: is_gone(pid), PROCESS_S, what="the end of an orphan")


def test_errors_come_back_in_their_family(tmp_path: Path) -> None:
    folder = write_spec(tmp_path / "new")
    with (
        InferencePool(INFERENCE_COMMAND, os.environ) as pool,
        pytest.raises(CheckpointError, match=r"must have a checkpoint\. Train it first\."),
    ):
        ask(pool, folder)


@pytest.mark.parametrize("name", ["../../other/checkpoints/step-00000042", "/etc", "a\0b"])
def test_a_checkpoint_is_no_path(opens: Opens, folder: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="The name of a checkpoint is a path:"):
        ask(opens(), folder, checkpoint=name)


def test_a_folder_without_a_job_starts_nothing(opens: Opens, tmp_path: Path) -> None:
    pool = opens()
    with pytest.raises(JobError, match=r"has no spec\.json"):
        ask(pool, tmp_path)
    assert pool.status() == []


def test_more_than_a_request_may_hold(opens: Opens, folder: Path) -> None:
    part = bytes(64 << 20)
    with pytest.raises(UsageError, match=r"The images of the request have 320 MiB; 256 MiB is the most\."):
        opens().predict(folder, None, [("a", part)] * 5)


def test_very_many_pictures_in_parts(opens: Opens, folder: Path, tmp_path: Path) -> None:
    pool = opens()
    (tmp_path / "real.png").write_bytes(b"x")
    items = [*((str(number), b"") for number in range(70)), tmp_path / "real.png", tmp_path / "none.png"]
    parts: list[Any] = []
    result = pool.predict_many(folder, iter(items), parts.append)
    assert (result.predicted, result.failed, result.is_complete) == (71, 1, True)
    assert [part.done for part in parts] == [32, 64, 72]
    names = [name for part in parts for name in part.predictions]
    assert names == [*(str(number) for number in range(70)), str(tmp_path / "real.png")]
    assert [each["file"] for each in parts[2].failures] == [str(tmp_path / "none.png")]


def test_many_end_where_somebody_asks(opens: Opens, folder: Path) -> None:
    asked = threading.Event()
    parts: list[Any] = []

    def take(part: Any) -> None:
        parts.append(part)
        asked.set()

    result = opens().predict_many(folder, ((str(n), b"") for n in range(10**9)), take, shall_end=asked.is_set)
    assert (result.predicted, result.is_complete, len(parts)) == (32, False, 1)
