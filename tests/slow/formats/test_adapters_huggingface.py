"""Runs ``isolated_huggingface.py`` in a process of its own: processes that used the library must not be forked."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="`datasets` is not installed")


@pytest.mark.nightly
def test_in_a_process_of_its_own(tmp_path):
    program = Path(__file__).with_name("isolated_huggingface.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(program)]
    environment = {**os.environ, "HF_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
