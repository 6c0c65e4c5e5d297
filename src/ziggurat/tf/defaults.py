"""Callbacks and monitors that ``train_with_defaults`` adds."""

from __future__ import annotations

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.progress import ProgressBar
from ziggurat.engine.callbacks.summaries import MovingAverageSummary
from ziggurat.engine.callbacks.timing import StepTimes, ThroughputTracker
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.monitors.json_writers import EventWriter, JSONWriter
from ziggurat.engine.monitors.scalar_printer import ScalarPrinter
from ziggurat.engine.monitors.tensorboard import TFEventWriter
from ziggurat.tf import logger
from ziggurat.tf.graph_callbacks import RunUpdateOps
from ziggurat.tf.merge_summaries import MergeAllSummaries

__all__ = ["DEFAULT_CALLBACKS", "DEFAULT_MONITORS"]


def DEFAULT_CALLBACKS() -> list[Callback]:  # noqa: N802 - Tensorpack's name
    """Return the callbacks that come behind the own ones."""
    return [
        MovingAverageSummary(),
        MergeAllSummaries(),
        RunUpdateOps(),
        ThroughputTracker(),
        StepTimes(),
        ProgressBar(()),
    ]


def DEFAULT_MONITORS() -> list[Monitor]:  # noqa: N802 - Tensorpack's name
    """Return the monitors: those that write files only where a folder was chosen (``logger.set_logger_dir``)."""
    if logger.get_logger_dir() is None:
        logger.warning("No folder was chosen by `logger.set_logger_dir`: curves are printed, and not kept.")
        return [ScalarPrinter()]
    return [EventWriter(), TFEventWriter(), JSONWriter(), ScalarPrinter()]
