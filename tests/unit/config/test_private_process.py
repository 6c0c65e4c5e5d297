"""A server keeps what is in its environment from the jobs that run as the same user."""

import subprocess
import sys

import pytest

READER = """
import ctypes, os, sys
for capability in (19, 21, 38):  # for root: without the capabilities that read every process
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
read = f"print(b'secret' in open('/proc/{os.getppid()}/environ', 'rb').read())"
os.execv(sys.executable, [sys.executable, "-S", "-c", read])
"""

SERVER = """
import subprocess, sys
from ziggurat.workspace.private_process import make_process_private
if sys.argv[1] == "private":
    make_process_private()
print(subprocess.run([sys.executable, "-S", "-c", sys.argv[2]], capture_output=True, text=True))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows environments in /proc")
def test_a_private_process_shows_no_environment():
    said = {}
    for how in ("open", "private"):
        command = [sys.executable, "-c", SERVER, how, READER]
        done = subprocess.run(command, env={"TOKEN": "secret"}, capture_output=True, text=True, check=True)
        said[how] = done.stdout
    assert "True" in said["open"]
    assert "PermissionError" in said["private"]
