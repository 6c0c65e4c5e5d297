"""The warm process by itself: what it says first, what it answers, and when it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from inference_jobs import digit_pictures, digits_job, is_gone, write_spec

from tests.waiting import PROCESS_S, wait_until
from ziggurat.records.codec import read_frame, write_frame

COMMAND = [sys.executable, "-m", "ziggurat.worker.inference"]


class Served:
    """A warm process that a test talks to."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.first = read_frame(process.stdout)

    def send(self, number: int, what: str, **fields: Any) -> None:
        write_frame(self.process.stdin, {"id": number, "do": what, **fields})

    def receive(self) -> dict[str, Any]:
        return read_frame(self.process.stdout)

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        self.send(7, what, **fields)
        return self.receive()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    with subprocess.Popen(
        [*COMMAND, *options, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def warm() -> Iterator[Served]:
    with served(digits_job()) as process:
        yield process


def test_the_first_message_says_what_is_open(warm: Served) -> None:
    assert warm.first == {
        "id": 0,
        "result": {
            "folder": str(digits_job()),
            "checkpoint": "step-00000078",
            "step": 78,
            "epoch": 2,
            "network": "mlp",
            "backend": "null",
            "device": "",
            "task": "classification",
            "class_names": [str(number) for number in range(10)],
            "picture": {"size": [28, 28], "channels": 1, "resize_mode": "squash"},
            "input_shape": [24, 24, 1],
        },
    }


def test_each_answer_repeats_the_number_of_its_request(warm: Served) -> None:
    for number in (1, 2, 3):
        warm.send(number, "ping")
    assert [warm.receive() for _ in range(3)] == [
        {"id": number, "result": {"pid": warm.process.pid}} for number in (1, 2, 3)
    ]


def test_a_wrong_request_is_an_error_and_the_process_goes_on(warm: Served) -> None:
    wrong = [
        warm.ask("dance"),
        warm.ask("predict", pictures="a.png"),
        warm.ask("predict", pictures=[["a.png", "text"]]),
        warm.ask("predict", pictures=[], top=0),
        warm.ask("evaluate", pictures=digit_pictures(2), labels=[1]),
        warm.ask("evaluate", pictures=digit_pictures(2), labels=[1, 10]),
        warm.ask("activations", pictures=digit_pictures(2)),
        warm.ask("activations", pictures=[("a.png", b"")]),
    ]
    assert [(each["error"]["error"], each["exit_code"]) for each in wrong] == [
        ("unknown_name", 3),
        *[("usage", 2)] * 6,
        ("datapoint", 4),
    ]
    assert wrong[5]["error"]["message"] == (
        "`labels` is [1, 10] for 2 images, not a class number for each from 0 to 9."
    )
    assert "result" in warm.ask("ping")


def test_waiting_requests_are_answered_together_each_its_own(warm: Served) -> None:
    pictures = digit_pictures(12)
    alone = [warm.ask("predict", pictures=[each], top=2)["result"]["predictions"] for each in pictures]
    for number, picture in enumerate(pictures):
        wanted = [picture, ("bad", b"none")] if number == 4 else [picture]
        warm.send(number, "predict", pictures=wanted if number != 5 else "wrong", top=1 + number % 2)
    answers = [warm.receive() for _ in pictures]
    assert sorted(each["id"] for each in answers) == list(range(12))
    found = {each["id"]: each.get("result") for each in answers}
    assert found.pop(5) is None
    for number, result in found.items():
        classes = result["predictions"][0]["classes"]
        assert [each["class"] for each in classes] == [
            each["class"] for each in alone[number][0]["classes"][: 1 + number % 2]
        ]
        assert classes[0]["probability"] == pytest.approx(alone[number][0]["classes"][0]["probability"], rel=1e-5)
        assert [each["file"] for each in result["failures"]] == (["bad"] if number == 4 else [])


def test_it_ends_where_its_input_does() -> None:
    with served(digits_job()) as warm:
        assert warm.process.stdin
        warm.process.stdin.close()
        assert warm.process.wait(60) == 0


def test_it_ends_by_itself_where_nobody_asks() -> None:
    with served(digits_job(), "--idle", "0.2") as warm:
        assert warm.process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_it_was_asked(number: int) -> None:
    with served(digits_job()) as warm:
        warm.ask("ping")
        warm.process.send_signal(number)
        assert warm.process.wait(60) == 0


def test_also_one_that_its_parent_kept_back() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with served(digits_job()) as warm:
            warm.process.terminate()
            assert warm.process.wait(60) == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_it_ends_with_the_process_that_it_was_told_of() -> None:
    code = (
        "import subprocess, sys, os, threading\n"
        f"child = subprocess.Popen([*{COMMAND!r}, '--end-with', str(os.getpid()), sys.argv[1]],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.read(8)\n"
        "keeper = os.fork()\n"  # it keeps the pipes open, so that only the watch can tell
        "if not keeper: os.close(1); threading.Event().wait(60); os._exit(0)\n"
        "print(child.pid, keeper, flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(digits_job())], stdout=subprocess.PIPE, check=True)
    child, keeper = map(int, done.stdout.split())
    try:
        wait_until(lambda: is_gone(child), PROCESS_S, what="the end of an orphan")
    finally:
        os.kill(keeper, signal.SIGKILL)


def test_garbage_ends_it() -> None:
    with served(digits_job()) as warm:
        assert warm.process.stdin
        warm.process.stdin.write((5).to_bytes(8, "little") + b"hello")
        warm.process.stdin.flush()
        assert warm.process.wait(60) == 0
        assert warm.process.stderr
        assert b"Requests cannot be read any more: " in warm.process.stderr.read()


def test_a_network_that_cannot_be_opened_is_the_first_message(tmp_path: Path) -> None:
    with served(write_spec(tmp_path / "new")) as warm:
        assert warm.first["id"] == 0
        assert warm.first["error"]["error"] == "checkpoint"
        assert warm.first["error"]["advice"] == "Train it first."
        assert warm.process.wait(60) == warm.first["exit_code"] == 7


def test_a_device_that_is_none() -> None:
    with served(digits_job(), "--device", "gpu:0") as warm:
        assert warm.first["error"]["message"] == "`--device` is 'gpu:0', not `cpu` or the index of an accelerator."
