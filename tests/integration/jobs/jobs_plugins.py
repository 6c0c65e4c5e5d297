"""Plugins of these tests: a training that takes its time, one that hangs, one that says who computed it, and so on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.callbacks import Callback
from ziggurat.entities import read_heartbeat
from ziggurat.layout import JobFolder

ENTRY_POINTS = """
[ziggurat.callbacks]
jobs_test_pace = jobs_plugins:Pace
jobs_test_deaf = jobs_plugins:Deaf
jobs_test_escape = jobs_plugins:Escape
jobs_test_witness = jobs_plugins:Witness
"""


class Pace(Callback):
    """Sleeps after each step, and puts what it draws from the generator of the process: that must go on exactly."""

    def __init__(self, each_s: float = 0.0) -> None:
        self.each_s = each_s

    def trigger_step(self) -> None:
        self.trainer.put("drawn", float(np.random.random()))
        threading.Event().wait(self.each_s)


class Deaf(Callback):
    """Hangs after a step, ignoring SIGTERM: in a loop, or in a call of C that lets no other thread run."""

    def __init__(self, after_step: int, how: str) -> None:
        self.after_step = after_step
        self.how = how

    def before_train(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def trigger_step(self) -> None:
        if self.global_step == self.after_step:
            heartbeat = JobFolder(Path(sys.argv[-1])).heartbeat
            while (beat := read_heartbeat(heartbeat)) is None or beat.global_step < self.after_step - 2:
                threading.Event().wait(0.01)  # no other thread could tell the step any more
            while self.how == "loop":
                pass
            re.match(r"(a+)+$", 60 * "a" + "b")


class Escape(Callback):
    """Starts a process that leaves group, session, parent and environment of the worker; a file gets its number."""

    def __init__(self, file: str) -> None:
        self.file = file

    def before_train(self) -> None:
        if os.fork() == 0:
            os.setsid()
            quiet = subprocess.DEVNULL
            child = subprocess.Popen(["sleep", "300"], env={}, stdin=quiet, stdout=quiet, stderr=quiet)
            Path(self.file + ".new").write_text(str(child.pid))
            Path(self.file + ".new").rename(self.file)
            os._exit(0)
        os.wait()


class Witness(Callback):
    """Puts the number of its process after each step, and that of the process whose checkpoint it went on from."""

    went_on_from = 0

    def state(self) -> Any:
        return os.getpid()

    def load_state(self, state: Any) -> None:
        self.went_on_from = state

    def trigger_step(self) -> None:
        self.trainer.put("process", os.getpid())
        self.trainer.put("went on from", self.went_on_from)
