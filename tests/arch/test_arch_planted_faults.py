"""Planted faults stay of use: their patches apply to the tree as it is, and the tests that find them are there."""

import re
import subprocess
from pathlib import Path

import pytest

from tools.planted_faults import FAULTS, applies, is_assertion, main, read_faults

REPOSITORY = Path(__file__).parents[2]
SUITES = REPOSITORY / "src" / "ziggurat" / "testing"
KNOWN = read_faults()


def problem_of(node_id):
    """Return what of a node id is not there; a class may take its tests from a conformance suite."""
    file, *names = node_id.partition("[")[0].split("::")
    path = REPOSITORY / file
    if not path.is_file():
        return f"there is no file {file}"
    *classes, function = names
    texts = [path.read_text()]
    if classes:
        texts += [each.read_text() for each in (*SUITES.glob("*.py"), *(REPOSITORY / "tests").glob("*.py"))]
    missing = [each for each in classes if not re.search(rf"^class {each}\b", texts[0], re.MULTILINE)]
    if not any(re.search(rf"^ *(async )?def {function}\(", text, re.MULTILINE) for text in texts):
        missing.append(function)
    return f"{file} has no {', '.join(missing)}" if missing else ""


def test_each_patch_is_in_the_table_once_and_has_a_test():
    names = [fault.name for fault in KNOWN]
    assert sorted(names) == sorted(path.stem for path in FAULTS.glob("*.patch"))
    assert len({name[:2] for name in names}) == len(names)
    assert [fault.name for fault in KNOWN if not fault.tests] == []


@pytest.mark.parametrize("fault", KNOWN, ids=lambda fault: fault.name)
def test_a_planted_fault_applies_and_its_tests_are_there(fault):
    assert applies(fault), f"make {fault.patch.name} anew: it does not apply any more"
    changed = re.findall(r"^\+\+\+ b/(.*)$", fault.patch.read_text(), re.MULTILINE)
    assert changed == [fault.file]
    assert [problem for problem in map(problem_of, fault.tests) if problem] == []


def test_a_patch_that_does_not_apply_is_told(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert not applies(KNOWN[0], tmp_path)


@pytest.mark.parametrize(
    ("node_id", "problem"),
    [
        ("tests/no_such_file.py::test_a", "there is no file tests/no_such_file.py"),
        ("tests/arch/test_arch_words.py::test_no_such[1]", "tests/arch/test_arch_words.py has no test_no_such"),
    ],
)
def test_a_test_that_is_gone_is_told(node_id, problem):
    assert problem_of(node_id) == problem


def test_only_an_assertion_finds_a_fault():
    assert is_assertion("AssertionError: assert 1 == 2")
    assert is_assertion("assert 1 == 2")
    assert is_assertion("Failed: DID NOT RAISE <class 'ValueError'>")
    assert not is_assertion("KeyError: 'total'")
    assert not is_assertion("ValueError: assert that it is so")


def test_a_name_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["no_such_fault"])
    assert "there is no fault no_such_fault; --list says which there are" in capsys.readouterr().err
