"""Cases from bug reports: their copies are run, and one table says how each ended."""

import pytest

from tools.reported_cases import main, run_case, verdict_of


@pytest.fixture
def cases(tmp_path):
    """Return a folder of three cases: a right one, a wrong one, and one that says nothing."""
    folder = tmp_path / "cases"
    scripts = {
        "01_right": 'cd "$(dirname "$0")"; echo made >here; test -x "$ZIG" && test -x "$PY" && echo RIGHT both tools',
        "02_wrong": "echo RIGHT two boxes; echo WRONG names: a, b",
        "30_silent": "echo nothing",
    }
    for name, script in scripts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "run.sh").write_text(script)
    return folder


def test_cases_table_names_verdict_and_reason(cases, capsys):
    assert main(["--cases", str(cases), "--parallel", "2"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "01_right   RIGHT",
        "02_wrong   WRONG  names: a, b",
        "30_silent  WRONG  no verdict was printed",
        "1 right, 2 wrong",
    ]
    assert not (cases / "01_right" / "here").exists()


def test_cases_are_chosen_by_name_and_number(cases, capsys):
    assert main(["--cases", str(cases), "01"]) == 0
    assert main(["--cases", str(cases), "--below", "2"]) == 0
    assert capsys.readouterr().out == "01_right  RIGHT\n1 right, 0 wrong\n" * 2


def test_cases_that_are_not_there_are_no_fault(tmp_path, capsys):
    assert main(["--cases", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == f"There are no cases to run: {tmp_path / 'none'} is not there.\n"


def test_case_that_hangs_is_ended(cases):
    (cases / "30_silent" / "run.sh").write_text("while :; do :; done")
    assert run_case(cases / "30_silent", 0.2).why == "not finished after 0.2 s"


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (["WRONG a", "RIGHT or b"], True),
        (["RIGHT a", "WRONG or b"], True),
        (["RIGHT a", "WRONG b", "RIGHT or c", "WRONG d"], False),
        (["WRONG a", "WRONG or b"], False),
        (["WRONG or b"], False),
    ],
)
def test_case_alternatives_are_enough(lines, right):
    assert verdict_of(lines).right is right
