"""Baselines of a finished training: computed once, within their time, and never in its way."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.datasets.small_datasets_for_versions import ANIMALS, PNG, animals, png, write_dataset
from tests.waiting import take_time
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities.baselines import JobBaseline, JobBaselines, baselines_line, read_baselines, write_baselines
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Column, Schema
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.tasks import TaskContext, task
from ziggurat.tasks.classification import Classification
from ziggurat.worker import baselines as module
from ziggurat.worker.baselines import keep_baselines
from ziggurat.worker.build import data_of

FORM = ImageForm(encoding="png", height_px=16, width_px=16, channels=3)


def image(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)


def trained(
    folder: Path, schema: Schema, splits: dict[str, list[Any]], form: ImageForm | None, tag: str, value: float
) -> tuple[TrainSpec, JobFolder, TaskContext]:
    """Return a job with one checkpoint at which a metric had a value."""
    write_dataset(folder / "data", splits, schema, image=form).close()
    content = {"kind": "train", "version": 1, "data": str(folder / "data"), "network": "mlp", "backend": "null"}
    spec = parse_spec({**content, "batch_size": 4}, source="a test")
    assert isinstance(spec, TrainSpec)
    job = JobFolder(folder / "job")
    job.path.mkdir()
    meta = {"global_step": 3, "epoch_num": 1, "latest": {tag: [3, value]}}
    CheckpointStore(job.checkpoints).save(RunState(meta, {"w": np.zeros(1)}))
    return spec, job, data_of(spec).context


def kept(spec: TrainSpec, job: JobFolder, context: TaskContext, **options: Any) -> JobBaselines | None:
    keep_baselines(spec, job, context, lambda: False, **options)
    return read_baselines(job)


def animal_job(folder: Path) -> tuple[TrainSpec, JobFolder, TaskContext]:
    train = [*animals(6), *animals(4, first=10, classes=1)]
    splits = {"train": train, "val": [*animals(3, first=20), *animals(1, first=30, classes=1)]}
    return trained(folder, ANIMALS, splits, PNG, "validation_accuracy", 0.75)


def row_job(folder: Path, target: str) -> tuple[TrainSpec, JobFolder, TaskContext]:
    columns = (Column(name="a", type="number"), Column(name="y", type="number"), Column(name="k", type="category"))
    names = ("low", "high") if target == "k" else ()
    rng = np.random.default_rng(0)

    def sample(number: int) -> tuple[str, tuple[bytes], Any]:
        a = float(rng.normal())
        cells = [a, 3 * a + 1 + 0.01 * float(rng.normal()), "high" if a > 0 else "low"]
        return f"{number}", (json.dumps(cells).encode(),), int(a > 0) if target == "k" else cells[1]

    splits = {"train": [sample(n) for n in range(60)], "val": [sample(n) for n in range(60, 100)]}
    metric = "validation_accuracy" if target == "k" else "validation_rmse"
    return trained(
        folder, Schema(kind="table", columns=columns, target=target, class_names=names), splits, None, metric, 0.5
    )


def test_classes_of_images_have_the_most_frequent_one(tmp_path: Path) -> None:
    found = kept(*animal_job(tmp_path))
    assert found is not None
    assert [each.name for each in found.baselines] == ["majority"]
    assert found.baselines[0].scores["accuracy"] == 0.5, "2 of 4 are cats"
    assert (found.value, found.checkpoint) == (0.75, "step-00000003")
    assert found.line == "Accuracy 75.0\u202f% against 50.0\u202f% (most frequent class)"
    assert baselines_line(animal := JobFolder(tmp_path / "job")) == found.line
    assert json.loads(animal.baselines.read_text())["metric"] == "accuracy"


@pytest.mark.parametrize("target", ["y", "k"])
def test_tables_have_a_linear_model_and_boosting(tmp_path: Path, target: str) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    found = kept(*row_job(tmp_path, target))
    assert found is not None
    assert [each.name for each in found.baselines] == ["mean" if target == "y" else "majority", "linear", "boosting"]
    linear = found.baselines[1].scores
    assert linear["rmse"] < 0.02 if target == "y" else linear["accuracy"] > 0.9
    assert found.best is not None
    assert found.best.name in (("linear",) if target == "y" else ("linear", "boosting"))
    assert found.line.startswith("RMSE 0.5 against 0.0" if target == "y" else "Accuracy 50.0\u202f% against ")


def test_a_missing_scikit_learn_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn.linear_model", "sklearn.ensemble", "sklearn.multioutput"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    found = kept(*row_job(tmp_path, "y"))
    assert found is not None
    assert [bool(each.scores) for each in found.baselines] == [True, False, False]
    assert "(mean of the training split). No linear regression: The package `scikit-learn` is not" in found.line


def test_masks_have_the_class_of_most_pixels(tmp_path: Path) -> None:
    schema = Schema(kind="segmentation", class_names=("ground", "square"), ignore_class=255)

    def sample(number: int) -> tuple[str, tuple[bytes, bytes], None]:
        mask = np.zeros((16, 16), np.uint8)
        mask[:4, :4], mask[15] = 1, 255
        return f"{number}.png", (png(image(number)), png(mask)), None

    splits = {"train": [sample(n) for n in range(8)], "val": [sample(n) for n in range(8, 11)]}
    found = kept(*trained(tmp_path, schema, splits, FORM, "validation_mean_iou", 0.9))
    assert found is not None
    known = 15 * 16
    assert found.baselines[0].scores["mean_iou"] == pytest.approx(((known - 16) / known + 0) / 2)
    assert found.baselines[0].scores["pixel_accuracy"] == pytest.approx((known - 16) / known)


def test_images_have_the_mean_image(tmp_path: Path) -> None:
    schema = Schema(kind="image-to-image")
    splits = {
        split: [(f"{n}.png", (png(image(n)), png(image(n + 100))), None) for n in range(first, last)]
        for split, first, last in (("train", 0, 8), ("val", 8, 11))
    }
    found = kept(*trained(tmp_path, schema, splits, FORM, "validation_psnr", 20.0))
    assert found is not None
    mean = np.mean([image(n + 100) for n in range(8)], axis=0)
    errors = [np.square((mean - image(n + 100)) / 255).mean() for n in range(8, 11)]
    assert found.baselines[0].scores["mse"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert found.baselines[0].scores["psnr"] == pytest.approx(
        np.mean([-10 * np.log10(each) for each in errors]), rel=1e-5
    )


def test_values_of_images_have_the_mean(tmp_path: Path) -> None:
    splits = {
        split: [(f"{n}.png", (png(image(n)),), [float(n), 2.0 * n]) for n in range(first, last)]
        for split, first, last in (("train", 0, 8), ("val", 8, 11))
    }
    found = kept(*trained(tmp_path, Schema(kind="image-regression"), splits, FORM, "validation_rmse", 1.0))
    assert found is not None
    numbers = np.arange(8, 11)[:, None] * [1.0, 2.0]
    errors = numbers - np.arange(8)[:, None].mean(axis=0) * [1.0, 2.0]
    assert found.baselines[0].scores["rmse"] == pytest.approx(np.sqrt(np.square(errors).mean(axis=0)).mean(), rel=1e-5)


def test_they_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, job, context = animal_job(tmp_path)
    first = kept(spec, job, context)
    assert first is not None
    monkeypatch.setattr(module, "open_source", lambda *_: pytest.fail("it was computed again"))
    meta = {"global_step": 9, "epoch_num": 3, "latest": {"validation_accuracy": [9, 1.0]}}
    CheckpointStore(job.checkpoints).save(RunState(meta, {"w": np.zeros(1)}))
    second = kept(spec, job, context)
    assert second is not None
    assert second.baselines == first.baselines
    assert (second.value, second.checkpoint) == (1.0, "step-00000009")


def test_too_much_time_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classification, "baselines", lambda *_: take_time(30))
    began = time.monotonic()
    found = kept(*animal_job(tmp_path), limit_s=0.2)
    assert time.monotonic() - began < 10
    assert found is not None
    assert (found.baselines, found.reason, found.line) == ((), "They took more than 0.2 s.", "")


def test_an_error_of_a_baseline_does_not_leave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(Classification, "baselines", fail)
    spec, job, context = animal_job(tmp_path)
    found = kept(spec, job, context)
    assert found is not None
    assert found.reason == "They cannot be computed: RuntimeError: no luck."
    assert "cannot be computed" in caplog.text
    monkeypatch.setattr(module, "write_baselines", fail)
    keep_baselines(spec, job, context, lambda: False)
    assert "are not kept: no luck" in caplog.text


def test_a_stop_gives_them_up(tmp_path: Path) -> None:
    spec, job, context = animal_job(tmp_path)
    keep_baselines(spec, job, context, lambda: True)
    assert not job.baselines.exists()


def test_data_without_validation_says_so(tmp_path: Path) -> None:
    found = kept(*trained(tmp_path, ANIMALS, {"train": animals(6)}, PNG, "x", 1))
    assert found is not None
    assert "a validation split, which this data does not have" in found.reason


def test_a_task_without_baselines_keeps_nothing(tmp_path: Path) -> None:
    spec, job, context = animal_job(tmp_path)
    keep_baselines(spec, job, TaskContext(task("free"), context.schema, context.preprocessing), lambda: False)
    assert not job.baselines.exists()


def test_the_better_baseline_stands_in_the_line(tmp_path: Path) -> None:
    def line(mode: Any, value: float | None, reason: str = "") -> str:
        pairs = (("mean", 3.0), ("linear", 2.231), ("boosting", None))
        each = [
            JobBaseline(name=name, title=f"{name} model", scores={} if own is None else {"rmse": own}, reason=reason)
            for name, own in pairs
        ]
        found = JobBaselines(
            metric="rmse", mode=mode, title="RMSE", value=value, checkpoint="step-00000001", baselines=tuple(each)
        )
        write_baselines(JobFolder(tmp_path), found)
        assert read_baselines(JobFolder(tmp_path)) == found
        return baselines_line(JobFolder(tmp_path))

    assert line("min", 2.171) == "RMSE 2.171 against 2.231 (linear model)"
    assert line("max", 2.171) == "RMSE 2.171 against 3 (mean model)"
    assert line("min", None) == ""
    assert line("min", 2.0, "It is late.") == "RMSE 2 against 2.231 (linear model). No boosting model: It is late."
    JobFolder(tmp_path).baselines.write_text("{}")
    assert baselines_line(JobFolder(tmp_path)) == ""
