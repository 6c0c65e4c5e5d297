"""Files of PyTorch weights become safetensors: what is read of good ones, and what of bad and hostile ones."""

from __future__ import annotations

import collections
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from ziggurat.backends.torch.pth_files import convert_pth, read_pth
from ziggurat.errors import CheckpointError
from ziggurat.settings import load_settings
from ziggurat.workspace.weights import NewWeights
from ziggurat.workspace.workspace import open_folders
from ziggurat.zoo.weight_files import load_weights_file


def small_network() -> torch.nn.Module:
    """Return a network with a convolution, a batch norm and a last layer for 3 classes."""
    torch.manual_seed(1)
    body = collections.OrderedDict(
        conv1=torch.nn.Conv2d(3, 4, 3), bn1=torch.nn.BatchNorm2d(4), fc=torch.nn.Linear(4, 3)
    )
    return torch.nn.Sequential(body)


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_state_dict_keeps_names_and_values(tmp_path, is_zip):
    state = small_network().state_dict()
    torch.save(state, tmp_path / "a.pth", _use_new_zipfile_serialization=is_zip)
    count = convert_pth(tmp_path / "a.pth", tmp_path / "a.safetensors")
    arrays = load_weights_file(tmp_path / "a.safetensors")

    assert count == len(state)
    assert set(arrays) == set(state)
    for name, tensor in state.items():
        np.testing.assert_array_equal(arrays[name], tensor.numpy())
        assert arrays[name].shape == tuple(tensor.shape)
    assert arrays["bn1.num_batches_tracked"].dtype == np.int64


def test_weights_are_found_in_a_checkpoint_of_a_training(tmp_path):
    state = small_network().state_dict()
    wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
    torch.save({"epoch": 3, "state_dict": wrapped, "optimizer": {"lr": 0.1}}, tmp_path / "a.pt")
    assert set(read_pth(tmp_path / "a.pt")) == set(state)


def test_bfloat16_and_other_layouts_are_read(tmp_path):
    kernel = torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last)
    torch.save(
        {"a": torch.tensor([1.0, -3.0], dtype=torch.bfloat16), "b": kernel, "c": kernel[:, 1:]}, tmp_path / "a.pt"
    )
    convert_pth(tmp_path / "a.pt", tmp_path / "a.safetensors")
    arrays = load_weights_file(tmp_path / "a.safetensors")
    assert arrays["a"].tolist() == [1.0, -3.0]
    np.testing.assert_array_equal(arrays["b"], np.arange(24.0).reshape(2, 3, 2, 2))
    np.testing.assert_array_equal(arrays["c"], np.arange(24.0).reshape(2, 3, 2, 2)[:, 1:])


class _Hostile:
    """Makes a folder where a file is read by pickle."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple:
        return (os.mkdir, (self._path,))


def test_code_in_a_file_is_never_run(tmp_path):
    torch.save({"a": torch.zeros(2), "b": _Hostile(tmp_path / "ran")}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="is not a file of plain PyTorch weights") as raised:
        read_pth(tmp_path / "a.pth")
    assert "state_dict()" in raised.value.advice
    assert not (tmp_path / "ran").exists()


def test_pth_errors_never_advise_to_read_without_protection(tmp_path):
    torch.save({"b": _Hostile(tmp_path / "ran")}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError) as raised:
        read_pth(tmp_path / "a.pth")
    assert "mkdir" in str(raised.value)
    assert "weights_only" not in str(raised.value)


@pytest.mark.parametrize("text", ["epoch,loss\n1,0.5\n", "version https://git-lfs.github.com/spec/v1\n", "é"])
def test_pth_says_that_a_file_is_a_text(tmp_path, text):
    (tmp_path / "text.pth").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"`text\.pth` is damaged, .*: a text"):
        read_pth(tmp_path / "text.pth")


def test_a_whole_module_is_refused(tmp_path):
    torch.save(small_network(), tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="is not a file of plain PyTorch weights"):
        read_pth(tmp_path / "a.pth")


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"PK\x03\x04" + bytes(100), b"\x80\x02." * 9])
def test_a_damaged_file_gives_one_error(tmp_path, content):
    (tmp_path / "a.pth").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.pth"):
        read_pth(tmp_path / "a.pth")


def test_a_truncated_file_gives_one_error(tmp_path):
    torch.save(small_network().state_dict(), tmp_path / "a.pth")
    whole = (tmp_path / "a.pth").read_bytes()
    (tmp_path / "a.pth").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"a\.pth"):
        read_pth(tmp_path / "a.pth")


@pytest.mark.parametrize("content", [{"epoch": 3}, [torch.zeros(2)], torch.zeros(2), {}, {1: torch.zeros(2)}])
def test_a_file_without_weights_is_told(tmp_path, content):
    torch.save(content, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="has a state dict"):
        read_pth(tmp_path / "a.pth")


def test_a_file_that_grows_when_unpacked_is_refused(tmp_path):
    torch.save({"a": torch.zeros(1 << 20)}, tmp_path / "a.pth")
    with (
        zipfile.ZipFile(tmp_path / "a.pth") as plain,
        zipfile.ZipFile(tmp_path / "b.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(CheckpointError, match="bytes unpacked"):
        read_pth(tmp_path / "b.pth")


def test_views_that_repeat_numbers_are_refused(tmp_path):
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="its tensors would be 4,398,046,511,104 bytes"):
        read_pth(tmp_path / "a.pth")


def test_tensors_that_are_not_dense_are_told(tmp_path):
    torch.save({"a": torch.zeros(2).to(torch.float8_e4m3fn)}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match=r"`a` cannot be used: torch\.float8_e4m3fn"):
        read_pth(tmp_path / "a.pth")


def test_a_pth_file_is_added_through_a_worker_process(tmp_path):
    settings = load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})
    weights = open_folders(settings).weights
    torch.save(small_network().state_dict(), tmp_path / "small-net.pth")
    made = weights.add(tmp_path / "small-net.pth", NewWeights(license="MIT"))

    assert (made.name, made.class_count, made.arrays) == ("small-net", 3, 9)
    assert made.sha256 != made.source_sha256
    np.testing.assert_array_equal(weights.folder.arrays("small-net")["fc.bias"], small_network().fc.bias.detach())
    (tmp_path / "bad.pth").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"bad\.pth"):
        weights.add(tmp_path / "bad.pth", NewWeights())
    assert [each.name for each in weights.all()] == ["small-net"]
