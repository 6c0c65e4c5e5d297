"""Frames of a video as files: it is decoded in a process of its own, because it may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.video import video_frames
from ziggurat.errors import DatapointError

__all__ = ["write_frames"]


def write_frames(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write the frames of a video as JPEG files.

    Args:
        request: ``file``; ``name``, which stands for it; ``folder``, which gets them; ``most`` frames.

    Returns:
        ``frames``: ``file`` and ``name`` of each, in their order.

    Raises:
        DatapointError: where it cannot be read.
        StorageError: where they cannot be written.
    """
    folder, found = Path(request["folder"]), []
    try:
        for number, frame in enumerate(video_frames(request["file"], request["most"])):
            file = folder / f"{number}.jpg"
            with storage_errors(file):
                file.write_bytes(frame.content)
            found.append({"file": str(file), "name": frame.name(request["name"])})
    except DatapointError as error:
        raise DatapointError(request["name"], error.reason) from None
    return {"frames": found}
