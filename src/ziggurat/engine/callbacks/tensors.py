"""Delivery of step values to a function or to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.array_files import write_arrays
from ziggurat.engine.callbacks.batches import plain_array
from ziggurat.engine.monitors.binding import NeedsFolder, missing_folder
from ziggurat.layout import JobFolder

__all__ = ["DumpTensors", "ProcessTensors"]


class ProcessTensors(Callback):
    """Fetches values with every step and calls a function with them.

    >>> ProcessTensors(["cost", "accuracy"], lambda cost, accuracy: print(cost, accuracy))

    Args:
        names: values of the program.
        fn: called as ``fn(*values)``, in the order of the names.
    """

    def __init__(self, names: Sequence[str], fn: Callable[..., object]) -> None:
        self._names = tuple(names)
        self._function = fn

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step."""
        return self._names

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Call the function."""
        self._function(*(values[name] for name in self._names))


class DumpTensors(ProcessTensors, NeedsFolder):
    """Writes values of every step to ``DumpTensor-<step>.npz``; ``PeriodicCallback`` makes it rarer.

    Args:
        names: values of the program.
        folder: where to; where it is left out, ``place()`` gives the folder of the job.

    Raises:
        StorageError: from the training, where the disk is full.
    """

    def __init__(self, names: Sequence[str], folder: Path | None = None) -> None:
        super().__init__(names, self._write)
        self._folder = None if folder is None else Path(folder)

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another folder was given."""
        self._folder = self._folder or folder.path

    def setup_graph(self) -> None:
        """Find the folder, so that a missing one is an error before any work is done."""
        if self._folder is None:
            raise missing_folder(self)

    def _write(self, *values: Any) -> None:
        assert self._folder is not None
        arrays = {name: plain_array(value) for name, value in zip(self._names, values)}
        write_arrays(self._folder / f"DumpTensor-{self.global_step}.npz", arrays)
