"""A segmentation dataset goes out as images, masks and lists, and comes back the same."""

import cv2
import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, read_back
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.masks.exporter import export_masks
from ziggurat.datasets.formats.masks.importer import MasksImporter
from ziggurat.errors import DataError, StorageError
from ziggurat.records.schema import Schema

SCHEMA = Schema(kind="segmentation", class_names=("sky", "Weg"), colours=((1, 2, 3), (4, 5, 6)), ignore_class=255)
JPEG = encode_image(np.full((4, 5, 3), 90, np.uint8), "jpeg")


def mask(value):
    return cv2.imencode(".png", np.full((4, 5), value, np.uint8))[1].tobytes()


def test_what_was_written_comes_back(tmp_path):
    splits = {
        "train": [("train/a.jpg", (JPEG, mask(0)), None), ("train/deep er/ö.png", (JPEG, mask(1)), None)],
        "val": [("/data/b.jpg", (JPEG, mask(255)), None), ("masks/c.jpg", (JPEG, mask(1)), None)],
        "test": [("../a.jpg", (JPEG, mask(1)), None)],
    }
    with dataset_with(tmp_path / "set", splits, SCHEMA) as dataset:
        report = export_masks(dataset, tmp_path / "out")
    assert report.counts == {"train": 2, "val": 2, "test": 1}
    assert report.problems == []
    assert report.notes == ["Only our own importer knows that class 255 is to be ignored."]
    assert guessed(tmp_path / "out") == ("masks", "segmentation")
    found = read_back(MasksImporter(), tmp_path / "out")
    assert found.samples == expected(splits)
    assert found.problems == []
    assert found.schema == SCHEMA
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[:4] == [
        ".ziggurat-schema.json",
        "_masks",
        "a.jpg",
        "classes.txt",
    ]


NAMES = st.text(st.characters(min_codepoint=32, exclude_categories=["C", "Z"]), min_size=1, max_size=12)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(NAMES, unique=True, min_size=1, max_size=5), value=st.integers(0, 255))
def test_any_key_comes_back(tmp_path_factory, keys, value):
    folder = tmp_path_factory.mktemp("any")
    splits = {"train": [(key, (JPEG, mask(value)), None) for key in keys]}
    with dataset_with(folder / "set", splits, SCHEMA) as dataset:
        export_masks(dataset, folder / "out")
    assert read_back(MasksImporter(), folder / "out").samples == expected(splits)


def test_arrays_are_written_as_png(tmp_path):
    pixels, numbers = np.zeros((4, 5, 3), np.uint8), np.full((4, 5), 700, np.uint16)
    with dataset_with(tmp_path / "set", {"train": [("a", (pixels, numbers), None)]}, SCHEMA) as dataset:
        export_masks(dataset, tmp_path / "out")
    found = read_back(MasksImporter(), tmp_path / "out")
    assert cv2.imdecode(np.frombuffer(found.samples["a"][1][1], np.uint8), -1).tolist() == numbers.tolist()


def test_another_kind_and_a_folder_in_use_are_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/letter.txt").write_text("mine")
    masked = dataset_with(tmp_path / "set", {"train": [("a.jpg", (JPEG, mask(0)), None)]}, SCHEMA)
    with masked, pytest.raises(StorageError, match="is not empty: it holds"):
        export_masks(masked, tmp_path / "out")
    classified = dataset_with(tmp_path / "other", {"train": [("a.jpg", (JPEG,), 0)]}, "image-classification")
    with classified, pytest.raises(DataError, match="holds datasets of kind segmentation"):
        export_masks(classified, tmp_path / "new")
