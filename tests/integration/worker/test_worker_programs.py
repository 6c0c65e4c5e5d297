"""Submitted programs in real workers: stop, kill, exact resume, output, errors of the program's own lines."""

import importlib.util
import os
import signal
from pathlib import Path

import pytest
from worker_jobs import curves_of, differences, end_of, error_of, events_of, messages_of, outcome_of, steps_of

from tests.waiting import PROCESS_S, wait_until
from ziggurat.entities import EXIT_STOPPED, read_heartbeat
from ziggurat.events import AttemptStarted, ImageLogged, Message, Progress
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

TRAIN = """
import argparse, os, random, signal, sys, threading
import numpy as np
import shapes
from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.callbacks import Callback, MovingAverageSummary, Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--strike", type=int, default=0)
parser.add_argument("--signal", default="SIGKILL")
given = parser.parse_args()
print("name", __name__, "arguments", sys.argv[1:], "folder", os.path.basename(os.getcwd()))

x, y = shapes.samples(np.random)  # random numbers of the program itself are drawn alike in each attempt


class Noise(Callback):
    def trigger_step(self):
        self.trainer.put("noise", random.random() + np.random.random())
        if self.global_step == given.strike and not os.path.exists("struck"):
            open("struck", "w").close()
            os.kill(os.getpid(), getattr(signal, given.signal))
            threading.Event().wait(0.2)


batches = [[x[i : i + 8], y[i : i + 8]] for i in range(0, 64, 8)]
program = NullProgram(8, 2, NullOptions(hidden=5, dropout=0.3))
trainer = Trainer(program, batches, callbacks=[MovingAverageSummary(["cost"]), Noise()])
trainer.train(given.epochs)
print("the rest of the program")
"""

SHAPES = """
import numpy as np

def samples(random):
    x = random.random((64, 8)).astype(np.float32)
    return x, (x.sum(1) > 4).astype(np.int64)
"""


def make_program(folder: Path, script: str, arguments=(), capture=(), **files: str) -> Path:
    """Make a job folder with a program."""
    job = JobFolder(folder)
    job.program.mkdir(parents=True)
    (job.program / "train.py").write_text(script)
    for name, text in files.items():
        (job.program / f"{name}.py").write_text(text)
    content = {"kind": "program", "version": 1, "script": "train.py", "arguments": list(arguments)}
    content["capture"] = list(capture)
    save_spec(parse_spec(content), job.spec)
    return folder


@pytest.fixture
def whole(workers, tmp_path) -> Path:
    """A program that was never interrupted."""
    job = make_program(tmp_path / "whole", TRAIN, shapes=SHAPES)
    assert workers.execute(job) == 0
    return job


def test_a_program_has_curves_checkpoints_and_a_log(workers, whole):
    assert steps_of(whole) == [8, 16, 24, 32]
    curves = curves_of(whole)
    assert len(curves["noise"]) == 32
    assert [step for step, _, _ in curves["cost"]] == [8, 16, 24, 32]
    assert [step for step, _, _ in curves["learning_rate"]] == [0, 8, 16, 24, 32]
    assert (end_of(whole).outcome, end_of(whole).global_step) == ("done", 32)
    assert any(each.max_epoch == 4 for each in events_of(whole, Progress))
    log = JobFolder(whole).log.read_text()
    assert "name __main__ arguments [] folder program" in log
    assert "the rest of the program" in log
    assert any(JobFolder(whole).tensorboard.iterdir())


