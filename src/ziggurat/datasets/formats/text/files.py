"""Labeled texts in files: per class, either one file with a text per line or one folder with a text per file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.datasets.formats.shared.text_encoding import (
    LATIN_1,
    decode_text,
    encoding_of,
    encoding_problem,
    head_lines,
)
from ziggurat.datasets.formats.table.dialect import number_of
from ziggurat.datasets.formats.table.files import split_of
from ziggurat.datasets.importer import Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.schema import Schema

__all__ = ["ClassFolder", "FolderScan", "LineScan", "class_files", "class_folders", "reads_as_texts"]

_LARGEST_TEXT: Final = 1 << 24
_NO_TEXTS: Final = frozenset({
    "authors", "changelog", "changes", "classes", "copying", "labels", "licence", "license", "names", "notice",
    "readme", "requirements", "trainval", "urls",
})  # fmt: skip
_DATA_SUFFIXES: Final = frozenset({
    ".arff", ".bin", ".cfg", ".csv", ".data", ".db", ".doc", ".gz", ".htm", ".html", ".index", ".info", ".ini",
    ".json", ".jsonl", ".log", ".md", ".md5", ".names", ".ndjson", ".npy", ".npz", ".parquet", ".pdf", ".prototxt",
    ".py", ".rst", ".sh", ".sha256", ".tab", ".tar", ".test", ".toml", ".tsv", ".xml", ".yaml", ".yml", ".zip",
})  # fmt: skip
_TEXT_SUFFIXES: Final = (".txt", "")
_WORDS_OF_TEXT: Final = 2.5


class ClassFolder(NamedTuple):
    """A folder with the texts of one class.

    Args:
        name: of the class.
        split: that it is in; empty if not given.
        path: where it is.
    """

    name: str
    split: str
    path: Path


def class_files(folder: Path) -> dict[str, Path]:
    """Return class → file with a text a line; empty where the folder is not laid out like that.

    The files of classes share a name and differ in what follows its point (``reviews.neg``, ``reviews.pos``), or are
    named after the classes and end in ``.txt``.
    """
    files = [
        path
        for path in _sorted(folder)
        if path.is_file() and not _is_known(path.stem) and not path.name.startswith(".")
    ]
    by_stem: dict[str, dict[str, Path]] = {}
    for path in files:
        if path.suffix and path.suffix.lower() not in _DATA_SUFFIXES | {".txt"}:
            by_stem.setdefault(path.stem, {})[path.suffix[1:]] = path
    largest = max(by_stem.values(), key=len, default={})
    if len(largest) >= 2:
        return largest
    texts = {path.stem: path for path in files if path.suffix.lower() == ".txt"}
    return texts if len(texts) >= 2 else {}


def class_folders(source: Path) -> list[ClassFolder]:
    """Return the folders with the texts of a class each, below the source or below its folders of splits."""
    folders = [path for path in _sorted(source) if path.is_dir() and not path.name.startswith(".")]
    splits = [path for path in folders if split_of(path.name)]
    if splits:
        return [
            ClassFolder(path.name, split_of(split.name), path)
            for split in splits
            for path in _sorted(split)
            if path.is_dir() and _has_texts(path)
        ]
    return [ClassFolder(path.name, "", path) for path in folders if _has_texts(path)]


def reads_as_texts(path: Path) -> bool:
    """Say whether a file holds words: several to a line, and more of them than numbers."""
    lines = [line.split() for line in head_lines(path)[:50] if line.strip()]
    words = [word for line in lines for word in line]
    numbers = sum(number_of(word) is not None for word in words)
    return bool(lines) and len(words) >= _WORDS_OF_TEXT * len(lines) and numbers < len(words) / 2


class LineScan(Scan):
    """One walk through files of lines.

    Args:
        files: class → its file.
        classes: names of the classes in the order of their numbers; empty: in that of their letters.
    """

    def __init__(self, files: dict[str, Path], classes: Sequence[str] = ()) -> None:
        self._files = files
        self._classes = tuple(classes) or tuple(sorted(files))

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the lines, class by class; a blank line is a problem unless it ends the file."""
        for name, path in sorted(self._files.items()):
            if name not in self._classes:
                reason = f"The class {name!r} is none of those that were named."
                yield Problem(key=path.name, kind="unknown-class", reason=reason, left_out=True)
                continue
            encoding = encoding_of(path)
            if encoding == LATIN_1:
                yield encoding_problem(path.name)
            yield from _lines(path, encoding, self._classes.index(name))

    @property
    def schema(self) -> Schema:
        """What the lines mean."""
        return Schema(kind="text-classification", class_names=self._classes)


