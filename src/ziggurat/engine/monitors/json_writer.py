"""Monitor that writes ``stats.json``: the scalars of each epoch, one JSON object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.engine.monitor import Monitor, Scalar
from ziggurat.engine.monitors.binding import NeedsFolder, missing_folder
from ziggurat.engine.monitors.numbers import from_json, to_json
from ziggurat.errors import StorageError
from ziggurat.layout import JobFolder

__all__ = ["JSONWriter"]

_WHAT: Final = "The scalars of each epoch"


class JSONWriter(Monitor, NeedsFolder):
    """Appends one line an epoch: ``{"epoch_num": 3, "global_step": 1407, "cost": 0.31, …}``, newest value of each tag.

    Appended, never rewritten, so that a long training costs no more than a short one. NaN and infinities are strings.
    When a training is resumed, lines of steps that it has not done are dropped, atomically.

    Args:
        path: the file; where it is left out, ``place()`` gives the job's ``stats.json``.

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
        data = b"".join(map(_encoded, kept))
        if path.is_file() and path.read_bytes() != data:
            atomic_write_text(path, data.decode(), _WHAT)

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
        _append(self._file(), _encoded(line))

    def _file(self) -> Path:
        if self._path is None:
            raise missing_folder(self)
        return self._path


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    lines = []
    for line in path.read_bytes().splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and "global_step" in content:
            lines.append(content)
    return lines


def _append(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(
            f"{_WHAT} must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights, then resume the job.",
        ) from error
