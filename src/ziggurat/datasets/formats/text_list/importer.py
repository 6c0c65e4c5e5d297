"""Importer for image lists: text files with a path and a class, or values to predict, on each line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from ziggurat.datasets.formats.shared.exports import ExportedKeys, exported_schema
from ziggurat.datasets.formats.shared.folder_walk import has_image_name
from ziggurat.datasets.formats.shared.numbered_classes import BACKGROUND
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import (
    CLASS_NUMBER,
    OTHER_LABEL,
    Labels,
    ListLine,
    SeenKeys,
    encoding_of,
    encoding_problems,
    is_number,
    no_valid_lines,
    parse_line,
    read_class_names,
    read_lines,
    survey,
)
from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import COUNTED_FROM_ONE, SPLIT_NAMES, SPLITS, Problem, Sample
from ziggurat.datasets.sources import came_from_outside, public_uri
from ziggurat.datasets.sources.web import WebClient
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema

__all__ = ["TextList"]

_LABEL_FILES: Final = ("labels.txt", "classes.txt")
_SUFFIXES: Final = ("", ".txt", ".lst", ".list", ".tsv", ".csv")
_HEAD: Final = 50  # lines that a guess looks at

_LOOKED_FOR: Final = 100  # paths; none of them on disk means that the folder is wrong
_MOST_BYTES: Final = 512 * 1024**2  # of an image from the web
_TIMEOUT_S: Final = 30.0


class TextList(Importer):
    """Text files with a path and a label in each line."""

    name: ClassVar[str] = "text_list"
    title: ClassVar[str] = "List of images"
    kinds: ClassVar[tuple[str, ...]] = ("image-classification", "image-regression")
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(name="train", type=str, default="", help="List of the training split; by default train.txt."),
        ImporterOption(name="val", type=str, default="", help="List of the validation split; by default val.txt."),
        ImporterOption(name="test", type=str, default="", help="List of the test split; by default test.txt."),
        ImporterOption(
            name="labels", type=str, default="", help="File with a class name a line; by default labels.txt, if there."
        ),
        ImporterOption(
            name="folder", type=str, default="", help="What stands before relative paths; by default the list's folder."
        ),
        ImporterOption(name="urls", type=bool, default=False, help="Whether paths may be addresses of the web."),
        ImporterOption(
            name="kind",
            type=str,
            default="auto",
            help="Whether numbers are classes or values to be predicted; auto looks at the first list.",
            choices=("auto", "image-classification", "image-regression"),
        ),
        ImporterOption(
            name="first_number",
            type=str,
            default="guess",
            help="Number of the first class in the file of names; by default the lists tell.",
            choices=("guess", "0", "1"),
        ),
        ENCODING_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        """Recognize lists by the paths in their first lines."""
        lists = _split_lists(source, {}) if source.is_dir() else [("", source)]
        if not lists or lists[0][1].suffix.lower() not in _SUFFIXES:
            return None
        path = lists[0][1]
        lines = [parse_line(text or "") for _, text in islice(read_lines(path), _HEAD)]
        valid = [line for line in lines if line is not None and _is_of_image(line)]
        if not valid or len(valid) < 0.8 * len(lines):
            return None
        images = ListImages(path, source, "", urls=True)
        is_there = any(images.is_there(line.path) for line in valid)
        plain = all(len(line.values) == 1 and not _is_fraction(line.values[0]) for line in valid)
        return Guess(
            format=self.name,
            confidence=0.88 if is_there else 0.35,
            reason=f"`{path.name}` has paths of images and {'classes' if plain else 'values'}",
            kind="image-classification" if plain else "image-regression",
            options={"urls": True} if all(line.path.startswith(("http://", "https://")) for line in valid) else {},
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Read the lists; images are not looked for, but those of the first lines, whose folder may be wrong."""
        return _ListScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads files, and addresses of the web."""
        return UrlPartReader(source if source.is_dir() else source.parent)


class _ListScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        self._lists = _split_lists(source, options)
        if not self._lists:
            raise DataError(
                f"`{self._source}` is no list, and has no train.txt.",
                advice="Name the list itself, or set the option `train`.",
            )
        self._labels: Labels | None = None
        self._seen = SeenKeys()
        self._labeled = SeenKeys()
        self._encoding = options["encoding"]

    def __iter__(self) -> Iterator[Sample | Problem]:
        named = self._file_of_names()
        for path in [*(path for _, path in self._lists), *([named] if named else [])]:
            yield from encoding_problems(path.name, encoding_of(path, self._encoding), self._encoding)
        names = read_class_names(named, self._encoding) if named else None
        first = self._lists[0][1]
        labels = survey((line for _, line in self._parsed(first)), names, self._options["kind"])
        if labels is None:
            raise no_valid_lines(first)
        if labels.form == "number" and names is not None and named is not None:
            labels = replace(labels, first=self._first_number(names))
            if labels.first and self._options["first_number"] == "guess":
                reason = (
                    f"The lists have class {len(names)} and no class 0, and `{named.name}` has {len(names)} names: "
                    "they are taken as counted from 1. The option `first_number` says otherwise."
                )
                yield Problem(key=named.name, kind=COUNTED_FROM_ONE, reason=reason)
        elif labels.marks > 1 or (labels.marks and len(names or ()) == labels.width):
            known = names if len(names or ()) == labels.width else map(str, range(labels.width))
            labels = replace(labels, names=tuple(known or ()))
        self._labels = labels
        for split, path in self._lists:
            yield from self._read(split, path, self._labels)

    @property
    def schema(self) -> Schema:
        labels = self._labels
        if labels is None or labels.form == "values":
            details = {"values": labels.width if labels else 0}
            return Schema(kind="image-regression", class_names=labels.names if labels else (), details=details)
        return Schema(kind="image-classification", class_names=labels.names)

    def _read(self, split: str, path: Path, labels: Labels) -> Iterator[Sample | Problem]:
        images = ListImages(path, self._source, self._options["folder"], urls=self._options["urls"])
        images.require_some(line.path for _, line in self._parsed(path) if line is not None)
        keys = ExportedKeys(path.with_suffix(".keys.jsonl"))
        is_empty = True
        for number, line in self._parsed(path):
            place = f"{path.name}:{number}"
            if line is None:
                yield _bad_line(place, "It is not a path and a label.", split)
                continue
            try:
                label = labels.label(line)
            except ValueError as error:
                yield _bad_line(place, f"It must be {error}.", split)
                continue
            except KeyError as error:
                name = str(error.args[0])[:80]
                reason = f"There is no class {name!r}; there are {len(labels.names)} classes."
                yield Problem(
                    key=place, kind="unknown-class", reason=reason, left_out=True, class_name=name, split=split
                )
                is_empty = False
                continue
            is_empty = False
            yield self._sample(images, keys, line.path, label, split, place=place)
        if is_empty:
            raise no_valid_lines(path)

    def _sample(
        self, images: ListImages, keys: ExportedKeys, path: str, label: Any, split: str, *, place: str
    ) -> Sample | Problem:
        try:
            address, key = images.address(path)
        except ValueError as error:
            return _bad_line(place, str(error), split)
        key = keys.key(key)
        is_other = self._labeled.is_new(f"{key}\n{label}")
        if not self._seen.is_new(key):
            reason = f"`{key}` is in the lists already; the first line counts."
            kind, why = ("other-label", OTHER_LABEL) if is_other else ("duplicate-key", "")
            return Problem(key=place, kind=kind, reason=reason, left_out=True, why=why, split=split)
        return Sample(key=key, parts=(address,), label=label, split=split)

    def _file_of_names(self) -> Path | None:
        folder = self._source if self._source.is_dir() else self._source.parent
        if self._options["labels"]:
            return folder / self._options["labels"]
        found = [folder / name for name in _LABEL_FILES if (folder / name).is_file()]
        return found[0] if found and found[0] != self._source else None

    def _first_number(self, names: Sequence[str]) -> int:
        """Return the number that the lists have for the first name.

        Raises:
            DataError: where they may count from 0 as well as from 1.
        """
        if self._options["first_number"] != "guess":
            return int(self._options["first_number"])
        found = [line.values[0] for _, path in self._lists for _, line in self._parsed(path) if line is not None]
        numbers = {int(value) for value in found if CLASS_NUMBER.fullmatch(value)}
        if not numbers or 0 in numbers or names[0].strip(" _").lower() in BACKGROUND or self._is_ours(names):
            return 0
        if max(numbers) == len(names):
            return 1
        raise DataError(
            "It is not clear whether the lists count the classes from 0 or from 1.",
            received=f"numbers from {min(numbers)} to {max(numbers)} for {len(names)} names",
            advice=f"Set the option `first_number` to 0, where 0 stands for `{names[0]}`, or to 1, where 1 does.",
            details={"field": "options.first_number"},
        )

    def _is_ours(self, names: Sequence[str]) -> bool:
        """Say whether the lists were exported with these names; then they count from 0."""
        own = exported_schema(self._source if self._source.is_dir() else self._source.parent)
        return own is not None and len(own.class_names) == len(names)

    def _parsed(self, path: Path) -> Iterator[tuple[int, ListLine | None]]:
        for number, text in read_lines(path, self._encoding):
            yield number, None if text is None else parse_line(text)


def _split_lists(source: Path, options: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return (split, list) of a source, ``train`` first; the split is empty where there is one list for all."""
    folder = source if source.is_dir() else source.parent
    named = {split: [folder / options[split]] for split in SPLITS if options.get(split)}
    if not source.is_dir():
        return [
            ("train" if named else "", source),
            *((split, path) for split in SPLITS for path in named.get(split, ())),
        ]
    found: dict[str, list[Path]] = {}
    for name, split in SPLIT_NAMES.items():
        path = next((path for path in (folder / f"{name}.txt", folder / name) if path.is_file()), None)
        if split not in named and path is not None:
            found.setdefault(split, []).append(path)
    named |= found
    if named:
        return [(split, path) for split in SPLITS for path in named.get(split, ())]
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in _LABEL_FILES]
    for suffix in (".txt", ""):
        others = [path for path in files if path.suffix == suffix and not path.name.startswith(".")]
        others = [path for path in others if suffix or _begins_with_a_image(path)]
        if others:
            return [("", others[0])] if len(others) == 1 else []
    return []


