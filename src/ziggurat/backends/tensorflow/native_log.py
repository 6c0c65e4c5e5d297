"""The log of TensorFlow's native code while it is imported: lines below its log level are left out.

TensorFlow applies ``TF_CPP_MIN_LOG_LEVEL`` only once its log is initialized; what its libraries say while they are
loaded goes to standard error, whatever the level. A process of its own reads that: where the import ends the process,
as on a machine without the instructions that TensorFlow needs, its last words are shown all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["native_log_held_to"]

_LEVELS: Final = "IWEF"
_FILTER: Final = """
import re, sys
noise = re.compile(rb"[%s]\\d{4} [\\d:.]+ +\\d+ [^ ]+:\\d+\\] |WARNING: All log messages before absl::InitializeLog")
for line in sys.stdin.buffer:
    if not noise.match(line):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
"""


@contextmanager
def native_log_held_to(level: str) -> Iterator[None]:
    """Leave lines below a level out of what native code writes to standard error inside.

    Args:
        level: as in ``TF_CPP_MIN_LOG_LEVEL``: 0 leaves out nothing, 1 information, 2 warnings too, 3 errors too.
    """
    left_out = _LEVELS[: int(level)] if level.isdecimal() else ""
    if not left_out or not sys.executable:
        yield
        return
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (AttributeError, OSError):  # there is no standard error
        yield
        return
    command = [sys.executable, "-I", "-S", "-c", _FILTER % left_out]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, close_fds=True) as reader:
        assert reader.stdin is not None
        os.dup2(reader.stdin.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
