"""Run states of a training over processes: the first one's has the weights, and each other process keeps its own part.

Processes differ in what they draw: the order of their data, dropout. So all of them save at the same steps, each into a
folder of its own below that of the training, and go on from the newest step that every one of them has saved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.errors import CheckpointError
from ziggurat.layout import JobFolder
from ziggurat.tf import logger
from ziggurat.tf.processes import Place

__all__ = ["PartStore", "newest_of_all"]

_OTHERS: Final = "processes"


class PartStore(CheckpointStore):
    """The run states of a process besides the first: weights, and what an optimizer keeps of them, are left out.

    Args:
        folder: of the training.
        rank: number of the process, from 1.
        weights: returns the names of the trained variables.
    """

    def __init__(self, folder: Path, rank: int, weights: Callable[[], Collection[str]]) -> None:
        super().__init__(_folder_of_part(folder, rank))
        self._weights = weights

    def save(self, state: RunState) -> CheckpointInfo:
        """Write a checkpoint; one of the same step is replaced.

        Raises:
            StorageError: where the disk is full or not writable; what was there stays.
        """
        weights = self._weights()
        prefixes = tuple(f"{name}/" for name in weights)
        own = {
            name: array
            for name, array in state.arrays.items()
            if name not in weights and not name.startswith(prefixes or ("\0",))
        }
        return super().save(replace(state, arrays=own))


def newest_of_all(folder: Path, place: Place) -> RunState | None:
    """Return the newest state of a process that all processes can go on from; None where there is none.

    Where the parts of the others are missing, it is the first process's newest: the other processes then begin with
    their data anew, and its ``batches`` and ``random`` are None.

    Args:
        folder: of the training; the same for all processes.
        place: this process among them.

    Raises:
        CheckpointError: where there are checkpoints, and none of them loads, or the part of this process does not.
    """
    first = CheckpointStore(JobFolder(folder).checkpoints, writable=False)
    if place.size == 1:
        latest = first.latest()
        return None if latest is None else latest[1]
    parts = [CheckpointStore(_folder_of_part(folder, rank), writable=False) for rank in range(1, place.size)]
    common = set.intersection(*({info.name for info in store.list()} for store in (first, *parts)))
    for name in sorted(common, reverse=True):
        try:
            whole = first.load(name)
        except CheckpointError:  # damaged; the others find the same
            continue
        if place.rank == 0:
            return whole
        part = parts[place.rank - 1].load(name)
        return RunState(part.meta, {**whole.arrays, **part.arrays})
    latest = first.latest()
    if latest is None:
        return None
    logger.warning(
        "The other processes have saved nothing for step %d: they begin with their data anew. Let every process call "
        "`set_logger_dir` with the same folder, so that trainings are resumed exactly.",
        latest[0].step,
    )
    whole = latest[1]
    return whole if place.rank == 0 else RunState({**whole.meta, "batches": None, "random": None}, whole.arrays)


def _folder_of_part(folder: Path, rank: int) -> Path:
    return JobFolder(folder / _OTHERS / str(rank)).checkpoints
