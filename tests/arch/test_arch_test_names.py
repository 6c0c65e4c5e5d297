"""Names of tests are short enough for one line of a report."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST = 60
DEFINED = re.compile(r"^[ \t]*(?:async )?def (test_\w+)\(", re.MULTILINE)


def names_over(most, folder):
    """Return `file: name` of each test below a folder whose name is longer than ``most``."""
    found = ((path, name) for path in sorted(folder.rglob("*.py")) for name in DEFINED.findall(path.read_text()))
    return [f"{path.name}: {name}" for path, name in found if len(name) > most]


def test_no_test_has_a_name_over_60_characters():
    assert names_over(MOST, TESTS) == []


def test_a_longer_name_is_found(tmp_path):
    right, longer = "test_" + 55 * "a", "test_" + 56 * "b"
    (tmp_path / "test_planted.py").write_text(f"def {right}():\n    pass\n\ndef {longer}(x):\n    pass\n")
    assert names_over(MOST, tmp_path) == [f"test_planted.py: {longer}"]
