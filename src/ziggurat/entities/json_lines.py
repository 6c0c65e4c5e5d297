"""Files of a job folder with one JSON object per line: append, read, and replace as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ziggurat.atomic import atomic_write_text
from ziggurat.errors import StorageError

__all__ = ["append_line", "encoded_line", "read_lines", "replace_lines"]


def encoded_line(content: Mapping[str, Any]) -> bytes:
    """Return an object as a line.

    Raises:
        ValueError: if a number in it is NaN or infinite, which JSON does not have.
    """
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file; a missing file has none. Incomplete lines of a killed process are skipped."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    lines = []
    for line in data.splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            lines.append(content)
    return lines


def append_line(path: Path, content: Mapping[str, Any], what: str, *, durable: bool = True) -> None:
    """Append an object to a file, which is created if it is missing; an incomplete last line is ended first.

    Args:
        path: of the file.
        content: JSON values.
        what: content of the file, the subject of the sentence of an error.
        durable: whether to wait until the line is on the disk.

    Raises:
        StorageError: if it cannot be written.
    """
    data = encoded_line(content)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(
            f"{what} must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or repair the folder's rights, then resume the job.",
        ) from error


def replace_lines(path: Path, lines: Iterable[Mapping[str, Any]], what: str) -> None:
    """Replace a file by these objects, atomically.

    Raises:
        StorageError: if it cannot be written.
    """
    atomic_write_text(path, b"".join(map(encoded_line, lines)).decode(), what)
