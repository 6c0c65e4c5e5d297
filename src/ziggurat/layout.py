"""Owns the names of files and folders in a job folder; nobody else spells one.

A job folder::

    JOB/
      spec.json          what was asked (written once, before the worker starts)
      events.jsonl       what happened (append-only; one JSON object a line)
      last_words.json    space for how the newest attempt ended, reserved for the case that the disk is full
      heartbeat.json     the worker's pulse: process, time, step (replaced atomically)
      worker.lock        held by the living worker, so that two never train in one folder
      stop.json          a stop request, one plain sentence, written by whoever wants the worker to end; whoever starts
                         a worker removes an old one, and a worker that ends removes it
      log.txt            for people; never parsed
      classes.json       names of the classes, by number
      hyper.txt          hyperparameters that a person sets while it trains
      stats.json         the scalars of each epoch, one JSON object a line
      checkpoints/       step-00000042/ with state.json and arrays.npz, and the names that point at them
      tb/                TensorBoard event files
      black_box/         the last batches before a value was not finite
      results/           of a job that used a model: what it said of every sample, whole or not there

The folder of a data set is that of the job that makes it, and has besides (see ``ziggurat.records.manifest``)::

      manifest.json      what the data set holds; there when it is finished, never changed
      index.sqlite       its catalogue: every sample and problem, for exploring; training does not need it
      train.lmdb         the records of a split (``.hdf5``, ``.tfrecord``), likewise val and test
      mean.npy           mean picture of the training split
      test-openings.jsonl  when and what for somebody measured on the test split
      work/              what is done so far, while it is made
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "CHECKPOINT_NAMES",
    "CheckpointFiles",
    "JobFolder",
    "ResultFiles",
    "best_given_name",
    "checkpoint_name",
    "checkpoint_step",
]

CHECKPOINT_NAMES: Final = "names.json"
"""File in the folder of checkpoints: given name (``min-validation_error``) → checkpoint, as a JSON object."""

_BEST: Final = ("best", "min-", "max-")
_CHECKPOINT_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class JobFolder:
    """The files of one job.

    Args:
        path: the folder; it need not exist yet.
    """

    path: Path

    @property
    def spec(self) -> Path:
        """What was asked."""
        return self.path / "spec.json"

    @property
    def events(self) -> Path:
        """What happened: append-only, one JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def last_words(self) -> Path:
        """Space for how the newest attempt ended, where the file of events cannot take it."""
        return self.path / "last_words.json"

    @property
    def heartbeat(self) -> Path:
        """The worker's pulse."""
        return self.path / "heartbeat.json"

    @property
    def lock(self) -> Path:
        """Held by the living worker."""
        return self.path / "worker.lock"

    @property
    def stop_request(self) -> Path:
        """Exists while somebody wants the worker to end; holds one plain sentence: why."""
        return self.path / "stop.json"

    @property
    def log(self) -> Path:
        """The worker's output, for people."""
        return self.path / "log.txt"

    @property
    def class_names(self) -> Path:
        """Names of the classes, by number (JSON)."""
        return self.path / "classes.json"

    @property
    def hyperparameters(self) -> Path:
        """``name: value`` lines that take effect while it trains."""
        return self.path / "hyper.txt"

    @property
    def stats(self) -> Path:
        """The scalars of each epoch, one JSON object a line."""
        return self.path / "stats.json"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard event files."""
        return self.path / "tb"

    @property
    def black_box(self) -> Path:
        """Folder of the last batches before a value was not finite."""
        return self.path / "black_box"

    @property
    def results(self) -> Path:
        """Folder of what a model said of every sample; there when the job is done."""
        return self.path / "results"


@dataclass(frozen=True)
class CheckpointFiles:
    """The files of one checkpoint folder."""

    path: Path

    @property
    def state(self) -> Path:
        """Counters, callbacks, data position, random generators, and a checksum of every other file (JSON)."""
        return self.path / "state.json"

    @property
    def arrays(self) -> Path:
        """The program's arrays by name (npz, no pickle)."""
        return self.path / "arrays.npz"


@dataclass(frozen=True)
class ResultFiles:
    """The files in a folder of results."""

    path: Path

    @property
    def summary(self) -> Path:
        """What was done, and the figures of all samples (JSON)."""
        return self.path / "summary.json"

    @property
    def keys(self) -> Path:
        """What names each sample, one a line, in the order of the arrays."""
        return self.path / "keys.txt"

    def array(self, name: str) -> Path:
        """Return the file of an array (npy, no pickle): ``ziggurat.worker.results`` says which there are."""
        return self.path / f"{name}.npy"


def best_given_name(given: Iterable[str]) -> str | None:
    """Return which given name marks the best checkpoint; None where none does."""
    names = sorted(given)
    return next((name for start in _BEST for name in names if name.startswith(start)), None)


def checkpoint_name(global_step: int) -> str:
    """Return the folder name of the checkpoint after ``global_step`` steps: names sort as steps do."""
    return f"step-{global_step:08d}"


def checkpoint_step(name: str) -> int | None:
    """Return the step that a checkpoint folder's name tells, or None where it is another name."""
    match = _CHECKPOINT_NAME.fullmatch(name)
    return int(match.group(1)) if match else None
