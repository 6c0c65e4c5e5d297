"""Inputs of predictions and sources of datasets, of every type that a Python session gives."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from ziggurat.errors import DataError, UsageError
from ziggurat.interactive.inputs import as_rows, model_inputs
from ziggurat.interactive.sources import changed_at, files_of, stamp_of

GRAY = np.arange(12, dtype=np.uint8).reshape(3, 4)


def test_arrays_and_images_become_the_same_file():
    found, is_single = model_inputs("image", [GRAY, GRAY[:, :, None], Image.fromarray(GRAY)])

    assert not is_single
    assert len({content for _, content in found.images}) == 1
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(found.images[0][1]))), GRAY)


def test_one_array_of_four_axes_is_a_batch():
    found, is_single = model_inputs("image", np.stack([GRAY[:, :, None]] * 3))

    assert (len(found), is_single) == (3, False)
    assert model_inputs("image", GRAY)[1]


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (GRAY.astype(np.float32), r"float32 numbers cannot be read"),
        (np.zeros((2, 3, 5), np.uint8), r"shape \(2, 3, 5\) is no image"),
        (np.zeros((0, 4), np.uint8), r"shape \(0, 4\) is no image"),
    ],
)
def test_arrays_that_are_no_images_are_refused(image, said):
    with pytest.raises(DataError, match=said):
        model_inputs("image", image)


def test_files_of_a_folder_that_is_no_file_are_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        model_inputs("image", tmp_path)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("image", {"width": 1}), ("image", None), ("image", b"bytes"), ("image", 5), ("row", "a text"), ("row", [1, 2]),
        ("text", {"a": 1}), ("text", 3), ("text", ["a", 3]),
    ],
)  # fmt: skip
def test_inputs_of_another_kind_say_what_is_taken(kind, given):
    with pytest.raises(UsageError, match="This run takes "):
        model_inputs(kind, given)


def test_rows_of_numpy_and_pandas_become_plain():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"size": [1.5, None], "color": ["red", None], "day": pandas.to_datetime(["2026-01-02"] * 2)}
    )

    rows = as_rows(frame)

    assert rows[0] == {"size": 1.5, "color": "red", "day": "2026-01-02 00:00:00"}
    assert rows[1]["size"] is None
    assert rows[1]["color"] is None
    assert as_rows([{"n": np.int64(3)}]) == [{"n": 3}]
    assert model_inputs("row", frame)[1] is False


def test_labeled_images_become_a_folder_for_each_label(tmp_path):
    made = files_of((np.stack([GRAY] * 3), ["cat", "dog", "cat"]))

    assert sorted(made.content) == ["cat/0.png", "cat/2.png", "dog/1.png"]
    assert made.write(tmp_path) == tmp_path
    assert made.stamp != files_of((np.stack([GRAY] * 3), ["cat", "dog", "dog"])).stamp
    assert files_of(3) is None


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="do not fit together"):
        files_of((np.stack([GRAY] * 3), ["cat"]))
    with pytest.raises(DataError, match="cannot be the name of a class"):
        files_of(([GRAY], ["../cat"]))


def test_rows_become_a_table(tmp_path):
    source = files_of([{"a": 1, "b": "x"}, {"a": 2, "c": None}]).write(tmp_path)

    assert source.read_text() == "a,b,c\n1,x,\n2,,\n"


def test_a_change_of_files_changes_their_stamp(tmp_path):
    file = tmp_path / "files" / "a.txt"
    file.parent.mkdir()
    file.write_text("one")
    before = stamp_of(file.parent)
    file.write_text("three")

    assert stamp_of(file.parent) != before
    assert changed_at(file.parent) >= file.stat().st_mtime
    assert changed_at(tmp_path / "nothing") == float("inf")
