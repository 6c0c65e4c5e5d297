"""What importers of idx files, stores and shards do not take is counted: samples in, samples out and reported."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_digits_db_hdf5 import chw, write
from test_digits_db_lmdb import encoded, raw, store
from test_idx_files import idx

from tests.unit.datasets.folder_sets import Scanned
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.digits_hdf5.importer import DigitsHDF5Importer
from ziggurat.datasets.formats.digits_lmdb.importer import DigitsLMDBImporter
from ziggurat.datasets.formats.idx.importer import MNISTFilesImporter
from ziggurat.datasets.formats.tfrecord.importer import TFRecordImporter
from ziggurat.datasets.formats.tfrecord.records import pack_features
from ziggurat.datasets.formats.webdataset.importer import WebDatasetImporter
from ziggurat.datasets.samples import COUNTED_FROM_ONE
from ziggurat.errors import DataError
from ziggurat.protobuf_wire import tfrecord_frame

PROPERTY: Mapping[str, Any] = {
    "max_examples": 25,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
    "derandomize": True,
    "deadline": None,
}
IMAGES = np.random.default_rng(0).integers(1, 256, (6, 4, 5, 3), np.uint8)
LABELS = np.array([0, 1, 2, 1, 0, 2], np.uint8)


def lost(found: Scanned) -> list[str]:
    return [problem.kind for problem in found.problems if problem.left_out]


# ---- idx


def put_idx(folder, prefix, images=6, labels=6, suffix="ubyte"):
    if images:
        (folder / f"{prefix}-images-idx3-{suffix}").write_bytes(idx(IMAGES[:images, :, :, 0]))
    if labels:
        (folder / f"{prefix}-labels-idx1-{suffix}").write_bytes(idx(LABELS[:labels]))


def test_images_of_idx_without_labels_are_a_lost_split(tmp_path):
    put_idx(tmp_path, "train")
    put_idx(tmp_path, "t10k", labels=0)
    put_idx(tmp_path, "val", images=0, labels=2)
    found = Scanned(MNISTFilesImporter(), tmp_path)
    assert lost(found) == ["no-label"] * 6 + ["no-picture"] * 2
    assert [each.split for each in found.problems] == ["test"] * 6 + ["val"] * 2


def test_a_second_file_of_the_same_images_is_listed(tmp_path):
    put_idx(tmp_path, "train")
    put_idx(tmp_path, "training", images=3, labels=3)
    (tmp_path / "more.idx").write_bytes(idx(LABELS))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS)))
    found = Scanned(MNISTFilesImporter(), tmp_path)
    assert (len(found.samples), lost(found)) == (6, [])
    assert found.listed == {
        "training-images-idx3-ubyte": "other-files",
        "training-labels-idx1-ubyte": "other-files",
        "train-labels-idx1-ubyte.gz": "other-files",
        "more.idx": "other-files",
    }
    assert {each.key: each.names for each in found.problems}["train-labels-idx1-ubyte.gz"] == 0
    assert sum(each.names for each in found.problems) == 3


def test_labels_of_other_integers_are_labels_of_idx(tmp_path):
    put_idx(tmp_path, "train", labels=0)
    (tmp_path / "train-labels-idx1-int").write_bytes(idx(LABELS.astype(">i4"), 0x0C))
    found = Scanned(MNISTFilesImporter(), tmp_path)
    assert list(found.labels.values()) == LABELS.tolist()


def test_idx_files_of_several_sets_are_asked_for(tmp_path):
    put_idx(tmp_path, "emnist-letters-train")
    put_idx(tmp_path, "emnist-digits-train", 4, 4)
    with pytest.raises(DataError, match="several sets") as caught:
        Scanned(MNISTFilesImporter(), tmp_path)
    assert caught.value.details == {"field": "options.set", "values": ["emnist-digits", "emnist-letters"]}
    assert "emnist-digits" in caught.value.advice
    found = Scanned(MNISTFilesImporter(), tmp_path, set="emnist-letters")
    assert list(found.splits) == [f"train/{number:05d}" for number in range(6)]
    with pytest.raises(DataError, match="no set `mnist`"):
        Scanned(MNISTFilesImporter(), tmp_path, set="mnist")


@settings(**PROPERTY)
@given(
    parts=st.fixed_dictionaries({name: st.tuples(st.booleans(), st.booleans()) for name in ("t10k", "val")}),
    labels=st.lists(st.integers(-2, 12), min_size=1, max_size=6),
)
def test_images_of_idx_come_or_are_reported(tmp_path_factory, parts, labels):
    root = tmp_path_factory.mktemp("set")
    for name, (has_images, has_labels) in {"train": (True, True), **parts}.items():
        if has_images:
            (root / f"{name}-images-idx3-ubyte").write_bytes(idx(IMAGES[: len(labels), :, :, 0]))
        if has_labels:
            (root / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.array(labels, np.int8), 9))
    found = Scanned(MNISTFilesImporter(), root)
    groups = 1 + sum(has_images or has_labels for has_images, has_labels in parts.values())
    assert len(found.samples) + len(lost(found)) == groups * len(labels)
    assert all(0 <= label < len(found.schema.class_names) for label in found.labels.values())


# ---- LMDB


def test_a_second_store_of_a_split_is_a_lost_name(tmp_path):
    for name in ("train_db", "train_more_db", "val_db"):
        store(tmp_path / name, {f"{number:08d}": raw(IMAGES[number], number % 2) for number in range(2)})
    found = Scanned(DigitsLMDBImporter(), tmp_path)
    assert list(found.splits.values()) == ["train"] * 2 + ["val"] * 2
    (problem,) = found.problems
    assert (problem.key, problem.kind, problem.names) == ("train_more_db", "other-files", 1)
    assert "`train_images`" in problem.reason
    found = Scanned(DigitsLMDBImporter(), tmp_path, train_images="train_more_db", val_images="val_db")
    assert found.problems == []


@settings(**PROPERTY)
@given(
    records=st.lists(
        st.tuples(
            st.sampled_from(["train_db", "val_db"]),
            st.sampled_from(["raw", "png", "broken", "cut"]),
            st.integers(-1, 3),
        ),
        max_size=8,
    )
)
def test_records_of_lmdb_come_or_are_reported(tmp_path_factory, records):
    root = tmp_path_factory.mktemp("set")
    forms = {"raw": lambda label: raw(IMAGES[0], label), "png": lambda label: encoded(IMAGES[0], label)}
    content: dict[str, dict[str, Any]] = {"train_db": {"0": raw(IMAGES[0], 1)}, "val_db": {"0": raw(IMAGES[0], 0)}}
    for number, (folder, form, label) in enumerate(records, 1):
        broken = b"\xff\xff" if form == "broken" else b""
        content[folder][str(number)] = forms[form](label) if form in forms else broken
    for folder, found in content.items():
        store(root / folder, found)
    found = Scanned(DigitsLMDBImporter(), root)
    assert len(found.samples) + len(lost(found)) == len(records) + 2
    assert all(0 <= label < len(found.schema.class_names) for label in found.labels.values())
    assert all(problem.split for problem in found.problems)


# ---- HDF5


def test_files_beside_the_folders_of_hdf5_are_lost_names(tmp_path):
    for name in ("train_db/0.h5", "extra.h5"):
        write(tmp_path / name, data=chw(IMAGES[:2]), label=np.array([0, 1]))
    found = Scanned(DigitsHDF5Importer(), tmp_path)
    (problem,) = found.problems
    assert (len(found.samples), problem.key, problem.names) == (2, "extra.h5", 1)


@settings(**PROPERTY)
@given(
    files=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 3.0, 0.5, -1.0, float("nan"), float("inf")]), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_rows_of_hdf5_come_or_are_reported(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("set")
    for number, labels in enumerate(files):
        folder = "val_db" if number else "train_db"
        write(root / folder / f"{number}.h5", data=chw(IMAGES[: len(labels)]), label=np.array(labels))
    found = Scanned(DigitsHDF5Importer(), root)
    assert len(found.samples) + len(lost(found)) == sum(map(len, files))
    assert all(problem.split for problem in found.problems)


# ---- TFRecord and WebDataset


def put_records(folder, samples):
    """Write samples as records: (class as it is written or None, image or None)."""
    records = [
        {"image/encoded": [image] if image else [], "image/class/label": [] if label is None else [label]}
        for label, image in samples
    ]
    (folder / "train.record").write_bytes(b"".join(tfrecord_frame(pack_features(each)) for each in records))


def put_shard(folder, samples):
    with tarfile.open(folder / "train.tar", "w") as shard:
        for number, (label, image) in enumerate(samples):
            members = {"png": image, "cls": None if label is None else str(label).encode(), "txt": b"more"}
            for suffix, content in members.items():
                if content is not None:
                    member = tarfile.TarInfo(f"{number}.{suffix}")
                    member.size = len(content)
                    shard.addfile(member, io.BytesIO(content))


PNG = encode_image(IMAGES[0], "png")
CLASSES = st.sampled_from([0, 1, 3, -1, 1 << 40, None])


@pytest.mark.parametrize("form", ["tfrecord", "webdataset"])
@settings(**PROPERTY)
@given(samples=st.lists(st.tuples(CLASSES, st.sampled_from([PNG, None])), max_size=8))
def test_samples_of_shards_come_or_are_reported(tmp_path_factory, form, samples):
    folder = tmp_path_factory.mktemp("set")
    put, importer = (put_records, TFRecordImporter()) if form == "tfrecord" else (put_shard, WebDatasetImporter())
    put(folder, [(1, PNG), *samples])
    found = Scanned(importer, folder)
    assert len(found.samples) + len(lost(found)) == len(samples) + 1
    assert all(0 <= label < len(found.schema.class_names) for label in found.labels.values())


# ---- numbers of classes


@pytest.mark.parametrize("form", ["idx", "lmdb", "hdf5", "webdataset"])
def test_classes_counted_from_one_have_their_names(tmp_path, form):
    labels = [1, 3, 2]
    if form == "idx":
        (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(IMAGES[:3, :, :, 0]))
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.array(labels, np.uint8)))
    elif form == "lmdb":
        store(tmp_path / "train_db", {f"{number:08d}": raw(IMAGES[0], label) for number, label in enumerate(labels)})
    elif form == "hdf5":
        write(tmp_path / "train_db/0.h5", data=chw(IMAGES[:3]), label=np.array(labels))
    else:
        put_shard(tmp_path, [(label, PNG) for label in labels])
    (tmp_path / "labels.txt").write_text("ant\nbee\ncat\n")
    importers = {"idx": MNISTFilesImporter, "lmdb": DigitsLMDBImporter, "hdf5": DigitsHDF5Importer}
    found = Scanned(importers.get(form, WebDatasetImporter)(), tmp_path)
    assert list(found.classes.values()) == ["ant", "cat", "bee"]
    assert [problem.kind for problem in found.problems] == [COUNTED_FROM_ONE]


def test_a_background_that_no_sample_has_is_class_0(tmp_path):
    put_shard(tmp_path, [(1, PNG), (3, PNG)])
    (tmp_path / "classes.txt").write_text("background\nbee\ncat\n")
    found = Scanned(WebDatasetImporter(), tmp_path)
    assert (list(found.classes.values()), found.problems) == (["bee", "3"], [])


def test_digits_from_1_to_10_without_names_keep_their_numbers(tmp_path):
    put_idx(tmp_path, "train", labels=0)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.array([1, 10, 2, 3, 4, 5], np.uint8)))
    found = Scanned(MNISTFilesImporter(), tmp_path)
    assert (list(found.classes.values()), found.problems) == (["1", "10", "2", "3", "4", "5"], [])
