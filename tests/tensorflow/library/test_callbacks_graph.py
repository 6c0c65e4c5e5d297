"""Callbacks over operations and tensors: runs, dumps, checks, traces and limits."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from callback_trainings import flow, optimizer, samples, tower, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import (
    DumpTensors,
    Image,
    Monitor,
    PeriodicCallback,
    PeriodicTrigger,
    ProcessTensors,
    SimpleMovingAverage,
)
from ziggurat.errors import ConfigurationError, DataError, NonFiniteError, UsageError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.graph_callbacks import (
    CheckNumerics,
    DumpParamAsImage,
    DumpTensorAsImage,
    GraphProfiler,
    RunOp,
    RunUpdateOps,
    SessionRunTimeout,
    StartProcOrThread,
    TensorPrinter,
)
from ziggurat.tf.trainers import SimpleTrainer


@pytest.fixture(autouse=True)
def _no_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)


def counting(name: str) -> Any:
    return lambda: tf.get_variable(name, initializer=0, trainable=False, dtype=tf.int32).assign_add(1)


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({}, 3),
        ({"run_before": False}, 2),
        ({"run_as_trigger": False}, 1),
        ({"run_step": True}, 11),
        ({"verbose": True}, 3),
    ],
)
def test_run_op_runs_when_it_was_told(options: Any, runs: int) -> None:
    values = variables(train([RunOp(counting("count"), **options)], epochs=2, steps=4))

    assert values["count"] == runs


def test_run_op_takes_an_operation() -> None:
    def with_operation(x: Any, label: Any) -> Any:
        tf.get_variable("count", initializer=0, trainable=False).assign_add(1, name="count_up")
        return tower(x, label)

    class Given(RunOp):
        def _setup_graph(self) -> None:
            self._given = self.graph.get_operation_by_name("count_up")
            super()._setup_graph()

    values = variables(
        train([PeriodicTrigger(Given(None), every_k_steps=2)], steps=4, epochs=1, get_cost=with_operation)
    )
    assert values["count"] == 3


def test_process_tensors_gets_values_of_every_step() -> None:
    seen: list[Any] = []
    batches = list(flow())
    train(
        [ProcessTensors(["x:0", "cost:0", "learning_rate"], lambda *values: seen.append(values))], epochs=1, data=flow()
    )

    assert len(seen) == 8
    assert all(np.array_equal(x, batch[0]) for (x, _, _), batch in zip(seen, batches, strict=True))
    assert seen[0][1] == pytest.approx(np.log(3))
    assert seen[0][2] == pytest.approx(0.1)


def test_dumped_tensors_are_npz_files(tmp_path: Path) -> None:
    train([PeriodicCallback(DumpTensors(["logits", "cost:0"]), every_k_steps=4)], folder=tmp_path, epochs=1)

    assert sorted(path.name for path in tmp_path.glob("*.npz")) == ["DumpTensor-4.npz", "DumpTensor-8.npz"]
    with np.load(tmp_path / "DumpTensor-4.npz") as content:
        assert content["logits"].shape == (8, 3)
        assert content["cost:0"].shape == ()


def test_printed_tensors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        train([TensorPrinter(["learning_rate:0"])], epochs=1, steps=2)

    assert [record.message for record in caplog.records] == ["learning_rate: 0.1"] * 2


def test_moving_average_of_a_window() -> None:
    seen: list[float] = []
    trainer = train(
        [SimpleMovingAverage(["cost:0"], 4), ProcessTensors(["cost"], lambda cost: seen.append(float(cost)))], epochs=1
    )

    assert [step for step, _ in trainer.monitors.get_history("cost/SMA")] == [4, 8]
    assert trainer.monitors.get_latest("cost/SMA") == pytest.approx(np.mean(seen[4:]), rel=1e-6)


class Images(Monitor):
    def __init__(self) -> None:
        self.seen: list[Image] = []

    def process_image(self, image: Image) -> None:
        self.seen.append(image)


def test_parameters_and_tensors_as_images(tmp_path: Path) -> None:
    images = Images()
    callbacks = [
        DumpParamAsImage("linear/W", map_func=lambda weights: np.abs(weights)),
        DumpTensorAsImage("x:0", prefix="input", scale=10, map_func=lambda x: np.stack([x, x * 0, x * 0], 2)),
    ]
    trainer = train(callbacks, folder=tmp_path, epochs=1, monitors=[images])

    weights = variables(trainer)["linear/W"]
    shown: Any = cv2.imread(str(tmp_path / "linear-W-8.png"), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(shown, np.clip(np.abs(weights) * 255, 0, 255).astype(np.uint8))
    newest = trainer.batch[0]
    colored: Any = cv2.imread(str(tmp_path / "input-8.png"), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(colored[:, :, 2], np.clip(newest * 10, 0, 255).astype(np.uint8))  # red, as OpenCV orders it
    assert not colored[:, :, :2].any()
    assert [each.tag for each in images.seen] == ["linear-W", "input"]
    with pytest.raises(DataError, match="map_func"):
        train([DumpTensorAsImage("linear/b")], folder=tmp_path, epochs=1)


def nan_at(step: int) -> Any:
    """Return a callback that spoils a weight before a step."""

    class Spoils(Callback):
        def _trigger_step(self) -> None:
            if self.global_step == step:
                self.trainer.program.assign({"linear/b": np.array([0, np.nan, 0], np.float32)})

    return Spoils()


@pytest.mark.parametrize(("run_step", "step"), [(False, 8), (True, 3)])
def test_check_numerics_ends_with_name_and_step(run_step: bool, step: int) -> None:
    with pytest.raises(NonFiniteError, match=f"`linear/b`.*step {step}"):
        train([nan_at(step), CheckNumerics(run_step=run_step)], epochs=2)


def test_check_numerics_lets_finite_weights_pass() -> None:
    assert train([CheckNumerics(run_step=True)], epochs=1).global_step == 8
    assert train([nan_at(8), CheckNumerics(run_as_trigger=False)], epochs=1).global_step == 8


def test_graph_profiler_writes_traces(tmp_path: Path) -> None:
    profiler = PeriodicCallback(GraphProfiler(dump_metadata=True, dump_event=True), every_k_steps=4)
    whole = variables(train([profiler], folder=tmp_path, epochs=1))

    folder = tmp_path / "profiler"
    names = sorted(path.name for path in folder.iterdir() if "tfevents" not in path.name)
    assert names == ["chrome-trace-4.json", "chrome-trace-8.json", "runmetadata-4.pb", "runmetadata-8.pb"]
    events = json.loads((folder / "chrome-trace-8.json").read_text())["traceEvents"]
    assert any("MatMul" in event.get("name", "") for event in events)
    metadata = tf.RunMetadata.FromString((folder / "runmetadata-4.pb").read_bytes())
    assert metadata.step_stats.dev_stats
    [written] = folder.glob("*tfevents*")
    tags = [event.tagged_run_metadata.tag for event in tf.train.summary_iterator(str(written))]
    assert "step-8" in tags
    plain = variables(train([], epochs=1))
    assert np.array_equal(plain["linear/W"], whole["linear/W"])  # the traced steps are steps like others


def test_profiler_and_dumps_need_a_folder() -> None:
    for callback in (GraphProfiler(), DumpTensorAsImage("cost"), DumpTensors(["cost"])):
        with pytest.raises(UsageError, match="folder"):
            train([callback])


class Waits(SimpleTrainer):
    """Takes a step that waits for what never comes."""

    def _setup_graph(self, source: Any, get_cost_fn: Any, get_opt_fn: Any) -> Any:
        found = super()._setup_graph(source, get_cost_fn, get_opt_fn)
        empty = tf.queue.FIFOQueue(1, [tf.float32], [()])
        self.train_op = tf.group(self.train_op, empty.dequeue())
        return found


def test_session_run_timeout_ends_a_step_that_hangs() -> None:
    with pytest.raises(tf.errors.DeadlineExceededError):
        train([SessionRunTimeout(300)], trainer=Waits)
    assert train([SessionRunTimeout(60_000)], epochs=1).global_step == 8
    with pytest.raises(ConfigurationError, match="above 0"):
        SessionRunTimeout(0)


class Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()

    def run(self) -> None:
        self.ended.wait()

    def stop(self) -> None:
        self.ended.set()


def test_threads_start_and_stop_with_the_training() -> None:
    worker, alive = Worker(), []

    class Looks(Callback):
        def _trigger_epoch(self) -> None:
            alive.append(worker.is_alive())

    train([StartProcOrThread(worker), Looks()], epochs=1)
    assert alive == [True]
    assert not worker.is_alive()


def test_run_op_within_steps_of_users_trainers() -> None:
    class Twice(SimpleTrainer):
        def run_step(self) -> None:
            self.hooked_sess.run(self.train_op)
            self.hooked_sess.run("learning_rate")

    values = variables(
        train([RunOp(counting("count"), False, False, True)], trainer=Twice, epochs=1, get_optimizer=optimizer)
    )
    assert values["count"] == 8


@pytest.mark.parametrize("parts", [1, 2])
def test_updates_in_steps_of_parts_read_the_batch_once(parts: int) -> None:
    def cost(x: Any, label: Any) -> Any:
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, total.assign_add(tf.reduce_sum(x)))
        return tower(x, label)

    class Parts(SimpleTrainer):
        def run_step(self) -> None:
            for _ in range(parts):
                self.hooked_sess.run(self.train_op)

    class NoPart(SimpleTrainer):
        def run_step(self) -> None:
            pass

    expected = sum(row.sum() for row, _ in samples(64))
    for trainer in (Parts, NoPart):
        values = variables(train([RunUpdateOps()], trainer=trainer, epochs=1, get_cost=cost))
        assert values["total"] == pytest.approx(expected, rel=1e-4)
