"""What a table does not say of itself is found out by shares and evidence, told, or asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_text_fakes import Scanned

from tests.unit.datasets.small_sources import request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError


def scanned(path: Path, lines: list[str], **options: object) -> Scanned:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Scanned(TableImporter(), path, **options)


def refusal(path: Path, lines: list[str], **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        scanned(path, lines, **options)
    return caught.value


def numbers(count: int, **odd: str) -> list[str]:
    """Return a table of broken numbers and a class; ``odd``: row → cell."""
    cells = [odd.get(f"row_{row}", f"{row / 8:.3f}") for row in range(count)]
    return ["size,kind", *(f"{cell},{'ab'[row % 2]}" for row, cell in enumerate(cells))]


@pytest.mark.parametrize("cell", ["unknown", "-", "inf", "12 kg"])
def test_one_odd_cell_in_a_hundred_is_listed(tmp_path, cell):
    found = scanned(tmp_path / "t.csv", numbers(120, row_7=cell))
    assert found.types["size"] == "number"
    assert found.rows[7][0] is None
    (problem,) = found.problems
    assert (problem.kind, problem.left_out) == ("bad-value", False)
    assert problem.reason.endswith(f"has 1 cells that are none, the first {cell!r} in t.csv:9.")


def test_more_odd_cells_are_asked_for(tmp_path):
    lines = numbers(50, row_7="unknown", row_9="unknown")
    error = refusal(tmp_path / "t.csv", lines)
    assert error.details["field"] == "options.types"
    assert "`size` with 2 of 50 cells (4.0 %) that are no number, the first 'unknown' in t.csv:9" in str(error)
    assert '{"size": "number"}' in error.advice
    assert scanned(tmp_path / "t.csv", lines, types={"size": "number"}).rows[7][0] is None
    assert scanned(tmp_path / "t.csv", lines, missing=["unknown"]).problems[0].kind == "missing-value"
    assert scanned(tmp_path / "t.csv", lines, exclude=["size"]).types == {"kind": "category"}


def test_codes_and_few_values_are_not_asked_for(tmp_path):
    zips = ["zip,y", *(f"{cell},{row % 2}" for row, cell in enumerate(["00501", *map(str, range(10001, 10400, 2))]))]
    assert scanned(tmp_path / "zips.csv", zips).types["zip"] == "text"
    children = ["children,y", *(f"{cell},{row % 2}" for row, cell in enumerate("0123" * 10 + "3")), "3+,1", "3+,0"]
    assert scanned(tmp_path / "children.csv", children).types["children"] == "category"
    tickets = ["ticket,y", *(f"{11 * row if row % 4 else f'A/{row}'},{row % 2}" for row in range(80))]
    assert scanned(tmp_path / "tickets.csv", tickets).types["ticket"] == "text"


def test_a_target_of_numbers_loses_rows_that_are_counted(tmp_path):
    lines = ["a,y", *(f"{row % 7},{row / 4}" for row in range(200)), "3,lost", "4,"]
    found = scanned(tmp_path / "t.csv", lines)
    assert len(found.samples) == 200
    lost = {problem.key: problem.kind for problem in found.problems if problem.left_out}
    assert lost == {"t.csv:202": "bad-value", "t.csv:203": "missing-value"}
    losses = create_dataset(request(tmp_path / "t.csv"), tmp_path / "set").losses
    assert [loss["text"] for loss in losses] == [
        "1 of 202 rows was dropped: a value of theirs cannot be read.",
        "1 of 202 rows was dropped: their target is missing.",
    ]


def test_whole_floats_are_classes(tmp_path):
    cells = ["1.0", "0.0", ""] * 10
    found = scanned(tmp_path / "t.csv", ["a,ill", *(f"{row / 3:.2f},{cell}" for row, cell in enumerate(cells))])
    assert found.schema.class_names == ("0", "1")
    assert found.labels == [1, 0] * 10
    assert sum(problem.left_out for problem in found.problems) == 10
    mixed = ["a,y", *(f"{row / 3:.2f},{('1', '2.0', '10')[row % 3]}" for row in range(30))]
    assert scanned(tmp_path / "t.csv", mixed).schema.class_names == ("1", "2", "10")


def test_broken_floats_stay_numbers(tmp_path):
    found = scanned(tmp_path / "t.csv", ["a,y", *(f"{row},{(0.5, 1.0)[row % 2]}" for row in range(30))])
    assert found.schema.class_names == ()


def test_a_repeated_header_is_no_row_and_no_loss(tmp_path):
    part = ["a,b,y", *(f"{row / 3:.2f},{row % 5},{row % 2}" for row in range(20))]
    found = scanned(tmp_path / "t.csv", part * 3)
    assert (len(found.samples), found.types["a"], found.schema.class_names) == (60, "number", ("0", "1"))
    assert [problem.kind for problem in found.problems] == ["repeated-header"] * 2
    assert create_dataset(request(tmp_path / "t.csv"), tmp_path / "set").losses == ()


def test_a_line_of_excel_names_the_delimiter(tmp_path):
    found = scanned(tmp_path / "t.csv", ["sep=;", "name;y", *(f"a, b, {row};{row % 2}" for row in range(9))])
    assert list(found.types) == ["name", "y"]
    assert len(found.samples) == 9


def test_german_numbers(tmp_path):
    cells = ("1.234,5", "0,25", "1.234", "12")
    found = scanned(tmp_path / "t.csv", ["a;y", *(f"{cell};{row % 2}" for row, cell in enumerate(cells))])
    assert [row[0] for row in found.rows] == [1234.5, 0.25, 1234.0, 12.0]


def test_a_comma_before_three_digits_is_asked_for(tmp_path):
    lines = ["a;y", *(f"{row + 1},{row}5;{row % 2}" for row in range(10, 20))]
    error = refusal(tmp_path / "t.csv", lines)
    assert error.details["field"] == "options.decimal"
    assert scanned(tmp_path / "t.csv", lines, decimal=",").rows[0][0] == 11.105
    assert scanned(tmp_path / "t.csv", lines, decimal=".").rows[0][0] == 11105


def test_delimiters_at_the_ends_of_lines_make_no_column(tmp_path):
    for heading in ("a,b,", "a,b"):
        found = scanned(tmp_path / "t.csv", [heading, *(f"{row},{row % 2}," for row in range(9))])
        assert (list(found.types), len(found.samples), found.problems) == (["a", "b"], 9, [])
    found = scanned(tmp_path / "t.csv", ["a,b", *(f"{row},{row % 2}," for row in range(9)), "3,4,5"])
    assert [problem.kind for problem in found.problems] == ["bad-line"]


def test_columns_of_one_name_are_told(tmp_path):
    found = scanned(tmp_path / "t.csv", ["a,a,y", *(f"{row},{row / 3:.2f},{row % 2}" for row in range(9))])
    assert list(found.types) == ["a", "a'", "y"]
    assert [problem.kind for problem in found.problems] == ["repeated-name"]


# ---- days and months


def dates(*cells: str) -> list[str]:
    return ["when,y", *(f"{cell},{row * row % 3 % 2}" for row, cell in enumerate(cells * 5))]


@pytest.mark.parametrize("sign", "/-")
def test_dates_that_do_not_tell_have_the_month_first(tmp_path, sign):
    found = scanned(tmp_path / "t.csv", dates(f"03{sign}04{sign}2024", f"05{sign}06{sign}2024"))
    assert [row[0] for row in found.rows[:2]] == ["2024-03-04", "2024-05-06"]
    (problem,) = found.problems
    assert (problem.kind, problem.left_out) == ("day-or-month", False)
    assert "with the month first" in problem.reason
    manifest_folder = tmp_path / "set"
    create_dataset(request(tmp_path / "t.csv"), manifest_folder)


@pytest.mark.parametrize("sign", "/-")
def test_one_cell_tells_the_order_of_day_and_month(tmp_path, sign):
    found = scanned(tmp_path / "t.csv", dates(f"03{sign}04{sign}2024", f"25{sign}06{sign}2024"))
    assert [row[0] for row in found.rows[:2]] == ["2024-04-03", "2024-06-25"]
    assert found.problems == []


def test_the_order_is_asked_for_where_time_rests_on_it(tmp_path):
    error = refusal(tmp_path / "t.csv", dates("03/04/2024", "05/06/2024"), time="when")
    assert error.details["field"] == "options.dates"
    for order, iso in (("month first", "2024-03-04"), ("day first", "2024-04-03")):
        found = scanned(tmp_path / "t.csv", dates("03/04/2024"), time="when", dates=order)
        assert (found.rows[0][0], found.problems) == (iso, [])


def test_dates_in_both_orders_are_asked_for(tmp_path):
    error = refusal(tmp_path / "t.csv", dates("13/04/2024", "05/16/2024", "07/18/2024"))
    assert error.details["field"] == "options.types"


# ---- files


def test_columns_that_only_later_files_have_are_a_loss(tmp_path):
    tmp_path.joinpath("train.csv").write_text("a,y\n1.5,0\n2.5,1\n" * 3)
    tmp_path.joinpath("test.csv").write_text("y,a,more\n0,1.5,7\n")
    found = Scanned(TableImporter(), tmp_path)
    lost = [problem for problem in found.problems if problem.names]
    assert [(problem.kind, problem.names, problem.key) for problem in lost] == [("bad-column", 1, "test.csv")]


def test_two_files_of_a_split_are_both_read(tmp_path):
    for name in ("train", "val", "dev"):
        tmp_path.joinpath(f"{name}.csv").write_text("a,y\n1.5,0\n2.5,1\n")
    assert len(Scanned(TableImporter(), tmp_path).samples) == 6


def test_a_split_without_targets_is_refused(tmp_path):
    tmp_path.joinpath("train.csv").write_text("a,y\n1.5,0\n2.5,1\n" * 9)
    tmp_path.joinpath("test.csv").write_text("a\n1.5\n2.5\n")
    with pytest.raises(DataError, match="All rows of the split test were lost"):
        create_dataset(request(tmp_path), tmp_path / "set")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["1.5", "2", "x", "", "inf", "1,5"]), st.sampled_from(["a", "b", "", "?"])),
        min_size=1,
        max_size=30,
    ),
    breaks=st.sets(st.integers(0, 29)),
    repeats=st.booleans(),
)
def test_rows_in_are_rows_out_and_rows_reported(tmp_path, rows, breaks, repeats):
    path = tmp_path / "t.csv"
    lines = ["size,kind"]
    for number, (size, kind) in enumerate(rows):
        lines.append(f'"{size}",{kind}' + (",7" if number in breaks else ""))
    lines += ["size,kind"] * repeats
    path.write_text("".join(f"{line}\n" for line in lines))
    try:
        found = list(TableImporter().scan(path, TableImporter().checked_options({"target": "kind", "header": "yes"})))
    except DataError:
        return  # asked for, or without any row
    samples = sum(isinstance(each, Sample) for each in found)
    lost = sum(each.left_out for each in found if isinstance(each, Problem))
    assert samples + lost == len(lines) - 1
