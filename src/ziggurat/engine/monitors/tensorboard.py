"""TensorBoard monitor and its event files, byte for byte, without TensorFlow or protocol-buffer libraries.

A file is a sequence of TFRecords (``tfrecord_frame``), each of which holds an ``Event`` message
(tensorflow/core/util/event.proto). Only five kinds are written, each with a handful of fields. A library for them would
cost seconds at the start of every job, and tensorboardX imports PyTorch when it is installed.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
from pathlib import Path
from typing import Any, Final

from ziggurat.engine.callback import NeedsFolder, missing_folder
from ziggurat.engine.capabilities import HasGraph
from ziggurat.engine.monitor import Image, Monitor, Scalar, say
from ziggurat.engine.monitors.json_writers import BatchedWriter
from ziggurat.layout import JobFolder
from ziggurat.protobuf_wire import bytes_field, double_field, float_field, integer_field, tfrecord_frame

__all__ = ["TFEventWriter", "file_version", "graph_event", "image_event", "write_graph"]

_START: Final = "events.out.tfevents."


class TFEventWriter(Monitor, NeedsFolder):
    """Writes scalars, images and serialized summaries (histograms too) to a TensorBoard event file.

    Each attempt has a file of its own. The first one holds the graph too, where the program ``HasGraph``. That of a
    resumed training lets TensorBoard hide the points that earlier attempts wrote of later steps. A disk that is full
    does not end the training: it is said once, and what cannot be written is left out.

    Args:
        logdir: the folder; where it is left out, ``bind_folder`` gives the job's ``tb/``.
        every_s: longest time, in seconds, until a number is in the file.
    """

    def __init__(self, logdir: Path | str | None = None, *, every_s: float = 1.0) -> None:
        self._folder = Path(logdir) if logdir is not None else None
        self._messages: BatchedWriter[Scalar | bytes] = BatchedWriter(self._write, every_s)
        self._descriptor = -1
        self._size_bytes = 0
        self._problem = ""
        self._is_reported = False

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another folder was given."""
        self._folder = self._folder or folder.tensorboard

    def before_train(self) -> None:
        """Begin a file; in a resumed training, say from which step on earlier files no longer hold."""
        if self._folder is None:
            raise missing_folder(self)
        now, step = self.trainer.monitors.now(), self.global_step
        is_first = not any(self._folder.glob(f"{_START}*"))
        try:
            self._descriptor, _ = _new_file(self._folder, now)
        except OSError as error:
            self._problem = error.strerror or str(error)
        first = [file_version(now)]
        program: Any = self.trainer.program
        if is_first and isinstance(program, HasGraph) and (graph := program.graph_bytes()):
            first.append(graph_event(now, graph))
        if step > 0:
            first.append(restart_event(now, step + 1))
        self._size_bytes = 0
        self._write([*first])
        self._report_problem()
        self._messages.start()

    def process_scalar(self, scalar: Scalar) -> None:
        """Take one number; it is encoded when it is written."""
        self._messages.put(scalar)

    def process_image(self, image: Image) -> None:
        """Take one image."""
        height, width, channels = image.pixels.shape
        self._messages.put(image_event(image.time, image.step, image.tag, (height, width, channels), _png(image)))

    def process_summary(self, summary: Any, step: int) -> None:
        """Take a serialized ``Summary`` as it is."""
        self._messages.put(summary_event(self.trainer.monitors.now(), step, bytes(summary)))

    def trigger_epoch(self) -> None:
        """Write what the epoch gave, once all callbacks have had their turn."""
        self.trainer.at_boundary(self.flush)

    def flush(self) -> None:
        """Write everything that was taken."""
        if self._descriptor >= 0 or self._problem:
            self._messages.flush()
            self._report_problem()

    def after_train(self) -> None:
        """Write the rest and close the file."""
        if self._descriptor >= 0 or self._problem:
            self._messages.close()
            self._report_problem()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, items: list[Scalar | bytes]) -> None:
        if self._descriptor < 0:
            return
        data = b"".join(tfrecord_frame(item if isinstance(item, bytes) else _encoded(item)) for item in items)
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
            self._size_bytes += len(data)
        except OSError as error:
            self._problem = error.strerror or str(error)
            # Half a record would hide all that follows, should there be space again.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)

    def _report_problem(self) -> None:
        if self._problem and not self._is_reported:
            self._is_reported = True
            say(
                self.trainer,
                f"TensorBoard's files in {self._folder} cannot be written ({self._problem}). "
                "Training goes on; their curves will have holes.",
                level="warning",
            )


