"""Monitors that write JSON: the event file of a job, and the points of all curves."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ziggurat.atomic import check_fence
from ziggurat.engine.callback import NeedsFolder, missing_folder
from ziggurat.engine.monitor import Image, Monitor, Scalar
from ziggurat.entities.json_lines import append_line, encoded_line, read_lines, replace_lines
from ziggurat.errors import StorageError
from ziggurat.events import EpochEnded, Event, EventFile, ImageLogged, encode_event
from ziggurat.layout import JobFolder

__all__ = ["BatchedWriter", "EventWriter", "JSONWriter", "to_json"]

_NAMES = ("NaN", "Infinity", "-Infinity")


def to_json(value: float) -> float | str:
    """Return the number, or its name where JSON cannot hold it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(value: Any) -> Any:
    """Return what ``to_json`` took; other values as they are."""
    return float(value) if value in _NAMES else value


_Item = TypeVar("_Item")


class BatchedWriter(Generic[_Item]):
    """Collects items and hands them to ``write`` in order: on ``flush()``, and otherwise every ``every_s`` seconds.

    Nothing is written by itself before ``start()``. Taking an item costs no more than an append. An error of ``write``
    in the thread is raised by the next ``put()`` or ``flush()``; afterwards nothing is written any more.

    Args:
        write: takes a list of items; never called by two threads at once.
        every_s: longest time, in seconds, that an item waits.
    """

    def __init__(self, write: Callable[[list[_Item]], None], every_s: float = 0.5) -> None:
        self._write = write
        self._every_s = every_s
        self._waiting: deque[_Item] = deque()
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_broken = False

    def start(self) -> None:
        """Start the thread; starting twice does nothing."""
        if self._thread is None:
            self._ended.clear()
            self._thread = threading.Thread(target=self._write_now_and_then, name="batched-writer", daemon=True)
            self._thread.start()

    def put(self, item: _Item) -> None:
        """Take one item."""
        self._waiting.append(item)
        if self._error is not None:
            self._raise()

    def flush(self) -> None:
        """Write everything that was taken."""
        self._write_waiting()
        if self._error is not None:
            self._raise()

    def close(self) -> None:
        """Write the rest and end the thread. What comes later is written by ``flush()`` only."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()
        self.flush()

    def _write_now_and_then(self) -> None:
        while not self._ended.wait(self._every_s):
            self._write_waiting()

    def _write_waiting(self) -> None:
        with self._turn:
            items = []
            while self._waiting:  # popped one by one: another thread may append meanwhile
                items.append(self._waiting.popleft())
            if items and not self._is_broken:
                try:
                    self._write(items)
                except BaseException as error:
                    self._is_broken = True
                    self._error = error

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class EventWriter(Monitor, NeedsFolder):
    """Appends every number, image and event to the ``events.jsonl`` of a job.

    A number costs an append to a list; lines are written at the end of an epoch, before a checkpoint is saved, and
    otherwise by a thread twice a second. Images become PNG files below ``images/``. The end of an epoch is an event.

    Args:
        folder: the folder of the job; where it is left out, ``bind_folder`` gives one.
        every_s: longest time, in seconds, until a number is in the file.
        clock: seconds, for how long an epoch took.

    Raises:
        StorageError: from the training, where the disk is full: a job whose events are lost has not happened.
    """

    def __init__(
        self, folder: Path | None = None, *, every_s: float = 0.5, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._folder = JobFolder(Path(folder)) if folder is not None else None
        self._clock = clock
        self._descriptor = -1
        self._tags: dict[str, str] = {}
        self._lines: BatchedWriter[Scalar | Event] = BatchedWriter(self._write, every_s)
        self._epoch_began_s = 0.0
        self._epoch_took_s = 0.0
        self._is_over = False

    @property
    def folder(self) -> JobFolder | None:
        """The job that it writes into; None before it has one."""
        return self._folder

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another one was given."""
        self._folder = self._folder or folder

    def setup_graph(self) -> None:
        """Open the file, so that one that cannot be written is an error before any work is done."""
        self._open()
        self._lines.start()

    def before_train(self) -> None:
        """Start the clock of an epoch that is resumed in the middle."""
        self._epoch_began_s = self._clock()

    def before_epoch(self) -> None:
        """Start the clock of an epoch."""
        self._epoch_began_s = self._clock()

    def after_epoch(self) -> None:
        """Stop the clock."""
        self._epoch_took_s = self._clock() - self._epoch_began_s

    def trigger_epoch(self) -> None:
        """Say, once all callbacks have done their part, that the epoch is complete."""
        self.trainer.at_boundary(self._end_epoch)

    def after_train(self) -> None:
        """Write the rest and close the file."""
        self._is_over = True
        try:
            self._lines.close()
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def process_scalar(self, scalar: Scalar) -> None:
        """Take one number; it is turned into JSON when it is written."""
        self._lines.put(scalar)

    def process_event(self, event: Event) -> None:
        """Take one event."""
        self._lines.put(event)
        if self._is_over:  # another monitor has a last word
            self.after_train()

    def process_image(self, image: Image) -> None:
        """Write the image as a PNG file, and say where it is."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", image.tag).strip("-.") or "image"
        path = Path("images") / f"{name}-{image.step:08d}.png"
        _save_png(self._job().path / path, image)
        self._lines.put(ImageLogged(time=image.time, tag=image.tag, path=str(path), step=image.step, epoch=image.epoch))

    def flush(self) -> None:
        """Write everything and force it to the disk: a checkpoint that follows never knows more than the file."""
        self._lines.flush()
        try:
            if self._descriptor >= 0:
                os.fsync(self._descriptor)
        except OSError as error:
            raise _not_writable(self._job().events, error) from error

    def _end_epoch(self) -> None:
        trainer = self.trainer
        self._lines.put(
            EpochEnded(
                time=trainer.monitors.now(),
                epoch=trainer.epoch_num,
                global_step=trainer.global_step,
                duration_s=self._epoch_took_s,
            )
        )
        self._lines.flush()

    def _job(self) -> JobFolder:
        if self._folder is None:
            raise missing_folder(self)
        return self._folder

    def _open(self) -> None:
        path = self._job().events
        if self._descriptor < 0:
            EventFile(path).close()  # makes the file, and mends what a killed writer left
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _write(self, items: list[Scalar | Event]) -> None:
        self._open()
        lines = [self._scalar_line(item) if isinstance(item, Scalar) else encode_event(item) + "\n" for item in items]
        data = "".join(lines).encode()
        check_fence()
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a nearly full disk takes a part
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            raise _not_writable(self._job().events, error) from error

    def _scalar_line(self, scalar: Scalar) -> str:
        """Return the line of ``ScalarLogged``: by far the most frequent one, so it does not take the general way."""
        tag = self._tags.get(scalar.tag)
        if tag is None:
            tag = self._tags[scalar.tag] = json.dumps(scalar.tag, ensure_ascii=False)
        return (
            f'{{"type":"scalar","version":1,"time":{scalar.time!r},"tag":{tag},'
            f'"value":{json.dumps(to_json(scalar.value))},"step":{scalar.step},"epoch":{scalar.epoch}}}\n'
        )


def _save_png(path: Path, image: Image) -> None:
    from PIL import Image as Picture

    pixels = image.pixels[:, :, 0] if image.pixels.shape[2] == 1 else image.pixels
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Picture.fromarray(pixels).save(path)
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"What happens in a job must be written to {path}.",
        received=f"{error.strerror or error} (errno {error.errno})",
        advice="Free space on the disk or mend the folder's rights, then resume the job: the last checkpoint is whole.",
    )


_WHAT: Final = "The scalars of each epoch"


class JSONWriter(Monitor, NeedsFolder):
    """Appends one line an epoch: ``{"epoch_num": 3, "global_step": 1407, "cost": 0.31, …}``, newest value of each tag.

    Appended, never rewritten, so that a long training costs no more than a short one. NaN and infinities are strings.
    When a training is resumed, lines of steps that it has not done are dropped, atomically.

    Args:
        path: the file; where it is left out, ``bind_folder`` gives the job's ``stats.json``.

    Raises:
        StorageError: from the training, where the disk is full.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = Path(path) if path is not None else None
        self._values: dict[str, float] = {}
        self._written_epoch = 0

    @staticmethod
    def load_existing_json(path: Path) -> list[dict[str, Any]]:
        """Return what a ``stats.json`` holds, one dict an epoch; a missing file holds nothing.

        A half line at the end, which a killed training left, is passed over.
        """
        return [{name: from_json(value) for name, value in line.items()} for line in _lines(Path(path))]

    @staticmethod
    def load_existing_epoch_number(path: Path) -> int | None:
        """Return the last epoch of a ``stats.json``, or None where there is none."""
        lines = _lines(Path(path))
        return lines[-1]["epoch_num"] if lines else None

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another file was given."""
        self._path = self._path or folder.stats

    def before_train(self) -> None:
        """Drop the lines of later steps: this attempt writes them again."""
        path = self._file()
        step, epoch = self.trainer.global_step, self._written_epoch
        kept = [line for line in _lines(path) if line["global_step"] <= step and line["epoch_num"] <= epoch]
        if path.is_file() and path.read_bytes() != b"".join(map(encoded_line, kept)):
            replace_lines(path, kept, _WHAT)

    def process_scalar(self, scalar: Scalar) -> None:
        """Keep the newest value of the tag for the line of its epoch."""
        self._values[scalar.tag] = scalar.value

    def trigger_epoch(self) -> None:
        """Write the line once all callbacks have put what they have, and before a checkpoint is saved."""
        self.trainer.at_boundary(self._write_line)

    def before_stop(self) -> None:
        """Write the line of an unfinished epoch where the training is complete all the same.

        What a stopped training has put of an unfinished epoch is part of its checkpoint and comes with that epoch.
        """
        if self.trainer.finish_reason is not None:
            self.trainer.at_boundary(self._write_line)

    def after_train(self) -> None:
        """Write what callbacks put after the last epoch."""
        if self._written_epoch and self._written_epoch == self.trainer.epoch_num:
            self._write_line()

    def state(self) -> Any:
        """Return the values of the epoch under way."""
        values = {tag: to_json(value) for tag, value in self._values.items()}
        return {"values": values, "written_epoch": self._written_epoch}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._values = {tag: from_json(value) for tag, value in state["values"].items()}
        self._written_epoch = state["written_epoch"]

    def _write_line(self) -> None:
        self._written_epoch = self.trainer.epoch_num
        if not self._values:
            return
        values = {tag: to_json(self._values[tag]) for tag in sorted(self._values)}
        self._values = {}
        line = {"epoch_num": self.trainer.epoch_num, "global_step": self.trainer.global_step, **values}
        append_line(self._file(), line, _WHAT)

    def _file(self) -> Path:
        if self._path is None:
            raise missing_folder(self)
        return self._path


def _lines(path: Path) -> list[dict[str, Any]]:
    return [line for line in read_lines(path) if "global_step" in line]
