"""The nine contracts of training, as one suite that every framework passes.

``NineContracts`` has tests of each contract, and a test file of each framework has a subclass; ``HELD_BY`` names it.
What the contracts promise of the parts alone (pools of workers, queues, files, kills at random moments) has tests of
its own, with the parts: ``tests/integration/dataflow_parallel``, ``tests/integration/worker``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import psutil
import pytest

from tests.contract_program import BATCH_SIZE, digit_points, make_program, train
from tests.contract_samples import damaged, noisy, unchanged
from tests.waiting import take_time, wait_until
from ziggurat.callbacks import (
    Callback,
    ClassificationError,
    EarlyStopping,
    Inferencer,
    InferenceRunner,
    LearningRateSchedule,
    MinSaver,
    ModelSaver,
    Monitor,
    ScalarStats,
    StepTimes,
    Trainer,
    bind_folder,
)
from ziggurat.dataflow import BatchData, DataFromList, MapData, MultiProcessMapData
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.feed import held_batch
from ziggurat.errors import DataWorkerError
from ziggurat.events import Event, Message
from ziggurat.layout import JobFolder

__all__ = ["CONTRACTS", "HELD_BY", "NineContracts"]

CONTRACTS: Final[Mapping[int, str]] = {
    1: "errors",
    2: "ending",
    3: "data integrity",
    4: "determinism",
    5: "resume",
    6: "back-pressure",
    7: "visibility",
    8: "no surprise",
    9: "exact evaluation",
}
"""Number → what it is about; ``NineContracts`` has a test or more of each."""

HELD_BY: Final[Mapping[str, str]] = {
    "null": "tests/backend/test_null_contracts.py",
    "tensorflow": "tests/tensorflow/test_tensorflow_contracts.py",
    "torch": "tests/torch/test_torch_contracts.py",
}
"""Framework → file with a subclass of ``NineContracts``."""

REPOSITORY: Final = Path(__file__).parents[1]
SAMPLES: Final = 64
STEPS: Final = SAMPLES // BATCH_SIZE


def in_workers(data: Sequence[Any], change: Callable[..., Any], workers: int = 2, *, shuffle: bool = True) -> Any:
    """Return batches whose samples are made by worker processes; with 0 workers by this one."""
    mapped = MultiProcessMapData(DataFromList(data, shuffle=shuffle), workers, change)
    return BatchData(mapped, BATCH_SIZE).seed(3)


class Values(Callback):
    """Keeps a value of every step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[Any] = []

    def declares(self) -> Sequence[str]:
        return (self.name,)

    def before_run(self) -> Sequence[str]:
        return (self.name,)

    def after_run(self, values: Mapping[str, Any]) -> None:
        self.seen.append(np.asarray(values[self.name]).tolist())


class At(Callback):
    """Acts once, at a step."""

    def __init__(self, step: int, act: Callable[[Trainer], object]) -> None:
        self.step, self.act = step, act

    def trigger_step(self) -> None:
        if self.global_step == self.step:
            self.act(self.trainer)


class Messages(Monitor):
    """Keeps what a training says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def process_event(self, event: Event) -> None:
        if isinstance(event, Message):
            self.texts.append(event.text)


class Rows(Inferencer):
    """Keeps a vector with one number a sample."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[float] = []

    def names(self) -> Sequence[str]:
        return (self.name,)

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        self.rows += np.asarray(values[self.name]).tolist()


