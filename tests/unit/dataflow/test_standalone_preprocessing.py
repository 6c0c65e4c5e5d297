"""Encoding of rows and texts in exports: the same numbers as in training, from the saved file alone."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_rows import encoded, public_table

from ziggurat.dataflow import standalone_preprocessing
from ziggurat.dataflow.standalone_preprocessing import encoder, finish, row_of_texts
from ziggurat.dataflow.table_preprocessing import SCALINGS, TablePreprocessing
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.errors import DatapointError
from ziggurat.records.schema import Column

COLUMNS = (
    Column(name="age", type="number"),
    Column(name="city", type="category", categories=("Oslo", "NA")),
    Column(name="member", type="boolean"),
    Column(name="since", type="time"),
    Column(name="y", type="number"),
)
ROWS = [
    [20, "Oslo", True, "2024-01-01", 1],
    [None, "NA", False, "2024-01-03T12:00:00", 2],
    [40, None, None, "2024-06-02T00:00:00+01:00", 3],
]


def exported(content: Mapping[str, Any], samples: list[Any]) -> np.ndarray:
    """Return samples as a network gets them, from what was saved."""
    encode = encoder(content)
    return finish(content, np.stack([encode(sample) for sample in samples]))


def test_it_needs_numpy_and_the_standard_library_alone() -> None:
    source = Path(standalone_preprocessing.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"numpy"}


@pytest.mark.parametrize("numbers", SCALINGS)
def test_rows_are_encoded_as_in_training(numbers: Any, tmp_path: Path) -> None:
    table = TablePreprocessing.fit(COLUMNS, "y", ROWS, numbers=numbers)
    table.save(tmp_path)
    content = json.loads((tmp_path / "preprocessing.json").read_text(encoding="utf-8"))
    samples = [*ROWS, [1e5, "Rome", None, None], {"age": 3, "city": "Oslo", "member": 1, "since": "2023-01-01"}]
    np.testing.assert_array_equal(exported(content, samples), encoded(table, samples))


@pytest.mark.parametrize("name", ["titanic.csv", "auto_imports.csv"])
def test_public_rows_are_encoded_as_in_training(name: str) -> None:
    schema, rows, _ = public_table(name)
    table = TablePreprocessing.fit(schema.columns, schema.target, rows[:400], numbers="whiten")
    some = rows[-100:]
    np.testing.assert_array_equal(exported(json.loads(json.dumps(table.as_json())), some), encoded(table, some))


@given(texts=st.lists(st.text(), min_size=1), lower=st.booleans())
def test_texts_are_encoded_as_in_training(texts: list[str], lower: bool) -> None:
    made = TextPreprocessing.fit(["some known words", *texts[::2]], length=6, min_count=1, lower=lower)
    expected = made.finish(np.stack([made.decode(text, 0) for text in texts]))
    found = exported(json.loads(json.dumps(made.as_json())), texts)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_rows_may_come_as_texts() -> None:
    table = TablePreprocessing.fit(COLUMNS, "y", ROWS)
    texts = {"age": " 2e1 ", "city": "NA", "member": "Yes", "since": " 2024-01-01", "y": ""}
    row = row_of_texts(table.as_json(), texts)
    assert row == {"age": 20.0, "city": "NA", "member": True, "since": "2024-01-01", "y": None}
    expected = table.decode([20, "NA", True, "2024-01-01"], 0)
    np.testing.assert_array_equal(table.decode_texts(texts, 0), expected)
    nothing = dict.fromkeys(("age", "member", "since"), "NA") | {"city": ""}
    np.testing.assert_array_equal(table.decode_texts(nothing, 0), table.decode([None] * 4, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "1_000"}, r"`age` must hold a number such as 12.5; received '1_000'\."),
        ({"age": "inf"}, r"`age` must hold a number"),
        ({"age": "1e999"}, r"`age` must hold a number"),
        ({"member": "perhaps"}, r"`member` must hold true or false"),
        ({"since": "31.5.2024"}, r"`since` must hold a time such as 2024-05-31"),
        ({"town": "Rome"}, r"the table has no column 'town'"),
    ],
)
def test_a_wrong_text_is_refused_by_name(change: dict[str, str], message: str) -> None:
    table = TablePreprocessing.fit(COLUMNS, "y", ROWS)
    texts = {"age": "1", "city": "Oslo", "member": "no", "since": "2024-01-01", **change}
    with pytest.raises(DatapointError, match=message):
        table.decode_texts(texts, "k")
    with pytest.raises(ValueError, match=message):
        encoder(table.as_json())(row_of_texts(table.as_json(), texts))


def test_content_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="of the kind table or text is needed; received 'image'"):
        encoder({"kind": "image"})
    with pytest.raises(ValueError, match="it must be a text; received int"):
        encoder(TextPreprocessing.fit(["a a"]).as_json())(5)
