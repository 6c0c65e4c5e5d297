"""Trained jobs that several test processes read: one of them trains, and every process gets a copy of its own.

They lie in ``build/test-jobs``, named by a hash of the spec and of the source, so that a later run of the tests finds
them again, and never one of another source; ``make clean`` removes them.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

__all__ = ["trained_once"]

REPOSITORY = Path(__file__).parents[1]
MADE = REPOSITORY / "build" / "test-jobs"


def trained_once(name: str, spec: Mapping[str, Any]) -> Path:
    """Return the folder of a job that a worker trained to its end; what is written there, no other process sees.

    Args:
        name: First part of the name of the folder.
        spec: Spec of the job, JSON values.
    """
    copy = Path(_own_folder()) / f"{name}-{_hash_of(spec)}"
    if copy.exists():
        return copy
    MADE.mkdir(parents=True, exist_ok=True)
    made = MADE / copy.name
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _train(spec, made)
    shutil.copytree(made, copy)
    return copy


def _train(spec: Mapping[str, Any], made: Path) -> None:
    with tempfile.TemporaryDirectory(dir=MADE, prefix=".partial-") as partial:
        folder = Path(partial) / made.name
        folder.mkdir()
        save_spec(parse_spec(spec, source="a test"), JobFolder(folder).spec)
        command = [sys.executable, "-m", "ziggurat.worker", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        folder.rename(made)


def _hash_of(spec: Mapping[str, Any]) -> str:
    return hashlib.sha256((json.dumps(spec, sort_keys=True) + _source_hash()).encode()).hexdigest()[:16]


@functools.cache
def _source_hash() -> str:
    content = hashlib.sha256()
    for path in (*sorted((REPOSITORY / "src").rglob("*.py")), REPOSITORY / "constraints.txt"):
        content.update(path.read_bytes())
    return content.hexdigest()


@functools.cache
def _own_folder() -> str:
    folder = tempfile.mkdtemp(prefix="ziggurat-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
