"""Tables become samples: a row each, with typed values, a target, and problems that say what is missing where."""

from __future__ import annotations

from pathlib import Path

import pytest
from table_text_fakes import SHARED, Scanned

from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.samples import Problem
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError


def scanned(path: Path, content: str | bytes | None = None, **options: object) -> Scanned:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content, encoding="utf-8", newline="")
    return Scanned(TableImporter(), path, **options)


HOUSES = "id,rooms,town,price,sold\n1,3,Ulm,100.5,2020-01-02\n2,4,Bonn,220,2020-02-03\n3,,Ulm,80,2020-03-04\n"


def test_a_sample_is_a_row_with_values_in_column_order(tmp_path: Path) -> None:
    found = scanned(tmp_path / "houses.csv", HOUSES, target="price")
    assert found.rows == [
        ["1", 3, "Ulm", 100.5, "2020-01-02"],
        ["2", 4, "Bonn", 220.0, "2020-02-03"],
        ["3", None, "Ulm", 80.0, "2020-03-04"],
    ]
    assert found.labels == [100.5, 220.0, 80.0]
    assert found.keys == ["1", "2", "3"]
    assert found.types == {
        "id": "identifier",
        "rooms": "number",
        "town": "category",
        "price": "number",
        "sold": "time",
    }
    assert found.schema.columns[1].missing == 1
    assert found.schema.columns[2].categories == ("Bonn", "Ulm")


def test_missing_cells_are_listed_once_for_each_column(tmp_path: Path) -> None:
    found = scanned(tmp_path / "houses.csv", HOUSES)
    assert found.problems == [
        Problem(
            key="houses.csv",
            kind="missing-value",
            reason="The column `rooms` has no value in 1 of 3 rows, the first in houses.csv:4.",
        )
    ]


def test_rows_without_a_target_are_left_out_and_listed(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "a,y\n1,5.5\n2,\n3,NA\n4,6.5\n")
    assert found.labels == [5.5, 6.5]
    assert found.keys == ["row-000000", "row-000003"]
    assert found.problems[-1].left_out
    lost = [problem for problem in found.problems if problem.left_out]
    assert {problem.key: problem.kind for problem in lost} == {"t.csv:3": "missing-value", "t.csv:4": "missing-value"}
    assert lost[0].reason == "The target `y` has no value."


def test_the_usual_name_of_a_target_goes_before_the_last_column(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "label,size\n" + "yes,1.5\nno,2.5\n" * 3)
    assert found.schema.target == "label"
    assert found.schema.details["target_reason"] == "columns named `label` usually are"
    assert found.schema.class_names == ("false", "true")
    assert found.labels[:2] == [1, 0]


def test_whole_numbers_of_few_values_are_classes_by_size(tmp_path: Path) -> None:
    rows = "".join(f"{number}.5,{number % 3 * 5}\n" for number in range(30))
    found = scanned(tmp_path / "t.csv", "x,kind\n" + rows)
    assert found.schema.class_names == ("0", "5", "10")
    assert found.labels[:3] == [0, 1, 2]
    as_number = scanned(tmp_path / "t.csv", None, task="number")
    assert as_number.schema.class_names == ()
    assert as_number.labels[:3] == [0.0, 5.0, 10.0]


def test_a_table_may_go_without_a_target(tmp_path: Path) -> None:
    found = scanned(tmp_path / "houses.csv", HOUSES, target="none")
    assert (found.schema.target, found.labels) == ("", [None, None, None])


def test_columns_feed_split_group_and_time(tmp_path: Path) -> None:
    text = "split,patient,day,y\ntraining,A,2020-01-01,1.5\nvalid,B,2020-01-02T00:00:00+01:00,2.5\nTest,A,,3.5\n"
    found = scanned(tmp_path / "t.csv", text, group="patient", time="day")
    assert [sample.split for sample in found.samples] == ["train", "val", "test"]
    assert [sample.group for sample in found.samples] == ["A", "B", "A"]
    assert [sample.time for sample in found.samples] == [1577836800.0, 1577919600.0, None]
    assert [column.name for column in found.schema.columns] == ["patient", "day", "y"]


def test_numbers_that_count_the_rows_can_be_the_time(tmp_path: Path) -> None:
    text = "day,y\n" + "".join(f"{day},{day % 7}.5\n" for day in range(30))
    assert scanned(tmp_path / "t.csv", text).types["day"] == "identifier"
    found = scanned(tmp_path / "t.csv", text, time="day")
    assert [sample.time for sample in found.samples] == [float(day) for day in range(30)]


