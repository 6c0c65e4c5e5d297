"""Names of tests are short enough for one line of a report, and nothing of the product has a name like theirs."""

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


def named_like_tests(folder):
    """Return the Python files below a folder that pytest would take for tests or for their set-up."""
    patterns = ("test_*.py", "*_test.py", "conftest.py")
    return sorted(path.relative_to(folder).as_posix() for pattern in patterns for path in folder.rglob(pattern))


def test_no_module_of_the_product_is_named_like_a_test():
    assert named_like_tests(TESTS.parent / "src") == []


def test_a_module_named_like_a_test_is_found(tmp_path):
    (tmp_path / "worker").mkdir()
    for name in ("testing.py", "worker/test_batch.py", "worker/one_test.py", "worker/contest.py"):
        (tmp_path / name).write_text("")
    assert named_like_tests(tmp_path) == ["worker/one_test.py", "worker/test_batch.py"]
