"""Preprocessing of tables: missing values, categories, times, scaling, and errors that name the column."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_rows import encoded

from ziggurat.dataflow.table_preprocessing import SCALINGS, TablePreprocessing
from ziggurat.errors import ConfigurationError, DataError, DatapointError, UnknownNameError
from ziggurat.records.schema import Column

COLUMNS = (
    Column(name="id", type="identifier"),
    Column(name="age", type="number"),
    Column(name="city", type="category", categories=("Oslo", "Rome", "Bonn")),
    Column(name="member", type="boolean"),
    Column(name="since", type="time"),
    Column(name="note", type="text"),
    Column(name="price", type="number"),
)
ROWS = [
    ["a", 20, "Rome", True, "2024-01-01", "some words", 1.0],
    ["b", None, "Oslo", False, "2024-01-03T12:00:00", "other words", 2.0],
    ["c", 40, None, True, "2024-01-02T00:00:00+01:00", "more words", 3.0],
    ["d", 60, "Rome", None, "2024-01-05", None, 4.0],
]
DAY_S = 86_400


def fitted(**options: Any) -> TablePreprocessing:
    return TablePreprocessing.fit(COLUMNS, "price", ROWS, **options)


def test_a_row_becomes_numbers_then_categories() -> None:
    table = fitted(numbers="none")
    assert table.feature_names[:5] == ("age", "age (missing)", "member", "member (missing)", "since")
    assert table.feature_names[5:] == (
        *(f"since ({turn}, {wave})" for turn in ("day", "week", "year") for wave in ("sine", "cosine")),
        "city",
    )
    assert table.shape == (12,)
    assert table.categories == (*[0] * 11, 3)
    assert (table.dtype, table.vocabulary_size) == ("float32", None)
    rows = encoded(table, ROWS)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows[:, 0], [20, 40, 40, 60])  # the mean of 20, 40 and 60 stands for none
    np.testing.assert_array_equal(rows[:, 1], [0, 1, 0, 0])
    np.testing.assert_allclose(rows[:, 2], [1, 0, 1, 2 / 3])
    np.testing.assert_array_equal(rows[:, 4], [0, 2.5 * DAY_S, 23 / 24 * DAY_S, 4 * DAY_S])
    np.testing.assert_allclose(rows[:, 6], [1, -1, 1, 1], atol=1e-6)  # noon is opposite to midnight
    np.testing.assert_array_equal(rows[:, 11], [2, 1, 0, 2])  # in the order of the schema, not of the rows


def test_columns_that_are_left_out_have_a_reason() -> None:
    table = TablePreprocessing.fit(
        [
            *COLUMNS,
            Column(name="zero", type="number"),
            Column(name="void", type="time"),
            Column(name="one", type="category"),
        ],
        "price",
        [[*row, 7, None, "x"] for row in ROWS],
    )
    assert {name: reason.split(",")[0] for name, reason in table.left_out.items()} == {
        "id": "It names the row",
        "note": "It holds free texts",
        "zero": "It has the same value in the whole training split.",
        "void": "It has no value in the training split.",
        "one": "It has the same value in the whole training split.",
    }
    assert table.shape == fitted().shape


def test_the_time_of_dates_alone_has_no_place_in_the_day() -> None:
    columns = [Column(name="when", type="time"), Column(name="y", type="number")]
    table = TablePreprocessing.fit(columns, "y", [["2024-01-01", 1], ["2024-06-02", 2], ["2025-01-08", 3]])
    assert not any("day" in name for name in table.feature_names)
    assert len(table.feature_names) == 5


def test_standardize_scales_numbers_and_times_only() -> None:
    rows = encoded(fitted(), ROWS)
    for column in (0, 4):
        assert rows[:, column].mean() == pytest.approx(0, abs=1e-6)
        assert rows[:, column].std() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(rows[:, 1], [0, 1, 0, 0])
    assert set(rows[[0, 1, 2], 2]) == {0, 1}


def test_whiten_leaves_no_correlation() -> None:
    chance = np.random.default_rng(0)
    base = chance.normal(size=(500, 3)) * [1, 1000, 1e-3]
    values = np.column_stack(
        [base, base[:, 0] * 5 + base[:, 1] * 0.01 + chance.normal(size=500) * 0.1, chance.random(500)]
    )
    columns = [Column(name=f"c{number}", type="number") for number in range(5)]
    rows = encoded(TablePreprocessing.fit(columns, "", values.tolist(), numbers="whiten"), values.tolist())
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(5), atol=1e-4)
    for number in range(5):  # each result is closest to its own column
        assert np.argmax(np.abs(np.corrcoef(rows[:, number], values.T)[0, 1:])) == number


def test_whiten_stays_finite_with_equal_columns() -> None:
    columns = [Column(name=f"c{number}", type="number") for number in range(4)]
    values = [[n, n, 2 * n - 7, n * n % 17] for n in range(100)]
    table = TablePreprocessing.fit(columns, "", values, numbers="whiten")
    rows = encoded(table, values)
    assert np.abs(rows).max() < 10
    np.testing.assert_allclose(np.square(rows).sum(axis=1).mean(), 2, rtol=1e-4)  # two directions, each with variance 1
    single = table.finish(np.stack([table.decode(row, 0) for row in values]).astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(single, rows, atol=1e-2)  # as an export gets them


@pytest.mark.parametrize("numbers", SCALINGS)
def test_affine_is_what_finish_does(numbers: Any) -> None:
    table = fitted(numbers=numbers)
    raw = np.stack([table.decode(row, 0) for row in ROWS])
    matrix, offset = table.affine()
    assert raw.dtype == matrix.dtype == offset.dtype == np.float64
    np.testing.assert_allclose((raw - offset) @ matrix, table.finish(raw), rtol=1e-5, atol=1e-6)


def test_rows_are_lists_or_objects_with_or_without_the_target() -> None:
    table = fitted()
    names = [column.name for column in COLUMNS]
    whole = table.decode(ROWS[0], "a")
    by_name = dict(zip(names, ROWS[0], strict=True))
    short = {name: by_name[name] for name in ("since", "member", "city", "age")}
    for row in (ROWS[0][:-1], tuple(ROWS[0]), by_name, short):
        np.testing.assert_array_equal(table.decode(row, "a"), whole)
    np.testing.assert_array_equal(table.decode([*ROWS[0][:-1], "any"], "a"), whole)
    changed = {**short, "age": np.int64(20), "member": np.bool_(True)}
    np.testing.assert_array_equal(table.decode(changed, "a"), whole)


def test_a_target_in_the_middle_may_be_left_out() -> None:
    columns = [Column(name=name, type="number") for name in "aby"]
    table = TablePreprocessing.fit(columns, "b", [[1, 10, 2], [2, 20, 5]], numbers="none")
    np.testing.assert_array_equal(table.decode([7, 8], 0), [7, 8])
    np.testing.assert_array_equal(table.decode([7, 99, 8], 0), [7, 8])


def test_unseen_categories_and_filled_cells_are_counted() -> None:
    table = fitted()
    row = dict(zip((column.name for column in COLUMNS), ROWS[0], strict=True))
    assert table.decode({**row, "city": "Bonn"}, 0)[-1] == 0  # known to the schema, and not in the training split
    assert table.decode({**row, "city": "Paris"}, 0)[-1] == 0
    assert table.decode({**row, "city": None}, 0)[-1] == 0
    assert table.unseen == {"city": 2}
    table.decode({**row, "age": None}, 0)
    assert table.filled == {}  # its indicator tells the network
    table.decode({**row, "since": None}, 0)
    assert table.filled == {"since": 1}
    whole = TablePreprocessing.fit(COLUMNS, "price", [row for row in ROWS if row[2] is not None])
    whole.decode({**row, "city": None}, 0)
    assert (whole.filled, whole.unseen) == ({"city": 1}, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, r"Datapoint 'k' .* column `age` must hold a number .*; received 'old'\."),
        ({"age": True}, "`age` must hold a number"),
        ({"age": math.inf}, "`age` must hold a number"),
        ({"age": 10**400}, "`age` must hold a number"),
        ({"member": "perhaps"}, r"`member` must hold true or false; received 'perhaps'\."),
        ({"member": 2}, "`member` must hold true or false"),
        ({"since": "yesterday"}, r"`since` must hold a time such as 2024-05-31 .*; received 'yesterday'\."),
        ({"since": 5}, "`since` must hold a time"),
        ({"city": 1.5}, "`city` must hold a category"),
        ({"town": "Rome"}, r"the table has no column 'town'\. Its columns: `id`, `age`"),
    ],
)
def test_a_wrong_cell_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    row = dict(zip((column.name for column in COLUMNS), ROWS[0], strict=True))
    with pytest.raises(DatapointError, match=message):
        fitted().decode({**row, **change}, "k")


def test_a_row_with_other_columns_is_refused() -> None:
    table = fitted()
    with pytest.raises(
        DatapointError, match=r"7 values, of which `price` may be left out; received 3\. Its columns: `id`"
    ):
        table.decode([1, 2, 3], "k")
    with pytest.raises(DatapointError, match=r"no value for the column `member`\. Give null"):
        table.decode({"age": 1, "city": "Rome", "since": "2024-01-01"}, "k")
    with pytest.raises(DatapointError, match="a row is a list of values or an object"):
        table.decode("20,Rome", "k")


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="`numbers` must be one of none, standardize, whiten"):
        fitted(numbers="minmax")
    with pytest.raises(UnknownNameError, match="`prize` is not a known column of the table"):
        TablePreprocessing.fit(COLUMNS, "prize", ROWS)
    with pytest.raises(DataError, match="at least one row"):
        TablePreprocessing.fit(COLUMNS, "price", [])
    with pytest.raises(DataError, match=r"at least one column to learn from.*`id`: It names the row"):
        TablePreprocessing.fit([COLUMNS[0], COLUMNS[-1]], "price", [["a", 1], ["b", 2]])
    with pytest.raises(DatapointError, match=r"Datapoint 1 .*`age`"):
        TablePreprocessing.fit(COLUMNS, "price", [ROWS[0], ["b", "x", *ROWS[1][2:]]])


@pytest.mark.parametrize("numbers", SCALINGS)
def test_what_is_saved_is_loaded_exactly(numbers: Any, tmp_path: Path) -> None:
    table = fitted(numbers=numbers)
    table.save(tmp_path)
    content = json.loads((tmp_path / "preprocessing.json").read_text())
    assert content["kind"] == "table"
    loaded = TablePreprocessing.load(tmp_path)
    assert loaded.as_json() == table.as_json() == content
    assert (loaded.shape, loaded.categories, loaded.feature_names) == (
        table.shape,
        table.categories,
        table.feature_names,
    )
    np.testing.assert_array_equal(encoded(loaded, ROWS), encoded(table, ROWS))


def test_a_table_of_categories_alone_has_no_numbers(tmp_path: Path) -> None:
    columns = [Column(name="color", type="category"), Column(name="y", type="number")]
    table = TablePreprocessing.fit(columns, "y", [["red", 1], ["blue", 2], [None, 3]], numbers="whiten")
    table.save(tmp_path)
    np.testing.assert_array_equal(
        encoded(TablePreprocessing.load(tmp_path), [["red"], ["blue"], [None]]), [[2], [1], [0]]
    )
    assert table.categories == (3,)


@pytest.mark.parametrize(
    "change",
    [{"kind": "text"}, {"numbers": "minmax"}, {"offset": [0.0]}, {"measured": [{}]}, {"categorical": [{"name": "x"}]}],
)
def test_a_damaged_file_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    fitted().save(tmp_path)
    path = tmp_path / "preprocessing.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match="is read as it was written"):
        TablePreprocessing.load(tmp_path)
    path.write_text("{")
    with pytest.raises(DataError, match="must hold the preprocessing of its model"):
        TablePreprocessing.load(tmp_path)


NUMBERS = st.none() | st.integers(-(10**9), 10**9) | st.floats(-1e20, 1e20)
CELLS = st.tuples(
    st.text(max_size=3),
    NUMBERS,
    st.none() | st.sampled_from(["Oslo", "Rome", "Bonn", "", "\ud800", "ß"]),
    st.none() | st.booleans(),
    st.none() | st.datetimes().map(lambda when: when.isoformat()),
    st.none() | st.text(max_size=3),
    st.floats(-1e6, 1e6),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(CELLS, min_size=2, max_size=12), other=CELLS, numbers=st.sampled_from(SCALINGS))
def test_any_table_is_finite_and_round_trips(rows: list[Any], other: Any, numbers: Any) -> None:
    try:
        table = TablePreprocessing.fit(COLUMNS, "price", rows, numbers=numbers)
    except DataError as error:
        assert "at least one column" in str(error)  # noqa: PT017
        return
    again = TablePreprocessing.from_json(json.loads(json.dumps(table.as_json())))
    assert again.as_json() == table.as_json()
    values = encoded(table, rows)
    assert values.shape == (len(rows), *table.shape)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values, encoded(again, rows))
    assert not any(table.unseen.values())
    np.testing.assert_array_equal(table.decode(other, 0), again.decode(other, 0))
    codes = [(place, count) for place, count in enumerate(table.categories) if count]
    assert all(((values[:, place] >= 0) & (values[:, place] < count)).all() for place, count in codes)
    if numbers != "none":
        assert np.abs(values[:, : len(table.offset)]).max(initial=0) <= math.sqrt(len(rows)) + 1