def test_an_excluded_column_can_be_the_time(tmp_path: Path) -> None:
    text = "day,x,y\n2020-01-01,1,1.5\n2020-01-02,2,2.5\n2020-01-03,4,3.5\n"
    found = scanned(tmp_path / "t.csv", text, time="day", exclude=["day"])
    assert [sample.time for sample in found.samples] == [1577836800.0, 1577923200.0, 1578009600.0]
    assert [column.name for column in found.schema.columns] == ["x", "y"]


def test_a_time_of_words_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs dates, times or numbers \(received: `day` of the type category"):
        scanned(tmp_path / "t.csv", "day,y\nMonday,1.5\nFriday,2.5\nMonday,3.5\nFriday,4.5\n", time="day")


def test_an_empty_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs dates, times or numbers \(received: `day` without a value"):
        scanned(tmp_path / "t.csv", "day,y\n,1.5\n,2.5\n,3.5\n", time="day")


def test_files_named_after_splits_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b\n1,x\n2,y\n3,x\n4,y\n")
    (tmp_path / "valid.csv").write_text("b,a\nz,5\n")
    found = scanned(tmp_path)
    assert [(sample.key, sample.split) for sample in found.samples][-1] == ("valid/row-000000", "val")
    assert found.schema.class_names == ("x", "y", "z")
    assert found.rows[-1] == [5, "z"]


def test_types_can_be_said_and_cells_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    text = "code,y\n12,1.5\n7x,2.5\n9,3.5\n"
    assert scanned(tmp_path / "t.csv", text).types["code"] == "text"
    found = scanned(tmp_path / "t.csv", text, types={"code": "number"})
    assert [row[0] for row in found.rows] == [12.0, None, 9.0]
    assert found.reasons("bad-value") == [
        "The column `code` of the type number has 1 cells that are none, the first '7x' in t.csv:3."
    ]


def test_codes_with_zeros_in_front_are_no_numbers(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "zip,y\n01067,1.5\n10115,2.5\n01067,3.5\n10115,1.5\n")
    assert found.schema.columns[0].categories == ("01067", "10115")


def test_rows_of_another_length_are_problems_with_their_line(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "a,b\n1,2.5\n\n3\n4,5.5,6\n7,8.5\n")
    assert [(problem.key, problem.left_out) for problem in found.problems] == [("t.csv:4", True), ("t.csv:5", True)]
    assert found.problems[0].reason == "The row has 1 cells, and there are 2 columns."
    assert found.labels == [2.5, 8.5]


def test_quotes_hold_delimiters_and_any_line_ends(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", 'name,y\r\n"Braund, Mr. ""Owen""\r\nHarris",1.5\r\nzwei,2.5\r\n')
    assert found.rows[0] == ['Braund, Mr. "Owen"\r\nHarris', 1.5]


def test_a_decimal_comma_is_seen_between_semicolons(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "a;b\n1,5;2\n2,25;3\n3;4\n")
    assert found.rows == [[1.5, 2], [2.25, 3], [3.0, 4]]


def test_dates_that_can_be_read_in_one_order_only_decide_for_all(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", "d,y\n01/02/2020,1.5\n25/12/2020 10:30,2.5\n")
    assert [row[0] for row in found.rows] == ["2020-02-01", "2020-12-25T10:30:00"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("größe,y\n1,2.5\n3,4.5\n".encode("latin-1"), "größe"),
        ("größe,y\n1,2.5\n3,4.5\n".encode("utf-16"), "größe"),
        ("größe,y\n1,2.5\n3,4.5\n".encode("utf-8-sig"), "größe"),
    ],
)
def test_encodings_are_found_out(tmp_path: Path, content: bytes, name: str) -> None:
    found = scanned(tmp_path / "Maße und Gewichte.csv", content)
    assert found.schema.columns[0].name == name
    assert len(found.problems) == (name.encode("latin-1") in content)
    assert all(problem.kind == "encoding" for problem in found.problems)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n", b"a,b\n\0\x01\x02\n"])
def test_a_source_without_rows_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError):
        scanned(tmp_path / "t.csv", content, header="yes")


def test_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"`prize` is not a known column of the table\. Did you mean `price`"):
        scanned(tmp_path / "t.csv", HOUSES, target="prize")
    with pytest.raises(UnknownNameError, match="`integer` is not a known type of a column"):
        scanned(tmp_path / "t.csv", None, types={"rooms": "integer"})
    with pytest.raises(ConfigurationError, match="`names` must be a list"):
        scanned(tmp_path / "t.csv", None, names="a,b")
    with pytest.raises(DataError, match="A target is a number or a class"):
        scanned(tmp_path / "t.csv", None, target="town", task="number")


def test_a_list_of_one_may_be_given_without_brackets(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", HOUSES, exclude="town")
    assert found.rows == scanned(tmp_path / "t.csv", None, exclude=["town"]).rows


def test_a_folder_with_several_tables_needs_the_name_of_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2.5\n")
    (tmp_path / "b.csv").write_text("x,y\n3,4.5\n")
    assert TableImporter().guess(tmp_path) is None
    with pytest.raises(DataError, match="A folder holds one table, or a table for each split"):
        scanned(tmp_path)
    assert scanned(tmp_path, None, file="b.csv").labels == [4.5]


TABLES = {
    "housing.csv": (506, 14, "column-14", 0, False),
    "housing.data": (506, 14, "column-14", 0, False),
    "winequality-red.csv": (1599, 12, "column-12", 6, False),
    "winequality-white.csv": (4898, 12, "column-12", 7, False),
    "abalone.csv": (4177, 9, "column-9", 0, False),
    "auto_imports.csv": (201, 26, "column-26", 0, False),
    "iris.csv": (150, 5, "column-5", 3, False),
    "wheat-seeds.csv": (210, 8, "column-8", 3, False),
    "wine.csv": (178, 14, "column-14", 3, False),
    "pima-indians-diabetes.csv": (768, 9, "column-9", 2, False),
    "titanic.csv": (891, 12, "Survived", 2, True),
    "hitters.csv": (322, 20, "Salary", 0, True),
    "bikeshare.csv": (10886, 12, "count", 0, True),
    "stock_goog_daily.csv": (732, 5, "Close", 0, False),
    "test_scores.csv": (25, 4, "column-4", 0, False),
}


@pytest.mark.skipif(not (SHARED / "tabular").is_dir(), reason="the shared datasets are not here")
@pytest.mark.parametrize("name", TABLES)
def test_the_shared_tables_go_in_whole(name: str) -> None:
    rows, columns, target, classes, header = TABLES[name]
    guess = TableImporter().guess(SHARED / "tabular" / name)
    assert guess is not None
    assert guess.confidence >= 0.6
    assert ("a header" in guess.reason) == header
    found = scanned(SHARED / "tabular" / name)
    without_target = 59 if name == "hitters.csv" else 0
    assert len(found.samples) == rows - without_target
    assert not [problem for problem in found.problems if problem.kind != "missing-value"]
    assert (len(found.schema.columns), found.schema.target) == (columns, target)
    assert len(found.schema.class_names) == classes


@pytest.mark.skipif(not (SHARED / "tabular").is_dir(), reason="the shared datasets are not here")
def test_columns_of_the_shared_tables() -> None:
    titanic = scanned(SHARED / "tabular" / "titanic.csv")
    assert {column.name: column.missing for column in titanic.schema.columns if column.missing} == {
        "Age": 177,
        "Cabin": 687,
        "Embarked": 2,
    }
    assert titanic.types["Name"] == "text"
    assert titanic.types["Sex"] == "category"
    stock = scanned(SHARED / "tabular" / "stock_goog_daily.csv")
    assert [column.name for column in stock.schema.columns] == ["Open", "High", "Low", "Volume", "Close"]
    assert (min(stock.labels), max(stock.labels)) == pytest.approx((492.55, 835.67), abs=0.01)
    assert scanned(SHARED / "tabular" / "bikeshare.csv").types["datetime"] == "time"


def test_what_names_pictures_or_holds_texts_is_left_to_others(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures.csv"
    pictures.write_text("filename,label\n" + "".join(f"cat {number}.jpg,cat\n" for number in range(9)))
    texts = tmp_path / "texts.csv"
    texts.write_text("label,text\n" + "good,what a fine day it was\nbad,never do this again please\n" * 4)
    (tmp_path / "note.md").write_text("# Title\n")
    confidences = [TableImporter().guess(path) for path in (pictures, texts, tmp_path / "note.md")]
    assert [guess and guess.confidence for guess in confidences] == [0.1, 0.4, None]


def test_rows_with_thousands_of_columns(tmp_path: Path) -> None:
    names = [f"a-gene-with-a-name-longer-than-most-{number}" for number in range(9_000)]
    row = ",".join(str(number / 8) for number in range(9_000))
    path = tmp_path / "genes.csv"
    path.write_text("\n".join([",".join(names), row, row]) + "\n")
    assert TableImporter().guess(path) is not None
    found = scanned(path)
    assert (len(found.samples), len(found.schema.columns)) == (2, 9_000)


def test_an_unclosed_quote_is_a_problem_where_its_row_ends(tmp_path: Path) -> None:
    found = scanned(tmp_path / "t.csv", 'a,y\n1,2.5\n"x,3.5\n4,5.5\n')
    assert found.labels == [2.5]
    assert [(problem.key, problem.kind) for problem in found.problems] == [("t.csv:4", "bad-line")]


def test_files_of_other_splits_are_written_like_the_first(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("colour,shape\nred,round\nblue,flat\nred,flat\nblue,round\n")
    (tmp_path / "test.csv").write_text("colour,shape\nred,flat\n")
    found = scanned(tmp_path)
    assert [sample.split for sample in found.samples] == ["train"] * 4 + ["test"]
    assert found.rows[-1] == ["red", "flat"]


# ---- files without a suffix


def test_a_table_without_a_suffix_is_known_by_its_content(tmp_path):
    rows = "".join(f"{at},{at * 0.5},{('setosa', 'virginica')[at % 2]}\n" for at in range(20))
    (tmp_path / "iris").write_text(rows)
    (tmp_path / "README").write_text("Flowers, measured.\nOne line, one flower, as it was.\nThe end.\n")
    assert TableImporter().guess(tmp_path / "iris").confidence == 0.8
    assert TableImporter().guess(tmp_path).confidence >= 0.5
    found = Scanned(TableImporter(), tmp_path)
    assert (len(found.samples), found.schema.target) == (20, "column-3")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README", "a,b\n1,2\n3,4\n5,6\n"),
        ("notes", "Dear all,\nthe data, as agreed, is here.\nMany thanks, and so on,\nA.\n"),
        ("short", "a,b\n1,2\n"),
        ("words", "one\ntwo\nthree\nfour\n"),
    ],
)
def test_other_files_without_a_suffix_are_no_tables(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert TableImporter().guess(tmp_path / name) is None


# ---- the target, and columns that determine it


def titanic(folder: Path, *, rows: int = 40, heading: str = "Survived,Pclass,Age,Class,Alive") -> Path:
    """Write passengers as seaborn has them: the class is a word for the number, and alive says what survived says."""
    words = ("First", "Second", "Third")
    lines = [
        f"{at * 7 % 3 % 2},{at % 3 + 1},{20 + at * 13 % 50},{words[at % 3]},{('no', 'yes')[at * 7 % 3 % 2]}"
        for at in range(rows)
    ]
    (folder / "titanic.csv").write_text("\n".join([heading, *lines]) + "\n")
    return folder / "titanic.csv"


@pytest.mark.parametrize("heading", ["Survived,Pclass,Age,Class,Alive", "survived,pclass,age,class,alive"])
def test_the_target_of_titanic_is_survived(tmp_path: Path, heading: str) -> None:
    found = Scanned(TableImporter(), titanic(tmp_path, heading=heading))
    assert found.schema.target.lower() == "survived"
    assert found.schema.class_names == ("0", "1")


def test_a_class_that_repeats_another_column_is_no_target(tmp_path: Path) -> None:
    found = Scanned(TableImporter(), titanic(tmp_path, heading="lived,pclass,age,class,gone"))
    assert found.schema.target == "gone"


def test_a_column_that_determines_the_target_is_named(tmp_path: Path) -> None:
    leaks = [each for each in Scanned(TableImporter(), titanic(tmp_path)).problems if each.kind == "leaking-column"]
    assert [each.reason.partition(":")[0] for each in leaks] == ["The column `Alive` determines the target `Survived`"]
    assert "option `exclude`" in leaks[0].reason


def test_a_copy_of_a_number_is_named_and_may_be_excluded(tmp_path: Path) -> None:
    lines = [f"{at * 1.5},{at % 7},{at * at * 0.25},{at * at * 0.25}" for at in range(30)]
    (tmp_path / "prices.csv").write_text("\n".join(["width,rooms,price_copy,price", *lines]) + "\n")
    found = Scanned(TableImporter(), tmp_path / "prices.csv")
    assert [each.kind for each in found.problems] == ["leaking-column"]
    without = Scanned(TableImporter(), tmp_path / "prices.csv", exclude=["price_copy"])
    assert [column.name for column in without.schema.columns] == ["width", "rooms", "price"]
    assert without.problems == []
    with pytest.raises(UnknownNameError, match="price_copi"):
        Scanned(TableImporter(), tmp_path / "prices.csv", exclude=["price_copi"])


def test_columns_of_values_that_never_repeat_are_no_leaks(tmp_path: Path) -> None:
    lines = [f"{at * 1.5},{at * at + 0.5}" for at in range(30)]
    (tmp_path / "growth.csv").write_text("\n".join(["weeks,height", *lines]) + "\n")
    assert Scanned(TableImporter(), tmp_path / "growth.csv").problems == []
