"""Files of COCO datasets: JSON files and their splits, the images that they name, and a streaming reader."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from ziggurat.datasets.formats.shared.detection_import import ANNOTATION_FOLDERS, folders_below
from ziggurat.datasets.formats.shared.text_files import encoding_by_mark
from ziggurat.errors import DataError

__all__ = [
    "annotation_files",
    "coco_fault",
    "json_files",
    "looks_like_coco",
    "root_of",
    "stream_lists",
]

_BESIDE_INSTANCES: Final = re.compile("caption|keypoint|panoptic|stuff|image_info|labels")
_CHUNK: Final = 1 << 20  # characters that are read at once
_LARGEST_VALUE: Final = 64 << 20  # one image or annotation is far smaller; a damaged file would fill the memory
_PEEK_BYTES: Final = 1 << 16  # of larger ones, the start and the end
_WHOLE_BYTES: Final = 1 << 22  # files up to this size are read whole to recognize them
_LISTS: Final = ("images", "annotations", "categories")
_SPACE: Final = " \t\r\n"


def root_of(source: Path) -> Path:
    """Return the folder that keys are relative to: of one JSON file, the one that has its images too."""
    if source.is_dir():
        return source
    folder = source.absolute().parent
    return folder.parent if folder.name.lower() in ANNOTATION_FOLDERS else folder


def annotation_files(source: Path, chosen: Sequence[str] = ()) -> list[str]:
    """Return the JSON files of a source, below its root with ``/``, sorted.

    Where some are called ``instances…``, those of captions, key points and their like are left aside.

    Raises:
        DataError: where one of ``chosen`` is not there.
    """
    root = root_of(source)
    for name in chosen:
        if not (root / name).is_file():
            raise DataError(f"The file `{name}` of `annotations` is not in `{root}`.")
    if chosen:
        return list(chosen)
    if source.is_file():
        return [source.absolute().relative_to(root).as_posix()]
    found = [path.relative_to(root).as_posix() for path in json_files(root) if looks_like_coco(path)]
    names = [posixpath.basename(path).lower() for path in found]
    if not any("instances" in name for name in names):
        return found
    return [path for path, name in zip(found, names, strict=True) if not _BESIDE_INSTANCES.search(name)]


def json_files(source: Path) -> list[Path]:
    """Return the JSON files of a source, down to two folders deep."""
    if source.is_file():
        return [source] if source.suffix.lower() == ".json" else []
    return [source / path for folder in folders_below(source, 2) for path in _json_files(source, folder)]


def _json_files(root: Path, folder: str) -> list[str]:
    try:
        names = sorted(entry.name for entry in os.scandir(root / folder) if entry.name.lower().endswith(".json"))
    except OSError:
        return []
    return [posixpath.join(folder, name) for name in names]


class CocoFileError(DataError):
    """A JSON file is damaged, or not of the form that was asked for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__("A COCO file is one JSON object with lists.", received=f"`{path}`: {reason}")


def stream_lists(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield the elements of every list at the top of a JSON file, as they stand in it.

    Memory holds about a megabyte of the file, or its largest element. Other values at the top are passed over.

    Yields:
        Name of the list, text of the element, the element.

    Raises:
        CocoFileError: where the file cannot be read, is cut off, or is no JSON object.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_by_mark(file.read(4)) or "utf-8"
        with path.open(encoding=encoding) as file:
            yield from _members(_Window(file, path))
    except OSError as error:
        raise CocoFileError(path, f"it cannot be read ({error.strerror})") from None
    except UnicodeError as error:
        raise CocoFileError(path, f"it is no text in UTF-8 or UTF-16 ({error})") from None


def looks_like_coco(path: Path) -> bool:
    """Say by the head and the tail of a file whether it may be a COCO file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            seen = file.read(_WHOLE_BYTES if size <= _WHOLE_BYTES else _PEEK_BYTES)
            if size > _WHOLE_BYTES:
                file.seek(-_PEEK_BYTES, 2)
                seen += file.read()
    except OSError:
        return False
    seen = seen.replace(b"\0", b"")  # UTF-16
    if b"{" not in seen[:16]:
        return False
    return b'"file_name"' in seen and b'"images"' in seen and (b'"annotations"' in seen or b'"categories"' in seen)


def coco_fault(path: Path) -> str:
    """Return what is wrong with a file that begins like a COCO file and is none; empty where it does not begin so."""
    try:
        with path.open("rb") as file:
            start = file.read(_PEEK_BYTES).replace(b"\0", b"")
    except OSError:
        return ""
    if not any(f'"{name}"'.encode() in start for name in _LISTS):
        return ""
    try:
        found = {name for name, _text, _value in stream_lists(path)}
    except DataError as error:
        return str(error)
    missing = [name for name in _LISTS[:2] if name not in found]
    return f"the list of {' and that of '.join(missing)} in `{path.name}` is empty or no list" if missing else ""


def _members(window: _Window) -> Iterator[tuple[str, str, Any]]:
    window.take("{")
    if window.peek() == "}":
        return
    while True:
        _, name = window.value()
        if not isinstance(name, str):
            raise window.damaged("a name was expected")
        window.take(":")
        if window.peek() == "[":
            yield from ((name, *element) for element in _elements(window))
        else:
            window.value()
        if window.take(",}") == "}":
            return


def _elements(window: _Window) -> Iterator[tuple[str, Any]]:
    window.take("[")
    if window.peek() == "]":
        window.take("]")
        return
    while True:
        yield window.value()
        if window.take(",]") == "]":
            return


class _Window:
    """The part of a text that is being looked at."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._text = ""
        self._place = 0
        self._before = 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next character that is no blank."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in _SPACE:
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise self.damaged("it is cut off")

    def take(self, wanted: str) -> str:
        """Return the next character, which must be one of ``wanted``, and go on behind it."""
        found = self.peek()
        if found not in wanted:
            raise self.damaged(f"{' or '.join(wanted)} was expected, not {found!r}")
        self._place += 1
        return found

    def value(self) -> tuple[str, Any]:
        """Return the next value, its text first, and go on behind it."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self.damaged(error.msg) from None
                continue
            except (ValueError, RecursionError) as error:  # a number of thousands of digits; nested too deep
                raise self.damaged(str(error)) from None
            # A number may go on behind the window.
            if isinstance(value, str | list | dict) or self._text[end : end + 1] in (*_SPACE, *",]}"):
                text = self._text[self._place : end]
                self._place = end
                return text, value
            if not self._more():
                raise self.damaged("it is cut off")

    def damaged(self, reason: str) -> CocoFileError:
        """Return the error for this place."""
        return CocoFileError(self._path, f"near character {self._before + self._place}: {reason}")

    def _more(self) -> bool:
        left = len(self._text) - self._place
        if left > _LARGEST_VALUE:
            raise self.damaged(f"a value has more than {_LARGEST_VALUE} characters")
        read = self._file.read(max(_CHUNK, left))
        self._before += self._place
        self._text = self._text[self._place :] + read
        self._place = 0
        return bool(read)
