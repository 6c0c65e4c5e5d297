"""Trainings whose first epoch fits the last layer, for the tests of either framework."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fine_tuned_jobs import STEPS, arrays, costs, new_job, train
from ziggurat.engine.callback import Callback
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.linear_head import LinearHead, fit_linear_head
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.events import Event, Progress, ScalarLogged, read_events
from ziggurat.layout import FEATURES_FOLDER, JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_train_spec
from ziggurat.worker.build import build_job, data_options
from ziggurat.worker.commands.trained import open_network, open_trained_job
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import labels_of, open_source

FIT = {"fit_head": True}


def new_workspace(folder: Path, backend: str, network: dict[str, Any]) -> Path:
    """Return the folder of a workspace with a job ``first``, from whose weights others start."""
    train(new_job(folder / "jobs" / "first", backend, network=network, epochs=1))
    return folder


def fitting(workspace: Path, name: str, backend: str, network: dict[str, Any], **fields: Any) -> Path:
    """Return the folder of a new job that fits its last layer."""
    chosen = {"epochs": 1, "fine_tuning": FIT, "pretrained": str(workspace / "jobs" / "first"), **fields}
    return new_job(workspace / "jobs" / name, backend, network=network, **chosen)


def events(folder: Path) -> Sequence[Event]:
    """Return what a job said."""
    return read_events(JobFolder(folder).events)[0]


def curve(folder: Path, tag: str) -> list[tuple[int, float]]:
    """Return (step, value) of a curve."""
    return [(each.step, each.value) for each in events(folder) if isinstance(each, ScalarLogged) and each.tag == tag]


def stages(folder: Path) -> list[str]:
    """Return what a job said of its first epoch."""
    return [each.stage for each in events(folder) if isinstance(each, Progress) and each.stage]


def stored(workspace: Path) -> list[Path]:
    """Return the files of features in a workspace."""
    return sorted((workspace / FEATURES_FOLDER).glob("*.npy"))


def train_features(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return features and class numbers of the training split, by the trained network of a job."""
    job = open_trained_job(folder)
    source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed)
    with (
        open_network(job) as network,
        Pipeline(source, data_options(job.spec), job.context).evaluation("train") as flow,
    ):
        features = np.concatenate([network.features(batch[0]) for batch in flow])  # pyright: ignore
    return features, np.array(labels_of(source.splits["train"]))


def refit(folder: Path, **options: Any) -> LinearHead:
    """Return the head that a job should have."""
    features, labels = train_features(folder)
    return fit_linear_head(features, labels, 10, seed=load_train_spec(JobFolder(folder).spec).seed, **options)


class StopInFeatures(Callback):
    """Stops a training before it computes features."""

    def before_epoch(self) -> None:
        self.trainer.request_stop("a test")


def stop_in_features(folder: Path) -> str:
    """Train a job that is stopped while features are computed; return its outcome."""
    spec = load_train_spec(JobFolder(folder).spec)
    built = build_job(spec, JobFolder(folder), StopInFeatures(), Settings(progress="none"))
    built.trainer.train(spec.epochs)
    built.trainer.program.close()
    return built.trainer.outcome


def check_fitted_head(
    workspace: Path, backend: str, network: dict[str, Any], head: tuple[str, str], turned: bool
) -> None:
    """A head is what the fit gives for the features of the backbone, which stays as it came."""
    folder = fitting(workspace, "fitted", backend, network)
    train(folder)
    first, now = arrays(workspace / "jobs" / "first"), arrays(folder)
    weights = [name for name in first if name.startswith("model/") and name.rsplit("/", 1)[0] not in first]
    backbone = [name for name in weights if "fc" not in name]
    assert backbone
    for name in backbone:
        np.testing.assert_array_equal(first[name], now[name], err_msg=name)
    wanted = refit(folder)
    weights, bias = now[head[0]], now[head[1]]
    np.testing.assert_allclose(weights.T if turned else weights, wanted.weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(bias, wanted.bias, rtol=1e-3, atol=1e-4)
    # It is an epoch as any other: one validation, one checkpoint, which is the best.
    (step, accuracy), *more = curve(folder, "validation_accuracy")
    assert (step, more) == (STEPS, [])
    assert accuracy > curve(workspace / "jobs" / "first", "validation_accuracy")[-1][1] + 0.05
    assert [each.step for each in CheckpointStore(JobFolder(folder).checkpoints, writable=False).list()] == [STEPS]
    best = best_checkpoint(JobFolder(folder))
    assert best is not None
    assert best.checkpoint.step == STEPS
    assert stages(folder)[0].startswith("Features ")
    assert "Features 1,252 of 1,252" in stages(folder)
    assert stages(folder)[-1].startswith("Fit ")


def check_second_stage(workspace: Path, backend: str, network: dict[str, Any]) -> None:
    """Further epochs train on from the fitted head, and a stopped job goes on exactly."""
    tuned = {**FIT, "frozen_epochs": 1, "backbone_rate": 0.5}
    fields = {"epochs": 3, "learning_rate": 0.004, "schedule": {"policy": "cosine"}, "fine_tuning": tuned}
    whole = fitting(workspace, "whole", backend, network, **fields)
    train(whole)
    assert arrays(whole)["ziggurat/backbone_rate"] == 1
    assert [step for step, _ in curve(whole, "validation_accuracy")] == [STEPS, 2 * STEPS, 3 * STEPS]
    assert costs(whole)[0][0] == STEPS + 1
    step, rate = curve(whole, "learning_rate")[0]
    assert (step, rate) == (STEPS + 1, pytest.approx(0.004 * (1 + math.cos(math.pi / 3)) / 2))  # of the second epoch
    for step in (STEPS, STEPS + 2):
        folder = fitting(workspace, f"stopped-{step}", backend, network, **fields)
        train(folder, stop_after=step)
        train(folder)
        one, other = arrays(whole), arrays(folder)
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=f"{name}, stopped after {step}")
        assert costs(folder) == costs(whole)
    assert len(stored(workspace)) == 1  # one backbone, one split
