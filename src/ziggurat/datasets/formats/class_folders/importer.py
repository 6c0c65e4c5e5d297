"""Importer for images in class folders, with or without split folders above them."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ziggurat.datasets.formats.class_folders.layout import (
    ClassPlace,
    class_places,
    guess_class_folders,
    label_files,
    listed_classes,
)
from ziggurat.datasets.formats.shared.exports import FOLDER_KEYS_NAME, read_keys
from ziggurat.datasets.formats.shared.folder_walk import FoundImage, ImageWalk, holds_images
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample, split_of
from ziggurat.errors import ConfigurationError, DataError
from ziggurat.records.schema import Schema

__all__ = ["ClassFolders"]


class ClassFolders(Importer):
    """A folder for each class; images may lie deeper in it."""

    name: ClassVar[str] = "class_folders"
    title: ClassVar[str] = "Class folders"
    least_by_default: ClassVar[int] = 2
    kinds: ClassVar[tuple[str, ...]] = ("image-classification", "image-to-image")
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(
            name="classes",
            type=str,
            default="folders",
            help="Whether folders are classes, or there are none and each image is its own target.",
            choices=("folders", "none"),
        ),
        ImporterOption(
            name="splits",
            type=str,
            default="auto",
            help="Whether the first folders are splits such as train and val; auto finds out by their names.",
            choices=("auto", "yes", "no"),
        ),
        ImporterOption(
            name="min_per_class",
            type=int,
            default=least_by_default,
            help="Classes with fewer images (to train on) are left out; unused where an export lists its classes.",
        ),
        ImporterOption(
            name="max_per_class",
            type=int,
            default=None,
            help="At most so many images of a class in each split, chosen by chance.",
        ),
        ImporterOption(name="seed", type=int, default=0, help="Decides which images chance chooses."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Recognize folders with images, and a folder with nothing but images."""
        return guess_class_folders(self.name, source)

    def obstacle(self, source: Path) -> str:
        """Name labels that no importer reads, where they lie with images."""
        found = next(label_files(source), "") if source.is_dir() and holds_images(source) else ""
        return f"no importer reads the labels in `{found}` with these images" if found else ""

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Walk through the folders; links to folders are entered once."""
        most, least = options["max_per_class"], options["min_per_class"]
        if least < 0 or (most is not None and most < max(least, 1)):
            raise ConfigurationError(
                "`min_per_class` is 0 or more, and `max_per_class` is not below it.",
                received=f"{least} and {most}",
                advice="Leave `max_per_class` out for no limit.",
            )
        if not source.is_dir():
            raise DataError("Class folders are read from a folder.", received=f"`{source}`")
        return _FlatScan(source, options) if options["classes"] == "none" else _ClassScan(source, options)


class _ClassScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        listed = listed_classes(source)
        self._texts: dict[str, str] | None = listed
        self._numbers = {folder: number for number, folder in enumerate(listed or ())}
        self._least = 0 if listed is not None else options["min_per_class"]
        self._dropped: set[str] = set()

    def __iter__(self) -> Iterator[Sample | Problem]:
        walk = ImageWalk(self._source)
        places = class_places(self._source, self._options["splits"])
        for place in places:
            yield from _loose_images(walk, place)
            for folder in place.classes:
                if place is places[0] and folder not in self._numbers:
                    yield from self._new_class(walk, place, folder)
                elif folder in self._numbers:
                    yield from self._samples(self._images(walk, place, folder), place, self._numbers[folder])
                else:
                    yield from self._unknown_class(walk, place, folder)
            if place is places[0]:
                self._require_classes()

    @property
    def schema(self) -> Schema:
        folders = list(self._numbers)
        texts = self._texts or {folder: folder.replace("_", " ") for folder in folders}
        plain = list(texts.values())
        names = [folder if plain.count(texts[folder]) > 1 else texts[folder] for folder in folders]
        if self._texts is not None:
            names = plain
        return Schema(kind="image-classification", class_names=tuple(names), details={"class_folders": folders})

    def _new_class(self, walk: ImageWalk, place: ClassPlace, folder: str) -> Iterator[Sample | Problem]:
        """Yield the samples of a class, which gets its number only when it has enough of them."""
        images = self._images(walk, place, folder)
        least = max(self._least, 1)
        first: list[FoundImage] = []
        while len(first) < least:
            found = next(images, None)
            if found is None:
                self._dropped.add(folder)
                is_asked = self._options["min_per_class"] != ClassFolders.least_by_default
                yield _small_class(place.path_of(folder), len(first), least, is_asked=is_asked)
                return
            if isinstance(found, Problem):
                yield replace(found, split=place.split, class_name=folder)
            else:
                first.append(found)
        number = self._numbers[folder] = len(self._numbers)
        yield from self._samples(iter(first), place, number)
        yield from self._samples(images, place, number)

    def _samples(
        self, images: Iterator[FoundImage | Problem], place: ClassPlace, number: int
    ) -> Iterator[Sample | Problem]:
        for found in images:
            if isinstance(found, Problem):
                yield replace(found, split=place.split, class_name=self.schema.class_names[number])
            else:
                path, size_bytes, key = found
                yield Sample(key=key or path, parts=(path,), label=number, split=place.split, size_bytes=size_bytes)

    def _images(self, walk: ImageWalk, place: ClassPlace, folder: str) -> Iterator[FoundImage | Problem]:
        found = exported_images(walk, self._source, place.path_of(folder))
        most = self._options["max_per_class"]
        return found if most is None else chosen_images(found, most, self._options["seed"], place.path_of(folder))

    def _unknown_class(self, walk: ImageWalk, place: ClassPlace, folder: str) -> Iterator[Problem]:
        is_small = folder in self._dropped
        reason = f"Its class {'is too small' if is_small else 'is not'} in the first split."
        for found in walk.images(place.path_of(folder)):
            if isinstance(found, FoundImage):
                why = (
                    "their class has too few images in the first split"
                    if is_small
                    else "the first split lacks their class"
                )
                yield Problem(
                    key=found.path,
                    kind="unknown-class",
                    reason=reason,
                    left_out=True,
                    why=why,
                    class_name=folder,
                    split=place.split,
                )

    def _require_classes(self) -> None:
        if len(self._numbers) < 2 and self._texts is None:
            raise DataError(
                "Class folders are at least two folders with enough images.",
                received=f"{len(self._numbers)} in `{self._source}` ({len(self._dropped)} too small)",
                advice="Name the folder above the classes, lower `min_per_class`, or set classes=none for images "
                "without classes. Folders named as splits, such as Train and Test, are classes with splits=no only.",
            )


class _FlatScan(Scan):
    """Images without classes: each is its own target."""

    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._by_split = options["splits"] != "no"

    def __iter__(self) -> Iterator[Sample | Problem]:
        empty = True
        for found in ImageWalk(self._source).images():
            if isinstance(found, Problem):
                yield found
                continue
            empty = False
            split = split_of(found.path) if self._by_split and "/" in found.path else ""
            yield Sample(key=found.path, parts=(found.path,), split=split, size_bytes=found.size_bytes)
        if empty:
            raise DataError("A source has images.", received=f"none in `{self._source}`")

    @property
    def schema(self) -> Schema:
        return Schema(kind="image-to-image", parts=("image",))


def _loose_images(walk: ImageWalk, place: ClassPlace) -> Iterator[Problem]:
    for found in walk.images(place.folder, nested=False):
        if isinstance(found, FoundImage):
            reason = "It lies in no class's folder."
            yield Problem(key=found.path, kind="no-label", reason=reason, left_out=True, split=place.split)
        elif found.kind != "other-files":
            yield found


def _small_class(path: str, count: int, least: int, *, is_asked: bool) -> Problem:
    """Return the problem of a class that is left out; a loss of its name unless the user set the limit."""
    reason = f"The class has {count} of the at least {least} images, and is left out."
    names = int(count > 0 and not is_asked)
    why = "they have fewer images than `min_per_class`"
    return Problem(key=path, kind="small-class", reason=reason, left_out=True, names=names, why=why if names else "")


def exported_images(walk: ImageWalk, source: Path, folder: str) -> Iterator[FoundImage | Problem]:
    """Yield the images of a class: first those that an export listed, with their keys, then all the others.

    Args:
        walk: through the source.
        source: the walk's root.
        folder: of the class, below the source.
    """
    listed: set[str] = set()
    for name, key in read_keys(source / folder / FOLDER_KEYS_NAME):
        path = f"{folder}/{name}"
        found = walk.image(path)
        if isinstance(found, FoundImage) and path not in listed:  # a deleted file leaves its line
            listed.add(path)
            yield found._replace(key=key)
    for found in walk.images(folder):
        if isinstance(found, Problem) or found.path not in listed:
            yield found


def chosen_images(
    images: Iterator[FoundImage | Problem], most: int, seed: int, folder: str
) -> Iterator[FoundImage | Problem]:
    """Yield at most so many images, in their order; each is as likely as any other to be among them.

    The choice depends on names and seed only: one more image changes at most one of those that are chosen.

    Args:
        images: of a class.
        most: how many at most.
        seed: decides which.
        folder: of the class, for the problem that says how many were left out.
    """
    kept: list[tuple[int, int, FoundImage]] = []
    count = 0
    for found in images:
        if isinstance(found, Problem):
            yield found
            continue
        ranked = (-_rank(seed, found.path), -count, found)
        count += 1
        if len(kept) < most:
            heapq.heappush(kept, ranked)
        else:
            heapq.heappushpop(kept, ranked)
    if count > most:
        reason = f"{most} of its {count} images {'was' if most == 1 else 'were'} chosen by chance."
        yield Problem(key=folder, kind="large-class", reason=reason, left_out=True)
    for _rank_of, _position, found in sorted(kept, key=lambda entry: -entry[1]):
        yield found


def _rank(seed: int, path: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{path}".encode(), digest_size=8).digest(), "big")
