"""Importer for labeled texts: rows of a table, a file for each class, or a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from ziggurat.datasets.formats.shared.entries import is_file_entry
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import decode_text, encoding_of, encoding_problems, head_lines
from ziggurat.datasets.formats.table.dialect import Description, number_of
from ziggurat.datasets.formats.table.files import PARQUET_SUFFIXES, is_table_file, split_of, table_files, table_signs
from ziggurat.datasets.formats.text.rows import JSON_LINES_SUFFIXES, TextRowScan, json_columns
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.formatting import plural
from ziggurat.records.schema import Schema

__all__ = ["TextImporter"]

_SUFFIXES: Final = (".csv", ".tsv", ".tab", *JSON_LINES_SUFFIXES, *PARQUET_SUFFIXES)

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
_OTHER_FILES: Final = "their folders hold other files"


class TextImporter(Importer):
    """Texts, each of one class."""

    name = "text"
    title = "Texts with classes (CSV, TSV, JSON lines, files)"
    kinds = ("text-classification",)
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(
            name="layout",
            type=str,
            default="guess",
            help="How the texts lie: in rows, a file for each class with a text a line, or a folder for each class.",
            choices=("guess", "rows", "lines", "folders"),
        ),
        ImporterOption(name="text", type=str, default="", help="Column with the texts."),
        ImporterOption(name="label", type=str, default="", help="Column with the classes."),
        ImporterOption(
            name="header",
            type=str,
            default="guess",
            help="Whether the first row names the columns.",
            choices=("guess", "yes", "no"),
        ),
        ImporterOption(
            name="classes", type=list, default=[], help="Names of the classes, in order; others are left out."
        ),
        ENCODING_OPTION,
        ImporterOption(name="file", type=str, default="", help="The file, where a folder has several tables."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Say whether a source holds labeled texts: by its files' names and first lines."""
        if not source.is_dir():
            return self._guess_rows(source)
        if Description.is_in(source, "text-classification"):
            return self._guess(1.0, "a `columns.json` that describes texts")
        return self._guess_lines(source) or self._guess_folders(source) or self._guess_rows(source)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the texts."""
        layout, classes = options["layout"], [str(name) for name in options["classes"]]
        if layout == "guess":
            layout = self._layout(source, options)
        if layout == "lines":
            files = _needed(class_files(source), source, "two files, one for each class")
            return LineScan(files, other_class_files(source, files), classes, options["encoding"])
        if layout == "folders":
            folders = _needed(class_folders(source), source, "a folder for each class")
            return FolderScan(source, folders, classes, options["encoding"])
        description = Description.load(source, "text-classification") if source.is_dir() else None
        suffixes = _SUFFIXES if description is None else (description.suffix,)
        return TextRowScan(table_files(source, suffixes, options["file"]), options, description)

    def _layout(self, source: Path, options: Mapping[str, Any]) -> str:
        if not source.is_dir() or options["file"] or options["text"] or options["label"]:
            return "rows"
        if Description.is_in(source, "text-classification"):
            return "rows"
        if self._guess_lines(source) is not None:
            return "lines"
        return "folders" if self._guess_folders(source) is not None else "rows"

    def _guess_lines(self, source: Path) -> Guess | None:
        files = class_files(source)
        if not files or not all(map(reads_as_texts, list(files.values())[:10])):
            return None
        names = ", ".join(sorted(path.name for path in files.values())[:5])
        sure = all(path.suffix != ".txt" for path in files.values())
        return self._guess(0.75 if sure else 0.4, f"a file of lines for each of {len(files)} classes: {names}")

    def _guess_folders(self, source: Path) -> Guess | None:
        folders = class_folders(source)
        names = {folder.name for folder in folders}
        if len(names) < 2:
            return None
        first = [
            next((path for path in sorted(folder.path.iterdir()) if path.is_file()), None) for folder in folders[:10]
        ]
        if not all(path is not None and reads_as_texts(path) for path in first):
            return None
        return self._guess(0.8, f"a folder of texts for each of {len(names)} classes")

    def _guess_rows(self, source: Path) -> Guess | None:
        try:
            path = table_files(source, _SUFFIXES)[0].path
            if not is_table_file(path, _SUFFIXES):
                return None
            if path.suffix.lower() in JSON_LINES_SUFFIXES:
                text, label = json_columns(path, encoding_of(path, asks=False))
                return self._guess(0.8, f"JSON lines with the fields `{text}` and `{label}`")
            signs = table_signs(path)
        except (DataError, MissingDependencyError):
            return None
        if not signs.is_texts or signs.has_images:
            return None
        return self._guess(0.85, f"a table with a text and its class in each row: {signs.dialect}")

    def _guess(self, confidence: float, reason: str) -> Guess:
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="text-classification")


def _needed(found: Any, source: Path, what: str) -> Any:
    if not found:
        raise DataError(f"`{source}` does not have {what}.")
    return found


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


def other_class_files(folder: Path, files: Mapping[str, Path]) -> list[Path]:
    """Return the files that end as those of the classes and have another name."""
    taken = set(files.values())
    return [path for path in _sorted(folder) if path not in taken and path.suffix[1:] in files and path.is_file()]


class LineScan(Scan):
    """One walk through files of lines.

    Args:
        files: class → its file.
        others: files that are not taken, although they look like those of classes.
        classes: names of the classes in the order of their numbers; empty: in that of their letters.
        encoding: name of the encoding; empty to detect it.
    """

    def __init__(
        self, files: dict[str, Path], others: Sequence[Path] = (), classes: Sequence[str] = (), encoding: str = ""
    ) -> None:
        self._files = files
        self._others = others
        self._encoding = encoding
        self._classes = tuple(classes) or tuple(sorted(files))

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the lines, class by class; a blank line is a problem unless it ends the file."""
        for name, path in sorted(self._files.items()):
            encoding = encoding_of(path, self._encoding)
            if name not in self._classes:
                yield from _not_named(_lines(path, encoding, 0), name)
                continue
            yield from encoding_problems(path.name, encoding, self._encoding)
            yield from _lines(path, encoding, self._classes.index(name))
        for path in self._others:
            for line in _lines(path, encoding_of(path, self._encoding), 0):
                reason = "Its file has another name than those of the classes."
                yield Problem(key=line.key, kind="no-label", reason=reason, left_out=True)

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
        encoding: name of the encoding; empty to detect it.
    """

    def __init__(
        self, source: Path, folders: Sequence[ClassFolder], classes: Sequence[str] = (), encoding: str = ""
    ) -> None:
        self._encoding = encoding
        self._source = source
        self._folders = folders
        self._classes = tuple(classes) or tuple(sorted({folder.name for folder in folders}))

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the files, folder by folder; folders in a folder of a class belong to it."""
        for folder in self._folders:
            for path in _texts_below(folder.path):
                if folder.name in self._classes:
                    yield from self._found(path, folder)
                else:
                    yield _unnamed(path.relative_to(self._source).as_posix(), folder.name)
        yield from self._not_taken()

    def _not_taken(self) -> Iterator[Problem]:
        """Yield the texts that lie in no class's folder, and the files of the folders that are none by their names."""
        above = {self._source: "", **{folder.path.parent: folder.split for folder in self._folders}}
        has_splits = any(folder.split for folder in self._folders)
        taken = {folder.path for folder in self._folders}
        for place, split in above.items():
            for path in _sorted(place):
                key = path.relative_to(self._source).as_posix()
                if path.name.startswith(".") or path in taken or path in above:
                    continue
                mine = split or split_of(path.name)
                lost = Problem(
                    key=key, kind="no-label", reason="It lies in no class's folder.", left_out=True, split=mine
                )
                if path.is_file() and path.suffix == ".txt" and not _is_known(path.stem):
                    yield lost
                if not path.is_dir() or not (texts := list(_texts_below(path))):
                    continue
                if place != self._source or not has_splits:
                    reason = f"Most of its files are no texts; {plural(len(texts), 'text is', 'texts are')} not taken."
                    yield Problem(key=key, kind="other-files", reason=reason, names=1, why=_OTHER_FILES)
                for text in texts:
                    yield replace(lost, key=text.relative_to(self._source).as_posix())
        for folder in self._folders:
            others = [path for path in _sorted(folder.path) if path.is_file() and not _may_be_text(path)]
            if others := [path for path in others if not path.name.startswith(".")]:
                key = folder.path.relative_to(self._source).as_posix()
                reason = f"{len(others)} of its files have no name of a text, such as `{others[-1].name}`."
                yield Problem(key=key, kind="other-files", reason=reason)

    @property
    def schema(self) -> Schema:
        """What the files mean."""
        return Schema(kind="text-classification", class_names=self._classes)

    def _found(self, path: Path, folder: ClassFolder) -> Iterator[Sample | Problem]:
        key = path.relative_to(self._source).as_posix()
        lost = Problem(key=key, kind="", reason="", left_out=True, class_name=folder.name, split=folder.split)
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST_TEXT + 1)
        except OSError as error:
            yield replace(lost, kind="unreadable", reason=f"It cannot be read ({error.strerror}).")
            return
        if len(content) > _LARGEST_TEXT:
            yield replace(lost, kind="too-large", reason=f"It has more than {_LARGEST_TEXT} bytes.")
            return
        text, encoding = decode_text(content, self._encoding, name="" if 0 in content else key)
        if not text.strip() or "\0" in text:
            reason = "It is no text." if text.strip() else "It holds no text."
            yield replace(lost, kind="empty-text", reason=reason)
            return
        yield from encoding_problems(key, encoding, self._encoding)
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
        elif _may_be_text(path):
            yield path


def _may_be_text(path: Path) -> bool:
    return path.suffix.lower() in _TEXT_SUFFIXES or path.suffix[1:].isdigit()


def _unnamed(key: str, name: str) -> Problem:
    reason = f"The class {name!r} is none of those that were named."
    return Problem(key=key, kind="not-listed", reason=reason, left_out=True, class_name=name)


def _not_named(lines: Iterator[Sample | Problem], name: str) -> Iterator[Problem]:
    """Yield the problems of the lines of a class that the user left out."""
    return (_unnamed(line.key, name) for line in lines if isinstance(line, Sample))


def _has_texts(folder: Path) -> bool:
    """Say whether the first files of a folder are texts, most of them."""
    with os.scandir(folder) as entries:
        names = [Path(entry.name) for _, entry in zip(range(20), entries, strict=False) if is_file_entry(entry)]
    texts = [name for name in names if name.suffix.lower() in _TEXT_SUFFIXES and not _is_known(name.stem)]
    return bool(texts) and len(texts) > len(names) / 2


def _is_known(stem: str) -> bool:
    """Say whether a file of this name never holds the texts of a class."""
    return stem.lower() in _NO_TEXTS or bool(split_of(stem))


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda path: path.name)
