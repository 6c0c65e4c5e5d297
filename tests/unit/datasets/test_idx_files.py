"""The files of MNIST and its like, and other idx files; out and back."""

import gzip

import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, read_back, shared_folder

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.idx.exporter import export_idx
from ziggurat.datasets.formats.idx.importer import MNISTFilesImporter
from ziggurat.errors import DataError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (7, 5, 4), np.uint8)
LABELS = np.array([3, 0, 1, 2, 9, 9, 0], np.uint8)


def idx(array, code=8):
    header = bytes([0, 0, code, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return header + array.tobytes()


@pytest.fixture
def mnist(tmp_path):
    for name, count in (("train", 7), ("t10k", 3)):
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(PICTURES[:count])))
        (tmp_path / f"{name}-labels.idx1-ubyte").write_bytes(idx(LABELS[:count]))  # not compressed, and a dot
    return tmp_path


def test_pictures_and_classes(mnist):
    assert guessed(mnist) == ("idx", "image-classification")
    found = read_back(MNISTFilesImporter(), mnist)
    assert list(found.samples)[:2] == ["train/00000", "train/00001"]
    assert list(found.samples)[-1] == "test/00002"
    assert [label for _split, _parts, label in found.samples.values()] == [*LABELS.tolist(), 3, 0, 1]
    assert found.schema.class_names == tuple("0123456789")
    for number, (split, (picture,), _label) in enumerate(found.samples.values()):
        assert split == ("train" if number < 7 else "test")
        assert picture.shape == (5, 4, 1)
        assert (picture[:, :, 0] == PICTURES[number % 7]).all()


def test_names_come_from_an_option_or_a_file(mnist):
    assert read_back(MNISTFilesImporter(), mnist, class_names=["a", "b"]).schema.class_names[:3] == ("a", "b", "2")
    (mnist / "classes.txt").write_text("null\neins\n", "utf-8")
    assert read_back(MNISTFilesImporter(), mnist).schema.class_names[:3] == ("null", "eins", "2")


def test_emnist_has_columns_first(mnist):
    found = read_back(MNISTFilesImporter(), mnist, transposed=True)
    assert (found.samples["train/00003"][1][0][:, :, 0] == PICTURES[3].T).all()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_is_cut_off_or_goes_on_is_refused(mnist, compressed):
    path = mnist / ("train-images-idx3-ubyte" + (".gz" if compressed else ""))
    for content in (idx(PICTURES)[:-1], idx(PICTURES) + b"x", b"\0\0", b"", b"\0\0\x77\x01\0\0\0\1a"):
        (mnist / "train-images-idx3-ubyte.gz").unlink(missing_ok=True)
        path.write_bytes(gzip.compress(content) if compressed else content)
        with pytest.raises(DataError, match="An idx file has a header and as many values as it says"):
            read_back(MNISTFilesImporter(), mnist)
        assert MNISTFilesImporter().guess(mnist) is None


def test_a_compressed_file_that_memory_would_not_hold_is_refused(mnist):
    header = bytes([0, 0, 8, 3]) + b"".join(length.to_bytes(4, "big") for length in (2_000_000, 28, 28))
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(header))
    with pytest.raises(DataError, match=r"at most 1 GiB is read.*Decompress it with gunzip"):
        read_back(MNISTFilesImporter(), mnist)


def test_labels_belong_to_pictures(mnist):
    (mnist / "train-labels.idx1-ubyte").write_bytes(idx(LABELS[:4]))
    with pytest.raises(DataError, match=r"7 images in .*uint8 of \(4,\)"):
        read_back(MNISTFilesImporter(), mnist)


def test_other_idx_files_are_arrays(tmp_path):
    values = np.arange(6, dtype=">f4").reshape(2, 3)
    (tmp_path / "waves.idx").write_bytes(idx(values, 0x0D))
    found = read_back(MNISTFilesImporter(), tmp_path)
    assert found.schema.kind == "generic"
    assert list(found.samples) == ["waves/00000", "waves/00001"]
    assert found.samples["waves/00001"][1][0].tolist() == [3, 4, 5]
    assert found.samples["waves/00001"][1][0].dtype == np.float32
    with pytest.raises(DataError, match="has no idx files"):
        read_back(MNISTFilesImporter(), tmp_path.parent)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_what_was_written_comes_back(tmp_path, channels, compress):
    pictures = RNG.integers(0, 256, (4, 5, 6, channels), np.uint8)
    splits = {
        "train": [("a/ä.png", (pictures[0],), 1), ("b", (pictures[1],), 0)],
        "val": [("c\nd", (pictures[2],), 2)],
        "test": [("e", (pictures[3],), 0)],
    }
    schema = Schema(kind="image-classification", class_names=("x", "y", "z"))
    with dataset_with(tmp_path / "set", splits, schema, form=ImageForm(encoding="raw", channels=channels)) as dataset:
        report = export_idx(dataset, tmp_path / "out", compress=compress)
    assert report.counts == {"train": 2, "val": 1, "test": 1}
    assert guessed(tmp_path / "out") == ("idx", "image-classification")
    found = read_back(MNISTFilesImporter(), tmp_path / "out")
    assert found.schema == schema
    for key, (split, (picture,), label) in expected(splits).items():
        assert (found.samples[key][0], found.samples[key][2]) == (split, label)
        assert (found.samples[key][1][0] == picture).all()
    suffix = f"idx{3 if channels == 1 else 4}-ubyte{'.gz' if compress else ''}"
    assert (tmp_path / f"out/t10k-images-{suffix}").is_file()


def test_pictures_of_other_sizes_are_listed(tmp_path):
    big, small = (encode_image(np.zeros((size, 5, 3), np.uint8), "png") for size in (6, 4))
    splits = {"train": [("big", (big,), 0), ("small", (small,), 0)]}
    with dataset_with(tmp_path / "set", splits, "image-classification") as dataset:
        report = export_idx(dataset, tmp_path / "out")
    assert report.counts == {"train": 1}
    assert [(each.key, each.kind, each.left_out) for each in report.problems] == [("small", "other-size", True)]


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_real_files_are_found_as_their_pages_say(name):
    source = shared_folder(name)
    assert guessed(source) == ("idx", "image-classification")
    importer = MNISTFilesImporter()
    counts = {}
    for each in importer.scan(source, importer.checked_options({})):
        counts[each.split, each.label] = counts.get((each.split, each.label), 0) + 1
    totals = {split: sum(count for (mine, _), count in counts.items() if mine == split) for split in ("train", "test")}
    assert totals == {"train": 60_000, "test": 10_000}
    if name == "fashion-mnist":
        assert set(counts.values()) == {6000, 1000}
