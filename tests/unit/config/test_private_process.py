"""A server keeps what is in its environment from the jobs that run as the same user."""

import subprocess
import sys

import pytest

UNPRIVILEGED = """
import ctypes, os, sys
for capability in (19, 21, 38):  # those with which root reads every process
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""

SERVER = """
import os, subprocess, sys
from ziggurat.workspace.server_process import make_process_private
if sys.argv[1] == "private":
    make_process_private()
read = f"print(b'secret' in open('/proc/{os.getpid()}/environ', 'rb').read())"
done = subprocess.run([sys.executable, "-S", "-c", read], capture_output=True, text=True)
print(done.stdout, done.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows environments in /proc")
@pytest.mark.parametrize(("how", "answer"), [("open", "True"), ("private", "PermissionError")])
def test_a_job_reads_no_environment_of_a_private_server(how, answer):
    command = [sys.executable, "-c", UNPRIVILEGED, SERVER, how]
    done = subprocess.run(command, env={"TOKEN": "secret"}, capture_output=True, text=True, check=True)
    assert answer in done.stdout