@pytest.mark.parametrize("strike", [3, 16, 21])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_a_resumed_program_equals_a_whole_one(workers, tmp_path, whole, how, strike):
    job = make_program(tmp_path / "struck", TRAIN, ["--strike", str(strike), "--signal", how], shapes=SHAPES)
    code = workers.execute(job)
    assert code == (EXIT_STOPPED if how == "SIGTERM" else -signal.SIGKILL)
    if how == "SIGTERM":
        assert (end_of(job).outcome, end_of(job).global_step, end_of(job).reason) == (
            "stopped",
            strike,
            "received SIGTERM",
        )
        assert "the rest of the program" not in JobFolder(job).log.read_text()
    assert workers.execute(job) == 0
    assert differences(outcome_of(whole), outcome_of(job)) == []
    begun = events_of(job, AttemptStarted)[-1].global_step
    assert begun == (strike if how == "SIGTERM" else (strike - 1) // 8 * 8)


def test_a_program_is_stopped_by_a_file(workers, tmp_path):
    job = make_program(tmp_path / "job", TRAIN, ["--epochs", "1000000"], shapes=SHAPES)
    worker = workers.start(job)
    wait_until(lambda: steps_of(job), PROCESS_S, what="a checkpoint")
    JobFolder(job).stop_request.write_text("enough\n")
    assert worker.wait() == EXIT_STOPPED
    assert end_of(job).reason == "enough"
    assert steps_of(job)[-1] == end_of(job).global_step


def test_a_program_without_a_trainer_runs(workers, tmp_path):
    script = "import sys\nprint('hello', sys.argv[1:], 'tensorflow' in sys.modules)\nsys.exit(0)\n"
    job = make_program(tmp_path / "job", script, ["--x", "y z"])
    assert workers.execute(job) == 0
    assert "hello ['--x', 'y z'] False" in JobFolder(job).log.read_text()
    (said,) = events_of(job, Message)
    assert said.text.startswith("The program trained nothing with a trainer of Ziggurat")


def test_a_program_without_a_trainer_is_stopped(workers, tmp_path):
    waits = "print('on', flush=True)\n    threading.Event().wait(600)\n"
    script = f"import threading\ntry:\n    {waits}finally:\n    print('in order')\n"
    job = make_program(tmp_path / "job", script)
    worker = workers.start(job)
    log = JobFolder(job).log
    wait_until(lambda: log.exists() and "on" in log.read_text(), PROCESS_S, what="the program")
    heartbeat = read_heartbeat(JobFolder(job).heartbeat)
    assert heartbeat is not None
    JobFolder(job).stop_request.write_text("enough\n")
    assert worker.wait() == EXIT_STOPPED
    assert (end_of(job).outcome, end_of(job).reason) == ("stopped", "enough")
    assert "in order" in log.read_text()


FAILURES = [
    ("x = 1\nprint(x / 0)\n", "train.py, line 2: ZeroDivisionError: division by zero.", 2),
    ("import broken\n", "broken.py, line 1: ValueError: no.", 1),
    ("from ziggurat.callbacks import Step\nStep(nothing=1)\n", "train.py, line 2: TypeError:", 2),
    ("def f(:\n", "train.py, line 1: invalid syntax", 1),
]


@pytest.mark.parametrize(("script", "rule", "line"), FAILURES)
def test_a_failure_names_the_line_of_the_program(workers, tmp_path, script, rule, line):
    job = make_program(tmp_path / "job", script, broken="raise ValueError('no')\n")
    assert workers.execute(job) == 5
    error = error_of(job)
    assert error.error["rule"].startswith(rule)
    assert error.error["error"] == "program_code"
    assert error.error["details"]["line"] == line
    assert "ziggurat/worker" not in error.traceback
    assert end_of(job).outcome == "failed"


def test_errors_of_a_training_keep_their_family(workers, tmp_path):
    script = TRAIN.replace("hidden=5, dropout=0.3", "hidden=5, dropout=3")
    job = make_program(tmp_path / "job", script, shapes=SHAPES)
    assert workers.execute(job) == 3
    error = error_of(job).error
    assert error["rule"] == "`dropout` must be in [0, 1)."
    assert error["details"]["file"] == "train.py"
    assert "NullProgram" in error["details"]["source"]


def test_an_exit_code_of_a_program_is_a_failure(workers, tmp_path):
    job = make_program(tmp_path / "job", "import sys\nsys.exit(3)\n")
    assert workers.execute(job) == 5
    assert error_of(job).error["rule"] == "train.py ended with exit code 3."


def test_an_exit_with_a_text_names_the_text(workers, tmp_path):
    job = make_program(tmp_path / "job", "import sys\nsys.exit('no data in /data')\n")
    assert workers.execute(job) == 5
    assert error_of(job).error["rule"] == "train.py exited: no data in /data."


def test_a_second_training_is_said(workers, tmp_path):
    script = TRAIN + "\nTrainer(NullProgram(8, 2), batches).train(1)\n"
    job = make_program(tmp_path / "job", script, shapes=SHAPES)
    assert workers.execute(job) == 0
    assert steps_of(job) == [8, 16, 24, 32]
    assert any("trains more than once" in text for text in messages_of(job))


def test_a_person_sets_the_learning_rate_of_a_program(workers, tmp_path):
    job = make_program(tmp_path / "job", TRAIN, shapes=SHAPES)
    JobFolder(job).hyperparameters.write_text("learning_rate: 0.025\n")
    assert workers.execute(job) == 0
    assert {value for _, _, value in curves_of(job)["learning_rate"][1:]} == {0.025}


LOOP = """
import multiprocessing, os, sys
import numpy as np
import ziggurat

def validate(step):
    ziggurat.log({"val/loss": 2 / step}, step=step, epoch=step)
    ziggurat.log(seen=os.getpid(), every_rank=True)

if __name__ == "__main__":
    for step in range(1, 4):
        ziggurat.log(loss=1 / step, step=step)
        ziggurat.log_image("weights", np.full((3, 4), step / 10), step=step)
        child = multiprocessing.get_context(sys.argv[1]).Process(target=validate, args=(step,))
        child.start()
        child.join()
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_plain_loop_has_curves_and_images(workers, tmp_path, start):
    job = make_program(tmp_path / "job", LOOP, [start])
    assert workers.execute(job) == 0
    curves = curves_of(job)
    assert [(step, value) for step, _, value in curves["loss"]] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert [tuple(point) for point in curves["val/loss"]] == [(1, 1, 2.0), (2, 2, 1.0), (3, 3, pytest.approx(2 / 3))]
    assert len({value for _, _, value in curves["seen"]}) == 3
    assert [each.path for each in events_of(job, ImageLogged)] == [
        f"images/weights-0000000{step}.png" for step in (1, 2, 3)
    ]
    assert all((job / each.path).is_file() for each in events_of(job, ImageLogged))
    assert end_of(job).global_step == 4
    (said,) = events_of(job, Message)
    assert said.text == "The program trained nothing with a trainer of Ziggurat: it has no checkpoints."


def test_curves_of_a_killed_program_begin_anew(workers, tmp_path):
    script = """
import os, signal, threading, ziggurat
ziggurat.log(loss=1, step=5)
if not os.path.exists("struck"):
    open("struck", "w").close()
    for step in range(6, 100):
        ziggurat.log(loss=2, step=step)
    threading.Event().wait(1.2)
    os.kill(os.getpid(), signal.SIGKILL)
ziggurat.log(loss=3, step=7)
"""
    job = make_program(tmp_path / "job", script)
    assert workers.execute(job) == -signal.SIGKILL
    assert len(curves_of(job)["loss"]) == 95
    assert workers.execute(job) == 0
    assert [(step, value) for step, _, value in curves_of(job)["loss"]] == [(5, 1.0), (7, 3.0)]


TRACKED = """
import numpy as np
import wandb
import mlflow, mlflow.pytorch
from wandb.keras import WandbCallback

run = wandb.init(project="p", config={"lr": 0.1})
wandb.config.update({"size": 3})
assert (wandb.config.lr, run.config["size"]) == (0.1, 3)
wandb.watch(None)
for step in range(2):
    wandb.log({"loss": 1.0}, commit=False)
    wandb.log({"accuracy": 0.5, "text": "x", "table": wandb.Table(columns=["a"])}, commit=False)
    wandb.log({"image": wandb.Image(np.zeros((4, 4)))})
run.log({"last": 1}, step=9)
wandb.sweep({}).anything(1)
wandb.finish()
with mlflow.start_run() as active:
    mlflow.log_params({"lr": 0.1})
    mlflow.log_metric("val/loss", 0.25, step=4)
    mlflow.log_metrics({"f1": 0.75}, step=5)
    mlflow.pytorch.log_model(object(), "model")
"""


def test_stand_ins_for_absent_trackers_make_curves(workers, tmp_path):
    for name in ("wandb", "mlflow"):
        if importlib.util.find_spec(name) is not None:
            pytest.skip(f"{name} is installed")
    job = make_program(tmp_path / "job", TRACKED, capture=["wandb", "mlflow"])
    assert workers.execute(job) == 0, JobFolder(job).log.read_text()
    curves = {name: [(step, value) for step, _, value in points] for name, points in curves_of(job).items()}
    assert curves == {
        "loss": [(1, 1.0), (2, 1.0)],
        "accuracy": [(1, 0.5), (2, 0.5)],
        "last": [(9, 1.0)],
        "val/loss": [(4, 0.25)],
        "f1": [(5, 0.75)],
    }
    assert [each.tag for each in events_of(job, ImageLogged)] == ["image", "image"]
    log = JobFolder(job).log.read_text()
    assert [line.partition(" ")[0] for line in log.splitlines() if "is not recorded" in line] == [
        "wandb.sweep",
        "wandb.sweep.anything",
        "mlflow.pytorch.log_model",
    ]


def test_an_absent_tracker_is_told_with_its_remedy(workers, tmp_path):
    job = make_program(tmp_path / "job", "import json\nimport mlflow\n")
    assert workers.execute(job) == 5
    error = error_of(job).error
    assert error["rule"] == "train.py, line 2: ModuleNotFoundError: No module named 'mlflow'."
    assert "`--capture mlflow`" in error["advice"]


def test_an_absent_package_is_told_with_its_name(workers, tmp_path):
    job = make_program(tmp_path / "job", "import skimage.nothing\n")
    assert workers.execute(job) == 5
    assert error_of(job).error["advice"] == "Install it with: pip install scikit-image."


def test_a_relative_job_folder_holds_while_a_program_runs(workers, tmp_path):
    script = "import threading, ziggurat\nziggurat.log(loss=1)\nthreading.Event().wait(1.2)\n"
    job = make_program(tmp_path / "job", script)
    assert workers.execute(Path(os.path.relpath(job))) == 0
    assert list(curves_of(job)) == ["loss"]
    assert "not recorded" not in JobFolder(job).log.read_text()
    assert len(JobFolder(job).machine_load.read_text().splitlines()) > 2
