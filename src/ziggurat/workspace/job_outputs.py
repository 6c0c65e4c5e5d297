"""Use cases of what a job wrote into its folder, with and without a studio: events, log, checkpoints."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.entities.black_box import LastBatch, read_last_batches
from ziggurat.entities.machine_load import MachineLoad, read_machine_load
from ziggurat.entities.sample_predictions import SamplePredictions, read_sample_predictions
from ziggurat.errors import JobError, MissingEntryError
from ziggurat.events import Event, iterate_events, read_events
from ziggurat.workspace.checkpoints import (
    ArrayDifference,
    CheckpointDetails,
    CheckpointSummary,
    checkpoint_details,
    checkpoint_differences,
    list_checkpoints,
    remove_checkpoint,
)
from ziggurat.workspace.job_folders import JobRepository

__all__ = ["JobOutputs", "LogPart", "LoggedImage"]

_LOG_BYTES: Final = 64 << 10
_BLOCK_BYTES: Final = 1 << 18
_IMAGE_NAME: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*)-([0-9]{8,18})\.png")
_MOST_IMAGES: Final = 24


@dataclass(frozen=True, kw_only=True)
class LoggedImage:
    """An image that a job logged.

    Args:
        name: of the image, as in its file name.
        step: ``global_step``.
        file: its file name.
    """

    name: str
    step: int
    file: str


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """A part of a log.

    Args:
        text: of the part.
        start: offset in bytes at which it begins; 0 is the beginning of the log. What is before it ends there.
        end: offset at which it ends.
        size: of the whole log, in bytes.
    """

    text: str = ""
    start: int = 0
    end: int = 0
    size: int = 0


class JobOutputs:
    """What the jobs of a repository wrote. Every method raises JobError where there is no job of that name.

    Args:
        jobs: finds a job by its name: its id in a studio, the path of its folder without one.
    """

    def __init__(self, jobs: JobRepository) -> None:
        self._jobs = jobs

    # ---- events

    def events(self, job: str) -> Iterator[Event]:
        """Return the events that are there now."""
        return iterate_events(self._jobs.folder(job).events)

    def follow_events(
        self, job: str, *, every_s: float = 0.5, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Event]:
        """Return the events that are there and those to come, until no worker is at the job any more.

        A job that never began is waited for.

        Args:
            job: its name.
            every_s: seconds between looks at the file.
            sleep: waits that long.
        """
        path, offset = self._jobs.folder(job).events, 0
        while True:
            found = self._jobs.get(job)
            # Asked first, read then: what the worker wrote before its end is not missed.
            batch, offset = read_events(path, offset)
            yield from batch
            if not batch and not found.is_active and found.state != "queued":
                return
            if not batch:
                sleep(every_s)

    # ---- the log

    def log(self, job: str, *, at_most_bytes: int = _LOG_BYTES, before: int | None = None) -> LogPart:
        """Return the end of the worker's log, or the part of it that ends at the offset ``before``."""
        return _read_log(self._jobs.folder(job).log, at_most_bytes, before)

    def whole_log(self, job: str, rank: int = 0) -> Iterator[bytes]:
        """Return the worker's log as it is now, block by block.

        Args:
            job: its name.
            rank: of a job over several nodes, the number of the process.
        """
        return _stream_log(self._jobs.folder(job).of_rank(rank).log)

    # ---- records of a training

    def machine_load(self, job: str) -> MachineLoad:
        """Return the load of the machine while the job ran; empty for a job that recorded none."""
        return read_machine_load(self._jobs.folder(job).machine_load)

    def last_batches(self, job: str) -> LastBatch:
        """Return the last steps of a training whose loss became NaN or infinite, and its last batch; else empty."""
        return read_last_batches(self._jobs.folder(job).black_box)

    def sample_predictions(self, job: str) -> SamplePredictions:
        """Return the predictions for a few validation samples after each validation; empty where there are none."""
        return read_sample_predictions(self._jobs.folder(job).sample_predictions)

    def sample_image(self, job: str, number: int) -> bytes:
        """Return the image of one of these samples as PNG, if it is in no dataset of the workspace.

        Raises:
            MissingEntryError: if there is none.
        """
        try:
            return self._jobs.folder(job).sample_image(number).read_bytes()
        except OSError:
            raise MissingEntryError(
                f"Image {number} of {job} is not kept with the job: it is in a dataset of the studio, or gone."
            ) from None

    def images(self, job: str) -> list[LoggedImage]:
        """Return the newest image of each name that the job logged, at most 24, by name."""
        newest: dict[str, LoggedImage] = {}
        with suppress(OSError):
            for path in self._jobs.folder(job).images.iterdir():
                found = _IMAGE_NAME.fullmatch(path.name)
                if found and int(found[2]) >= (newest[found[1]].step if found[1] in newest else 0):
                    newest[found[1]] = LoggedImage(name=found[1], step=int(found[2]), file=path.name)
        return [newest[name] for name in sorted(newest)][:_MOST_IMAGES]

    def image(self, job: str, file: str) -> bytes:
        """Return an image that the job logged, as PNG.

        Raises:
            MissingEntryError: if there is none.
        """
        path = self._jobs.folder(job).images / file
        try:
            if _IMAGE_NAME.fullmatch(file) and not path.is_symlink():
                return path.read_bytes()
        except OSError:
            pass
        raise MissingEntryError(f"{job} has no image `{file[:200]}`.")

    # ---- checkpoints

    def checkpoints(self, job: str) -> list[CheckpointSummary]:
        """Return the complete checkpoints, oldest step first."""
        return list_checkpoints(self._jobs.folder(job))

    def checkpoint(self, job: str, name: str) -> CheckpointDetails:
        """Return what a checkpoint holds.

        Args:
            job: its name.
            name: folder name, given name, ``best`` or ``latest``.

        Raises:
            CheckpointError: where it is not there or is damaged.
        """
        return checkpoint_details(self._jobs.folder(job), name)

    def checkpoint_differences(self, job: str, name: str, other_job: str, other_name: str) -> list[ArrayDifference]:
        """Return how the arrays of two checkpoints, of one job or of two, differ."""
        return checkpoint_differences(self._jobs.folder(job), name, self._jobs.folder(other_job), other_name)

    def remove_checkpoint(self, job: str, name: str) -> str:
        """Remove a checkpoint of a job that is not running; return its folder name.

        Raises:
            JobError: where a worker is at the job, or the repository keeps the checkpoint.
            CheckpointError: where it is not there, or a given name points at it.
        """
        found = self._jobs.get(job)
        if found.is_active:
            raise JobError(
                f"{job} is {found.state}; checkpoints are removed while no worker is at the job.",
                advice="Stop it first.",
            )
        self._jobs.check_removable(job, name)
        return remove_checkpoint(self._jobs.folder(job), name)


def _read_log(path: Path, at_most_bytes: int, before: int | None = None) -> LogPart:
    """Return the part of a log that ends at an offset; it begins at the start of a line where it can.

    Args:
        path: the log; one that is not there is empty.
        at_most_bytes: size of the part.
        before: offset in bytes at which the part ends; the end of the log where it is not given.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            end = size if before is None else max(0, min(before, size))
            start = max(0, end - at_most_bytes)
            file.seek(start)
            data = file.read(end - start)
            file.seek(max(0, start - 1))
            cuts_line = start > 0 and file.read(1) != b"\n"
    except (FileNotFoundError, IsADirectoryError):
        return LogPart()
    newline = data.find(b"\n") + 1
    if cuts_line and 0 < newline < len(data):
        start, data = start + newline, data[newline:]
    return LogPart(text=data.decode("utf-8", "replace"), start=start, end=start + len(data), size=size)


def _stream_log(path: Path) -> Iterator[bytes]:
    """Return a whole log as it is now, block by block."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        left = path.stat().st_size
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            left -= len(block)
            yield block
