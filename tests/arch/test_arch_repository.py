"""The repository's two commands hold together: make, the build server's script, the pins, and the list of checks."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.check import STEPS, chosen_steps
from tools.quick_check import FAST, FOLDERS, UNIT, quick_steps, quick_tests
from tools.run_tests import PARTS, SESSIONS

REPOSITORY = Path(__file__).parents[2]


def name_of(requirement):
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def requirements():
    """Return the foreign packages of pyproject.toml, in every extra."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    groups = [project["build-system"]["requires"], project["project"]["dependencies"]]
    groups += project["project"]["optional-dependencies"].values()
    return {name_of(requirement) for group in groups for requirement in group} - {"ziggurat"}


def test_every_requirement_is_pinned():
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", pin)] == []
    assert requirements() - {name_of(pin) for pin in pins} == set()


@pytest.mark.parametrize(
    "target",
    ["demo", "quick", "test", "test-rest", "test-nightly", "test-all", "test-matrix", "check", "fix", "bench", "docs"],
)
def test_make_knows_what_to_do_on_a_fresh_machine(target, tmp_path):
    command = ["make", "--dry-run", "--file", str(REPOSITORY / "Makefile"), target, f"VENV={tmp_path / 'venv'}"]
    planned = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert planned.index("-m venv") < planned.index("pip install") < planned.index(f"touch {tmp_path}/venv/.installed")


def test_the_build_server_runs_all_but_the_nightly_tests():
    script = REPOSITORY / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert "for target in setup test test-rest; do" in script.read_text()


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("nightly", [False, True])
@pytest.mark.parametrize("smoke", [False, True])
def test_every_test_belongs_to_one_part(session, nightly, smoke):
    has_slow_folder = SESSIONS[session] != ""
    for in_slow_folder in {True, has_slow_folder}:
        slow = nightly or (in_slow_folder and not smoke)
        marks = {"nightly": nightly, "smoke": smoke, "slow": slow}
        parts = [
            part
            for part in ("quick", "rest", "nightly")
            for run in PARTS[part]
            if run.name == session and eval(run.marks, {}, marks)
        ]
        assert len(parts) == 1, (marks, parts)


def test_make_check_runs_every_check_that_there_is():
    run = {word for step in STEPS for word in step.command}
    own = {f"tools.{path.stem}" for path in (REPOSITORY / "tools").glob("check_*.py")}
    assert own <= run
    assert {"basedpyright", "ruff", "lint-imports", "tools.size_figures", "tools.docs_reference", "sphinx"} <= run


def test_checks_are_chosen_by_name_and_a_wrong_name_lists_them(capsys):
    assert chosen_steps([]) == list(STEPS)
    assert [step.name for step in chosen_steps(["words", "import contracts"])] == ["import contracts", "words"]
    with pytest.raises(SystemExit):
        chosen_steps(["typos"])
    assert "there is no check typos; there are types, docs build" in capsys.readouterr().err


def test_a_check_that_fails_fails_them_all():
    program = (
        "from tools.check import Step, main\n"
        "raise SystemExit(main([Step('good', ('-m', 'this')), Step('bad', ('-m', 'no_such_module'))]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"^good +\d+\.\d s  ok$", done.stdout, re.MULTILINE)
    assert re.search(r"^bad +\d+\.\d s  FAILED$", done.stdout, re.MULTILINE)
    assert "No module named no_such_module" in done.stdout
    assert done.stdout.endswith("1 of 2 checks hold; not: bad.\n")


def test_a_quick_check_takes_what_belongs_to_the_changed_files():
    files = ["src/ziggurat/dataflow/base.py", "tests/unit/dataflow/test_base.py", "docs/index.md", "tools/check.py"]
    assert quick_tests(files) == [
        "tests/arch",
        *(f"tests/unit/{folder}" for folder in ("dataflow", "datasets", "fast", "imgaug")),
    ]
    commands = {step.name: step.command for step in quick_steps(files)}
    assert set(FAST) < set(commands)
    assert commands["types"][-2:] == ("src/ziggurat/dataflow/base.py", "tools/check.py")


def test_a_quick_check_knows_the_folders_of_the_unit_tests():
    packages = {path.stem for path in (REPOSITORY / "src" / "ziggurat").iterdir()}
    assert set(FOLDERS) <= packages
    named = {folder for folders in FOLDERS.values() for folder in folders}
    assert {folder for folder in named if not (REPOSITORY / UNIT / folder).is_dir()} == set()
