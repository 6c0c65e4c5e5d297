"""DIGITS's and Caffe's HDF5 files: those of jobs, those of others, and our own out and back."""

import h5py
import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, kinds_of, read_back

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.datasets.formats.digits_hdf5.exporter import export_digits_hdf5
from ziggurat.datasets.formats.digits_hdf5.importer import DigitsHDF5Importer
from ziggurat.errors import ConfigurationError, DataError, DatapointError, UnknownNameError
from ziggurat.records.schema import Schema

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (5, 4, 6, 3), np.uint8)
SCHEMA = Schema(kind="image-classification", class_names=("cat", "dog"))


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def chw(pictures):
    return pictures.transpose(0, 3, 1, 2).astype(np.float32)


def test_a_job_of_digits(tmp_path):
    write(tmp_path / "train_db/0.h5", data=chw(RGB[:2]), label=np.array([1.0, 0.0]))
    write(tmp_path / "train_db/2.h5", data=chw(RGB[2:4]), label=np.array([0, 1]))
    write(tmp_path / "val_db/0.h5", data=chw(RGB[4:]), label=np.array([1]))
    (tmp_path / "train_db/list.txt").write_text("/old/job/train_db/2.h5\n/old/job/train_db/0.h5\n")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert guessed(tmp_path) == ("digits_hdf5", "image-classification")
    found = read_back(DigitsHDF5Importer(), tmp_path)
    assert [(key, split, label) for key, (split, _parts, label) in found.samples.items()] == [
        ("train_db/2.h5/00000000", "train", 0),
        ("train_db/2.h5/00000001", "train", 1),
        ("train_db/0.h5/00000000", "train", 1),
        ("train_db/0.h5/00000001", "train", 0),
        ("val_db/0.h5/00000000", "val", 1),
    ]
    assert (found.samples["train_db/0.h5/00000000"][1][0] == RGB[0]).all()
    assert found.samples["train_db/0.h5/00000000"][1][0].dtype == np.uint8
    assert found.schema.class_names == ("cat", "dog")


def test_other_values_are_arrays(tmp_path):
    write(tmp_path / "train.h5", data=RNG.random((3, 2, 4, 6)), label=RNG.random((3, 2)))
    assert guessed(tmp_path) == ("digits_hdf5", "generic")
    found = read_back(DigitsHDF5Importer(), tmp_path, kind="generic")
    [(split, (values,), label), *_others] = found.samples.values()
    assert (split, values.shape, len(label)) == ("train", (4, 6, 2), 2)


def test_what_is_wrong_is_said(tmp_path):
    write(tmp_path / "a.h5", data=chw(RGB[:2]), label=np.array([0.5, -1]))
    found = read_back(DigitsHDF5Importer(), tmp_path / "a.h5")
    assert kinds_of(found.problems) == {"a.h5/00000000": "no-label", "a.h5/00000001": "no-label"}
    write(tmp_path / "b.h5", data=chw(RGB[:2]) * 2, label=np.array([0, 0]))
    with pytest.raises(DatapointError, match="an image has values from 0 to 255"):
        read_back(DigitsHDF5Importer(), tmp_path / "b.h5")
    write(tmp_path / "c.h5", data=chw(RGB[:2]), label=np.array([0]))
    with pytest.raises(DataError, match="2 values in `data` and 1 in `label`"):
        read_back(DigitsHDF5Importer(), tmp_path / "c.h5")
    write(tmp_path / "d.h5", values=np.zeros(2))
    assert DigitsHDF5Importer().guess(tmp_path / "d.h5") is None
    with pytest.raises(DataError, match="without `data` or `label`"):
        read_back(DigitsHDF5Importer(), tmp_path / "d.h5")
    (tmp_path / "e.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:500])
    with pytest.raises(DataError, match="HDF5"):
        read_back(DigitsHDF5Importer(), tmp_path / "e.h5")


def small(folder, **options):
    pictures = [encode_image(each, "png") for each in RGB]
    splits = {
        "train": [(f"ä{number}", (pictures[number],), number % 2) for number in range(4)],
        "val": [("v\n", (pictures[4],), 1)],
    }
    return splits, dataset_with(folder, splits, SCHEMA, **options)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_was_written_comes_back(tmp_path, compression):
    splits, dataset = small(tmp_path / "set")
    with dataset:
        report = export_digits_hdf5(dataset, tmp_path / "out", compression=compression)
    assert report.counts == {"train": 4, "val": 1}
    assert guessed(tmp_path / "out") == ("digits_hdf5", "image-classification")
    found = read_back(DigitsHDF5Importer(), tmp_path / "out")
    assert found.schema == SCHEMA
    assert list(found.samples) == list(expected(splits))
    for key, (split, (content,), label) in expected(splits).items():
        assert (found.samples[key][0], found.samples[key][2]) == (split, label)
        assert (found.samples[key][1][0] == decode_image(content)).all()


def test_43_a_limit_splits_the_data_and_gzip_is_recorded(tmp_path):
    _splits, dataset = small(tmp_path / "set")
    with dataset:
        export_digits_hdf5(dataset, tmp_path / "out", compression="gzip", elements_per_file=3 * 4 * 6 * 3)
    assert (tmp_path / "out/train_db/list.txt").read_text() == "0.h5\n3.h5\n"
    shapes = []
    for name in ("0.h5", "3.h5"):
        with h5py.File(tmp_path / "out/train_db" / name) as file:
            shapes.append((file["data"].shape, file["label"].shape))
            assert file["data"].compression == "gzip"
            assert (file["data"].dtype, file["label"].dtype) == (np.float32, np.float32)
    assert shapes == [((3, 3, 4, 6), (3,)), ((1, 3, 4, 6), (1,))]
    assert list(read_back(DigitsHDF5Importer(), tmp_path / "out").samples) == ["ä0", "ä1", "ä2", "ä3", "v\n"]


def test_42_the_mean_is_written_beside_hdf5_too(tmp_path):
    _splits, dataset = small(tmp_path / "set", mean=np.full((4, 6, 3), 99.6))
    with dataset:
        assert export_digits_hdf5(dataset, tmp_path / "out").notes == []
    assert decode_image((tmp_path / "out/mean.jpg").read_bytes()).mean() == pytest.approx(100, abs=1)
    assert (tmp_path / "out/mean.binaryproto").is_file()


def test_wrong_options_and_sizes(tmp_path):
    pictures = [encode_image(np.zeros((size, 4, 3), np.uint8), "png") for size in (3, 5)]
    splits = {"train": [("a", (pictures[0],), 0), ("b", (pictures[1],), 0), ("c", (b"none",), 0)]}
    with dataset_with(tmp_path / "set", splits, SCHEMA) as dataset:
        with pytest.raises(UnknownNameError, match="lzf"):
            export_digits_hdf5(dataset, tmp_path / "x", compression="lzf")
        with pytest.raises(ConfigurationError, match="at least one value"):
            export_digits_hdf5(dataset, tmp_path / "x", elements_per_file=0)
        report = export_digits_hdf5(dataset, tmp_path / "out")
    assert report.counts == {"train": 1}
    assert kinds_of(report.problems) == {"b": "other-size", "c": "unreadable"}
