"""The page on DIGITS's behaviors of datasets has every number, and names tests that are there."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/explanation/digits-dataset-behaviours.md").read_text()
ROWS = {int(row[1]): row[0] for row in re.finditer(r"^\| (\d+) \|.*$", PAGE, re.MULTILINE)}
NUMBERS = [*range(28, 52)]
FOLDERS = ("tests/integration/datasets", "tests/unit/cli", "tests/unit/datasets")


def named_tests() -> dict[int, list[str]]:
    """Return number → names of the tests that carry it, in the order of their files."""
    found: dict[int, list[str]] = {number: [] for number in NUMBERS}
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).glob("test_*.py")):
            for node in ast.parse(path.read_text()).body:
                named = re.match(r"test_(\d+)_", node.name) if isinstance(node, ast.FunctionDef) else None
                if isinstance(node, ast.FunctionDef) and named and int(named[1]) in found:
                    found[int(named[1])].append(node.name)
    return found


def test_every_number_has_its_row() -> None:
    assert list(ROWS) == NUMBERS


def test_every_row_names_exactly_the_tests_of_its_number() -> None:
    for number, names in named_tests().items():
        assert names, f"{number} has no test"
        assert sorted(re.findall(r"`(test_\w+)`", ROWS[number])) == sorted(names)


def test_what_is_better_on_purpose_is_marked() -> None:
    assert [number for number, row in ROWS.items() if "**Better**" in row] == [30, 31, 34, 35, 38, 46]
