"""A run goes on after a test that hangs, names it, and ends with the command of each test that failed."""

import os
import subprocess
import sys
from pathlib import Path

from tests.reruns import command_of

ROOT = Path(__file__).parents[2]

CONFTEST = "from tests.reruns import pytest_itemcollected, pytest_runtest_protocol, pytest_terminal_summary\n"

PLANTED = """
import threading
import pytest

@pytest.mark.timeout(1)
def test_hangs():
    threading.Event().wait()

@pytest.mark.parametrize("number", range(4))
def test_is_well(number):
    pass

@pytest.fixture
def broken():
    yield
    raise OSError("no end")

def test_is_wrong(broken):
    assert 1 == 2
"""


def test_a_hanging_test_fails_by_its_name_and_the_run_goes_on(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_planted.py").write_text(PLANTED)
    options = ["-q", "-n", "2", "--timeout=60", "--timeout-method=signal", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), "test_planted.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "Timeout (>1.0s) from pytest-timeout" in done.stdout
    assert "4 passed" in done.stdout
    alone = done.stdout.partition(" each alone ")[2].partition(" short test summary")[0]
    assert sorted(line for line in alone.splitlines() if "pytest" in line) == [
        ".venv/bin/python -m pytest test_planted.py::test_hangs",
        ".venv/bin/python -m pytest test_planted.py::test_is_wrong",
    ]


def test_the_command_has_the_environment_of_its_session():
    name = "tests/torch/test_torch_library.py::test_a[x y]"
    assert command_of(name) == f"OMP_NUM_THREADS=1 .venv/bin/python -m pytest '{name}'"
    assert (
        command_of("tests/unit/test_waiting.py::test_b")
        == ".venv/bin/python -m pytest tests/unit/test_waiting.py::test_b"
    )
