"""Monitor that writes ``events.jsonl``: all events of a job, for the studio and for scripts."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ziggurat.engine.monitor import Image, Monitor, Scalar
from ziggurat.engine.monitors.background import BatchedWriter
from ziggurat.engine.monitors.binding import NeedsFolder, missing_folder
from ziggurat.engine.monitors.numbers import to_json
from ziggurat.errors import StorageError
from ziggurat.events import EpochEnded, Event, EventFile, ImageLogged, encode_event
from ziggurat.layout import JobFolder

__all__ = ["EventWriter"]


class EventWriter(Monitor, NeedsFolder):
    """Appends every number, image and event to the ``events.jsonl`` of a job.

    A number costs an append to a list; lines are written at the end of an epoch, before a checkpoint is saved, and
    otherwise by a thread twice a second. Images become PNG files below ``images/``. The end of an epoch is an event.

    Args:
        folder: the folder of the job; where it is left out, ``place()`` gives one.
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
