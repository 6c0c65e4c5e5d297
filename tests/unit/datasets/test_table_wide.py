"""Tables of very many columns: what is done for one column does not grow with their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.table.files import TextTable
from ziggurat.datasets.formats.table.importer import TableImporter, TableScan
from ziggurat.datasets.samples import Sample

COLUMNS = 300


class Counted(str):
    """Name of a column that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def table(path: Path, names: list[str]) -> TextTable:
    path.write_text("\n".join([",".join(names), *(",".join(str(row + at) for at in range(COLUMNS)) for row in (1, 2))]))
    reader = TextTable(path)
    reader.names = tuple(map(Counted, reader.names))
    return reader


def test_columns_of_two_files_are_matched_without_a_search(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(COLUMNS)]
    one, other = table(tmp_path / "train.csv", names), table(tmp_path / "val.csv", names[::-1])
    options: dict[str, Any] = TableImporter().checked_options({"target": "c0"})
    Counted.comparisons = 0
    found = list(TableScan([(one, "train"), (other, "val")], options))
    assert [each.split for each in found if isinstance(each, Sample)] == ["train", "train", "val", "val"]
    assert Counted.comparisons < 20 * COLUMNS  # a search for each name: 45,000 a walk


def test_many_equal_headings_do_not_grow_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(",".join(["x"] * COLUMNS) + "\n" + ",".join(["1"] * COLUMNS) + "\n")
    names = TextTable(path, header="yes").names
    assert len(set(names)) == COLUMNS
    assert names[:3] == ("x", "x'", "x''")
    assert max(map(len, names)) <= 12
