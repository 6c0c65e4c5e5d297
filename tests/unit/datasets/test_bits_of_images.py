"""Images with 16 bits a value whose values use fewer: the range of the training split decides, everywhere."""

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.unit.datasets.small_sources import request
from ziggurat.dataflow import standalone_prediction
from ziggurat.dataflow.image_codec import decode_image, highest_value
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.records.manifest import ImageForm, Manifest

ANY_SIZE = {"min_per_class": 1}


def ramp(highest: int, shape: tuple[int, ...] = (16, 32)) -> np.ndarray:
    """Return values from 0 to ``highest``, (H, W) or (H, W, C) uint16."""
    return np.linspace(0, highest, int(np.prod(shape))).round().astype(np.uint16).reshape(shape)


def encoded(values: np.ndarray, ending: str = ".png") -> bytes:
    turned = values if values.ndim == 2 else values[:, :, [2, 1, 0, 3][: values.shape[2]]]
    return cv2.imencode(ending, np.ascontiguousarray(turned))[1].tobytes()


def folder_of(root: Path, splits: dict[str, list[np.ndarray]]) -> Path:
    for split, images in splits.items():
        for number, values in enumerate(images):
            path = root / split / f"class {number % 2}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(values))
    return root


@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
@pytest.mark.parametrize("form", [("gray", ".png"), ("gray", ".tiff"), ("color", ".png"), ("alpha", ".png")])
def test_the_upper_bits_of_those_in_use_stay(bits, form):
    kind, ending = form
    values = ramp((1 << bits) - 1, {"gray": (16, 32), "color": (16, 32, 3), "alpha": (16, 32, 4)}[kind])
    if kind == "alpha":
        values[:, :, 3] = 65535
    expected = (values[..., :3] if kind != "gray" else values[:, :, None]) >> (bits - 8)
    found = decode_image(encoded(values, ending), channels=1 if kind == "gray" else 3, bits=bits)
    assert np.array_equal(found, expected)
    assert highest_value(encoded(values, ending)) == int((values if kind == "gray" else values[:, :, :3]).max())


@pytest.mark.parametrize("kind", ["gray", "color", "alpha"])
@pytest.mark.parametrize("without_pillow", [False, True])
def test_the_program_of_an_export_reads_the_same(kind, without_pillow, monkeypatch):
    values = ramp(4095, {"gray": (16, 32), "color": (16, 32, 3), "alpha": (16, 32, 4)}[kind])
    if without_pillow:
        monkeypatch.setitem(sys.modules, "PIL", None)
    data = encoded(values)
    expected = decode_image(data, channels=3, bits=12)
    assert np.array_equal(standalone_prediction.read_picture(data, 3, 12), expected)


def test_images_of_8_bits_do_not_change():
    values = (ramp(255) & 255).astype(np.uint8)
    done, data = cv2.imencode(".png", values)
    assert done
    assert np.array_equal(decode_image(data.tobytes(), channels=1, bits=12)[:, :, 0], values)
    assert highest_value(data.tobytes()) is None
    assert highest_value(b"no image") is None


@pytest.mark.parametrize("encoding", ["", "png", "raw", "reference"])
def test_the_training_split_decides_and_higher_values_are_listed(tmp_path, encoding):
    low, high = ramp(4095), ramp(40_000)
    source = folder_of(tmp_path / "source", {"train": [low, low // 2, low // 3], "val": [low // 4, high]})
    manifest = create_dataset(request(source, options=ANY_SIZE, image=ImageForm(encoding=encoding)), tmp_path / "set")
    assert manifest.image is not None
    assert manifest.image.bits == 12
    with Dataset(tmp_path / "set") as data:
        pictures = {sample.key: data.picture(sample.split, sample.row)[:, :, 0] for sample in data.samples()}
        assert np.array_equal(pictures["train/class 0/0.png"], low >> 4)
        (problem,) = data.catalogue.problems("above-range")
        assert problem.key == "val/class 1/1.png"
        assert "40000" in problem.reason
        (train,) = [image for image, label in data.flow("train") if label == 1]
        assert np.array_equal(train[:, :, 0], (low // 2) >> 4)


def test_sixteen_bits_that_are_used_stay_as_they_were(tmp_path):
    source = folder_of(tmp_path / "source", {"train": [ramp(65535), ramp(100)]})
    manifest = create_dataset(
        request(source, options=ANY_SIZE, rule=SplitRule(method="share", val_share=0)), tmp_path / "set"
    )
    assert manifest.image is not None
    assert manifest.image.bits == 16


def test_a_manifest_without_bits_means_16(tmp_path):
    source = folder_of(tmp_path / "source", {"train": [ramp(65535), ramp(100)]})
    content = create_dataset(request(source, options=ANY_SIZE), tmp_path / "set").as_json()
    content["image"] = {name: value for name, value in content["image"].items() if name != "bits"}
    image = Manifest.from_json(content).image
    assert image is not None
    assert image.bits == 16


def test_the_preprocessing_of_a_job_keeps_them(tmp_path):
    Preprocessing(size=(16, 32), channels=1, bits=12).save(tmp_path)
    loaded = Preprocessing.load(tmp_path)
    assert np.array_equal(loaded.decode(encoded(ramp(4095)), "x")[:, :, 0], ramp(4095) >> 4)
