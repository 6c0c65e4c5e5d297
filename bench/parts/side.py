"""Process of one side: it makes a loader and takes as many batches from it as each input line says."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["tree_cpu_s"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_REST_S = 0.1
_BUSY_SHARE = 0.02
_LONGEST_REST_S = 5.0


def main() -> None:
    """Answer on the standard output; whatever libraries print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, _, function = sys.argv[1].partition(":")
    try:
        batches: Iterator[Any] = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    except (ImportError, NotImplementedError) as error:
        _say(answers, {"left_out": str(error) or type(error).__name__})
        return
    next(batches)
    _say(answers, {"ready": True})
    for line in sys.stdin:
        _say(answers, _round(batches, int(line)))
    with contextlib.suppress(AttributeError):
        batches.close()  # type: ignore[attr-defined]
    os._exit(0)  # some libraries' threads do not end


def _round(batches: Iterator[Any], count: int) -> dict[str, float]:
    _rest()
    cpu_s, began = tree_cpu_s(), time.perf_counter()
    for _ in range(count):
        next(batches)
    wall_s = time.perf_counter() - began
    _rest()
    return {"cpu_s": tree_cpu_s() - cpu_s, "wall_s": wall_s}


def _rest() -> None:
    """Wait until whatever reads ahead has its buffers full."""
    deadline = time.monotonic() + _LONGEST_REST_S
    before = tree_cpu_s()
    while time.monotonic() < deadline:
        time.sleep(_REST_S)
        now = tree_cpu_s()
        if now - before < _REST_S * _BUSY_SHARE:
            return
        before = now


def tree_cpu_s() -> float:
    """Return the CPU time, user and system, of this process, its living descendants, and those that it waited for."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + sum(map(_cpu_s, _children(os.getpid())))


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S + sum(map(_cpu_s, _children(pid)))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _say(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