class FolderScan(Scan):
    """One walk through folders of files.

    Args:
        source: that keys are relative to.
        folders: of the classes.
        classes: names of the classes in the order of their numbers; empty: in that of their letters.
    """

    def __init__(self, source: Path, folders: Sequence[ClassFolder], classes: Sequence[str] = ()) -> None:
        self._source = source
        self._folders = folders
        self._classes = tuple(classes) or tuple(sorted({folder.name for folder in folders}))

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the files, folder by folder; folders in a folder of a class belong to it."""
        for folder in self._folders:
            if folder.name not in self._classes:
                reason = f"The class {folder.name!r} is none of those that were named."
                yield Problem(
                    key=folder.path.relative_to(self._source).as_posix(),
                    kind="unknown-class",
                    reason=reason,
                    left_out=True,
                )
                continue
            for path in _texts_below(folder.path):
                yield from self._found(path, folder)

    @property
    def schema(self) -> Schema:
        """What the files mean."""
        return Schema(kind="text-classification", class_names=self._classes)

    def _found(self, path: Path, folder: ClassFolder) -> Iterator[Sample | Problem]:
        key = path.relative_to(self._source).as_posix()
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST_TEXT + 1)
        except OSError as error:
            yield Problem(key=key, kind="unreadable", reason=f"It cannot be read ({error.strerror}).", left_out=True)
            return
        if len(content) > _LARGEST_TEXT:
            reason = f"It has more than {_LARGEST_TEXT} bytes."
            yield Problem(key=key, kind="too-large", reason=reason, left_out=True)
            return
        text, encoding = decode_text(content)
        if not text.strip() or "\0" in text:
            reason = "It is no text." if text.strip() else "It holds no text."
            yield Problem(key=key, kind="empty-text", reason=reason, left_out=True)
            return
        if encoding == LATIN_1:
            yield encoding_problem(key)
        label = self._classes.index(folder.name)
        yield Sample(key=key, parts=(text.encode(),), label=label, split=folder.split, size_bytes=len(content))


def _lines(path: Path, encoding: str, label: int) -> Iterator[Sample | Problem]:
    blank: list[int] = []
    with path.open(encoding=encoding, newline="\n") as file:
        for number, line in enumerate(file):
            text = line.rstrip("\r\n")
            if not text.strip():
                blank.append(number)
                continue
            for each in blank:
                key = f"{path.name}:{each + 1}"
                yield Problem(key=key, kind="empty-text", reason="The line is blank.", left_out=True)
            blank.clear()
            yield Sample(key=f"{path.name}/line-{number:06d}", parts=(text.encode(),), label=label)


def _texts_below(folder: Path) -> Iterator[Path]:
    for path in _sorted(folder):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _texts_below(path)
        elif path.suffix.lower() in _TEXT_SUFFIXES or path.suffix[1:].isdigit():
            yield path


def _has_texts(folder: Path) -> bool:
    """Say whether the first files of a folder are texts, most of them."""
    with os.scandir(folder) as entries:
        names = [Path(entry.name) for _, entry in zip(range(20), entries, strict=False) if entry.is_file()]
    texts = [name for name in names if name.suffix.lower() in _TEXT_SUFFIXES and not _is_known(name.stem)]
    return bool(texts) and len(texts) > len(names) / 2


def _is_known(stem: str) -> bool:
    """Say whether a file of this name never holds the texts of a class."""
    return stem.lower() in _NO_TEXTS or bool(split_of(stem))


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda path: path.name)
