"""Sources of image files: lists of files, class folders, and lists of files with labels.

Each source yields decoded images, the encoded bytes, or only the paths, so that a parallel map can do the decoding::

    flow = ImageFolder("flowers/train", shuffle=True, content="path")
    flow = MultiThreadMapData(flow, 4, lambda dp: [read_image(dp[0]), dp[1]])
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import cv2

from ziggurat.dataflow.image_codec import MAX_PIXELS, decode_image, encode_image, read_file, read_image
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DataError, UsageError

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "ImageFolder",
    "ImageFromFile",
    "ImageList",
    "decode_image",
    "encode_image",
    "read_image",
]

IMAGE_SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"]
)
"""File names that end like this, in any case, are taken for images in a folder."""

Content = Literal["image", "bytes", "path"]
_Paths = Iterable[str | os.PathLike[str]]


class _ImageSource(IndexedFlow):
    """What the sources of this module share: how a file becomes the first component."""

    def __init__(self, *, shuffle: bool, content: Content, channels: int, on_error: OnError | ErrorPolicy) -> None:
        super().__init__(shuffle=shuffle)
        if content not in ("image", "bytes", "path"):
            raise UsageError('`content` is one of "image", "bytes" and "path".', received=repr(content))
        self.content: Content = content
        self.channels: Any = channels
        self.policy = ErrorPolicy.of(on_error)

    def _load(self, path: str) -> Any:
        if self.content == "path":
            return path
        return read_file(path) if self.content == "bytes" else read_image(path, channels=self.channels)


class ImageFromFile(_ImageSource):
    """The images of a list of files: datapoints ``[image]``.

    Args:
        files: paths. The list is copied.
        channel: 3 for RGB, 1 for gray.
        resize: new size in pixels, one number or (height, width), interpolated bilinearly; None keeps the size.
        shuffle: a new random order in every pass.
        on_error: what happens with a file that cannot be used: "raise", "skip", "log", or an ``ErrorPolicy``.
        content: what the component is: "image", (H, W, channel) uint8; "bytes", the file as it is; or "path".
    """

    def __init__(
        self,
        files: _Paths,
        channel: int = 3,
        resize: int | Sequence[int] | None = None,
        shuffle: bool = False,
        *,
        on_error: OnError | ErrorPolicy = "raise",
        content: Content = "image",
    ) -> None:
        super().__init__(shuffle=shuffle, content=content, channels=channel, on_error=on_error)
        self.files = [os.fspath(file) for file in files]
        self.resize = (resize, resize) if isinstance(resize, int) else resize

    def __len__(self) -> int:
        return len(self.files)

    def key(self, index: int) -> str:
        """Return the path of a file."""
        return self.files[index]

    def datapoint(self, index: int) -> list[Any]:
        """Return one file."""
        loaded = self._load(self.files[index])
        if self.resize is None or self.content != "image":
            return [loaded]
        height, width = self.resize
        resized = cv2.resize(loaded, (width, height), interpolation=cv2.INTER_LINEAR)
        return [resized.reshape(height, width, self.channels)]


class ImageList(_ImageSource):
    """Files with labels: datapoints ``[image, label]``.

    Args:
        items: pairs of path and label; or a text file with a path and a whole number in each line, separated by spaces
            or tabs (the path itself may hold spaces). Empty lines are left out.
        folder: what paths are relative to; by default the current folder for pairs, that of the text file otherwise.
        shuffle: a new random order in every pass.
        channels: 3 for RGB, 1 for gray, 4 for RGB and alpha.
        on_error: what happens with a file that cannot be used: "raise", "skip", "log", or an ``ErrorPolicy``.
        content: what the first component is: "image", (H, W, channels) uint8; "bytes", the file as it is; or "path".

    Raises:
        DataError: where a line of the text file is no path and number.
    """

    def __init__(
        self,
        items: str | os.PathLike[str] | Iterable[tuple[str | os.PathLike[str], Any]],
        folder: str | os.PathLike[str] | None = None,
        shuffle: bool = False,
        *,
        channels: int = 3,
        on_error: OnError | ErrorPolicy = "raise",
        content: Content = "image",
    ) -> None:
        super().__init__(shuffle=shuffle, content=content, channels=channels, on_error=on_error)
        if isinstance(items, str | os.PathLike):
            folder = Path(items).parent if folder is None else folder
            items = _read_list(Path(items))
        base = "" if folder is None else os.fspath(folder)
        pairs = [(os.path.join(base, os.fspath(path)), label) for path, label in items]
        self.files = [path for path, _label in pairs]
        self.labels = [label for _path, label in pairs]

    def __len__(self) -> int:
        return len(self.files)

    def key(self, index: int) -> str:
        """Return the path of a file."""
        return self.files[index]

    def datapoint(self, index: int) -> list[Any]:
        """Return one file and its label."""
        return [self._load(self.files[index]), self.labels[index]]


class ImageFolder(ImageList):
    """A folder with a folder for each class: datapoints ``[image, label]``.

    Classes are numbered from 0 in the order of their names. All images in and below a class folder belong to it, in the
    order of their paths; hidden files and those with other suffixes than ``IMAGE_SUFFIXES`` are left out.

    Args:
        folder: the folder.
        shuffle: a new random order in every pass.
        channels: 3 for RGB, 1 for gray, 4 for RGB and alpha.
        on_error: what happens with a file that cannot be used: "raise", "skip", "log", or an ``ErrorPolicy``.
        content: what the first component is: "image", (H, W, channels) uint8; "bytes", the file as it is; or "path".

    Raises:
        DataError: where there are no class folders, or no images in them.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        shuffle: bool = False,
        *,
        channels: int = 3,
        on_error: OnError | ErrorPolicy = "raise",
        content: Content = "image",
    ) -> None:
        root = Path(folder)
        self.class_names = _class_names(root)
        pairs = [(path, label) for label, name in enumerate(self.class_names) for path in _images_below(root / name)]
        if not pairs:
            raise DataError(
                f"`{root}` has {len(self.class_names)} class folders and no image in them.",
                advice=f"Images are files that end in {', '.join(sorted(IMAGE_SUFFIXES))}.",
            )
        super().__init__(pairs, shuffle=shuffle, channels=channels, on_error=on_error, content=content)


def _class_names(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"`{root}` cannot be read as a folder of images: {error.strerror}.") from error


def _images_below(folder: Path) -> list[str]:
    """Return the paths of images, sorted; links to folders are followed once."""
    found: list[str] = []
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
        if real not in seen:
            found += [os.path.join(place, name) for name in files if _is_image(name)]
        seen.add(real)
    return sorted(found)


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES and not name.startswith(".")


def _read_list(path: Path) -> list[tuple[str, int]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The list `{path}` cannot be read as text in UTF-8: {str(error).rstrip('.')}.") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            pairs.append(_read_line(line, f"{path}:{number}"))
    return pairs


def _read_line(line: str, place: str) -> tuple[str, int]:
    words = line.strip().rsplit(maxsplit=1)
    try:
        name, label = words
        return name, int(label)
    except ValueError:
        raise DataError(
            "Each line of a list of images is a path and a whole number.", received=f"{line.strip()!r} in {place}"
        ) from None
