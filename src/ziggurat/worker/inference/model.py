"""The network that an inference process holds: opened once, and reopened when its checkpoint has changed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ziggurat.engine.capabilities import TrainedNetwork
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.errors import CheckpointError
from ziggurat.layout import CheckpointFiles, JobFolder
from ziggurat.specs import FileNetwork
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job

__all__ = ["WarmModel"]

_Stamp = tuple[dict[str, str], dict[str, int]]
"""Given name → checkpoint, and checkpoint → when it was written, in nanoseconds."""


class WarmModel:
    """A trained network that stays open. A name such as ``latest`` is followed while a training moves it.

    Args:
        folder: the job folder.
        checkpoint: as for ``open_trained_job``.
        device: index of the accelerator, or ``cpu``; empty for the devices of the training.

    Raises:
        ZigguratError: as ``open_trained_job`` and ``open_network``.
    """

    def __init__(self, folder: Path, checkpoint: str | None = None, device: str = "") -> None:
        self._folder = folder
        self._asked = checkpoint
        self._device = device
        self._opened = ExitStack()
        # Before the checkpoint is read: one that is written meanwhile is noticed by the next request.
        self._stamp = self._look()
        self._open(open_trained_job(folder, checkpoint))

    @property
    def job(self) -> TrainedJob:
        """What is open: preprocessing, classes, arrays, and which checkpoint it is."""
        return self._job

    @property
    def network(self) -> TrainedNetwork:
        """The open network."""
        return self._network

    def follow(self) -> None:
        """Open the checkpoint that the asked name stands for now, unless it is open already.

        Raises:
            ZigguratError: where that cannot be opened; what was open stays.
        """
        stamp = self._look()
        if stamp == self._stamp:
            return
        try:
            job = open_trained_job(self._folder, self._asked)
        except CheckpointError:
            if self._asked == self._job.checkpoint:
                return  # the very checkpoint that is open was removed to save space; it is still a good answer
            raise
        if job.checkpoint != self._job.checkpoint or _written(stamp, job) != _written(self._stamp, job):
            before, self._opened = self._opened, ExitStack()
            try:
                self._open(job)
            except BaseException:
                self._opened = before
                raise
            before.close()
        self._stamp = stamp

    def describe(self) -> dict[str, Any]:
        """Return which network it is and what it takes, as JSON values."""
        job = self._job
        network = job.spec.network
        return {
            **job.summary(),
            "network": network.path if isinstance(network, FileNetwork) else network.name,
            "backend": job.spec.backend,
            "device": self._device,
            "class_names": job.class_names,
            "picture": {
                "size": list(job.preprocessing.size),
                "channels": job.preprocessing.channels,
                "resize_mode": job.preprocessing.resize_mode,
            },
            "input_shape": list(job.preprocessing.output_shape),
        }

    def close(self) -> None:
        """Free the network; closing twice does nothing."""
        self._opened.close()

    def _open(self, job: TrainedJob) -> None:
        if self._device:
            # The devices of the training may be busy or hidden; the one that was asked for is the only one in sight.
            job = replace(job, request=replace(job.request, devices=()))
        self._network = self._opened.enter_context(open_network(job))
        self._job = job

    def _look(self) -> _Stamp:
        store = CheckpointStore(JobFolder(self._folder).checkpoints, writable=False)
        times = {info.name: _time_ns(CheckpointFiles(info.path).state) for info in store.list()}
        return dict(store.names()), times


def _written(stamp: _Stamp, job: TrainedJob) -> int | None:
    return stamp[1].get(job.checkpoint)


def _time_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
