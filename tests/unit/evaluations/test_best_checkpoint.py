"""Which checkpoint is the best: decided by the primary metric, measured at that very step, in one place."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.unit.checkpoint_samples import write_checkpoint
from ziggurat.entities.best_checkpoint import (
    best_checkpoint,
    find_checkpoint,
    known_mode,
    metric_names,
    metric_text,
    metric_title,
    primary_metric,
)
from ziggurat.errors import CheckpointError, MissingCheckpointError
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_train_spec
from ziggurat.workspace.workspace import open_folders

_FIXTURE = Path(__file__).parents[2] / "fixtures" / "workspace-0.1.0.tar.xz"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["cost", "accuracy", "validation_cost", "validation_accuracy"], ("validation_accuracy", "max")),
        (["validation_cost", "validation_error"], ("validation_error", "min")),
        (["val/loss", "train/loss"], ("val/loss", "min")),
        (["validation_iou", "validation_cost"], ("validation_cost", "min")),
        (["cost", "accuracy"], None),
        ([], None),
    ],
)
def test_primary_metric_is_accuracy_then_loss(tags, expected):
    assert primary_metric(tags) == expected


def test_metric_title_is_in_the_words_of_the_field():
    assert metric_title("validation_cost") == "validation loss"
    assert metric_title("val/accuracy") == "validation accuracy"
    assert metric_title("cost") == "training loss"
    assert metric_title("learning_rate") == "learning rate"


@pytest.mark.parametrize(
    ("tag", "title"),
    [
        ("validation_rmse", "validation RMSE"),
        ("validation_mean_iou", "validation mean IoU"),
        ("val/psnr", "validation PSNR"),
        ("validation_r2", "validation R²"),
        ("validation_f1_macro", "validation macro F1"),
        ("validation_roc_auc", "validation ROC AUC"),
    ],
)
def test_metric_title_is_that_of_the_task(tag, title):
    assert metric_title(tag) == title


def test_metric_names_tell_charts_what_comes_first():
    found = metric_names()
    assert found["titles"]["mean_iou"] == "Mean IoU"
    assert found["shares"]["mean_iou"]
    assert not found["shares"]["rmse"]
    assert {"rmse", "mean_iou", "psnr", "mean_ap"} <= set(found["first"])
    assert "accuracy" not in found["first"], "several tasks have one, and it stands for different things"
    assert {found["charts"]["ap50"], found["charts"]["ap75"]} == {"map"}
    assert found["folded"] == ["map_large", "map_medium", "map_small"]
    assert (known_mode("validation_rmse"), known_mode("threshold"), known_mode("cost")) == ("min", "", None)


@pytest.mark.parametrize(
    ("tag", "value", "text"),
    [
        ("validation_accuracy", 0.914, "91.4\u202f%"),
        ("val/top5", 1.0, "100.0\u202f%"),
        ("validation_error", 0.086, "8.6\u202f%"),
        ("mean_iou", 0.5, "50.0\u202f%"),
        ("mean_absolute_error", 0.25, "0.25"),
        ("mape", 0.25, "0.25"),
        ("accuracy", 1.5, "1.5"),
        ("validation_cost", 0.31834, "0.3183"),
        ("accuracy", float("nan"), "NaN"),
        ("accuracy", None, "–"),
        ("validation_psnr", 22.64, "22.64 dB"),
        ("psnr", None, "–"),
        ("validation_mean_ap", 0.5, "50.0\u202f%"),
        ("equal_error_rate", 0.2234, "22.3\u202f%"),
        ("validation_roc_auc", 0.8631, "0.8631"),
        ("validation_rmse", 0.5, "0.5"),
    ],
)
def test_a_share_is_percent_and_other_values_are_numbers(tag, value, text):
    assert metric_text(tag, value) == text


def test_best_is_the_one_that_a_name_marks(tmp_path):
    write_checkpoint(tmp_path, 66, 6, validation_accuracy=0.2603, given="best")
    write_checkpoint(tmp_path, 88, 8, validation_accuracy=0.226)

    best = best_checkpoint(JobFolder(tmp_path))
    assert best.text == "Best: step 66, epoch 6 (validation accuracy 26.0\u202f%)"
    assert find_checkpoint(JobFolder(tmp_path)).step == 66
    assert find_checkpoint(JobFolder(tmp_path), "latest").step == 88


def test_best_of_a_run_without_a_mark_is_of_the_kept_ones(tmp_path):
    for step, value in ((231, 0.137), (242, 0.1575), (264, 0.1575), (275, 0.15)):
        write_checkpoint(tmp_path, step, step // 11, validation_accuracy=value, validation_cost=9.0)

    best = best_checkpoint(JobFolder(tmp_path))
    assert best.text == "Best of the kept checkpoints: step 242, epoch 22 (validation accuracy 15.8\u202f%)"
    assert find_checkpoint(JobFolder(tmp_path), "best").step == 242, "the earlier one of equals"


def test_best_counts_only_what_was_measured_at_its_step(tmp_path):
    write_checkpoint(tmp_path, 10, 1, validation_accuracy=0.5)
    write_checkpoint(tmp_path, 20, 2, validation_accuracy=0.9, measured_at=15)
    write_checkpoint(tmp_path, 30, 3, validation_accuracy=float("nan"))

    assert best_checkpoint(JobFolder(tmp_path)).checkpoint.step == 10


def test_best_without_a_validation_is_the_newest_and_says_so(tmp_path):
    write_checkpoint(tmp_path, 10, 1, cost=0.1)
    write_checkpoint(tmp_path, 20, 2, cost=0.2)

    assert best_checkpoint(JobFolder(tmp_path)).text == "Newest: step 20, epoch 2 (no validation metric)"
    assert find_checkpoint(JobFolder(tmp_path)).step == 20
    with pytest.raises(MissingCheckpointError, match=r"`best` .*: no validation metric tells which one it is"):
        find_checkpoint(JobFolder(tmp_path), "best")


def test_best_by_a_chosen_curve_names_that_curve(tmp_path):
    write_checkpoint(tmp_path, 10, 1, validation_accuracy=0.5, validation_cost=1.0, given="min-validation_cost")
    write_checkpoint(tmp_path, 20, 2, validation_accuracy=0.9, validation_cost=2.0)

    assert best_checkpoint(JobFolder(tmp_path)).text == "Best: step 10, epoch 1 (validation loss 1)"


def test_best_survives_damaged_files(tmp_path):
    write_checkpoint(tmp_path, 10, 1, validation_accuracy=0.5)
    write_checkpoint(tmp_path, 20, 2, validation_accuracy=0.9)
    (tmp_path / "checkpoints" / "step-00000020" / "state.json").write_text("{")
    (tmp_path / "checkpoints" / "names.json").write_text(json.dumps(["odd"]))

    assert best_checkpoint(JobFolder(tmp_path)).checkpoint.step == 10


def test_no_checkpoint_is_an_error_that_says_what_to_do(tmp_path):
    assert best_checkpoint(JobFolder(tmp_path)) is None
    with pytest.raises(CheckpointError, match=r"must have a checkpoint\. Train it first"):
        find_checkpoint(JobFolder(tmp_path))


def test_best_of_a_training_of_0_1_is_of_those_that_are_left(tmp_path):
    with tarfile.open(_FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "workspace-0.1.0" / "jobs" / "20261122-081113-1a4c"

    status = open_folders(Settings()).jobs.get(str(folder))
    assert status.best_checkpoint == (
        "Best of the kept checkpoints: step 126, epoch 21 (validation accuracy 61.1\u202f%)"
    ), "its best one, of step 24, is gone"
    assert load_train_spec(folder / "spec.json").checkpoints.keep_best is None, "a resume keeps what it was asked for"
