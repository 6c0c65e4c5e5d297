"""Too little memory is said as what it is, and not as a fault of Ziggurat."""

import errno
import subprocess
import sys

import pytest

from ziggurat.errors import memory_error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libopenblas.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_errors_of_memory_are_known_as_such(error):
    outer = ValueError("elsewhere")
    outer.__cause__ = error
    found = memory_error(outer)
    assert found is not None
    assert found.rule == "The machine must have enough free memory, and threads, for Ziggurat."
    assert type(error).__name__ in str(found)


def test_other_errors_are_not():
    assert memory_error(ValueError("the memory of a goldfish")) is None


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_a_command_below_a_limit_says_so(tmp_path):
    command = f"ulimit -v 300000; exec {sys.executable} -m ziggurat --workspace {tmp_path} up --port 0 --no-open"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Error: The machine must have enough free memory, and threads, for Ziggurat (received: "
    )
    assert "must not fail like this" not in done.stderr
