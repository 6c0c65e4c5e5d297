"""The page on DIGITS's behaviors has every number, and names tests that are there."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/explanation/digits-behaviours.md").read_text()
ROWS = {int(row[1]): row[0] for row in re.finditer(r"^\| (\d+) \|.*$", PAGE, re.MULTILINE)}
NUMBERS = [*range(54, 61), *range(65, 83)]


def named_tests() -> dict[int, list[str]]:
    """Return number → names of the tests that carry it, in the order of their files."""
    found: dict[int, list[str]] = {number: [] for number in NUMBERS}
    for path in sorted((REPOSITORY / "tests/tensorflow").glob("test_digits_behaviours_*.py")):
        for node in ast.parse(path.read_text()).body:
            named = re.match(r"test_(\d+)_", node.name) if isinstance(node, ast.FunctionDef) else None
            if isinstance(node, ast.FunctionDef) and named:
                found[int(named[1])].append(node.name)
    return found


def test_every_number_has_its_row() -> None:
    assert list(ROWS) == NUMBERS


def test_every_row_names_exactly_the_tests_of_its_number() -> None:
    for number, names in named_tests().items():
        assert names, f"{number} has no test"
        assert re.findall(r"`(test_\w+)`", ROWS[number]) == names


def test_what_is_better_on_purpose_is_marked() -> None:
    better = [number for number, row in ROWS.items() if "**Better**" in row or "**better**" in row]
    assert better == [54, 59, 69, 70, 71, 72, 75]
