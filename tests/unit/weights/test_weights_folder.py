"""The folder of weights: complete entries only, checked at every use, whatever its files say."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from tests.unit.weights.weight_samples import add_entry, small_weights, weights_file
from ziggurat.engine.fine_tuning import head_of
from ziggurat.entities.pretrained_weights import PretrainedWeights, preprocessing_text, weights_name
from ziggurat.errors import CheckpointError, MissingEntryError, UsageError
from ziggurat.layout import WeightsFiles
from ziggurat.zoo.heads import head_beginning, head_classes, head_keys
from ziggurat.zoo.weights_folder import WeightsFolder


def test_an_entry_is_added_listed_read_and_removed(tmp_path):
    folder = add_entry(tmp_path, license="MIT", classes=3, preprocessing={"mean": [0.5], "color": "RGB"})
    entry = folder.get("small")

    assert (entry.title, entry.license, entry.class_count, entry.arrays, entry.parameters) == (
        "Small",
        "MIT",
        3,
        5,
        128,
    )
    assert entry.size_bytes == (tmp_path / "weights" / "small" / "weights.safetensors").stat().st_size
    assert entry.reference == "weights:small"
    assert folder.all() == [entry]
    np.testing.assert_array_equal(folder.arrays("small")["fc.bias"], small_weights()["fc.bias"])
    folder.remove("small")
    assert folder.all() == []
    assert os.listdir(tmp_path / "weights") == []
    with pytest.raises(MissingEntryError):
        folder.remove("small")


def test_a_partial_entry_is_never_seen(tmp_path):
    folder = WeightsFolder(tmp_path / "weights")
    with pytest.raises(CheckpointError), folder.adding() as partial:
        WeightsFiles(partial).arrays.write_bytes(b"half of it")
        assert folder.all() == []
        folder.place(partial, PretrainedWeights(name="small", title="Small"))
    assert os.listdir(tmp_path / "weights") == []
    (tmp_path / "weights" / "bare").mkdir()
    weights_file(tmp_path / "weights" / "bare", "weights.safetensors")
    assert folder.all() == []
    assert not folder.has("bare")


def test_what_a_kill_left_goes_after_a_day(tmp_path):
    folder = WeightsFolder(tmp_path / "weights")
    old, new = (folder.path / f".partial-{name}" for name in ("old", "new"))
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (1.0, 1.0))
    with folder.adding():
        assert not old.exists()
        assert new.exists()


def test_a_name_is_taken_once(tmp_path):
    folder = add_entry(tmp_path)
    with pytest.raises(UsageError, match="There are pretrained weights of the name `small` already"):
        add_entry(tmp_path)
    assert [each.name for each in folder.all()] == ["small"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "../up", ".hidden", "a b", "ä", "a\n", "x" * 101, "-dash"])
def test_a_hostile_name_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="letters, digits"):
        add_entry(tmp_path, name)
    folder = add_entry(tmp_path)
    with pytest.raises(MissingEntryError):
        folder.get(name)
    with pytest.raises(MissingEntryError):
        folder.remove(name)
    assert not folder.has(name)


def test_a_changed_file_is_not_used(tmp_path):
    folder = add_entry(tmp_path)
    path = tmp_path / "weights" / "small" / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not the one that was added: its checksum is"):
        folder.arrays("small")
    path.unlink()
    with pytest.raises(CheckpointError, match="No such file"):
        folder.arrays("small")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2, "name": "small", "title": "x"}', '{"version": 1, "name": "small"}']
    + [json.dumps({"version": 1, "name": "small", "title": "x", **bad}) for bad in (
        {"sha256": 1}, {"size_bytes": "1"}, {"classes": "abc"}, {"classes": [1]}, {"preprocessing": []},
    )],
)  # fmt: skip
def test_a_damaged_description_is_told_and_can_be_removed(tmp_path, text):
    folder = add_entry(tmp_path)
    (tmp_path / "weights" / "small" / "weights.json").write_text(text)
    assert folder.all() == []
    with pytest.raises(CheckpointError, match="weights delete small"):
        folder.get("small")
    folder.remove("small")
    assert not folder.has("small")


def test_a_missing_name_lists_the_known_ones(tmp_path):
    with pytest.raises(MissingEntryError, match="weights add FILE"):
        WeightsFolder(tmp_path / "weights").get("small")
    with pytest.raises(MissingEntryError, match="Known: `small`"):
        add_entry(tmp_path).get("other")


def test_the_name_in_a_spec_is_told_from_a_path():
    assert weights_name("weights:resnet18") == "resnet18"
    assert weights_name("/data/weights:x") == ""
    assert weights_name(None) == ""


def test_preprocessing_is_told_in_words():
    known = {"color": "RGB", "size": [224, 192], "mean": [0.485, 0.456, 0.406], "std": [0.5]}
    assert preprocessing_text(known) == "RGB, 224 × 192 px, mean 0.485, 0.456, 0.406, std 0.5"
    assert preprocessing_text({}) == ""


_SHAPES = {
    "resnet18": {"conv1.weight": (64, 3, 7, 7), "fc.weight": (1000, 512), "fc.bias": (1000,)},
    "vgg16": {"classifier.0.weight": (4096, 9), "classifier.6.weight": (1000, 4096), "classifier.6.bias": (1000,)},
    "convnext_tiny": {"classifier.0.weight": (768,), "classifier.2.weight": (1000, 768), "classifier.2.bias": (1000,)},
    "vit_small": {"norm.weight": (384,), "head.weight": (1000, 384), "head.bias": (1000,)},
    "convnet": {"conv3b.weight": (128, 128, 3, 3), "logits.weight": (1000, 128), "logits.bias": (1000,)},
    "of mine with logits": {"conv1.weight": (4, 3, 3, 3), "logits.weight": (1000, 9), "logits.bias": (1000,)},
    "": {"classifier.9.weight": (7, 5), "classifier.10.weight": (1000, 7), "classifier.10.bias": (1000,)},
    "of mine": {"head.fc.weight": (1000, 7), "head.fc.bias": (1000,), "head.norm.weight": (7,)},
}


@pytest.mark.parametrize("network", _SHAPES)
def test_the_last_layer_is_found_by_its_names(network):
    keys = head_keys(network, _SHAPES[network])
    assert len(keys) == 2
    assert head_classes(network, _SHAPES[network]) == 1000
    assert {_SHAPES[network][key][0] for key in keys} == {1000}


def test_the_class_layers_of_a_detector_are_its_head():
    shapes = {
        "layer1.0.conv1.weight": (16, 16, 3, 3),
        "head2.class_conv.conv.weight": (48, 48, 3, 3),
        "head2.classes.weight": (7, 48, 1, 1),
        "head2.classes.bias": (7,),
        "head2.sides.weight": (4, 48, 1, 1),
        "head3.classes.weight": (7, 48, 1, 1),
    }
    keys = ("head2.classes.weight", "head2.classes.bias", "head3.classes.weight")
    assert head_keys("detector_nano", shapes) == keys
    assert head_classes("detector_nano", shapes) == 7


@pytest.mark.parametrize("network", ["detector_lite0", "unet_lite0"])
def test_the_class_layers_on_a_backbone_are_its_head(network):
    layers = ("head.across0.conv.weight", "head.level0.classes.weight", "head.classes.weight", "head.classes.bias")
    shapes = {name: (7, 8, 1, 1)[: 1 if name.endswith("bias") else 4] for name in ("conv_stem.weight", *layers)}
    assert head_keys(network, shapes) == layers[1:]
    assert head_of(shapes, head_beginning(network)) == layers, "all of it starts fresh on a backbone"


def test_a_network_without_a_head_has_none():
    assert head_keys("resnet18", {"conv1.weight": (4, 3, 3, 3)}) == ()
    assert head_classes("", {"features.0.weight": (4, 3)}) == 0
