"""Folders of NumPy files."""

import io
import pickle

import numpy as np
import pytest
from exported_datasets import guessed, kinds_of, read_back

from ziggurat.datasets.formats.arrays.importer import ArraysImporter
from ziggurat.errors import DataError


def put(folder, **arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def test_49_counts_and_shapes_are_those_of_the_source(tmp_path):
    for split, count in (("train", 5), ("val", 3), ("test", 2)):
        put(tmp_path / split, **{f"n{number}": np.full((4, 6, 3), number, np.float32) for number in range(count)})
    assert guessed(tmp_path) == ("arrays", "generic")
    found = read_back(ArraysImporter(), tmp_path)
    splits = [split for split, _parts, _label in found.samples.values()]
    assert [splits.count(split) for split in ("train", "val", "test")] == [5, 3, 2]
    assert found.schema.details == {"shapes": {"array": [4, 6, 3]}}
    assert (found.samples["train/n4.npy"][1][0] == np.full((4, 6, 3), 4)).all()


def test_49_sizes_may_differ_where_that_is_said(tmp_path):
    put(tmp_path, a=np.zeros((2, 2)), b=np.zeros((3, 3)))
    found = read_back(ArraysImporter(), tmp_path)
    assert list(found.samples) == ["a.npy"]
    assert found.problems[0].reason == "It has array (3, 3) where the first has array (2, 2)."
    assert list(read_back(ArraysImporter(), tmp_path, force_same_shape=False).samples) == ["a.npy", "b.npy"]


def test_several_arrays_in_a_file_are_parts(tmp_path):
    np.savez(tmp_path / "a.npz", wave=np.arange(3), mask=np.eye(2))
    found = read_back(ArraysImporter(), tmp_path)
    assert found.schema.parts == ("mask", "wave")
    assert [part.tolist() for part in found.samples["a.npz"][1]] == [[[1, 0], [0, 1]], [0, 1, 2]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "file,label\nx/a.npy,3\nb.npy,0.5,-1\n"),
        ("labels.json", '{"x/a.npy": 3, "b.npy": [0.5, -1]}'),
    ],
)
def test_labels_stand_in_a_table_or_in_json(tmp_path, name, text):
    put(tmp_path / "x", a=np.zeros(2))
    put(tmp_path / "x", b=np.zeros(2))
    put(tmp_path, c=np.zeros(2))
    (tmp_path / name).write_text(text)
    found = read_back(ArraysImporter(), tmp_path)
    assert {key: label for key, (_split, _parts, label) in found.samples.items()} == {
        "c.npy": None,
        "x/a.npy": 3,
        "x/b.npy": [0.5, -1],
    }


def test_what_is_no_array_is_listed_and_never_executed(tmp_path):
    put(tmp_path, a=np.zeros(2))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(print))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "broken.npz").write_bytes(b"PK\3\4 and no more")
    file = io.BytesIO()
    np.save(file, np.zeros(1000))
    (tmp_path / "cut.npy").write_bytes(file.getvalue()[:60])
    found = read_back(ArraysImporter(), tmp_path)
    assert list(found.samples) == ["a.npy"]
    assert kinds_of(found.problems) == dict.fromkeys(
        ["broken.npz", "cut.npy", "empty.npy", "objects.npy", "pickle.npy"], "unreadable"
    )


def test_a_folder_without_arrays_and_labels_that_are_none(tmp_path):
    with pytest.raises(DataError, match=r"has no `.npy` or `.npz` file that can be read"):
        read_back(ArraysImporter(), tmp_path)
    (tmp_path / "labels.csv").write_text("a.npy,many\n")
    with pytest.raises(DataError, match="Labels of arrays are a table"):
        read_back(ArraysImporter(), tmp_path)
