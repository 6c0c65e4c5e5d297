"""Use cases of weights over a workspace of folders: add, remove while used, and a training that starts from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.unit.weights.weight_samples import add_entry, small_weights, weights_file
from ziggurat.engine.backend import ProgramRequest
from ziggurat.errors import (
    CheckpointError,
    ConfigurationError,
    JobError,
    MissingDependencyError,
    MissingEntryError,
    UnknownNameError,
    UsageError,
)
from ziggurat.layout import JobFolder
from ziggurat.records.feature_store import FeatureKey, FeatureStore
from ziggurat.settings import Settings, load_settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import data_of, program_request
from ziggurat.worker.commands.pretrained_weights import convert_weights
from ziggurat.worker.pretrained_weights import read_weights, weights_folders, without_other_head
from ziggurat.workspace.training_checks import obstacle_of
from ziggurat.workspace.weights import NewWeights, class_names_of, preprocessing_of
from ziggurat.workspace.workspace import open_folders
from ziggurat.zoo.backends import AUTO, why_not_usable


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def workspace(root):
    return open_folders(load_settings({"ZIGGURAT_WORKSPACE": str(root), "HOME": str(root)}))


def spec_of(**fields: object) -> TrainSpec:
    content = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "data": "digits", "epochs": 1}
    spec = parse_spec({**content, **fields}, source="the test")
    assert isinstance(spec, TrainSpec)
    return spec


def test_a_file_is_added_with_what_is_known(workspace, root, tmp_path):
    file = weights_file(tmp_path)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    new = NewWeights(network="resnet18", license=" MIT ", sha256=digest[:10].upper(), classes=("a", "b", "c"))
    made = workspace.weights.add(file, new, added_by="ann")

    assert (made.name, made.title, made.network, made.license) == ("small", "small", "resnet18", "MIT")
    assert (made.class_count, made.classes, made.added_by) == (3, ("a", "b", "c"), "ann")
    assert made.sha256 == made.source_sha256 == digest
    assert made.added > 0
    assert file.is_file()
    assert load_file(root / "weights" / "small" / "weights.safetensors")["fc.bias"].tolist() == [0, 1, 2]
    assert workspace.weights.all() == [made]


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"network": "resnet19"}, UnknownNameError, "resnet18"),
        ({"sha256": "0" * 64}, CheckpointError, "is not the file that its publisher states"),
        ({"sha256": "xyz"}, UsageError, "hexadecimal"),
        ({"classes": ("a", "b")}, CheckpointError, "2 classes, and a last layer for 3"),
        ({"classes": ("a", "b", "c"), "class_count": 4}, UsageError, "3 names"),
        ({"license": "two\nlines"}, UsageError, "one line"),
        ({"source": "x" * 1001}, UsageError, "1000"),
        ({"name": "../up"}, UsageError, "letters, digits"),
    ],
)
def test_what_is_said_wrongly_is_refused(workspace, root, tmp_path, changes, kind, text):
    with pytest.raises(kind, match=text):
        workspace.weights.add(weights_file(tmp_path), NewWeights(**changes))
    assert workspace.weights.all() == []
    assert not list(root.glob("weights/*"))


def test_other_files_are_refused(workspace, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UsageError, match=r"`\.safetensors`, `\.pth`, `\.pt`"):
        workspace.weights.add(tmp_path / "a.txt", NewWeights())
    with pytest.raises(UsageError, match="does not exist"):
        workspace.weights.add(tmp_path / "gone.safetensors", NewWeights())


def test_without_pytorch_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as where it is not installed
    monkeypatch.delitem(sys.modules, "ziggurat.backends.torch.pth_files", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ziggurat\[torch\]'"):
        convert_weights({"file": str(tmp_path / "a.pth"), "out": str(tmp_path / "a.safetensors")})


def test_weights_of_a_waiting_training_are_kept(workspace, root, tmp_path):
    add_entry(root)
    folder = workspace.jobs.create(spec_of(name="mine", pretrained="weights:small"))
    (user,) = workspace.weights.users("small")

    assert (user.id, user.name, user.state) == (str(folder), "mine", "queued")
    with pytest.raises(JobError, match="mine"):
        workspace.weights.remove("small")
    event = {"type": "attempt_ended", "time": 5.0, "outcome": "done", "exit_code": 0, "reason": "done"}
    JobFolder(folder).events.write_text(json.dumps({**event, "global_step": 1}) + "\n")
    assert workspace.weights.users("small")[0].state != "queued"
    workspace.weights.remove("small")
    assert workspace.weights.all() == []


def test_a_training_names_weights_that_are_there(root):
    add_entry(root, network="resnet18")
    spec = spec_of(pretrained="weights:gone")
    with pytest.raises(MissingEntryError, match="Known: `small`"):
        raise obstacle_of(spec, workspace=root) or AssertionError
    with pytest.raises(ConfigurationError, match="Use the network `resnet18`"):
        raise obstacle_of(spec_of(pretrained="weights:small"), workspace=root) or AssertionError
    assert obstacle_of(spec_of(pretrained="weights:small")) is None


@pytest.mark.parametrize(("network", "fits"), [("resnet18", True), ("detector_small", True), ("detector_nano", False)])
def test_weights_fit_what_begins_with_their_network(root, network, fits):
    add_entry(root, network="resnet18")
    spec = spec_of(backend="torch", network=network, pretrained="weights:small")
    problem = obstacle_of(spec, pending=("data",), workspace=root)
    assert ("Pretrained weights fit the network that they are of" not in str(problem)) == fits


def test_the_last_layer_for_other_classes_starts_fresh(root, caplog):
    add_entry(root, network="resnet18")
    folders = [root / "weights"]
    same = read_weights("weights:small", folders, network="", classes="abc", backend="torch")
    with caplog.at_level(logging.INFO):
        other = read_weights("weights:small", folders, network="", classes="0123456789", backend="torch")

    assert set(same) == {f"model/{name}" for name in small_weights()}
    assert set(same) - set(other) == {"model/fc.weight", "model/fc.bias"}
    np.testing.assert_array_equal(other["model/conv1.weight"], small_weights()["conv1.weight"])
    assert "3 classes there, 10 here: the last layer starts fresh." in caplog.text
    assert without_other_head(small_weights(), "", ())[1].startswith("3 classes there, none here")


def test_weights_without_a_head_are_taken_whole():
    arrays = {"features.0.weight": np.zeros((4, 3, 3, 3), np.float32)}
    assert without_other_head(arrays, "vgg16", "0123456789") == (arrays, "")


def test_missing_weights_name_the_folders(root):
    with pytest.raises(MissingEntryError, match="weights list"):
        read_weights("weights:small", [root / "weights"], network="", classes="abc", backend="null")


def test_a_job_finds_the_weights_of_its_own_workspace(root, tmp_path):
    settings = Settings(workspace=tmp_path / "other")
    inside = weights_folders(JobFolder(root / "jobs" / "1"), settings)
    outside = weights_folders(JobFolder(tmp_path / "elsewhere"), settings)
    assert inside == (root / "weights", tmp_path / "other" / "weights")
    assert outside == (tmp_path / "other" / "weights",)


def test_weights_of_other_color_channels_are_refused_at_once(root):
    add_entry(root, network="mlp", preprocessing={"color": "RGB"})
    found = obstacle_of(spec_of(pretrained="weights:small"), workspace=root)
    assert "received: 1 channel for `weights:small`, which are for 3)." in str(found)
    assert found.advice == "Set `preprocessing.channels` to 3."
    colored = spec_of(pretrained="weights:small", preprocessing={"channels": 3})
    assert obstacle_of(colored, workspace=root) is None


def test_a_program_is_asked_for_with_the_weights(root):
    add_entry(root, classes=10)
    spec = spec_of(pretrained="weights:small")
    request: ProgramRequest = program_request(spec, data_of(spec), None, [root / "weights"])
    assert request.pretrained is not None
    assert request.pretrained["model/fc.weight"].shape == (10, 4)


def test_class_names_come_as_lines_or_as_json():
    assert class_names_of("\ufeffcat\n dog \nÖlfass\n\n".encode()) == ("cat", "dog", "Ölfass")
    assert class_names_of(b'["cat", "dog"]') == ("cat", "dog")
    for bad in (b"\xff\xfe\x00", b'["cat", 1]', b"[", b'[["cat"]]', b"a\x07b"):
        with pytest.raises(UsageError, match="one name in each line"):
            class_names_of(bad)


def test_preprocessing_is_read_of_typed_texts():
    assert preprocessing_of("0.485, 0.456 0.406", "0.5", "224x192", "rgb") == {
        "color": "RGB",
        "size": [224, 192],
        "mean": [0.485, 0.456, 0.406],
        "std": [0.5],
    }
    assert preprocessing_of(size="32") == {"size": [32, 32]}
    assert preprocessing_of() == {}
    for name, text in (
        ("mean", "a"),
        ("mean", "1,2,3,4,5"),
        ("std", "nan"),
        ("size", "2.5"),
        ("size", "0"),
        ("color", "x"),
    ):
        with pytest.raises(UsageError) as raised:
            preprocessing_of(**{name: text})
        assert raised.value.details["field"] == name


def test_a_job_adds_the_weights_that_are_on_this_machine(workspace, root):
    spec = spec_of(
        pretrained="weights:convnet-fashion", network="convnet", backend=AUTO, fine_tuning={"fit_head": True}
    )
    if why_not_usable("torch") is not None and why_not_usable("tensorflow") is not None:
        pytest.skip("no framework with this network is installed")
    assert not list(root.glob("weights/*"))
    workspace.jobs.create(spec, root / "jobs" / "one")
    assert workspace.weights.get("convnet-fashion").class_count == 10
    workspace.jobs.create(spec, root / "jobs" / "two")  # they are there now


def test_a_file_with_another_checksum_is_not_added(workspace, root):
    (entry,) = (each for each in workspace.weights.public if each.name == "convnet-fashion")
    workspace.weights.public = (dataclasses.replace(entry, sha256="0" * 64),)
    with pytest.raises(
        CheckpointError,
        match=f"{entry.packaged_file}` is not the file .*: its SHA-256 is {entry.sha256}, expected 0000",
    ):
        workspace.weights.add_named("weights:convnet-fashion")
    assert not workspace.weights.all()
    workspace.weights.add_named("weights:unknown")  # the check of the job says so
    workspace.weights.add_named(None)


def test_only_one_class_for_each_sample_can_be_fitted(root):
    problem = obstacle_of(spec_of(fine_tuning={"fit_head": True}, pretrained="weights:x", task="free"))
    assert problem is not None
    texts = [each["rule"] for each in problem.details["problems"]]
    assert any("Only for one class for each sample can the last layer be fitted" in text for text in texts), texts


def test_stored_features_are_deleted(workspace, root):
    store = FeatureStore(root / "features")
    store.write(FeatureKey(samples="s", weights="w", network="n"), [np.zeros((2, 3), np.float32)], 2)
    assert workspace.weights.delete_features() > 24
    assert not list(root.glob("features/*"))
    assert workspace.weights.delete_features() == 0
