"""File discovery for COCO datasets: JSON files, the split of each, and the images that it names."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.coco.json_stream import looks_like_coco
from ziggurat.datasets.formats.shared.detection_files import ANNOTATION_FOLDERS, folders_below, split_of, split_within
from ziggurat.errors import DataError

__all__ = ["PictureFinder", "annotation_files", "json_files", "root_of", "split_of_file"]

_PICTURE_FOLDERS = ("images", "image", "imgs", "JPEGImages", "data")


def root_of(source: Path) -> Path:
    """Return the folder that keys are relative to: of one JSON file, the one that has its images too."""
    if source.is_dir():
        return source
    folder = source.absolute().parent
    return folder.parent if folder.name.lower() in ANNOTATION_FOLDERS else folder


def annotation_files(source: Path, chosen: Sequence[str] = ()) -> list[str]:
    """Return the JSON files of a source, below its root with ``/``, sorted.

    Where some are called ``instances…``, the others (captions, key points) are left aside.

    Raises:
        DataError: where one of ``chosen`` is not there.
    """
    root = root_of(source)
    for name in chosen:
        if not (root / name).is_file():
            raise DataError("`annotations` names JSON files of the source.", received=f"`{name}`, not in `{root}`")
    if chosen:
        return list(chosen)
    if source.is_file():
        return [source.absolute().relative_to(root).as_posix()]
    found = [path.relative_to(root).as_posix() for path in json_files(root) if looks_like_coco(path)]
    return [path for path in found if "instances" in posixpath.basename(path).lower()] or found


def json_files(source: Path) -> list[Path]:
    """Return the JSON files of a source, down to two folders deep."""
    if source.is_file():
        return [source] if source.suffix.lower() == ".json" else []
    return [source / path for folder in folders_below(source, 2) for path in _json_files(source, folder)]


def split_of_file(path: str) -> str:
    """Return the split that a JSON file means by its own name, or by its folder's."""
    folder, name = posixpath.split(path)
    return split_within(posixpath.splitext(name)[0]) or split_of(posixpath.basename(folder))


class PictureFinder:
    """Finds the images that one JSON file names.

    Args:
        root: of the source.
        json_path: the JSON file, below it.
        split: that the file means, or empty.
        folder: where the images are, below the root; empty to look in likely folders.
    """

    def __init__(self, root: Path, json_path: str, split: str, folder: str = "") -> None:
        self._root = root
        self._folders = [folder.strip("/")] if folder else _likely_folders(root, json_path, split)

    def find(self, file_name: Any) -> tuple[str, int] | None:
        """Return path below the root and size in bytes of an image; None where it is not there.

        No path leaves the source: of an absolute one, the file's name alone is looked for.
        """
        if not isinstance(file_name, str) or not file_name:
            return None
        name = file_name.replace("\\", "/")
        name = posixpath.basename(name) if name.startswith("/") or name[1:3] == ":/" else name
        for place, folder in enumerate(self._folders):
            path = posixpath.normpath(posixpath.join(folder, name))
            size = None if path.startswith("..") else _file_size(self._root / path)
            if size is not None:
                if place:  # the next one is most likely there too
                    self._folders.insert(0, self._folders.pop(place))
                return path, size
        return None


def _likely_folders(root: Path, json_path: str, split: str) -> list[str]:
    own = posixpath.dirname(json_path)
    stem = posixpath.splitext(posixpath.basename(json_path))[0].lower()
    others = folders_below(root, 2)
    same_word = [each for each in others if each and stem.endswith(posixpath.basename(each).lower())]
    same_split = [each for each in others if split and split_of(posixpath.basename(each)) == split]
    inner = [posixpath.join(each, name) for each in same_split for name in _PICTURE_FOLDERS]
    usual = [posixpath.join(each, name) for each in (own, "") for name in _PICTURE_FOLDERS]
    # A folder of another split may have images of the same names; it must not come before the split's own.
    foreign = [each for each in others if split and split_of(posixpath.basename(each)) not in ("", split)]
    late = [each for each in others if each not in foreign]
    ordered = [own, *same_word, *inner, *same_split, *usual, *late]
    return [each for each in dict.fromkeys(ordered) if (root / each).is_dir()]


def _json_files(root: Path, folder: str) -> list[str]:
    try:
        names = sorted(entry.name for entry in os.scandir(root / folder) if entry.name.lower().endswith(".json"))
    except OSError:
        return []
    return [posixpath.join(folder, name) for name in names]


def _file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):  # a name with a zero or half a character
        return None
