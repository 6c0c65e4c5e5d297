"""Reader for text lists: one sample per line, UTF-8, UTF-16 or Latin-1, streamed."""

from __future__ import annotations

import hashlib
import io
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.shared.text_encoding import encoding_by_mark
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["Line", "Seen", "below_source", "lines_of", "names_in", "two_paths"]

_MAX_LINE_BYTES: Final = 1 << 16
_SUFFIX: Final = "|".join(suffix[1:] for suffix in sorted(IMAGE_SUFFIXES))
_TWO_PATHS: Final = re.compile(rf"(.+?\.(?:{_SUFFIX}))\s+(.+\.(?:{_SUFFIX}))", re.IGNORECASE)


class Line(NamedTuple):
    """One line of a list.

    Args:
        number: from 1.
        text: without its end.
    """

    number: int
    text: str


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file that are not empty: UTF-8, or UTF-16 with its mark, and else Latin-1.

    Raises:
        DataError: where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_by_mark(file.read(4))
        with path.open("rb") as file:
            if encoding:  # its lines end in more than one byte
                with io.TextIOWrapper(file, encoding, errors="replace") as text:
                    yield from _numbered(text)
            else:
                yield from _numbered(_decoded(raw) for raw in iter(lambda: file.readline(_MAX_LINE_BYTES), b""))
    except OSError as error:
        raise DataError("A list is a text file that can be read.", received=f"`{path}`: {error.strerror}") from error


def names_in(path: Path) -> tuple[str, ...]:
    """Return the names in a file with one name a line.

    Raises:
        DataError: where it cannot be read, or a name is there twice.
    """
    names = tuple(line.text.strip() for line in lines_of(path))
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise DataError(
            "Each class is named once.", received=f"`{twice}` twice in `{path}`", advice="Give one another name."
        )
    return names


def two_paths(text: str) -> tuple[str, ...] | None:
    """Return the paths of a line, and the key where it has one as its third value; None where it has no two paths.

    Values are divided by tabs, or by blanks where each path ends as an image's does.
    """
    values = tuple(value.strip() for value in text.split("\t"))
    if len(values) in (2, 3) and all(values):
        return values
    apart = _TWO_PATHS.fullmatch(text.strip())
    return None if apart is None else (apart[1], apart[2])


class Seen:
    """Remembers keys by 8 bytes each, to find those that come twice."""

    def __init__(self) -> None:
        self._marks: set[bytes] = set()

    def again(self, key: str) -> Problem | None:
        """Return the problem of a key that came before; None where it is new."""
        mark = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        if mark in self._marks:
            return Problem(key=key, kind="duplicate-key", reason="A line before says the same.", left_out=True)
        self._marks.add(mark)
        return None


def below_source(path: str) -> str | None:
    """Return a path without ``./`` and the like; None for a relative path that leads out of the source."""
    clean = posixpath.normpath(path.replace("\\", "/") if "/" not in path else path)
    return None if clean == ".." or clean.startswith("../") else clean


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _numbered(lines: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield Line(number, text.rstrip("\r\n"))
