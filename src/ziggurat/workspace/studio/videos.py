"""Short videos for prediction: their frames, decoded in a process of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO, Final

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.video import MOST_FRAMES, is_video
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.errors import DataError, NetworkCodeError, UsageError
from ziggurat.workspace.tasks import Tasks

__all__ = ["MOST_VIDEOS", "frames_of_file", "frames_of_upload", "is_video"]

MOST_VIDEOS: Final = 10
"""Of one request."""

VIDEO_BYTES: Final = 256 << 20
"""No video that is sent or named is larger."""

_TIME_LIMIT_S: Final = 120.0


def frames_of_upload(tasks: Tasks, name: str, file: IO[bytes]) -> list[tuple[str, bytes]]:
    """Return name and content of the frames of a video that was sent.

    Args:
        tasks: short processes.
        name: of the file.
        file: its content.

    Raises:
        UsageError: where it is too large.
        DataError: where it is no video that can be read, or reading it takes too long.
    """
    _check_size(name, file.seek(0, os.SEEK_END))
    file.seek(0)
    with temporary_folder("video") as folder:
        kept = Path(folder) / f"video{Path(name).suffix.lower()}"
        with storage_errors(kept), kept.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        return frames_of_file(tasks, name, kept)


def frames_of_file(tasks: Tasks, name: str, file: Path) -> list[tuple[str, bytes]]:
    """Return name and content of the frames of a video on this machine; see ``frames_of_upload``.

    Args:
        tasks: short processes.
        name: by which a person knows it.
        file: where it is.
    """
    _check_size(name, file.stat().st_size)
    with temporary_folder("frames") as folder:
        try:
            found = tasks.video_frames(file, Path(folder), name, MOST_FRAMES, time_limit_s=_TIME_LIMIT_S)
        except NetworkCodeError as error:
            if "time_limit_s" not in (error.details or {}):
                raise
            raise DataError(
                f"The frames of the video `{name}` cannot be read within {_TIME_LIMIT_S:g} seconds.",
                advice="Cut a part out of it, or convert it to a smaller size.",
            ) from error
        return [(each["name"], Path(each["file"]).read_bytes()) for each in found["frames"]]


def _check_size(name: str, size_bytes: int) -> None:
    if size_bytes > VIDEO_BYTES:
        raise UsageError(
            f"The video `{name}` has {size_bytes >> 20} MiB; {VIDEO_BYTES >> 20} MiB is the most.",
            advice="Cut a part out of it.",
        )
