"""Every task from files to predictions: trained, evaluated, ranked sample by sample, predicted, and resumed exactly."""

from __future__ import annotations

import functools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from task_datasets import SIDE, make_dataset

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.nightly import some_nightly
from ziggurat.datasets.dataset import Dataset
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities import EXIT_DONE
from ziggurat.events import effective_scalars, read_events
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.tasks import task
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

EPOCHS, STEPS_PER_EPOCH, STOP = 2, 5, 3
VARIED = {"flip": "fliplrud", "quad_rotation": "rotall", "rotation_deg": 10, "scale": 0.1, "noise": 0.05}
_kept = tempfile.TemporaryDirectory(prefix="ziggurat-tests-")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network on a dataset.

    Args:
        data: name of the dataset.
        network: name of a standard network.
        task: what it learns.
        metrics: that an evaluation has.
        arrays: of the results of each sample, beside rows, keys and ``score``.
        predicted: fields of a prediction.
        inputs: what is predicted for; None for the first image of the dataset.
        picture: whether a prediction is an image.
        fields: of the spec.
    """

    data: str
    network: str
    task: str
    metrics: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()
    inputs: Mapping[str, Any] | None = None
    picture: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)


ROW = {"rows": [{"width": 9.5, "height": 0.5, "color": "red"}, {"width": 12, "height": None, "color": "violet"}]}
IMAGES: Mapping[str, Any] = {"augmentation": VARIED, "preprocessing": {"crop": 24}}
ADAM: Mapping[str, Any] = {"optimizer": {"name": "adam"}, "learning_rate": 0.001}
CLASSIFIED = ("accuracy", "confusion")
CASES = {
    "masks": Case(
        data="masks",
        network="unet_small",
        task="segmentation",
        metrics=("mean_iou", "pixel_accuracy"),
        arrays=("pixel_accuracy",),
        predicted=("size", "classes"),
        picture=True,
        fields=IMAGES,
    ),
    "objects": Case(
        data="objects",
        network="detector_nano",
        task="detection",
        metrics=("map", "ap50"),
        arrays=("detections", "targets", "size"),
        predicted=("size", "boxes"),
        fields={**IMAGES, "optimizer": {"name": "adamw"}, "learning_rate": 0.004},
    ),
    "measured images": Case(
        data="measured images",
        network="image_regression",
        task="regression",
        metrics=("rmse", "mae", "r2"),
        arrays=("targets", "predicted"),
        predicted=("values",),
        fields={**IMAGES, **ADAM},
    ),
    "measured rows": Case(
        data="measured rows",
        network="table_linear",
        task="regression",
        metrics=("rmse", "mae", "r2"),
        arrays=("targets", "predicted"),
        predicted=("values",),
        inputs=ROW,
    ),
    "classified rows": Case(
        data="classified rows",
        network="table_mlp",
        task="classification",
        metrics=CLASSIFIED,
        arrays=("labels", "predicted"),
        predicted=("classes",),
        inputs=ROW,
    ),
    "texts": Case(
        data="texts",
        network="text_cnn",
        task="classification",
        metrics=CLASSIFIED,
        arrays=("labels", "predicted"),
        predicted=("classes",),
        inputs={"texts": ["a lovely film", "unheard of"]},
        fields=ADAM,
    ),
    "mixed images": Case(
        data="class folders",
        network="lenet",
        task="classification",
        metrics=CLASSIFIED,
        arrays=("labels", "predicted"),
        predicted=("classes",),
        fields={"augmentation": {**VARIED, "mixup": 0.4, "cutmix": 1.0}},
    ),
    "several labels": Case(
        data="several labels",
        network="multilabel",
        task="multi-label",
        metrics=("mean_ap",),
        arrays=("targets", "predicted"),
        predicted=("labels",),
        fields=IMAGES,
    ),
    "own targets": Case(
        data="own targets",
        network="autoencoder",
        task="image-to-image",
        metrics=("psnr", "ssim", "mse"),
        predicted=("size", "mean"),
        picture=True,
        fields={"augmentation": VARIED},
    ),
    "noisy pairs": Case(
        data="noisy pairs",
        network="denoiser",
        task="image-to-image",
        metrics=("psnr", "ssim", "mse"),
        predicted=("size", "mean"),
        picture=True,
        fields=IMAGES,
    ),
    "pairs of classes": Case(
        data="class folders",
        network="siamese16",
        task="pairs",
        metrics=("accuracy", "roc_auc", "nearest_neighbor_accuracy"),
        arrays=("targets", "predicted", "labels"),
        predicted=("embedding",),
        fields={"augmentation": VARIED},
    ),
    "pairs": Case(
        data="pairs",
        network="siamese",
        task="pairs",
        metrics=("accuracy", "roc_auc"),
        arrays=("targets", "predicted"),
        predicted=("embedding",),
    ),
    "free": Case(
        data="class folders", network="gan", task="free", predicted=("outputs",), picture=True, fields=ADAM
    ),
    "free without classes": Case(
        data="own targets", network="gan", task="free", predicted=("outputs",), picture=True, fields=ADAM
    ),
}  # fmt: skip
ALL = pytest.mark.parametrize("name", CASES)
KILLED = dict.fromkeys([*({case.task: name for name, case in reversed(CASES.items())}.values()), "mixed images"])
"""The first case of each task, and what only mixed batches have."""
# The number of steps decides when, not the clock: some of these networks need less than a millisecond for a step.
KILLED_BEHIND_A_CHECKPOINT = """
import os, signal, sys
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

