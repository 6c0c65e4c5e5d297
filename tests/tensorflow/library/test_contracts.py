"""The nine contracts of training on graphs: what Tensorpack's users missed, one test each."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from small_models import LinearModel, batches, own_graph, rows
from test_training import Costs, StopAt, Weights, trained

from tests.waiting import take_time, wait_until
from ziggurat.dataflow import BatchData, DataFromList, MapData, MultiProcessMapData
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.trainers import SimpleTrainer

pytestmark = pytest.mark.usefixtures("cold_starts")


def _damaged(point: list[Any]) -> list[Any]:
    if float(point[0][0]) < 0:
        raise ValueError("row 9 is damaged")
    return point


def _unchanged(point: list[Any]) -> list[Any]:
    return point


def _in_workers(data: list[Any], change: Any, workers: int = 2) -> Any:
    return BatchData(MultiProcessMapData(DataFromList(data, shuffle=True), workers, change), 8).seed(3)


def _children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


@pytest.mark.timeout(600)
def test_contract_1_an_error_in_a_worker_ends_the_training() -> None:
    data = rows()
    data[9][0] = -np.ones(8, np.float32)
    with own_graph(), pytest.raises(Exception, match="row 9 is damaged") as error:
        trained(SimpleTrainer(), LinearModel(), QueueInput(_in_workers(data, _damaged)), epochs=3)
    assert "ValueError" in str(error.value) + type(error.value).__name__


@pytest.mark.nightly
def test_contract_2_nothing_outlives_a_training() -> None:
    before, threads = len(_children()), threading.active_count()
    with own_graph():
        trained(SimpleTrainer(), LinearModel(), QueueInput(_in_workers(rows(), _unchanged)), epochs=1)
    with own_graph(), pytest.raises(ValueError, match="no more"):

        class Fails(Callback):
            def _trigger_epoch(self) -> None:
                raise ValueError("no more")

        source = QueueInput(_in_workers(rows(), _unchanged))
        trained(SimpleTrainer(), LinearModel(), source, callbacks=[Fails()], epochs=2)
    wait_until(lambda: len(_children()) <= before and threading.active_count() <= threads)


@pytest.mark.timeout(600)
def test_contract_3_data_reaches_the_graph_whole_and_in_order() -> None:
    def seen(source: Any) -> list[float]:
        costs = Costs("y_sum")

        class Sums(LinearModel):
            def build_graph(self, x: Any, y: Any) -> Any:
                from ziggurat.backends.tensorflow.runtime import tf

                tf.reduce_sum(y, name="y_sum")
                return super().build_graph(x, y)

        with own_graph():
            trained(SimpleTrainer(), Sums(), source, callbacks=[costs], epochs=3)
        return costs.costs

    plain = [float(sum(row[1] for row in rows()[start : start + 8])) for start in range(0, 64, 8)] * 3
    serial = BatchData(DataFromList(rows(), shuffle=False), 8)
    parallel = BatchData(MultiProcessMapData(DataFromList(rows(), shuffle=False), 2, _unchanged), 8)
    assert seen(FeedInput(serial)) == pytest.approx(plain, rel=1e-6)
    assert seen(QueueInput(parallel)) == pytest.approx(plain, rel=1e-6)


@pytest.mark.nightly
def test_contract_4_the_seed_decides_whatever_the_workers() -> None:
    weights = []
    for workers in (1, 2):
        with own_graph():
            source = QueueInput(_in_workers(rows(), _unchanged, workers))
            weights.append(trained(SimpleTrainer(), LinearModel(dropout=0.5), source)[1]["w"])
    np.testing.assert_array_equal(weights[0], weights[1])


@pytest.mark.timeout(600)
@pytest.mark.nightly  # the same of jobs: test_tensorflow_resume
def test_contract_5_interrupted_equals_uninterrupted() -> None:
    def run(*callbacks: Any, state: Any = None) -> Any:
        with own_graph():
            source = QueueInput(_in_workers(rows(), _unchanged))
            return trained(SimpleTrainer(), LinearModel(0.5), source, callbacks=callbacks, epochs=3, state=state)[1]

    at = StopAt(13)
    whole, _ = run(), run(at)
    rest = run(state=at.saved)
    for name, value in whole.items():
        np.testing.assert_array_equal(rest[name], value)


def test_contract_6_what_is_made_ahead_is_bounded() -> None:
    made = []

    def count(point: list[Any]) -> list[Any]:
        made.append(1)
        return point

    class Slow(Callback):
        most = 0

        def _trigger_step(self) -> None:
            take_time(0.01)
            Slow.most = max(Slow.most, len(made) // 8 - self.global_step)

    flow = BatchData(MapData(DataFromList(rows(), shuffle=False), count), 8)
    with own_graph():
        trained(SimpleTrainer(), LinearModel(), QueueInput(flow, 3), callbacks=[Slow()], epochs=3)
    assert 1 <= Slow.most <= 5  # three that wait, one in the making, one handed over


def test_contract_7_the_trainer_says_what_bounds_it(capsys: pytest.CaptureFixture[str]) -> None:
    def slow(point: list[Any]) -> list[Any]:
        take_time(0.002)
        return point

    flow = BatchData(MapData(DataFromList(rows(), shuffle=False), slow), 8)
    seen: dict[str, float] = {}

    class Last(Callback):
        def _after_train(self) -> None:
            seen.update(self.trainer.monitors.latest())

    from ziggurat.engine.monitors.scalar_printer import ScalarPrinter

    with own_graph():
        config = TrainConfig(
            model=LinearModel(), dataflow=flow, callbacks=[Last()], monitors=[ScalarPrinter()], max_epoch=1
        )
        launch_train_with_config(config, SimpleTrainer())
    assert "Input-bound" in capsys.readouterr().out
    assert seen["StepTime/p99_ms"] >= seen["StepTime/p50_ms"] > 0


def test_contract_8_no_surprise(tmp_path: Path) -> None:
    program = "; ".join(
        [
            "import os, sys; before = dict(os.environ)",
            "import ziggurat.dataflow, ziggurat.tf",
            "assert 'tensorflow' not in sys.modules, 'the package imports no framework'",
            "ziggurat.tf.logger.set_logger_dir('used'); open('used/file', 'w').close()",
            "ziggurat.tf.logger.set_logger_dir('used')",
            "assert dict(os.environ) == before, 'the environment stays'",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "used/file").is_file()
    assert logger.get_logger_dir() is None or Path(str(logger.get_logger_dir())) != tmp_path / "used"


def test_contract_9_every_sample_is_evaluated_once() -> None:
    from ziggurat.engine.callbacks.validation import ClassificationError

    seen: dict[str, float] = {}
    weights = Weights()

    class Last(Callback):
        def _after_train(self) -> None:
            seen.update(self.trainer.monitors.latest())

    data = rows(21, seed=5)  # two batches of 8, and 5 samples
    flow = BatchData(DataFromList(data, shuffle=False), 8, remainder=True)
    with own_graph():
        runner = InferenceRunner(flow, ClassificationError("wrong", "error"))
        trained(SimpleTrainer(), LinearModel(), FeedInput(batches()), callbacks=[runner, weights, Last()], epochs=1)
    predicted = np.stack([row[0] for row in data]) @ weights.last["w"][:, 0]
    expected = np.mean(np.abs(predicted - np.array([row[1] for row in data])) > 0.1)
    assert seen["error"] == pytest.approx(expected, abs=1e-9)
    assert round(seen["error"] * 21) == pytest.approx(seen["error"] * 21)
