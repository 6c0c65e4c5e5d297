"""Frames of a short video file, read by OpenCV's FFmpeg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2

from ziggurat.dataflow.image_codec import MAX_PIXELS
from ziggurat.errors import DatapointError

__all__ = ["LONGEST_S", "MOST_FRAMES", "VIDEO_SUFFIXES", "VideoFrame", "is_video", "video_frames"]

VIDEO_SUFFIXES: Final = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"})
"""Endings of files that are taken for videos, in lower case."""

LONGEST_S: Final = 300.0
"""Seconds of a video that are read at most; longer ones are refused."""

MOST_FRAMES: Final = 100
"""Frames that are taken of a video at most."""

_BEGINNINGS: Final = (b"\x1aE\xdf\xa3", b"\0\0\1\xba", b"\0\0\1\xb3")
"""First bytes of Matroska and WebM, and of MPEG's two forms."""

_ATOMS: Final = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})
"""First atoms of MPEG-4 and QuickTime files."""

_APART_S: Final = 0.5
_JPEG_QUALITY: Final = 95


@dataclass(frozen=True)
class VideoFrame:
    """One frame.

    Args:
        time_s: since the beginning of the video.
        content: the image, JPEG.
    """

    time_s: float
    content: bytes

    def name(self, file: str) -> str:
        """Return what names it, such as ``clip.mp4 0:01.50``."""
        minutes, seconds = divmod(round(self.time_s * 100), 6000)
        return f"{file} {minutes}:{seconds / 100:05.2f}"


def is_video(file: str | os.PathLike[str]) -> bool:
    """Return whether a file is taken for a video, by its ending."""
    return Path(file).suffix.lower() in VIDEO_SUFFIXES


def video_frames(file: str | os.PathLike[str], most: int = MOST_FRAMES) -> Iterator[VideoFrame]:
    """Yield frames of a video, the first one and others at equal distances: half a second, or more in a longer video.

    Args:
        file: its path.
        most: how many frames at most.

    Raises:
        DatapointError: where it is no video that can be read, or too large or too long.
    """
    name = os.fspath(file)
    _check_beginning(name)
    # What is wrong is said by an error, and not by messages of the libraries.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)
    video = cv2.VideoCapture(name, cv2.CAP_FFMPEG)
    try:
        rate = video.get(cv2.CAP_PROP_FPS)
        if not video.isOpened() or not rate > 0:
            raise DatapointError(name, "it is no video that OpenCV's FFmpeg reads.")
        width, height = video.get(cv2.CAP_PROP_FRAME_WIDTH), video.get(cv2.CAP_PROP_FRAME_HEIGHT)
        if width * height > MAX_PIXELS:
            raise DatapointError(name, f"its frames have {width:.0f} × {height:.0f} pixels.")
        length_s = max(video.get(cv2.CAP_PROP_FRAME_COUNT), 0) / rate
        if length_s > LONGEST_S:
            raise _too_long(name)
        apart_s = max(_APART_S, length_s / most)
        count, number = 0, 0
        while count < most and video.grab():
            time_s = number / rate
            if time_s > LONGEST_S:
                raise _too_long(name)
            number += 1
            if time_s + 0.5 / rate < count * apart_s:
                continue
            is_there, frame = video.retrieve()
            if not is_there:
                break
            count += 1
            content = cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1].tobytes()
            yield VideoFrame(time_s, content)
        if not count:
            raise DatapointError(name, "no frame of it can be decoded.")
    except cv2.error as error:
        raise DatapointError(name, f"OpenCV cannot decode it ({error.err}).") from None
    finally:
        video.release()


def _check_beginning(name: str) -> None:
    """Refuse what is no container of frames: FFmpeg also reads playlists, which name other files and addresses.

    Raises:
        DatapointError: where it begins as no container does.
    """
    try:
        with open(name, "rb") as file:
            first = file.read(12)
    except OSError as error:
        raise DatapointError(name, f"it cannot be read: {error.strerror}.") from None
    is_avi = first[:4] == b"RIFF" and first[8:] == b"AVI "
    if first[4:8] not in _ATOMS and not is_avi and not first.startswith(_BEGINNINGS):
        raise DatapointError(name, "it is no MPEG-4, QuickTime, Matroska, WebM, AVI or MPEG file.")


def _too_long(name: str) -> DatapointError:
    return DatapointError(name, f"it is longer than {LONGEST_S / 60:.0f} minutes; cut a part out of it.")
