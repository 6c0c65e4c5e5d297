"""What cannot be trained is told before anything is created, all of it at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.errors import ConfigurationError, DataError, MissingDependencyError, UnknownNameError, ZigguratError
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec, load_train_spec, parse_spec
from ziggurat.workspace.training_checks import obstacle_of, why_no_fit, why_not_trainable
from ziggurat.workspace.workspace import open_folders
from ziggurat.zoo import STANDARD_NETWORKS
from ziggurat.zoo.network_task import kinds_of


def _spec(**fields: Any) -> TrainSpec:
    content = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", **fields}
    spec = parse_spec(content, source="a test")
    assert isinstance(spec, TrainSpec)
    return spec


def _class_folders(folder: Path, side_px: int = 12) -> Path:
    for number in range(6):
        path = folder / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((side_px, side_px, 3), 40 * number, np.uint8))
    return folder


def _table(folder: Path) -> Path:
    folder.mkdir()
    rows = [f"{number},{number * number % 7},{number % 2}" for number in range(12)]
    (folder / "rows.csv").write_text("\n".join(["a,b,class", *rows]))
    return folder / "rows.csv"


def _dataset(source: Path, folder: Path) -> Path:
    create_dataset(CreationRequest(source=str(source), name="set", workers=0), folder)
    return folder


def test_obstacle_of_finds_nothing_against_a_sound_job(tmp_path):
    assert obstacle_of(_spec()) is None
    assert obstacle_of(_spec(network="lenet")) is None
    pets = str(_class_folders(tmp_path / "pets"))
    assert obstacle_of(_spec(data=pets, network="convnet", batch_size=2)) is None


def test_obstacle_of_says_why_samples_are_not_mixed(tmp_path):
    mixed = {"augmentation": {"cutmix": 1.0}}
    assert obstacle_of(_spec(**mixed)) is None
    assert (
        obstacle_of(_spec(**mixed, backend="tensorflow", network={"path": __file__, "text": "", "source": "file"}))
        is None
    )
    error = obstacle_of(_spec(**mixed, backend="tensorflow", network="autoencoder"))
    assert "does not learn one class for each image" in str(error)
    assert error.details["field"] == "augmentation.cutmix"
    table = _dataset(_table(tmp_path / "table"), tmp_path / "set")
    error = obstacle_of(_spec(**mixed, network="table_mlp", backend="tensorflow", data=str(table)))
    assert "Mixup and CutMix mix" in str(error)


def test_obstacle_of_lists_all_that_is_wrong(tmp_path):
    spec = _spec(network="lenett", data=str(tmp_path / "digit"), pretrained=str(tmp_path / "weights"))

    error = obstacle_of(spec)

    assert error is not None
    assert [each["field"] for each in error.details["problems"]] == ["network.name", "data.source", "pretrained"]
    assert str(error).startswith("The training cannot start for 3 reasons.")
    assert "`lenett` is not a known standard network. Did you mean `lenet` or " in str(error)
    assert "digit', neither `digits` nor a folder" in str(error)


@pytest.mark.parametrize(
    ("fields", "family", "sentence"),
    [
        ({"backend": "tensorflo"}, UnknownNameError, "`tensorflo` is not a known backend. Did you mean `tensorflow`?"),
        (
            {"backend": "tensorflow"},
            UnknownNameError,
            "`mlp` is not a known standard network of the backend tensorflow",
        ),
        ({"network": "lenet", "backend": "null"}, UnknownNameError, "of the backend null. Known: linear, mlp,"),
        ({"network": "mine.py", "backend": "null"}, ZigguratError, "the backend `null` trains `mlp` or `linear`"),
        ({"network": "mine.py"}, ZigguratError, "file mine.py cannot be read as Python text"),
        ({"data": "digit"}, DataError, "Did you mean `digits`?"),
        ({"data": {"source": "digits", "options": {"siz": 8}}}, UnknownNameError, "Did you mean `size`?"),
        ({"network": "unet"}, ZigguratError, "Segmentation needs images with masks"),
        ({"network": "regression"}, ZigguratError, "Regression needs measured values for each sample"),
        ({"network": "vgg16"}, ZigguratError, "at least 32 x 32 px; these have 28 x 28 px."),
        ({"network": "lenet", "preprocessing": {"crop": 12}}, ZigguratError, "these have 12 x 12 px."),
        ({"class_weights": [1, 2, 3]}, ZigguratError, "a class weight for each of the 10 classes (received: 3)."),
    ],
)
def test_obstacle_of_names_the_one_thing(fields, family, sentence):
    error = obstacle_of(_spec(**fields))

    assert isinstance(error, family)
    assert sentence in str(error)


def test_obstacle_of_knows_what_a_data_set_is_for(tmp_path):
    error = obstacle_of(_spec(data=str(_dataset(_table(tmp_path / "table"), tmp_path / "set")), batch_size=2))

    assert isinstance(error, ConfigurationError)
    assert error.rule.startswith("The network `mlp` must fit the data. It takes images")
    assert obstacle_of(_spec(network="table_mlp", data=str(tmp_path / "set"), batch_size=2)) is None
    mine = {"source": "file", "path": "mine.py", "text": "class UserModel(Tower):\n    task = 'segmentation'\n"}
    assert "Segmentation needs images with masks" in str(obstacle_of(_spec(network=mine, data=str(tmp_path / "set"))))


def test_obstacle_of_compares_the_batch_with_the_split(tmp_path):
    folder = _dataset(_class_folders(tmp_path / "pets"), tmp_path / "set")

    assert "larger than the training split" in str(obstacle_of(_spec(data=str(folder))))
    assert obstacle_of(_spec(data=str(folder), batch_size=2)) is None


def test_obstacle_of_refuses_a_folder_without_classes(tmp_path):
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "one.png").touch()

    assert "has no folder for each class with images in it" in str(obstacle_of(_spec(data=str(tmp_path / "flat"))))


def test_obstacle_of_leaves_pending_data_alone(tmp_path):
    later = _spec(data=str(tmp_path / "later"), pretrained=str(tmp_path / "job"))

    assert obstacle_of(later, pending=("data", "pretrained")) is None


def test_the_auto_encoder_takes_any_images():
    assert obstacle_of(_spec(network="autoencoder")) is None


def test_a_missing_framework_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert obstacle_of(_spec(network="lenet")) is None, "the other framework has it, too"
    monkeypatch.setitem(sys.modules, "torch", None)

    error = obstacle_of(_spec(network="lenet"))

    assert isinstance(error, MissingDependencyError)
    assert "Install it with: pip install 'ziggurat[tensorflow]'." in str(error)
    assert obstacle_of(_spec(network="mlp")) is None


def test_networks_say_what_they_learn_from():
    assert (
        why_no_fit(STANDARD_NETWORKS["lenet"], "image-pairs", None) == "It takes images, which this data does not have."
    )
    assert why_no_fit(STANDARD_NETWORKS["lenet"], "image-classification", (15, 40)).startswith(
        "It needs images of at least 16 x 16 px"
    )
    assert why_no_fit(None, "table", None) == ""
    assert all(kinds_of(network) for network in STANDARD_NETWORKS.values())


def test_every_kind_that_is_not_trained_says_so():
    assert why_not_trainable("image-classification") == ""
    assert why_not_trainable("generic") == (
        "Training for generic arrays is not available yet. You can explore, check, correct and export this set."
    )


@pytest.mark.parametrize(("network", "backend"), [("mlp", "null"), ("linear", "null"), ("lenet", "tensorflow")])
def test_a_job_records_the_backend_that_was_chosen(tmp_path, network, backend):
    folder = open_folders(Settings(workspace=tmp_path)).jobs.create(_spec(network=network))

    assert load_train_spec(folder / "spec.json").backend == backend


def test_a_refused_training_leaves_no_folder(tmp_path):
    workspace = open_folders(Settings(workspace=tmp_path))
    with pytest.raises(DataError):
        workspace.jobs.create(_spec(data="nowhere"), tmp_path / "j1")

    assert not (tmp_path / "j1").exists()
    assert not (tmp_path / "jobs").exists()
