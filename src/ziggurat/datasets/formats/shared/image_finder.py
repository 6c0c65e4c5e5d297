"""Where the images are that one file of labels names, and which split that file means."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.detection_import import folders_below, split_of, split_within
from ziggurat.datasets.formats.shared.file_finder import FileFinder

__all__ = ["image_finder", "split_of_file"]

_IMAGE_FOLDERS: Final = ("images", "image", "imgs", "JPEGImages", "data")


def split_of_file(path: str) -> str:
    """Return the split that a file of labels means by its own name, or by its folder's."""
    folder, name = posixpath.split(path)
    return split_within(posixpath.splitext(name)[0]) or split_of(posixpath.basename(folder))


def image_finder(root: Path, labels: str, split: str, folder: str = "") -> FileFinder:
    """Return what finds the images that one file of labels names.

    Args:
        root: of the source.
        labels: the file of labels, below it.
        split: split that the file names; empty if it names none.
        folder: where the images are, below the root; empty to look in likely folders.
    """
    if folder:
        return FileFinder(root, [folder.strip("/")])
    own = posixpath.dirname(labels)
    stem = posixpath.splitext(posixpath.basename(labels))[0].lower()
    others = folders_below(root, 2)
    same_word = [each for each in others if each and stem.endswith(posixpath.basename(each).lower())]
    same_split = [each for each in others if split and split_of(posixpath.basename(each)) == split]
    inner = [posixpath.join(each, name) for each in same_split for name in _IMAGE_FOLDERS]
    usual = [posixpath.join(each, name) for each in (own, "") for name in _IMAGE_FOLDERS]
    # A folder of another split may have images of the same names, which are others.
    foreign = [each for each in others if split and split_of(posixpath.basename(each)) not in ("", split)]
    ordered = [each for each in (own, *same_word, *inner, *same_split, *usual, "") if each not in foreign]
    folders = [each for each in dict.fromkeys(ordered) if (root / each).is_dir()]
    return FileFinder(root, folders, without=foreign)
