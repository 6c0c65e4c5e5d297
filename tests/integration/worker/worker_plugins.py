"""Plugins of the worker tests, as a third-party package would ship them; the environment configures them.

``TEST_STRIKE=<how>:<step>`` lets ``Strike`` end the attempt after that step (``train`` in its place: before the first):
``kill`` and ``term`` by a signal to its own process; ``ValueError``, ``DataError`` or ``TrainingError`` by raising it.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import select
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ziggurat.backends.null import NullBackend
from ziggurat.backends.null_info import INFO as NULL
from ziggurat.callbacks import Callback
from ziggurat.engine.callback import NeedsFolder
from ziggurat.entities.backend_info import BackendInfo
from ziggurat.errors import DataError, TrainingError
from ziggurat.layout import JobFolder

ENTRY_POINTS = """
[ziggurat.backends]
test_missing = worker_plugins:MISSING
test_broken = worker_plugins:BROKEN
test_hangs_at_step_4 = worker_plugins:HANGING
test_slow_to_build = worker_plugins:SLOW_TO_BUILD
test_stuck_in_c = worker_plugins:STUCK_IN_C
[ziggurat.callbacks]
test_strike = worker_plugins:Strike
test_draws = worker_plugins:Draws
test_pause = worker_plugins:Pause
test_stalled_data = worker_plugins:StalledData
test_hand = worker_plugins:Hand
test_pool = worker_plugins:Pool
"""


class Strike(Callback):
    """Ends the attempt at the moment that the environment names."""

    def before_train(self) -> None:
        self._strike_at("train")

    def trigger_step(self) -> None:
        self._strike_at(str(self.global_step))

    def trigger_epoch(self) -> None:
        self._strike_at(f"epoch {self.epoch_num}")

    def _strike_at(self, moment: str) -> None:
        how, _, wanted = os.environ.get("TEST_STRIKE", "").partition(":")
        if wanted != moment:
            return
        if how in ("kill", "term"):
            os.kill(os.getpid(), {"kill": signal.SIGKILL, "term": signal.SIGTERM}[how])
        elif how == "DataError":
            raise DataError("The data must stay.", received="nothing", advice="Bring it back.")
        elif how == "TrainingError":
            raise TrainingError("The training must go well.", received="a strike", advice="Wait for its end.")
        else:
            raise ValueError("struck")


class Pool(Callback):
    """Works with a pool of threads that it never ends, and leaves a note when the process ends."""

    def before_train(self) -> None:
        self._pool = ThreadPoolExecutor(2)
        atexit.register(print, "the end was noted")

    def trigger_step(self) -> None:
        self._pool.submit(int).result()


class Draws(Callback):
    """Puts what it draws from the generators of the process, as a user's own code might."""

    def __init__(self) -> None:
        self.total = 0.0

    def trigger_step(self) -> None:
        drawn = random.random() + float(np.random.random())
        self.total += drawn
        self.trainer.put("drawn", drawn)

    def state(self) -> Any:
        return self.total

    def load_state(self, state: Any) -> None:
        self.total = state


class Pause(Callback):
    """Sleeps after each step, after the step that it is told, or before the first: a slow or a hung training."""

    def __init__(self, each_s: float = 0.0, at_step: int = -1, for_s: float = 0.0) -> None:
        self.each_s = each_s
        self.at_step = at_step
        self.for_s = for_s

    def trigger_step(self) -> None:
        threading.Event().wait(self.for_s if self.global_step == self.at_step else self.each_s)


class Hand(Callback, NeedsFolder):
    """Sets the learning rate by hand after a step, and lets go of it after another, as the studio does."""

    def __init__(self, rate: float, from_step: int, to_step: int) -> None:
        self.rate = rate
        self.from_step = from_step
        self.to_step = to_step

    def use_folder(self, folder: JobFolder) -> None:
        self.file = folder.hyperparameters

    def trigger_step(self) -> None:
        if self.global_step == self.from_step:
            self.file.write_text(f"learning_rate: {self.rate}\n")
        elif self.global_step == self.to_step:
            self.file.write_text("")


class StalledData(Callback):
    """Lets the data stand still before the batch of a step, in the first attempt at it."""

    def __init__(self, before_step: int, file: str) -> None:
        self.before_step = before_step
        self.file = file

    def setup_graph(self) -> None:
        self.trainer.batches.source = _Stalling(self.trainer.batches.source, self)


class _Stalling:
    """A source of batches that stalls once; ``file`` is there from then on."""

    def __init__(self, source: Any, stall: StalledData) -> None:
        self._source = source
        self._stall = stall

    def __iter__(self) -> Any:
        for batch in self._source:
            step = self._stall.global_step + 1
            if step == self._stall.before_step and not os.path.exists(self._stall.file):
                with open(self._stall.file, "x"):
                    pass
                threading.Event().wait(600)
            yield batch

    def state(self) -> Any:
        return self._source.state()

    def load_state(self, state: Any) -> None:
        self._source.load_state(state)

    def close(self) -> None:
        self._source.close()


class MissingBackend:
    """A backend whose framework is not installed."""

    def why_not(self) -> str:
        return "No module named 'frame'"


class BrokenBackend(NullBackend):
    """A backend that cannot build a program."""

    def build(self, request: Any) -> Any:
        raise ValueError("no program today")


class SlowToBuild(NullBackend):
    """A backend that takes its time."""

    def build(self, request: Any) -> Any:
        select.select([], [], [], float(os.environ.get("TEST_BUILD_S", "0")))  # in C: here is where it hangs
        return super().build(request)


class StuckInC(NullBackend):
    """A backend whose build calls C code that neither returns nor lets another thread run."""

    def build(self, request: Any) -> Any:
        return re.match(r"(a+)+$", 60 * "a" + "b")


class Hanging(NullBackend):
    """A backend whose fourth step never ends."""

    def build(self, request: Any) -> Any:
        return _HangingProgram(super().build(request))


class _HangingProgram:
    def __init__(self, program: Any) -> None:
        self._program = program
        self._steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def step(self, batch: Any, names: Any) -> Any:
        self._steps += 1
        if self._steps == 4:
            threading.Event().wait(600)
        return self._program.step(batch, names)


def _info(name: str) -> BackendInfo:
    return BackendInfo(title=name, backend=f"worker_plugins:{name}", networks=NULL.networks)


MISSING, BROKEN, HANGING = _info("MissingBackend"), _info("BrokenBackend"), _info("Hanging")
SLOW_TO_BUILD, STUCK_IN_C = _info("SlowToBuild"), _info("StuckInC")
