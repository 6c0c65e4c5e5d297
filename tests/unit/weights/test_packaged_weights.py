"""The weights that come with Ziggurat: their file, and adding them without a connection."""

from __future__ import annotations

import dataclasses
import hashlib
import socket

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.unit.weights.weight_samples import weights_file
from ziggurat.errors import CheckpointError, DataError
from ziggurat.settings import load_settings
from ziggurat.worker.pretrained_weights import without_other_head
from ziggurat.workspace.weights import Weights
from ziggurat.workspace.workspace import open_folders
from ziggurat.zoo.public_weights import PUBLIC_WEIGHTS, public_weights

PACKAGED = [each for each in PUBLIC_WEIGHTS if each.is_packaged and not each.package]
MOST_BYTES = 1_500_000


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Settings of a workspace on a machine without a network."""

    def refuse(*_words, **_named):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})


@pytest.mark.parametrize("entry", PACKAGED, ids=lambda entry: entry.name)
def test_packaged_file_is_the_one_that_the_list_states(entry):
    content = entry.packaged_path.read_bytes()
    arrays = load_file(entry.packaged_path)

    assert hashlib.sha256(content).hexdigest() == entry.sha256
    assert len(content) == entry.size_bytes <= MOST_BYTES
    assert len(entry.classes) == entry.class_count == arrays["logits.weight"].shape[0] == 10
    assert {array.dtype for name, array in arrays.items() if not name.endswith("tracked")} == {np.dtype(np.float32)}
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert (entry.license, entry.host, entry.url) == ("Apache-2.0; trained on Fashion-MNIST (MIT)", "", "")


def test_no_file_lies_in_the_package_without_an_entry():
    folder = PACKAGED[0].packaged_path.parent
    assert {each.name for each in folder.glob("*.safetensors")} == {each.packaged_file for each in PACKAGED}


def test_packaged_weights_are_added_without_a_network(settings):
    public = public_weights("convnet-fashion")
    weights = open_folders(settings).weights
    made = weights.download("convnet-fashion", added_by="ann")

    assert made == weights.get("convnet-fashion")
    assert made.sha256 == made.source_sha256 == public.sha256
    assert (made.network, made.class_count, made.classes) == ("convnet", 10, public.classes)
    assert (made.license, made.source, made.added_by) == (public.license, public.source, "ann")
    assert made.preprocessing == public.preprocessing
    assert made.parameters == sum(array.size for array in weights.folder.arrays("convnet-fashion").values())


def test_packaged_file_that_is_another_one_is_refused(settings, tmp_path):
    other = weights_file(tmp_path)
    folders = open_folders(settings)
    public = dataclasses.replace(public_weights("convnet-fashion"), packaged_file=str(other))  # an absolute path wins
    weights = Weights(settings, folders.tasks, folders.jobs, public=[public])
    with pytest.raises(CheckpointError, match="is not the file that its publisher states"):
        weights.download("convnet-fashion")
    other.unlink()
    with pytest.raises(DataError, match="come with Ziggurat") as raised:
        weights.download("convnet-fashion")
    assert raised.value.advice == "Install Ziggurat again."
    assert weights.all() == []


def test_the_convnet_has_a_fresh_head_for_other_classes():
    entry = public_weights("convnet-fashion")
    arrays = load_file(entry.packaged_path)
    three, sentence = without_other_head(arrays, "convnet", "abc", entry.classes)
    ten, told = without_other_head(arrays, "convnet", "0123456789", entry.classes)

    assert sentence == "10 classes there, 3 here: the last layer starts fresh."
    assert told == "Classes such as `T-shirt/top` there, `0` here: the last layer starts fresh."
    assert set(arrays) - set(three) == set(arrays) - set(ten) == {"logits.weight", "logits.bias"}
    same = [name.upper() for name in entry.classes]
    assert without_other_head(arrays, "convnet", same, entry.classes) == (arrays, "")
    assert without_other_head(arrays, "convnet", "0123456789") == (arrays, "")
