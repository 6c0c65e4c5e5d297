"""Parquet files go in with the types that they say; columns that no table has are left out and listed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from table_text_fakes import Scanned

from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.errors import DataError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(path: Path, rows: int = 4, **columns: Any) -> Path:
    parquet.write_table(pyarrow.table(columns), path, row_group_size=max(1, rows // 2))
    return path


def test_types_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.parquet",
        code=["01", "02", "01", None],
        count=[1, 2, 3, None],
        weight=[1.5, float("nan"), float("inf"), 2.0],
        price=[Decimal("1.50"), Decimal("2"), Decimal("3"), Decimal("4")],
        flag=[True, False, None, True],
        day=[date(2020, 1, 2)] * 4,
        moment=[datetime(2020, 1, 2, 3, 4, 5)] * 4,
        town=pyarrow.array(["Ulm", "Bonn", "Ulm", "Ulm"]).dictionary_encode(),
        y=[0.5, 1.5, 2.5, 3.5],
    )
    found = Scanned(TableImporter(), path)
    assert found.rows[:2] == [
        ["01", 1, 1.5, 1.5, True, "2020-01-02", "2020-01-02T03:04:05", "Ulm", 0.5],
        ["02", 2, None, 2.0, False, "2020-01-02", "2020-01-02T03:04:05", "Bonn", 1.5],
    ]
    assert found.rows[3][:2] == [None, None]
    assert list(found.types.values()) == [
        "category", "number", "number", "number", "boolean", "time", "time", "category", "number",
    ]  # fmt: skip
    assert [column.missing for column in found.schema.columns] == [1, 1, 2, 0, 1, 0, 0, 0, 0]


def test_lists_and_bytes_are_no_cells(tmp_path: Path) -> None:
    path = written(tmp_path / "t.pq", a=[1, 2], picture=[b"x", b"y"], boxes=[[1], [2, 3]], y=[0.5, 1.5])
    found = Scanned(TableImporter(), path)
    assert [column.name for column in found.schema.columns] == ["a", "y"]
    assert found.reasons("bad-column") == [
        "The column `picture` holds lists or bytes and is left out.",
        "The column `boxes` holds lists or bytes and is left out.",
    ]
    with pytest.raises(DataError, match="A table has columns of numbers, texts or times"):
        Scanned(TableImporter(), written(tmp_path / "only.pq", picture=[b"x"]))


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", a=[1, 2], y=[0.5, 1.5])
    path.write_bytes(path.read_bytes()[:-20])
    assert TableImporter().guess(path) is None
    with pytest.raises(DataError, match="A Parquet file is whole"):
        Scanned(TableImporter(), path)


def test_guesses(tmp_path: Path) -> None:
    numbers = written(tmp_path / "numbers.parquet", a=[1, 2], y=[0.5, 1.5])
    texts = written(tmp_path / "texts.parquet", text=["what a fine day", "never do this again"] * 4, label=[0, 1] * 4)
    of_numbers = TableImporter().guess(numbers)
    assert of_numbers is not None
    assert (of_numbers.confidence, of_numbers.reason) == (0.8, "a table of 2 columns, Parquet")
    table, text = TableImporter().guess(texts), TextImporter().guess(texts)
    assert table is not None
    assert text is not None
    assert text.confidence > table.confidence
    assert TextImporter().guess(numbers) is None
    found = Scanned(TextImporter(), texts)
    assert (found.labels, found.schema.class_names) == ([0, 1] * 4, ("0", "1"))


def test_whole_numbers_that_name_rows_become_keys(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", id=[7, 5, 6], y=[0.5, 1.5, 2.5])
    found = Scanned(TableImporter(), path)
    assert (found.keys, found.rows[0]) == (["7", "5", "6"], ["7", 0.5])
