"""Files of weights: what is read of a good one, and the one clear error of each bad one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit.weights.weight_samples import raw_file, small_weights, weights_file
from ziggurat.errors import CheckpointError
from ziggurat.zoo.weight_files import check_weights_file, file_sha256, load_weights_file


def test_a_whole_file_is_described_and_read(tmp_path):
    path = weights_file(tmp_path)
    found = check_weights_file(path)
    arrays = load_weights_file(path)

    assert found.shapes["conv1.weight"] == (4, 3, 3, 3)
    assert found.parameters == 4 * 27 + 4 + 1 + 12 + 3
    assert set(arrays) == set(small_weights())
    np.testing.assert_array_equal(arrays["fc.weight"], small_weights()["fc.weight"])
    assert arrays["bn1.num_batches_tracked"].dtype == np.int64
    assert file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_other_precisions_become_float32(tmp_path):
    half, double = np.array([1.5, -2.0], np.float16), np.array([0.25], np.float64)
    header = {
        "half": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]},
        "brain": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [4, 8]},
        "double": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
    }
    # bfloat16 of 1.0 is 0x3F80, of -3.0 it is 0xC040.
    path = raw_file(tmp_path / "a.safetensors", header, half.tobytes() + b"\x80\x3f\x40\xc0" + double.tobytes())
    arrays = load_weights_file(path)

    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    assert arrays["half"].tolist() == [1.5, -2.0]
    assert arrays["brain"].tolist() == [[1.0, -3.0]]
    assert arrays["double"].tolist() == [0.25]


_ONE = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
_DATA = bytes(8)
_BAD = {
    "empty": lambda path: path.write_bytes(b""),
    "a page of HTML": lambda path: path.write_bytes(b"<!DOCTYPE html><title>404</title>" * 9),
    "huge header": lambda path: raw_file(path, _ONE, _DATA, length=1 << 62),
    "header beyond the file": lambda path: raw_file(path, _ONE, _DATA, length=10_000),
    "no JSON": lambda path: raw_file(path, b"{" * 5000, _DATA),
    "a list": lambda path: raw_file(path, b"[1, 2]", _DATA),
    "truncated": lambda path: raw_file(path, _ONE, _DATA[:5]),
    "more than said": lambda path: raw_file(path, _ONE, _DATA + b"x"),
    "no arrays": lambda path: raw_file(path, {}, b""),
    "shape and place differ": lambda path: raw_file(path, {"a": {**_ONE["a"], "shape": [3]}}, _DATA),
    "negative shape": lambda path: raw_file(path, {"a": {**_ONE["a"], "shape": [-2]}}, _DATA),
    "shape that overflows": lambda path: raw_file(path, {"a": {**_ONE["a"], "shape": [1 << 62, 8]}}, _DATA),
    "overlapping": lambda path: raw_file(path, {**_ONE, "b": _ONE["a"]}, _DATA),
    "unknown type": lambda path: raw_file(path, {"a": {**_ONE["a"], "dtype": "F31"}}, _DATA),
    "a type of no weights": lambda path: raw_file(path, {"a": {**_ONE["a"], "dtype": "C64", "shape": [1]}}, _DATA),
    "name with a line end": lambda path: raw_file(path, {"a\nb": _ONE["a"]}, _DATA),
    "no name": lambda path: raw_file(path, {"": _ONE["a"]}, _DATA),
}


@pytest.mark.parametrize("what", _BAD)
def test_a_bad_file_gives_one_error(tmp_path, what):
    path: Path = tmp_path / "bad.safetensors"
    _BAD[what](path)
    with pytest.raises(CheckpointError) as raised:
        load_weights_file(path)
    assert "bad.safetensors" in str(raised.value)
    assert raised.value.advice
    with pytest.raises(CheckpointError):
        check_weights_file(path)


def test_a_file_that_is_gone_gives_the_error_too(tmp_path):
    with pytest.raises(CheckpointError, match="No such file"):
        check_weights_file(tmp_path / "gone.safetensors")


def test_metadata_is_no_array(tmp_path):
    path = raw_file(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt"}, **_ONE}, _DATA)
    assert list(load_weights_file(path)) == ["a"]
    assert json.loads(path.read_bytes()[8:-8])["__metadata__"] == {"format": "pt"}