def write_graph(folder: Path, graph: bytes, now: float) -> Path:
    """Write a file of events that holds a graph alone, as for a network without training; return its path.

    Args:
        folder: made where it is not there.
        graph: a serialized ``GraphDef``.
        now: seconds since 1970.

    Raises:
        OSError: where it cannot be written; then there is no such file.
    """
    descriptor, path = _new_file(folder, now)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(tfrecord_frame(each) for each in (file_version(now), graph_event(now, graph)))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


def _encoded(scalar: Scalar) -> bytes:
    return scalar_event(scalar.time, scalar.step, scalar.tag, scalar.value)


def _new_file(folder: Path, now: float) -> tuple[int, Path]:
    """Open a file that sorts behind those that are there: TensorBoard reads them in order of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    base = f"{_START}{int(now):010d}.{socket.gethostname()}"
    for number in range(1_000_000):
        path = folder / f"{base}.{number:06d}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND
            return os.open(path, flags, 0o644), path
        except FileExistsError:
            continue
    raise FileExistsError(f"{base} exists a million times")


def _png(image: Image) -> bytes:
    from PIL import Image as Picture

    pixels = image.pixels[:, :, 0] if image.pixels.shape[2] == 1 else image.pixels
    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, format="PNG")
    return file.getvalue()


_SESSION_STARTED = 1
"""``SessionLog.SessionStatus.START``."""
_COLORSPACES = {1: 1, 2: 2, 3: 3, 4: 4}
"""Channels → ``Summary.Image.colorspace``: gray, gray and alpha, RGB, RGBA."""


def file_version(time: float) -> bytes:
    """Return the first event of every file."""
    return double_field(1, time) + bytes_field(3, b"brain.Event:2")


def restart_event(time: float, step: int) -> bytes:
    """Return the event that lets TensorBoard hide what earlier files say of ``step`` and later ones."""
    return _event(time, step) + bytes_field(7, integer_field(1, _SESSION_STARTED))


def graph_event(time: float, graph: bytes) -> bytes:
    """Return the event of a serialized ``GraphDef``, which TensorBoard shows as the graph."""
    return _event(time, 0) + bytes_field(4, graph)


def scalar_event(time: float, step: int, tag: str, value: float) -> bytes:
    """Return one point of a curve."""
    content = bytes_field(1, tag.encode()) + float_field(2, value)
    return summary_event(time, step, bytes_field(1, content))


def image_event(time: float, step: int, tag: str, shape: tuple[int, int, int], png: bytes) -> bytes:
    """Return one image.

    Args:
        time: seconds since 1970.
        step: ``global_step``.
        tag: its name.
        shape: (height, width, channels).
        png: the encoded image.
    """
    height, width, channels = shape
    size = integer_field(1, height) + integer_field(2, width)
    picture = size + integer_field(3, _COLORSPACES[channels]) + bytes_field(4, png)
    return summary_event(time, step, bytes_field(1, bytes_field(1, tag.encode()) + bytes_field(4, picture)))


def summary_event(time: float, step: int, summary: bytes) -> bytes:
    """Return the event of a serialized ``Summary`` message."""
    return _event(time, step) + bytes_field(5, summary)


def _event(time: float, step: int) -> bytes:
    return double_field(1, time) + integer_field(2, step)
