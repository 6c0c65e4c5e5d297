"""Parser for the lines of a text list: an image path and its label, independent of the tool that wrote the list."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.errors import DataError

__all__ = ["CLASS_NUMBER", "ListLine", "is_number", "parse_line", "read_lines"]

CLASS_NUMBER: Final = re.compile(r"[0-9]{1,9}")
"""A class number as a list may have it."""

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_BYTES: Final = 64 * 1024
_SUFFIXES: Final = tuple(IMAGE_SUFFIXES)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class ListLine(NamedTuple):
    """What a line says.

    Args:
        path: of the image.
        values: one class number, one class name, or numbers; as they are written.
    """

    path: str
    values: tuple[str, ...]


def parse_line(line: str) -> ListLine | None:
    """Return what a line says; None where it says nothing that a list may say.

    With a tab in it, the path ends at the first one, and one name or numbers follow. Without, numbers end the line, and
    all before them is the path, blanks too: as many numbers as leave a path that ends like an image's, else one.

    >>> parse_line("a b.jpg   4\\r\\n")
    ListLine(path='a b.jpg', values=('4',))
    >>> parse_line("a.jpg\\tred fox")
    ListLine(path='a.jpg', values=('red fox',))
    >>> parse_line("a.jpg 0.5 -2")
    ListLine(path='a.jpg', values=('0.5', '-2'))
    >>> parse_line("a.jpg fox")
    """
    text = line.strip()
    if not text or "\0" in text:
        return None
    path, tab, rest = text.partition("\t")
    if not tab:
        return _by_blanks(text)
    path = path.rstrip()
    values = tuple(value for value in (each.strip() for each in rest.split("\t")) if value)
    if len(values) == 1 and all(map(is_number, values[0].split())):
        values = tuple(values[0].split())
    if not values or (len(values) > 1 and not all(map(is_number, values))):
        return None
    return ListLine(path, values)


def is_number(text: str) -> bool:
    """Tell whether a text is a finite number."""
    return _NUMBER.fullmatch(text) is not None and abs(float(text)) != float("inf")


def read_lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """Yield (number from 1, text) of the lines that are not empty; None for the text where it is not UTF-8.

    Files in UTF-16 are known by their first bytes.

    Raises:
        DataError: where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(3)
            if start.startswith(_UTF_16):
                yield from _read_utf_16(path)
                return
            file.seek(3 if start == codecs.BOM_UTF8 else 0)
            number = 0
            while raw := file.readline(_LONGEST_BYTES):
                number += 1
                is_whole = raw.endswith(b"\n") or len(raw) < _LONGEST_BYTES
                while not is_whole:  # no path is that long
                    rest = file.readline(_LONGEST_BYTES)
                    is_whole = rest.endswith(b"\n") or len(rest) < _LONGEST_BYTES
                    raw = b"\xff"
                if raw.strip():
                    yield number, _decoded(raw)
    except OSError as error:
        raise DataError("A list can be read.", received=f"`{path}`: {error.strerror}") from None


def _by_blanks(text: str) -> ListLine | None:
    path, *value = text.rsplit(None, 1)
    if not value or not is_number(value[0]):
        return None
    one = ListLine(path, (value[0],))
    values = value
    while not path.lower().endswith(_SUFFIXES):
        path, *value = path.rsplit(None, 1)
        if not value or not is_number(value[0]):
            return one
        values = [value[0], *values]
    return ListLine(path, tuple(values))


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _read_utf_16(path: Path) -> Iterator[tuple[int, str | None]]:
    with path.open(encoding="utf-16", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line
