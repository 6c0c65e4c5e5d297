"""A table that was exported comes back the same: keys, splits, labels, values, types, names and order of classes."""

from __future__ import annotations

import json
import math
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_text_fakes import MemoryDataset, Scanned

from ziggurat.datasets.formats.table.exporter import export_table
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.samples import Sample
from ziggurat.errors import DataError, StorageError, UnknownNameError
from ziggurat.records.schema import Column, Schema

_CLASSES = ("no", "ja, bitte", 'he said "yes"')
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "NA", " NA ", "<missing>", "nan", "1.0", "007", "#", "a\r\nb", '"', ",", "\t", " x ", "true", "2020-01-01"]
)
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": _NUMBERS,
    "category": st.sampled_from(_CLASSES),
    "text": _TEXTS,
    "boolean": st.booleans(),
    "time": st.datetimes(timezones=st.none() | st.just(None)).map(lambda when: when.isoformat()),
    "identifier": _TEXTS,
}


@st.composite
def tables(draw: st.DrawFn) -> MemoryDataset:
    """Draw a table with a few columns and rows."""
    types = draw(st.lists(st.sampled_from(list(_VALUES)), min_size=1, max_size=5))
    target = draw(st.sampled_from(["number", "category"]))
    names = draw(st.lists(st.text(string.printable, min_size=1, max_size=6), min_size=9, max_size=9, unique=True))
    kinds = [*types, target]
    row = st.tuples(*(st.none() | _VALUES[kind] for kind in types), _VALUES[target])
    rows = draw(st.lists(row, min_size=1, max_size=8))
    columns = tuple(
        Column(
            name=name,
            type=kind,
            categories=_CLASSES if kind == "category" else (),
            missing=sum(values[place] is None for values in rows),
        )
        for place, (name, kind) in enumerate(zip(names, kinds, strict=False))
    )
    schema = Schema(
        kind="table",
        columns=columns,
        target=columns[-1].name,
        class_names=_CLASSES if target == "category" else (),
    )
    splits = ["train", *draw(st.lists(st.sampled_from(["train", "val", "test"]), min_size=8, max_size=8))]
    samples = [
        Sample(
            key=f"Größe {number}, {draw(_TEXTS.filter(lambda text: chr(0) not in text))}",
            parts=(json.dumps(values).encode(),),
            label=_CLASSES.index(values[-1]) if target == "category" else values[-1],
            split=splits[number],
        )
        for number, values in enumerate(rows)
    ]
    return MemoryDataset(schema, samples)


@pytest.mark.parametrize("file_format", ["csv", "tsv", "parquet"])
@settings(max_examples=25, deadline=None)
@given(dataset=tables())
def test_what_was_exported_comes_back(file_format: str, dataset: MemoryDataset) -> None:
    if file_format == "parquet":
        pytest.importorskip("pyarrow")
    with tempfile.TemporaryDirectory() as place:
        report = export_table(dataset, Path(place) / "out", file_format=file_format)
        guess = TableImporter().guess(Path(place) / "out")
        again = Scanned(TableImporter(), Path(place) / "out")
    assert guess is not None
    assert guess.confidence == 1.0
    before = list(dataset.samples())
    assert sum(report.counts.values()) == len(before)
    notes = ("missing-value", "leaking-column")  # a drawn column may determine the target by chance
    assert [problem for problem in again.problems if problem.kind not in notes or problem.left_out] == []
    assert [(each.key, each.split, each.label) for each in again.samples] == [
        (each.key, each.split, each.label) for each in before
    ]
    assert again.rows == [json.loads(bytes(each.parts[0])) for each in before]  # type: ignore[arg-type]
    assert again.schema == dataset.schema


