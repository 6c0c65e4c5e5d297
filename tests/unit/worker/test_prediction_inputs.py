"""Rows of CSV files as inputs of a prediction: the same values as the preprocessing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.errors import DatapointError
from ziggurat.records.schema import Column, Schema
from ziggurat.tasks import TaskContext, task
from ziggurat.worker.commands.prediction_inputs import named_inputs

COLUMNS = (
    Column(name="size", type="number"),
    Column(name="color", type="category"),
    Column(name="new", type="boolean"),
    Column(name="built", type="time"),
    Column(name="price", type="number"),
)
ROWS = [
    [1.5, "red", True, "2024-01-01", 3.0],
    [2.5, "blue", False, "2024-02-01", 4.0],
    [None, "NA", True, "2024-03-01", 5.0],
]


@pytest.fixture(scope="module")
def context() -> TaskContext:
    schema = Schema(kind="table", columns=COLUMNS, target="price")
    return TaskContext(task("regression"), schema, TablePreprocessing.fit(COLUMNS, "price", ROWS))


def read(context: TaskContext, folder: Path, text: str) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    file = folder / "rows.csv"
    file.write_text(text)
    found, failures, _ = named_inputs(context, {"images": [str(file)]})
    return [(name.removeprefix(f"{file}:"), row) for name, row in found], failures


@pytest.mark.parametrize(
    "text",
    [
        "size,color,new,built,price\n2.5,blue,no,2024-02-01,9\n?,NA,yes,2024-03-01,\n",
        "color,size,built,new\nblue,2.5,2024-02-01,0\nNA,,2024-03-01,1\n",
        "2.5,blue,no,2024-02-01\n,NA,yes,2024-03-01\n",
        "2.5,blue,no,2024-02-01,7\nnan,NA,yes,2024-03-01,7\n",
        "size;color;new;built\n2,5;blue;no;2024-02-01\n?;NA;yes;2024-03-01\n",
        "x,size,color,new,built,note\n1,2.5,blue,no,2024-02-01,a\n1,?,NA,yes,2024-03-01,b\n",
        "sep=;\nsize;color;new;built;\n2,5;blue;no;2024-02-01;\nsize;color;new;built\n?;NA;yes;2024-03-01;\n",
    ],
)
def test_rows_of_a_file_are_read_as_in_training(context: TaskContext, tmp_path: Path, text: str) -> None:
    found, failures = read(context, tmp_path, text)
    assert not failures
    assert [name for name, _ in found] == ["1", "2"]
    for (_, row), expected in zip(found, ROWS[1:], strict=True):
        decode = context.preprocessing.decode
        np.testing.assert_array_equal(decode(row, 0), decode(expected, 0))


def test_a_row_that_cannot_be_used_is_named(context: TaskContext, tmp_path: Path) -> None:
    text = "size,color,new,built\nlarge,red,no,2024-01-01\n1.5,red,no,2024-01-01\n1.5,red,no\n"
    found, failures = read(context, tmp_path, text)
    assert [name for name, _ in found] == ["2"]
    assert [each["file"].rpartition(":")[2] for each in failures] == ["1", "3"]
    assert "`size` must hold a number such as 12.5; received 'large'" in failures[0]["message"]
    assert "it has 3 cells instead of 4" in failures[1]["message"]


def test_a_file_with_other_columns_is_refused(context: TaskContext, tmp_path: Path) -> None:
    found, failures = read(context, tmp_path, "a,b\n1,2\n")
    assert not found
    assert "2 row(s) of 2 cells for 5 columns" in failures[0]["message"]


def test_further_columns_are_left_out_and_said(context: TaskContext, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x,size,color,new,built,note\n1,2.5,blue,no,2024-02-01,a\n")
    (tmp_path / "rows.json").write_text('[{"size": 1, "color": "red", "new": true, "built": null, "x": 3}]')
    for name, said in (("rows.csv", "`x`, `note` of {} are no columns"), ("rows.json", "`x` of {} is no column")):
        file = str(tmp_path / name)
        found, failures, notes = named_inputs(context, {"images": [file]})
        assert (len(found), failures) == (1, [])
        assert notes == [f"{said.format(file)} of the table."]
        assert set(found[0][1]) == {"size", "color", "new", "built"}


def test_a_column_that_lacks_beside_further_ones_is_named(context: TaskContext, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x,color,new,built\n1,blue,no,2024-02-01\n")
    found = named_inputs(context, {"images": [str(tmp_path / "rows.csv")]}).found
    with pytest.raises(DatapointError, match="no value for the column `size`"):
        context.preprocessing.decode(found[0][1], 0)


def test_grouped_thousands_are_read(context: TaskContext, tmp_path: Path) -> None:
    found, failures = read(context, tmp_path, "size;color;new;built\n1.234,5;blue;no;2024-02-01\n")
    assert (found[0][1]["size"], failures) == (1234.5, [])
    found, failures = read(context, tmp_path, "size;color;new;built\n1,234;blue;no;2024-02-01\n")
    assert not found
    assert "which may be 1.234 or 1234" in failures[0]["message"]


def test_a_video_stands_for_its_frames(tmp_path: Path) -> None:
    schema = Schema(kind="image-classification", class_names=("cat", "dog"))
    images = TaskContext(task("classification"), schema, Preprocessing(size=(8, 8)))
    clip = tmp_path / "clip.avi"
    video = cv2.VideoWriter(str(clip), cv2.VideoWriter_fourcc(*"MJPG"), 10, (16, 16))
    for _ in range(10):
        video.write(np.zeros((16, 16, 3), np.uint8))
    video.release()
    (tmp_path / "bad.mp4").write_bytes(b"nothing")
    found, failures, _ = named_inputs(images, {"images": [str(clip), "a.png", str(tmp_path / "bad.mp4")]})
    assert [name for name, _ in found] == [f"{clip} 0:00.00", f"{clip} 0:00.50", "a.png"]
    assert [each["file"] for each in failures] == [str(tmp_path / "bad.mp4")]
