"""The page of corrections has a row for every finding, and names tests that are there."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| .*\.py` \|$", (REPOSITORY / "docs/explanation/corrections.md").read_text(encoding="utf-8"), re.MULTILINE
)
NUMBERS = [*(f"A{number}" for number in range(1, 16)), *(f"B{number}" for number in range(1, 6))]


def test_corrections_have_every_number() -> None:
    numbered = [row.split(" | ")[0].removeprefix("| ") for row in ROWS]
    assert [each for each in numbered if each in NUMBERS] == NUMBERS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" | ")[0].removeprefix("| ")[:40])
def test_corrections_name_tests_that_exist(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)`", row)
    assert named
    assert [each for each in named if not (REPOSITORY / "tests" / each).is_file()] == []