class Latest(Callback):
    """Keeps the newest number of each curve at the end."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def after_train(self) -> None:
        self.values = dict(self.trainer.monitors.latest())


def assert_same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> None:
    assert list(one) == list(other)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class NineContracts(ABC):
    """Subclass it in a test file, and say which program is meant; ``make_program`` knows the names."""

    name: ClassVar[str]
    """Which of ``tests.contract_program.PROGRAMS``."""

    modules: ClassVar[tuple[str, ...]] = ("ziggurat.dataflow", "ziggurat.callbacks")
    """What a training program imports before it needs the framework: none of it imports one."""

    makes_ahead: ClassVar[tuple[int, ...]] = (0,)
    """What ``prefetch_batches`` may be."""

    _kept: ClassVar[Any]

    @classmethod
    def setup_class(cls) -> None:
        """Start a fork server for all trainings: one for each of them would take most of the time."""
        cls._kept = MultiProcessMapData(DataFromList([[0]], shuffle=False), 1, unchanged)
        list(cls._kept)

    @classmethod
    def teardown_class(cls) -> None:
        """End it."""
        cls._kept.close()

    def program(self, prefetch_batches: int = 0) -> Any:
        """Return a new program with dropout; every call gives the same first weights."""
        return make_program(self.name, prefetch_batches)

    def train(self, data: Any, *callbacks: Callback, epochs: int = 2, **settings: Any) -> Any:
        """Train, and return the state of the program."""
        program = self.program()
        try:
            Trainer(program, data, callbacks=callbacks, **settings).train(epochs)
            return program.state()
        finally:
            program.close()

    def test_contract_1_error_of_data_ends_the_training(self) -> None:
        """Whatever a worker raises comes out of ``train``, with its type, its place and its traceback."""
        data = digit_points()
        data[9][0] = -data[9][0] - 1
        seen = Values("cost")
        with pytest.raises(DataWorkerError, match="sample 9 is damaged") as caught:
            self.train(in_workers(data, damaged, shuffle=False), seen)
        assert caught.value.details["type"] == "ValueError"
        assert caught.value.details["index"] == 9
        assert "in damaged" in caught.value.worker_traceback
        assert len(seen.seen) == 1, "the whole batch before it was trained on"

    def test_contract_1_killed_data_worker_is_named(self) -> None:
        """A worker that is killed is an error with its signal, and no end of a training."""
        flow = in_workers(
            digit_points(800), unchanged
        )  # more than is read ahead: the workers have some to do at step 3
        workers = flow.ds

        def kill(_: Trainer) -> None:
            for pid in workers.worker_pids():
                os.kill(pid, signal.SIGKILL)

        with pytest.raises(DataWorkerError, match="signal 9"):
            self.train(flow, At(3, kill), epochs=100)

    def test_contract_2_nothing_outlives_a_training(self) -> None:
        """After the end, an error and Ctrl-C no worker and no thread is left."""

        def fail(_: Trainer) -> None:
            raise ValueError("no more")

        def interrupt(_: Trainer) -> None:
            raise KeyboardInterrupt

        self.train(in_workers(digit_points(), unchanged), epochs=1)
        threads = threading.active_count()
        for act, error in ((lambda _: None, None), (fail, ValueError), (interrupt, KeyboardInterrupt)):
            flow, pids = in_workers(digit_points(), unchanged), []
            note = At(1, lambda _, flow=flow, pids=pids: pids.extend(flow.ds.worker_pids()))
            if error is None:
                self.train(flow, note, At(4, act))
            else:
                with pytest.raises(error):
                    self.train(flow, note, At(4, act))
            assert len(pids) == 2
            wait_until(lambda pids=pids: not any(map(is_running, pids)), 120, what="a worker outlives its training")
        wait_until(lambda: threading.active_count() <= threads, 120, what="a thread outlives its training")

    @pytest.mark.slow
    def test_contract_2_workers_end_with_a_killed_parent(self, tmp_path: Path) -> None:
        """After a kill of the training its workers end; what was saved loads, and goes on bit for bit."""
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract_program", self.name, str(killed), "--slow", "0.2"],
            cwd=REPOSITORY,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
        )
        steps = killed / "steps"
        wait_until(lambda: steps.exists() and len(steps.read_text().split()) >= 7, 120, what="it takes no steps")
        pids = [each.pid for each in psutil.Process(process.pid).children(recursive=True)]
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert pids
        wait_until(lambda: not any(map(is_running, pids)), 120, what="a worker outlives its killed parent")
        for folder in (whole, killed):
            train(self.name, folder)
        (one, first, _), (other, second, _) = (
            CheckpointStore(folder / "checkpoints", writable=False).latest() for folder in (whole, killed)
        )
        assert one.name == other.name
        assert_same(first.arrays, second.arrays)

    def test_contract_3_samples_arrive_whole_and_in_order(self) -> None:
        """What the network sees is what one process reads, whatever the workers, and after a broken pass too."""
        labels = [point[1] for point in digit_points()]
        expected = [labels[start : start + BATCH_SIZE] for start in range(0, SAMPLES, BATCH_SIZE)] * 2
        for workers in (0, 2):
            seen = Values("labels")
            self.train(in_workers(digit_points(), unchanged, workers, shuffle=False), seen)
            assert seen.seen == expected
        flow, seen = in_workers(digit_points(), unchanged, shuffle=False), Values("labels")
        self.train(flow, At(3, lambda trainer: trainer.finish("enough")))
        self.train(flow, seen)
        assert seen.seen == expected, "a pass that was broken off changes none behind it"

    def test_contract_4_the_seed_decides_alone(self) -> None:
        """One seed gives the same weights with any number of workers; each epoch draws numbers of its own."""
        states = [self.train(in_workers(digit_points(), noisy, workers)) for workers in (0, 1, 2)]
        assert_same(states[0], states[1])
        assert_same(states[0], states[2])
        firsts: list[np.ndarray] = []
        keep = [At(step, lambda trainer: firsts.append(held_batch(trainer.batch)[0])) for step in (1, STEPS + 1)]
        self.train(in_workers(digit_points(), noisy, shuffle=False), *keep)
        assert not np.array_equal(*firsts)
        np.testing.assert_allclose(*firsts, atol=9)

    @pytest.mark.parametrize("stop", [3, STEPS, STEPS + 5])
    def test_contract_5_interrupted_equals_uninterrupted(self, stop: int, tmp_path: Path) -> None:
        """Weights, optimizer, schedule, callbacks, random numbers and data: bit for bit, through checkpoint files."""

        def trained(folder: Path, *further: Callback) -> tuple[Any, Any]:
            program = self.program()
            validation = BatchData(DataFromList(digit_points(20), shuffle=True), 8, remainder=True).seed(2)
            runner = InferenceRunner(validation, _stats())
            callbacks = [
                LearningRateSchedule("cosine", 0.1),
                runner,
                MinSaver("validation_cost"),
                EarlyStopping("validation_cost", patience=40),
                ModelSaver(every_k_steps=3),
                *further,
            ]
            bind_folder(callbacks, JobFolder(folder))
            trainer = Trainer(program, in_workers(digit_points(), noisy), callbacks=callbacks)
            found = CheckpointStore(folder / "checkpoints").latest()
            if found is not None:
                trainer.load_state(found[1])
            trainer.train(3)
            meta, state = trainer.state().meta, program.state()
            program.close()
            position = {name: meta["batches"]["source"][name] for name in ("pass", "delivered", "seed")}
            return {**meta["callbacks"], "position": position}, state  # how far workers had read ahead may differ

        whole_meta, whole = trained(tmp_path / "whole")
        trained(tmp_path / "parted", At(stop, lambda trainer: trainer.request_stop("the test asked for it")))
        meta, parted = trained(tmp_path / "parted")
        assert_same(whole, parted)
        savers = {name for name in meta if "Saver" in name}  # one of them saved once more; and times
        kept = {name: meta[name] for name in meta if name not in savers}
        assert kept == {name: whole_meta[name] for name in whole_meta if name not in savers}

    def test_contract_6_what_is_made_ahead_is_bounded(self) -> None:
        """A slow step holds the data back: no more is made than the program says, in batches and in bytes."""
        for ahead in self.makes_ahead:
            made: list[int] = []
            most: list[int] = []
            sizes: list[int] = []

            def count(point: list[Any], made: list[int] = made) -> list[Any]:
                made.append(1)
                return point

            class Slow(Callback):
                def trigger_step(self, most: list[int] = most, sizes: list[int] = sizes, made: Any = made) -> None:
                    take_time(0.01)
                    feed = self.trainer.feed
                    assert feed is not None
                    stats = feed.stats()
                    most.append(-(-len(made) // BATCH_SIZE) - self.global_step)
                    sizes.append(stats.ready_bytes)
                    assert stats.ready <= stats.capacity == ahead  # noqa: B023

            program = self.program(ahead)
            flow = BatchData(MapData(DataFromList(digit_points(), shuffle=False), count), BATCH_SIZE)
            Trainer(program, flow, callbacks=[Slow()]).train(3)
            program.close()
            assert max(most) <= ahead + 2, "those that wait, one in the making, one handed over"
            assert max(sizes) <= (ahead + 1) * BATCH_SIZE * 8 * (64 + 1)

    def test_contract_7_the_trainer_says_what_bounds_it(self) -> None:
        """Step times are curves, a sentence names the bottleneck, and each stage of the data tells its time."""

        def slow(point: list[Any]) -> list[Any]:
            take_time(0.005)
            return point

        flow, latest = BatchData(MapData(DataFromList(digit_points(), shuffle=False), slow), BATCH_SIZE), Latest()
        sink = Messages()
        self.train(flow, StepTimes(), latest, epochs=2, monitors=[sink])
        assert any("Input-bound" in text for text in sink.texts)
        assert latest.values["StepTime/p99_ms"] >= latest.values["StepTime/p50_ms"] > 0
        stages = {stage.stage: stage.own_s for stage in flow.stats()}
        assert max(stages, key=lambda name: stages[name]) == "MapData"

    def test_contract_8_a_training_does_no_more_than_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It reads no input, leaves the environment as it is, asks no network, and warns once at most."""

        def refused(*_: Any) -> Any:
            raise AssertionError("a training asks no network")

        monkeypatch.setattr(socket, "getaddrinfo", refused)
        monkeypatch.setattr(socket, "create_connection", refused)
        monkeypatch.setattr(sys, "stdin", None)
        before, folder = dict(os.environ), os.getcwd()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.train(in_workers(digit_points(), unchanged))
        assert dict(os.environ) == before
        assert os.getcwd() == folder
        texts = [str(each.message) for each in told]
        assert len(texts) == len({*texts})

    def test_contract_8_imports_load_no_framework(self) -> None:
        """The packages of data and training can be imported where no framework is."""
        code = (
            f"import os, sys; before = dict(os.environ); import {', '.join(self.modules)}; "
            "loaded = {'tensorflow', 'torch', 'jax', 'keras'} & {*sys.modules}; "
            "assert not loaded, loaded; assert dict(os.environ) == before"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def test_contract_9_every_sample_is_evaluated_once(self) -> None:
        """Means are taken over samples, a smaller last batch included, whatever the size of the batches."""
        data, found = digit_points(21), []
        for size in (8, 5, 21):
            latest, wrong = Latest(), Rows("incorrect_vector")
            flow = BatchData(DataFromList(data, shuffle=False), size, remainder=True)
            runner = InferenceRunner(flow, [*_stats(), wrong])
            self.train(in_workers(digit_points(), unchanged), runner, latest, epochs=1)
            assert len(wrong.rows) == 21
            assert latest.values["validation_error"] == pytest.approx(np.mean(wrong.rows), abs=1e-9)
            found.append(latest.values["validation_cost"])
        assert found == pytest.approx([found[0]] * 3, rel=1e-5)


def _stats() -> list[Any]:
    return [ScalarStats("cost"), ClassificationError("incorrect_vector", "validation_error")]