def test_a_table_of_others_survives_being_exported(tmp_path: Path) -> None:
    rows = [f"{at},{at / 7},2020-01-{at + 1:02d},{'xy'[at % 2]},a note on {at}" for at in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,when,kind,free", *rows]))
    found = Scanned(TableImporter(), tmp_path / "t.csv", target="kind", group="kind", time="when")
    for file_format in ("csv", "parquet"):
        export_table(found.dataset(), tmp_path / file_format, file_format=file_format)
        again = Scanned(TableImporter(), tmp_path / file_format)
        assert again.keys == found.keys
        assert again.rows == found.rows
        assert again.schema == found.schema
        assert [(each.group, each.time) for each in again.samples] == [(e.group, e.time) for e in found.samples]


def test_labels_changed_later_are_in_the_column_of_the_target(tmp_path: Path) -> None:
    schema = Schema(
        kind="table", columns=(Column(name="y", type="category", categories=("a", "b")),), target="y",
        class_names=("a", "b"),
    )  # fmt: skip
    export_table(MemoryDataset(schema, [Sample(key="k", parts=(b'["a"]',), label=1)]), tmp_path / "out")
    assert (tmp_path / "out" / "train.csv").read_text() == "key,y\nk,b\n"


def test_numbers_keep_all_of_their_digits(tmp_path: Path) -> None:
    schema = Schema(kind="table", columns=(Column(name="x", type="number"),))
    values = [0.1 + 0.2, 5e-324, math.pi * 1e300, -0.0, 9007199254740993]
    rows = [Sample(key=str(at), parts=(json.dumps([value]).encode(),)) for at, value in enumerate(values)]
    export_table(MemoryDataset(schema, rows[:4]), tmp_path / "broken")
    export_table(MemoryDataset(schema, rows[4:]), tmp_path / "whole")
    assert [row[0] for row in Scanned(TableImporter(), tmp_path / "broken").rows] == values[:4]
    assert Scanned(TableImporter(), tmp_path / "whole").rows == [[9007199254740993]]


def test_an_export_never_writes_into_a_filled_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    dataset = MemoryDataset(Schema(kind="table"), [])
    with pytest.raises(StorageError, match=r"it holds `mine\.txt`"):
        export_table(dataset, tmp_path)
    with pytest.raises(UnknownNameError, match="`xlsx` is not a known format"):
        export_table(dataset, tmp_path, file_format="xlsx")


def test_what_a_text_file_cannot_hold_is_listed(tmp_path: Path) -> None:
    schema = Schema(kind="table", columns=(Column(name="x", type="text"),))
    rows = [Sample(key="good", parts=(b'["a"]',)), Sample(key="bad", parts=(b'["a\\u0000"]',))]
    report = export_table(MemoryDataset(schema, rows), tmp_path / "csv")
    assert (report.counts, [problem.key for problem in report.problems]) == ({"train": 1}, ["bad"])


def test_rows_that_somebody_added_to_an_export_are_checked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,kind\n" + "1.5,a\n2.5,b\n" * 3)
    export_table(Scanned(TableImporter(), tmp_path / "t.csv").dataset(), tmp_path / "out")
    with (tmp_path / "out" / "train.csv").open("a") as file:
        file.write("new,3.5,a\nnewer,4.5,c\nnewest,many,b\n")
    again = Scanned(TableImporter(), tmp_path / "out")
    assert again.keys[-2:] == ["new", "newest"]
    assert again.rows[-1] == [None, "b"]
    assert [(problem.key, problem.kind) for problem in again.problems] == [
        ("train.csv:9", "unknown-class"),
        ("train.csv", "bad-value"),
    ]


def test_a_description_of_nonsense_describes_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,y\n1,2.5\n")
    for content in ("[]", "{}", '{"schema": 5}', "{", '{"schema": {}, "version": 7}'):
        (tmp_path / "columns.json").write_text(content)
        assert Scanned(TableImporter(), tmp_path).labels == [2.5]
    (tmp_path / "columns.json").write_text('{"version": 1, "schema": {"kind": "soup"}}')
    guess = TableImporter().guess(tmp_path)
    assert guess is not None
    assert guess.confidence == 0.8
    with pytest.raises(DataError, match=r"`columns\.json` is read as it was written"):
        Scanned(TableImporter(), tmp_path)


def test_a_column_called_split_stays_a_column(tmp_path: Path) -> None:
    columns = (Column(name="split", type="text"), Column(name="key", type="text"))
    schema = Schema(kind="table", columns=columns)
    before = [Sample(key="a", parts=(b'["train", "x"]',), split="val")]
    export_table(MemoryDataset(schema, before), tmp_path / "out")
    again = Scanned(TableImporter(), tmp_path / "out")
    assert (tmp_path / "out" / "val.csv").read_text() == "key-2,split,key\na,train,x\n"
    assert [(each.key, each.split) for each in again.samples] == [("a", "val")]
    assert (again.rows, again.schema) == ([["train", "x"]], schema)
