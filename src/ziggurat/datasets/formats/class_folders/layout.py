"""Location of the class folders in a source: below split folders, or at the top level."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.folder_walk import folders_in, holds_pictures, split_folders
from ziggurat.errors import DataError

__all__ = ["CLASSES_NAME", "ClassPlace", "class_places", "listed_classes", "write_classes"]

CLASSES_NAME: Final = "ziggurat-classes.json"
"""File of an export that names all classes in order, those without images too."""


@dataclass(frozen=True)
class ClassPlace:
    """A folder whose folders are classes.

    Args:
        split: that it stands for; empty where the source has no splits.
        folder: below the source; empty for the source itself.
        classes: names of the folders in it, sorted.
    """

    split: str
    folder: str
    classes: tuple[str, ...]

    def path_of(self, name: str) -> str:
        """Return the path of a class's folder below the source."""
        return f"{self.folder}/{name}" if self.folder else name


def class_places(source: Path, splits: str) -> list[ClassPlace]:
    """Return the folders of the splits, ``train`` first; the source itself where it has none.

    Args:
        source: a folder.
        splits: ``yes``, ``no``, or ``auto``: they are splits where train stands beside val or test, or where every
            folder with images has the name of a split, and there are several or they have folders with images.

    Raises:
        DataError: where there must be splits and are none.
    """
    named = [] if splits == "no" else split_folders(source)
    if splits == "yes" and not named:
        raise DataError("Folders of splits are named train, val or test.", received=f"none in `{source}`")
    if named and (splits == "yes" or _are_splits(source, named)):
        return [ClassPlace(split, name, tuple(folders_in(source / name))) for split, name in named]
    return [ClassPlace("", "", tuple(folders_in(source)))]


def listed_classes(source: Path) -> dict[str, str] | None:
    """Return folder → name of the classes that an export lists; None where the source is none of our exports.

    Raises:
        DataError: where the list is damaged.
    """
    path = source / CLASSES_NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
        found = {entry["folder"]: entry["name"] for entry in content["classes"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"`{CLASSES_NAME}` lists the classes of an export.",
            received=f"{type(error).__name__} in `{path}`",
            advice="Delete it to take the folders' names as classes.",
        ) from None
    if not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise DataError(f"`{CLASSES_NAME}` has texts for folders and names.", received=f"others in `{path}`")
    return found


def write_classes(folder: Path, classes: Mapping[str, str]) -> None:
    """Write the list of an export's classes, folder → name."""
    content = {"version": 1, "classes": [{"folder": name, "name": text} for name, text in classes.items()]}
    folder.joinpath(CLASSES_NAME).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _are_splits(source: Path, named: list[tuple[str, str]]) -> bool:
    names = {name for _, name in named}
    found = {split for split, _ in named}
    others = (name for name in folders_in(source) if name not in names)
    if not any(holds_pictures(source / name / inner) for name in names for inner in folders_in(source / name)[:10]):
        # Images right in Train and Test have no classes; a class called train stands beside others.
        is_split = len(found) > 1 and not any(holds_pictures(source / name) for name in others)
        return is_split or source.joinpath(CLASSES_NAME).is_file()
    return ("train" in found and len(found) > 1) or not any(holds_pictures(source / name) for name in others)
