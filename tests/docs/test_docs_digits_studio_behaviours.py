"""The page on DIGITS's behaviors of the server has every number, and names tests that are there."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/explanation/digits-studio-behaviours.md").read_text()
ROWS = {int(row[1]): row[0] for row in re.finditer(r"^\| (\d+) \|.*$", PAGE, re.MULTILINE)}
NUMBERS = [*range(1, 28), 52, 53, *range(61, 65), *range(83, 97)]
NOT_THERE: list[int] = []
FOLDERS = ("integration/studio", "slow/client", "unit/api", "unit/api_routes", "unit/jobs", "unit/studio_shell")
NAME = re.compile(r"test_(?:digits_|behaviour_)?((?:\d+_)+)")


def named_tests() -> dict[int, list[str]]:
    """Return number → names of the tests that carry it; a name may carry several."""
    found: dict[int, list[str]] = {number: [] for number in NUMBERS}
    tests = REPOSITORY / "tests"
    paths = [path for folder in FOLDERS for path in sorted((tests / folder).glob("test_*.py"))]
    examples = tests / "tensorflow" / "test_tensorflow_digits_examples.py"
    doors = tests / "torch" / "test_torch_detection_doors.py"
    for path in [*paths, *sorted((tests / "tensorflow").glob("test_studio_*.py")), examples, doors]:
        for node in ast.parse(path.read_text()).body:
            named = NAME.match(node.name) if isinstance(node, ast.FunctionDef) else None
            for number in map(int, named[1].strip("_").split("_")) if named else ():
                if isinstance(node, ast.FunctionDef) and number in found:
                    found[number].append(node.name)
    return found


def test_every_number_has_its_row() -> None:
    assert list(ROWS) == NUMBERS


def test_every_row_names_exactly_the_tests_of_its_number() -> None:
    for number, names in named_tests().items():
        assert bool(names) != (number in NOT_THERE), number
        assert sorted(re.findall(r"`(test_\w+)`", ROWS[number])) == sorted(names), number


def test_what_is_not_there_is_said_and_explained() -> None:
    assert [number for number, row in ROWS.items() if row.split("|")[3].strip() == "Not there"] == NOT_THERE
    exceptions = PAGE.partition("## Exceptions")[2]
    assert all(f"**{number}**" in exceptions for number in NOT_THERE)


def test_what_is_better_on_purpose_is_marked() -> None:
    assert [number for number, row in ROWS.items() if "**Better**" in row] == [2, 11, 15, 21, 26, 94]
