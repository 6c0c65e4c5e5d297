"""How a table is written is found out from its head; what somebody said goes before what was guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ziggurat.datasets.formats.table.dialect import Dialect, guess_dialect, guess_header, number_of


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b,c\n1,2,3\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("a\tb, c\n1\t2, 3\n", "\t"),
        ("a|b\n1|2\n", "|"),
        (" 0.1  2.5   3\n 0.2 12.5  13\n", " "),
        ("one\ntwo\n", ","),
        ('"Doe; John",1\n"Roe; Jane",2\n', ","),
    ],
)
def test_the_delimiter_gives_all_rows_the_same_number_of_cells(text: str, delimiter: str) -> None:
    assert guess_dialect(text.splitlines(keepends=True)).delimiter == delimiter


def test_comments_are_those_that_begin_the_file() -> None:
    assert guess_dialect(["# x\n", "1,2\n"]).comment == "#"
    assert guess_dialect(["1,2\n", "#3,4\n"]).comment == ""


def test_blanks_behind_all_delimiters_do_not_count() -> None:
    assert guess_dialect(["39, State-gov\n", "50, Private\n"]).skip_blanks
    assert not guess_dialect(["39, State-gov\n", "50,Private\n"]).skip_blanks


def test_what_somebody_said_is_taken() -> None:
    found = guess_dialect(["a,b;c\n", "1,2;3\n"], delimiter=";", comment="%", quotes="no")
    assert found == Dialect(delimiter=";", quotes=False, comment="%", decimal=",")


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["a", "b"], ["1", "2"]], True),
        ([["1", "2"], ["3", "4"]], False),
        ([["M", "0.5"], ["F", "0.7"]], False),
        ([["name", "label"], ["x", "y"], ["z", "y"]], True),
        ([["spam", "hello you"], ["ham", "hello"], ["spam", "bye"]], False),
        ([["", "x"], ["0", "1"]], True),
        ([["a", "a"], ["1", "2"]], True),
        ([["a", "a"], ["x", "y"]], False),
        ([["a", "b"], ["1", "2"], ["a", "b"], ["3", "4"]], True),
        ([["spam", "hello"], ["spam", "hello"], ["ham", "bye"], ["ham", "bye"]], False),
        ([["0", "1", "2"], ["0.5", "-1.5", "1"], ["0.7", "2.5", "0"]], True),
        ([["1", "2", "Forge"], ["7", "9", "3"], ["8", "4", "1"]], True),
        ([["", "0", "1"], ["0", "0.5", "2.5"], ["1", "0.7", "3.5"]], True),
        ([["country", "2000", "2001", "2002"], ["Chad", "0.5", "1.5", "2.5"]], True),
        ([[*"01234"], [*"56789"]], False),
        ([[*"01234"], [*"52719"]], True),
        ([["1", "2", "Forge"], ["7", "9", "Iron"]], False),
        ([["when", "what"], ["2024-01-02", "x"], ["2024-01-03", "y"]], True),
        ([["done", "what"], ["yes", "x"], ["no", "y"]], True),
        ([["colour", "shape"], ["red", "round"], ["red", "flat"], ["blue", "flat"], ["red", "round"]], True),
        ([["a", "b"]], False),
        ([["a", "b"], ["?", "2"]], True),
        ([], False),
        ([["one", "0.5"], ["1", "0.7"], ["2", "0.3"]], False),
    ],
)
def test_a_header_is_told_from_values(rows: list[list[str]], header: bool) -> None:
    assert guess_header(rows)[0] == header


@pytest.mark.parametrize(
    "cell", ["", "x", "007", "1_000", "0x10", "nan", "inf", "1e999", "1 2", "+", ".", "1" * 25, "--1"]
)
def test_what_is_no_number(cell: str) -> None:
    assert number_of(cell) is None


@pytest.mark.parametrize(
    ("cell", "value"), [(" 12 ", 12), ("-0.5", -0.5), (".28", 0.28), ("5.", 5.0), ("+3", 3), ("1E3", 1000.0), ("0", 0)]
)
def test_what_is_a_number(cell: str, value: float) -> None:
    found = number_of(cell)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        ("1.234,5", ",", 1234.5),
        ("1.234", ",", 1234),
        ("1.5", ",", 1.5),
        ("1,234.5", ".", 1234.5),
        ("-1,234,567", ".", -1234567),
        ("0,234", ".", None),
        ("12,34", ".", None),
    ],
)
def test_thousands_may_be_grouped(cell: str, decimal: str, value: float | None) -> None:
    assert number_of(cell, decimal) == value


@pytest.mark.parametrize(
    ("rows", "decimal", "is_open"),
    [
        ("1.234,5;x", ",", False),
        ("0,5;x", ",", False),
        ("0.5;1,234", ".", False),
        ("1,234;x", ".", True),
        ("1.234;x", ".", False),
        ('"1.234,5","2"', ",", False),
        ('"1,234","2"', ".", False),
    ],
)
def test_the_sign_of_decimals(rows: str, decimal: str, is_open: bool) -> None:
    found = guess_dialect([f"{rows}\n"] * 3)
    assert (found.decimal, found.is_decimal_open) == (decimal, is_open)


def test_a_first_line_names_the_delimiter() -> None:
    assert guess_dialect(["sep=;\n", "a;b,c\n", "1;2,3\n"]).delimiter == ";"
    assert guess_dialect(['"sep=|"\n', "a|b,c\n", "1|2,3\n"], delimiter=",").delimiter == ","


def test_a_decimal_comma_must_be_asked_for() -> None:
    assert (number_of("1,5"), number_of("1,5", ",")) == (None, 1.5)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_as_python_writes_them(value: float) -> None:
    assert number_of(repr(value)) == value
