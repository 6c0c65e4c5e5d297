"""Default callbacks and monitors of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ziggurat.engine.callback import Callback, bind_folder
from ziggurat.engine.callbacks.progress import EstimatedTimeLeft, ProgressBar
from ziggurat.engine.callbacks.summaries import MergeAllSummaries, MovingAverageSummary
from ziggurat.engine.callbacks.timing import StepTimes, ThroughputTracker
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.monitors.json_writers import EventWriter, JSONWriter
from ziggurat.engine.monitors.scalar_printer import ScalarPrinter
from ziggurat.engine.monitors.tensorboard import TFEventWriter
from ziggurat.layout import JobFolder

__all__ = ["DEFAULT_CALLBACKS", "DEFAULT_MONITORS", "default_callbacks", "default_monitors"]


def default_callbacks(names: Sequence[str] | None = None) -> list[Callback]:
    """Return the callbacks that come behind a user's own.

    Behind, because they show and log what the user's have done; and the progress bar last, so that nothing is written
    into its line. Savers are not among them: what to keep is the user's decision.

    Args:
        names: values of the program to log after each epoch and to show in the progress bar; None to log what the
            program offers.
    """
    return [
        MovingAverageSummary(),  # first: the averages are of the steps, and nothing else must come between
        MergeAllSummaries(names=names),
        ThroughputTracker(),
        StepTimes(),
        EstimatedTimeLeft(),  # behind those that measure: it tells monitors, which takes time now and then
        ProgressBar(names or ()),
    ]


def default_monitors(folder: Path | JobFolder | None = None) -> list[Monitor]:
    """Return the monitors.

    Args:
        folder: the folder of the job; where it is left out, ``bind_folder`` gives one.
    """
    monitors: list[Monitor] = [
        EventWriter(),  # first: what happened is on record even if another monitor fails
        TFEventWriter(),
        JSONWriter(),
        ScalarPrinter(blacklist=_NO_RESULTS, is_short=True),  # last: what a person reads has been written down
    ]
    if folder is not None:
        bind_folder(monitors, folder)
    return monitors


_NO_RESULTS: Final = ("StepTime/", "Throughput", "GPU", "Memory")
"""Beginnings of the tags that are in the curves of a job, and not in its log."""

DEFAULT_CALLBACKS = default_callbacks
"""Tensorpack's name."""

DEFAULT_MONITORS = default_monitors
"""Tensorpack's name."""
