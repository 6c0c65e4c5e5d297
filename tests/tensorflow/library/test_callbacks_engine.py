"""The engine's own callbacks over a training on graphs: they are the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import flow, samples, train

from ziggurat import callbacks as engine
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.errors import NonFiniteError, UsageError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import newest_run_state
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.savers import ModelSaver


@pytest.fixture(autouse=True)
def _no_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)


def test_all_of_them_work_together(tmp_path: Path) -> None:
    called: list[int] = []
    callbacks: list[Any] = [
        engine.KeepBest("validation_cost", n=2),
        engine.ModelSaver(),
        engine.LearningRateSchedule(engine.Cosine(), 0.1),
        engine.LogScalars(["cost"], every_k_steps=4, mean=True),
        engine.MovingAverageSummary(["cost"]),
        engine.SimpleMovingAverage(["cost"], 4),
        engine.EarlyStopping("validation_cost", patience=50),
        engine.DivergenceWatch(),
        engine.StopAtTime(after_s=1000),
        engine.BlackBox(["cost"]),
        engine.CheckNumerics(["cost"], run_step=True),
        engine.CheckNumerics(),
        engine.HostMemoryTracker(),
        engine.GPUMemoryTracker(),
        engine.GPUUtilizationTracker(),
        engine.StepTimes(),
        engine.ThroughputTracker(samples_per_step=8),
        engine.EstimatedTimeLeft(),
        engine.ProgressBar(["cost"]),
        engine.SummariseBatch(),
        engine.EnableCallbackIf(
            engine.CallbackFactory(trigger=lambda self: called.append(self.epoch_num)), lambda _: True
        ),
        InferenceRunner(flow(21, 8, 9, False), engine.ScalarStats("cost")),
    ]
    monitors = [engine.EventWriter(), engine.TFEventWriter(), engine.JSONWriter(), engine.ScalarPrinter()]
    trainer = train(callbacks, folder=tmp_path, epochs=3, monitors=monitors)

    assert called == [1, 2, 3]
    assert trainer.global_step == 24
    latest = trainer.monitors.latest()
    assert {"cost", "cost/SMA", "validation_cost", "Throughput (samples/sec)", "StepTime/p50_ms"} <= set(latest)
    store = engine.CheckpointStore(tmp_path / "checkpoints")
    assert {"min-validation_cost", "min-validation_cost-2"} == set(store.names())
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {"scalar", "checkpoint"} <= {line["type"].split("_")[0] for line in lines}
    with pytest.raises(UsageError, match=r"ziggurat\.tf"):
        train([engine.InferenceRunner(flow(21), engine.ScalarStats("cost"))], epochs=1)


def test_black_box_keeps_the_batches_before_nan(tmp_path: Path) -> None:
    rows: list[Any] = samples(64)
    rows[20][0] = np.full(4, np.nan, np.float32)
    broken = BatchData(DataFromList(rows, shuffle=False), 8)
    with pytest.raises(NonFiniteError, match=r"The loss became NaN at step 3"):
        train([engine.BlackBox(["cost"], last_n=2)], folder=tmp_path, data=broken)

    names = sorted(path.name for path in (tmp_path / "black_box").iterdir())
    assert names == ["black_box.json", "step-00000002.npz", "step-00000003.npz"]
    with np.load(tmp_path / "black_box" / "step-00000003.npz") as content:
        assert np.isnan(content["batch/0"]).any()


def test_early_stopping_ends_a_training_on_graphs() -> None:
    class Puts(Callback):
        def _trigger_epoch(self) -> None:
            self.trainer.monitors.put_scalar("score", 1.0)

    trainer = train([Puts(), engine.EarlyStopping("score", patience=2)], epochs=20)
    assert trainer.epoch_num == 3
    assert trainer.finish_reason


def test_setters_resume_exactly(tmp_path: Path) -> None:
    def callbacks() -> list[Any]:
        return [
            ModelSaver(),
            engine.ScheduledHyperParamSetter("learning_rate", [(0, 0.2), (1, 0.1), (3, 0.05)]),
            engine.HyperParamSetterWithFunc("learning_rate", lambda _, old: old * 0.9),
        ]

    whole = train(callbacks(), folder=tmp_path / "whole", epochs=4).program.state()
    train(callbacks(), folder=tmp_path / "parts", epochs=2)
    state = newest_run_state(tmp_path / "parts")
    parts = train(callbacks(), folder=tmp_path / "parts", epochs=4, state=state).program.state()

    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in parts.items()
    }
