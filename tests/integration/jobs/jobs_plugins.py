"""Owns the plugin of these tests: a training that takes its time, so that it can be met in the middle."""

from __future__ import annotations

import time

import numpy as np

from ziggurat.callbacks import Callback

ENTRY_POINTS = "[ziggurat.callbacks]\njobs_test_pace = jobs_plugins:Pace\n"


class Pace(Callback):
    """Sleeps after each step, and puts what it draws from the generator of the process: that must go on exactly."""

    def __init__(self, each_s: float = 0.0) -> None:
        self.each_s = each_s

    def trigger_step(self) -> None:
        self.trainer.put("drawn", float(np.random.random()))
        time.sleep(self.each_s)
