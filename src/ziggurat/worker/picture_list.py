"""Input images of a prediction job: a folder, or a text file that lists images and their labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.errors import DataError
from ziggurat.records.offered_folders import check_file

__all__ = ["NO_LABEL", "PictureList", "list_pictures"]

NO_LABEL: Final = -1

_ENDINGS: Final = "|".join(re.escape(suffix) for suffix in sorted(IMAGE_SUFFIXES))
_WITH_LABEL: Final = re.compile(rf"(.*(?:{_ENDINGS}))(?:\s*[,\t]\s*|\s+)(\S.*)", re.IGNORECASE)
_WITH_NUMBER: Final = re.compile(r"(.*\S)\s+([0-9]+)")
_ARCHIVES: Final = (".zip", ".tar", ".gz", ".bz2", ".tgz", ".xz")


@dataclass(frozen=True)
class PictureList:
    """Images in their order.

    Args:
        keys: what names each: its path below the folder, or as the list has it.
        files: its path.
        labels: its class number, or -1 where it is not known.
    """

    keys: Sequence[str]
    files: Sequence[str]
    labels: Sequence[int]


def list_pictures(source: str, image_folder: str, class_names: Sequence[str], limit: int) -> PictureList:
    """Return the images of a source.

    Args:
        source: a folder, of which every image at any depth counts, in the order of names; an image; or a text file
            with a path in each line, and after it, where it is known, the label: a class number or a name.
        image_folder: where relative paths of a list begin; empty for the folder of the list.
        class_names: by class number.
        limit: how many at most; 0 for all.

    Raises:
        DataError: where there is none, or a label of the list is no class; the line is named.
    """
    path = Path(source)
    if path.is_dir():
        found = [(name, str(path / name), NO_LABEL) for name in _below(path)]
    elif not path.is_file() or path.name.lower().endswith(_ARCHIVES):
        raise DataError(
            "Images come from a folder or a text file with a path in each line.",
            received=source,
            advice="Unpack an archive first; check the path.",
        )
    elif path.suffix.lower() in IMAGE_SUFFIXES:
        found = [(path.name, source, NO_LABEL)]
    else:
        root = Path(image_folder) if image_folder else path.parent
        found = [(name, _listed(root / name, path), label) for name, label in _lines(path, class_names)]
    found = found[:limit] if limit else found
    if not found:
        raise DataError("There is at least one image to predict for.", received=f"none in {source}")
    return PictureList(*(list(part) for part in zip(*found, strict=True)))


def _listed(file: Path, source: Path) -> str:
    """Return a path that a list names, which may lead anywhere.

    Raises:
        DataError: where it leads out of the folders that a studio offers.
    """
    try:
        check_file(file)
    except PermissionError as error:
        raise DataError(
            "A list names images below the folders that this studio offers.",
            received=f"`{file}` in {source}: {error.strerror}",
            advice="Take the line out, or let an admin offer the folder.",
        ) from None
    return str(file)


def _below(folder: Path) -> Iterator[str]:
    """Yield the images below a folder by name; what is hidden is left out, and folders behind links are not read."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES:
                yield os.path.relpath(os.path.join(place, name), folder)


def _lines(path: Path, class_names: Sequence[str]) -> Iterator[tuple[str, int]]:
    numbers = {name: number for number, name in enumerate(class_names)}
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for count, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            name, label = _parts(text)
            yield name, NO_LABEL if label is None else _class_number(label, numbers, f"{path}, line {count}")


def _parts(text: str) -> tuple[str, str | None]:
    """Return path and label of a line. A path may hold spaces; a line that ends like an image has no label."""
    if os.path.splitext(text)[1].lower() in IMAGE_SUFFIXES:
        return text, None
    found = _WITH_LABEL.fullmatch(text) or _WITH_NUMBER.fullmatch(text)
    return (found[1], found[2].strip()) if found else (text, None)


def _class_number(label: str, numbers: dict[str, int], place: str) -> int:
    number = int(label) if label.isascii() and label.isdigit() else numbers.get(label)
    if number is None or number >= len(numbers):
        raise DataError(
            f"A label is a class number from 0 to {len(numbers) - 1}, or the name of a class of the model.",
            received=f"`{label}` in {place}",
            advice="Mend the line, or leave labels out.",
        )
    return number