def _begins_with_a_image(path: Path) -> bool:
    first = next((text for _, text in read_lines(path)), None)
    line = parse_line(first or "")
    return line is not None and _is_of_image(line)


def _is_of_image(line: ListLine) -> bool:
    """Tell whether a line is about one image; lists of pairs have two paths before the number."""
    path = PurePosixPath(line.path.partition("?")[0])
    first_words = line.path.split()[:-1]
    return has_image_name(f"x{path.suffix}") and not any(has_image_name(word) for word in first_words)


def _is_fraction(value: str) -> bool:
    return is_number(value) and not CLASS_NUMBER.fullmatch(value)


def _bad_line(place: str, reason: str, split: str) -> Problem:
    return Problem(key=place, kind="bad-line", reason=reason, left_out=True, split=split)


class ListImages:
    """Finds the images of one list.

    Args:
        path: of the list.
        source: that the addresses are relative to, or a file in that folder.
        folder: what stands before relative paths, relative to the list's own folder; empty for that folder.
        urls: whether addresses of the web are images too.
    """

    def __init__(self, path: Path, source: Path, folder: str, *, urls: bool) -> None:
        self._list = path
        self._root = source if source.is_dir() else source.parent
        self._start = path.parent / folder
        below = os.path.relpath(self._start, self._root)
        self._prefix = f"{folder}/" if os.path.isabs(folder) else "" if below == "." else f"{below}/"
        self._urls = urls
        self._is_confined = came_from_outside(path)

    def address(self, path: str) -> tuple[str, str]:
        """Return an image's address for the reader, and its key.

        Raises:
            ValueError: where the list may not name such a path; the message says why.
        """
        if is_url(path):
            return self._web_address(path)
        address = path if path.startswith("/") else self._prefix + path
        if self._is_confined and not _is_inside(self._root / address, self._root):
            raise ValueError("The path leads out of the source, which came from somewhere else.")
        return address, path

    def is_there(self, path: str) -> bool:
        """Tell whether an image is there; one of the web is believed to be."""
        return is_url(path) or self._start.joinpath(path).exists()

    def require_some(self, paths: Iterable[str]) -> None:
        """Look for the first images.

        Raises:
            DataError: where there are some, and not one is there.
        """
        first = list(islice(paths, _LOOKED_FOR))
        if first and not any(map(self.is_there, first)):
            raise DataError(
                f"The images of `{self._list.name}` are missing: the first {len(first)}, such as `{first[0]}`, "
                f"are not below `{self._start}`.",
                advice="Set the option `folder` to what stands before the paths.",
            )

    def _web_address(self, path: str) -> tuple[str, str]:
        if not self._urls:
            raise ValueError("It is an address of the web, which the option `urls` allows.")
        if "@" in urlsplit(path).netloc:
            raise ValueError("An address in a list has no user and password.")
        return path, public_uri(path)


class UrlPartReader(FilePartReader):
    """Reads parts that are files or addresses of the web.

    Args:
        root: folder that addresses of files are relative to.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._client = WebClient(_TIMEOUT_S)

    def read(self, address: str) -> bytes:
        """Return the content."""
        if not is_url(address):
            return super().read(address)
        try:
            return self._client.content(address, _MOST_BYTES)
        except (OSError, ValueError) as error:
            raise DatapointError(public_uri(address), f"it cannot be fetched ({error}).") from None
        except DataError as error:
            raise DatapointError(public_uri(address), f"it may not be fetched. {error.rule}") from None

    def file(self, address: str) -> Path | None:  # type: ignore[override]
        """Return the file; None for an address of the web."""
        return None if is_url(address) else super().file(address)


def is_url(path: str) -> bool:
    """Tell whether a path is an address of the web."""
    return path[:8].lower().startswith(("http://", "https://"))


def _is_inside(path: Path, folder: Path) -> bool:
    root = os.path.realpath(folder)
    return f"{os.path.realpath(path)}/".startswith(f"{root}/")
