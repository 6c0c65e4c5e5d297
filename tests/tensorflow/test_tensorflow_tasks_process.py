"""A task runs in a process of its own: whatever happens there, an answer or an error of the right family comes back."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tensorflow_jobs import digit_pictures, null_job, save_pictures

from tests.waiting import wait_until
from ziggurat.errors import (
    ConfigurationError,
    DataError,
    DatapointError,
    JobError,
    MissingDependencyError,
    NetworkCodeError,
    StateError,
    TrainingError,
    UnknownNameError,
    UsageError,
    ZigguratError,
)
from ziggurat.settings import load_settings
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.workspace.tasks import TASK_COMMAND, Tasks, run_task


def command(code: str) -> list[str]:
    """A task that is a few lines of Python."""
    return [sys.executable, "-c", f"import json, os, signal, subprocess, sys, time\n{code}"]


def test_the_request_goes_in_and_the_result_comes_out() -> None:
    code = "print(json.dumps({'words': sys.argv[1:], 'got': json.load(sys.stdin), 'cost': float('nan')}))"
    found = run_task("evaluate", {"folder": "ä", "numbers": [1, 2.5, None]}, command=command(code))
    assert found["words"] == ["--end-with", str(os.getpid()), "evaluate"]
    assert found["got"] == {"folder": "ä", "numbers": [1, 2.5, None]}
    assert math.isnan(found["cost"])


def test_an_answer_of_any_size() -> None:
    found = run_task(
        "x", {"n": "y" * 10**6}, command=command("print(json.dumps([0] * len(json.load(sys.stdin)['n'])))")
    )
    assert len(found) == 10**6


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (UnknownNameError("split", "vall", ["val", "test"]), ConfigurationError),
        (DatapointError("a.png", "it is empty."), DataError),
        (MissingDependencyError("onnx", extra="export", purpose="exporting"), MissingDependencyError),
        (NetworkCodeError("It failed.", received="line 7", details={"line": 7}), NetworkCodeError),
        (StateError("Too late."), TrainingError),
        (ZigguratError("Something."), ZigguratError),
    ],
)
def test_an_error_comes_back_in_its_family(error: ZigguratError, family: type[ZigguratError]) -> None:
    code = f"print({json.dumps(error.as_dict())!r})\nsys.exit({error.exit_code})"
    with pytest.raises(family) as caught:
        run_task("evaluate", {}, command=command(code))
    assert caught.value.as_dict() == error.as_dict()
    assert caught.value.exit_code == error.exit_code
    assert str(caught.value) == str(error)


@pytest.mark.parametrize(("code", "exit_code"), [("os._exit(3)", 3), ("os._exit(0)", 0), ("print('hello')", 0)])
def test_a_process_that_gives_no_answer(code: str, exit_code: int) -> None:
    with pytest.raises(NetworkCodeError) as caught:
        run_task("debug", {}, command=command(code))
    assert str(caught.value) == (
        f"The task `debug` must give an answer: the process ended by itself (exit code {exit_code}). "
        "Look for `os._exit` and the like in the network file; what it wrote stands above."
    )


def test_a_process_that_is_killed() -> None:
    with pytest.raises(JobError, match=r"task `export` was killed by SIGKILL\. Out of memory is the usual"):
        run_task("export", {}, command=command("os.kill(os.getpid(), signal.SIGKILL)"))


def test_what_runs_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(child.pid))\nwhile True: pass"
    )
    with pytest.raises(NetworkCodeError, match=r"it ran longer than 2 s\."):
        run_task("debug", {}, time_limit_s=2, command=command(code))
    wait_for_the_end_of(int(child.read_text()))


def test_what_a_task_leaves_behind_is_ended(tmp_path: Path) -> None:
    code = (
        "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait(600)'])\n"
        "print(json.dumps({'child': child.pid}), flush=True)\nos._exit(0)"
    )
    child = run_task("debug", {}, command=command(code))["child"]
    wait_for_the_end_of(child)


def wait_for_the_end_of(pid: int) -> None:
    """Return once a killed process is gone; one that nobody has asked about yet is gone as well."""

    def is_gone() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    wait_until(is_gone, 60)


# ---- the real command


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"`evalute` is not a known task\. Did you mean `evaluate`\?"):
        run_task("evalute", {})


def test_a_request_from_a_file_and_one_that_is_none(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text("[1]")
    done = subprocess.run([*TASK_COMMAND, "evaluate", str(request)], capture_output=True, text=True, check=False)
    assert done.returncode == UsageError.exit_code
    assert json.loads(done.stdout)["message"] == "The request of a task is a JSON object (received: list)."


def test_a_backend_without_own_offers_evaluates_and_predicts(tmp_path: Path) -> None:
    tasks, pictures = Tasks(load_settings({})), digit_pictures()[0]
    figures = tasks.evaluate(null_job())
    assert figures == json.loads(json.dumps(evaluate({"folder": str(null_job())})))
    assert figures["accuracy"] > 0.9
    assert figures["scalars"]["cost"] > 0
    files = save_pictures(tmp_path, pictures)
    found = tasks.predict(null_job(), files, top=2, checkpoint="latest", time_limit_s=60)
    right = [each["classes"][0]["number"] == label for each, label in zip(found["predictions"], digit_pictures()[1])]
    assert sum(right) / len(right) == pytest.approx(figures["accuracy"], abs=1e-12)
    assert {len(each["classes"]) for each in found["predictions"]} == {2}


def test_a_folder_without_a_job_is_refused_before_any_process(tmp_path: Path) -> None:
    tasks = Tasks(load_settings({}), command=["/no/such/program"])
    with pytest.raises(JobError, match=r"has no spec\.json"):
        tasks.evaluate(tmp_path)
