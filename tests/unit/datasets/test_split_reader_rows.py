"""A split is read by row, whatever files its records are in and whatever was changed after its creation."""

import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from small_datasets_for_versions import (
    animals,
    datasets_are_closed,  # noqa: F401
    one_of_each_kind,
    picture,
    png,
    refer_to,
    write_dataset,
)

from ziggurat.errors import DataError, DatapointError, UnknownNameError
from ziggurat.records.base import RecordIndexError
from ziggurat.records.codec import FileReference, Record, pack_record, unpack_record
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.records.split_reader import SplitReader


def with_overlay(dataset, *, rows=None, labels=None):
    """Change the split train of a dataset as a version does; return a reader of it."""
    note = dataset.manifest.splits["train"]
    if rows is not None:
        np.save(dataset.folder / "rows.npy", np.array(rows, np.int64))
        note = replace(note, rows="rows.npy", count=len(rows))
    if labels is not None:
        lines = "".join(json.dumps([row, label]) + "\n" for row, label in labels.items())
        (dataset.folder / "labels.jsonl").write_text(lines)
        note = replace(note, labels="labels.jsonl")
    (dataset.folder / MANIFEST_NAME).unlink()
    replace(dataset.manifest, splits={"train": note}).save(dataset.folder)
    return SplitReader(dataset.folder, "train")


@pytest.mark.parametrize("kind", one_of_each_kind())
def test_samples_of_every_kind_come_back(kind, tmp_path):
    schema, form, samples = one_of_each_kind()[kind]
    write_dataset(tmp_path / "a", {"train": samples}, schema, image=form)
    with SplitReader(tmp_path / "a", "train") as reader:
        assert len(reader) == 3
        for row, (key, parts, label) in enumerate(samples):
            assert (reader.key(row), reader.label(row)) == (key, label)
            np.testing.assert_equal(reader.record(row), Record(parts, label))
            np.testing.assert_equal(reader.sample(row), (key, parts, label))


@pytest.mark.parametrize("store", ["lmdb", "hdf5", "tfrecord"])
@pytest.mark.parametrize("per_store", [1, 2, 3, 7])
def test_rows_count_on_from_file_to_file(store, per_store, tmp_path):
    samples = animals(7)
    write_dataset(tmp_path / "a", {"train": samples}, store=store, per_store=per_store)
    with SplitReader(tmp_path / "a", "train") as reader:
        assert [reader.sample(row) for row in range(7)] == samples
        assert [reader.key(row) for row in reversed(range(7))] == [key for key, _, _ in reversed(samples)]
        for row in (-1, 7):
            with pytest.raises(
                RecordIndexError, match=f"There is no row {row} in the split train of .*, which has 7 samples"
            ):
                reader.sample(row)


def test_rows_choose_records_across_files(tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(6)}, per_store=2)
    with with_overlay(dataset, rows=[5, 0, 2, 2]) as reader:
        assert [reader.key(row)[:2] for row in range(len(reader))] == ["05", "00", "02", "02"]
        assert [reader.label(row) for row in range(4)] == [2, 0, 2, 2]
        with pytest.raises(RecordIndexError, match="There is no row 4 in the split train"):
            reader.key(4)


def test_changed_labels_stand_before_those_in_the_records(tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(4)})
    with with_overlay(dataset, rows=[3, 2, 1], labels={0: 2, 2: None}) as reader:
        assert [reader.label(row) for row in range(3)] == [2, 2, None]
        assert [reader.record(row).label for row in range(3)] == [2, 2, None]
        assert [reader.sample(row)[2] for row in range(3)] == [2, 2, None]
        assert reader.sample(2)[1] == (png(picture(1)),)


def test_what_is_missing_or_damaged_is_named(tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(2)}, per_store=1)
    dataset.close()
    with pytest.raises(UnknownNameError, match="`valid` is not a known split"):
        SplitReader(tmp_path / "a", "valid")
    (tmp_path / "a" / "train-1.lmdb").unlink()
    with (
        SplitReader(tmp_path / "a", "train") as reader,
        pytest.raises(DataError, match=r"train-1\.lmdb`, which the manifest of the dataset names, does not exist"),
    ):
        reader.sample(0)
    with_overlay(write_dataset(tmp_path / "b", {"train": animals(1)}), labels={0: 1}).close()
    (tmp_path / "b" / "labels.jsonl").write_text("[0")
    with pytest.raises(DataError, match="changed labels of a split are read as written"):
        SplitReader(tmp_path / "b", "train").label(0)


def test_a_damaged_record_costs_its_own_sample(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(3)}, store="tfrecord").close()
    path = tmp_path / "a" / "train.tfrecord"
    content = bytearray(path.read_bytes())
    at = content.find(png(picture(1)))
    content[at + 30] ^= 1
    path.write_bytes(content)
    with SplitReader(tmp_path / "a", "train") as reader:
        assert reader.sample(0)[0] == "00.png"
        with pytest.raises(DatapointError, match=r"'01\.png' cannot be used: its checksum"):
            reader.sample(1)
        assert reader.sample(2)[0] == "02.png"


def test_referenced_files_are_read_where_they_are(tmp_path):
    root = tmp_path / "photos"
    inside = refer_to(root, "deep/ä b.png", png(picture(0)))
    absolute = FileReference(str(tmp_path / "photos" / "deep" / "ä b.png"), inside.size_bytes, inside.modified_ns)
    samples = [("one", (inside,), 0), ("two", (absolute,), 1)]
    write_dataset(tmp_path / "a", {"train": samples}, root=str(root))
    with SplitReader(tmp_path / "a", "train") as reader:
        assert reader.record(0).parts == (inside,)
        assert [reader.sample(row)[1] for row in range(2)] == [(png(picture(0)),)] * 2
        (root / "deep" / "ä b.png").write_bytes(b"other")
        with pytest.raises(DatapointError, match=r"'one' .* bytes when the dataset was made, now 5"):
            reader.sample(0)
        (root / "deep" / "ä b.png").unlink()
        with pytest.raises(DatapointError, match="the dataset refers to: No such file"):
            reader.sample(0)


def keys_of(reader):
    """Return all keys; runs in another process."""
    with reader:
        return [reader.sample(row)[0] for row in range(len(reader))]


def test_a_reader_goes_to_other_processes_and_threads(tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(5)}, per_store=2)
    expected = ["04.png", "00.png", "02.png"]
    with with_overlay(dataset, rows=[4, 0, 2], labels={1: 7}) as reader:
        assert reader.key(0) == "04.png"  # its files are open
        again = pickle.loads(pickle.dumps(reader))
        assert (keys_of(again), again.label(1)) == (expected, 7)
        again.close()
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(keys_of, reader).result(timeout=60) == expected
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(reader.key, [0, 1, 2] * 50)) == expected * 50


def test_a_closed_reader_opens_its_files_again(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(2)})
    reader = SplitReader(tmp_path / "a", "train", Manifest.load(tmp_path / "a"))
    for _ in range(2):
        assert reader.sample(1)[0] == "01.png"
        reader.close()
    reader.close()


def test_records_are_what_they_were(tmp_path):
    parts = (b"bytes", "text", np.arange(3), FileReference("a/b.png", 7, 9))
    for label in (None, 3, 0.5, [1, 2.5], [{"class": 0, "box": [0.0, 1.0, 2.0, 3.0]}]):
        np.testing.assert_equal(unpack_record(pack_record(parts, label)), Record(parts, label))