folder, last = sys.argv[1], int(sys.argv[2])
step = TensorFlowProgram.step
steps = 0

def counted(self, batch, names):
    global steps
    values = step(self, batch, names)
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return values

TensorFlowProgram.step = counted
main([folder], request=StopRequest())
"""


@functools.cache
def dataset(name: str) -> Path:
    return make_dataset(name, Path(_kept.name) / name.replace(" ", "-"))


@functools.cache
def trained(name: str) -> Path:
    """Return a job that a worker trained in this process without a pause, with a checkpoint in mid-epoch."""
    folder = Path(_kept.name) / f"job-{name.replace(' ', '-')}"
    execute(folder, spec_of(CASES[name]))
    return folder


def spec_of(case: Case) -> dict[str, Any]:
    return {
        "kind": "train",
        "version": 1,
        "backend": "tensorflow",
        "network": case.network,
        "data": str(dataset(case.data)),
        "batch_size": 6,
        "epochs": EPOCHS,
        "seed": 3,
        "learning_rate": 0.01,
        "monitors": ["events"],
        "machine_load_s": 0,
        "checkpoints": {"every_steps": STOP, "keep_last": 10},
        **case.fields,
    }


def execute(folder: Path, spec: Mapping[str, Any] | None = None) -> None:
    """Do a job in this process; without a spec, go on with one."""
    if spec is not None:
        folder.mkdir()
        JobFolder(folder).spec.write_text(json.dumps(spec))
    assert main([str(folder)], request=StopRequest()) == EXIT_DONE


def first_image(name: str, folder: Path) -> str:
    with Dataset(dataset(name)) as found:
        Image.fromarray(found.picture("val", 0).squeeze()).save(folder / "image.png")
    return str(folder / "image.png")


@ALL
def test_an_evaluation_has_the_metrics_of_the_task(name: str) -> None:
    case = CASES[name]
    found = evaluate({"folder": str(trained(name)), "checkpoint": "latest"})
    assert (found["task"], found["samples"], found["skipped"], found["step"]) == (case.task, 10, 0, 10)
    assert "cost" in found["scalars"]
    assert np.isfinite(list(found["scalars"].values())).all()
    for metric in case.metrics:
        assert np.isfinite(found[metric]).all(), metric
    if case.metrics:
        assert task(case.task).primary_metric.name in case.metrics
        logged = latest(trained(name)).meta["latest"]
        tag = f"validation_{task(case.task).primary_metric.name}"
        assert tag in logged
        assert logged[tag][1] == pytest.approx(found[task(case.task).primary_metric.name], rel=1e-4)


@ALL
def test_a_job_evaluates_each_sample_and_ranks_them(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    execute(tmp_path / "job", {"kind": "evaluate", "version": 1, "model": str(trained(name)), "split": "val"})
    files = ResultFiles(JobFolder(tmp_path / "job").results)
    summary = json.loads(files.summary.read_text())
    assert (summary["task"], summary["count"], summary["skipped"]) == (case.task, 10, 0)
    whole = evaluate({"folder": str(trained(name))})
    known = {**summary, **summary.get("metrics", {})}
    for metric in case.metrics:
        if isinstance(whole[metric], float) and "metrics" in summary:  # a classifier's are made of the arrays
            assert known[metric] == pytest.approx(whole[metric])
    context_arrays = {path.stem: np.load(path) for path in files.summary.parent.glob("*.npy")}
    assert set(case.arrays) <= set(context_arrays)
    if not case.metrics:  # what is measured is up to the network
        return
    np.testing.assert_array_equal(context_arrays["rows"], np.arange(10))
    assert len(files.keys.read_text().splitlines()) == 10
    for array, values in context_arrays.items():
        assert len(values) == 10 + (array == "key_offsets"), array
        assert np.isfinite(values).all(), array
    ranked = context_arrays[task(case.task).ranked_by]
    assert len(np.unique(ranked)) > 1


@ALL
def test_predictions_for_files_rows_and_texts(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    inputs = case.inputs or {"images": [first_image(case.data, tmp_path), str(tmp_path / "gone.png")]}
    found = predict({"folder": str(trained(name)), **inputs, "pictures": str(tmp_path / "pictures")})
    assert found["task"] == case.task
    is_image = "images" in inputs
    assert len(found["failures"]) == is_image
    assert len(found["predictions"]) == len(next(iter(inputs.values()))) - is_image
    for each in found["predictions"]:
        assert set(case.predicted) <= set(each)
        json.dumps(each, allow_nan=False)
        assert (each["picture"] is not None) == case.picture
    if case.picture:
        side = 24 if "preprocessing" in case.fields and case.task != "segmentation" else SIDE  # a mask has its image's
        assert cv2.imread(found["predictions"][0]["picture"]).shape == (side, side, 3)


@ALL
def test_going_on_in_mid_epoch_gives_the_same_job(name: str, tmp_path: Path) -> None:
    resumed = tmp_path / "job"
    shutil.copytree(trained(name), resumed)
    CheckpointStore(resumed / "checkpoints").remove_after(STOP)  # as if the worker had been killed behind it
    assert latest(resumed).meta["global_step"] == STOP < STEPS_PER_EPOCH
    execute(resumed)
    assert_same(trained(name), resumed)


@pytest.mark.parametrize("name", some_nightly(KILLED, but=["objects", "classified rows", "texts"]))
def test_a_killed_training_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    JobFolder(folder).spec.write_text(json.dumps(spec_of(CASES[name])))
    command = [sys.executable, "-c", KILLED_BEHIND_A_CHECKPOINT, str(folder), str(STOP + 1)]
    killed = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert latest(folder).meta["global_step"] == STOP < STEPS_PER_EPOCH
    execute(folder)
    assert_same(trained(name), folder)


def latest(folder: Path) -> RunState:
    newest = CheckpointStore(folder / "checkpoints", writable=False).latest()
    assert newest is not None
    return newest[1]


def assert_same(whole: Path, resumed: Path) -> None:
    """Fail unless two jobs ended alike: weights, slots, place in the data, and curves."""
    first, second = latest(whole), latest(resumed)
    assert first.meta["global_step"] == second.meta["global_step"] == EPOCHS * STEPS_PER_EPOCH
    assert list(first.arrays) == list(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
    assert first.meta["batches"] == second.meta["batches"]
    assert curves(whole) == curves(resumed)


def curves(folder: Path) -> list[tuple[str, int, float]]:
    """Return what was measured, but for times."""
    scalars = effective_scalars(read_events(JobFolder(folder).events)[0])
    timed = ("Throughput", "StepTime", "EstimatedTimeLeft")
    return [(each.tag, each.step, each.value) for each in scalars if not each.tag.startswith(timed)]
