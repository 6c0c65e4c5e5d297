"""Text files of a source: their encodings, lists with one sample per line, and the labels and keys in them."""

from __future__ import annotations

import codecs
import io
import posixpath
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.shared.text_encodings import (
    UTF_8,
    asian_encodings,
    codec_named,
    encoding_by_mark,
    encoding_problem,
    encoding_question,
    is_fallback,
    single_byte_encoding,
)
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = [
    "CLASS_NUMBER",
    "OTHER_LABEL",
    "Labels",
    "Line",
    "ListLine",
    "SeenKeys",
    "below_source",
    "decode_text",
    "encoding_by_mark",
    "encoding_of",
    "encoding_problems",
    "head_lines",
    "is_number",
    "lines_of",
    "names_in",
    "parse_line",
    "read_class_names",
    "read_lines",
    "survey",
    "two_paths",
]

_BLOCK_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 1 << 18  # read for a guess
_HEAD_LINES: Final = 20
_WEIGHED_BYTES: Final = 1 << 16  # of lines beyond ASCII, which tell an Asian text
_LONGEST_HEAD_BYTES: Final = 1 << 24  # where rows are so long that fewer bytes hold too few of them

_MAX_LINE_BYTES: Final = 1 << 16  # no path is longer; a file without line ends must not fill the memory
_SUFFIX: Final = "|".join(suffix[1:] for suffix in sorted(IMAGE_SUFFIXES))
_TWO_PATHS: Final = re.compile(rf"(.+?\.(?:{_SUFFIX}))\s+(.+\.(?:{_SUFFIX}))", re.IGNORECASE)

OTHER_LABEL: Final = "their image has another label already"
"""Why a line or row of an image is lost that says another label than the one before."""

CLASS_NUMBER: Final = re.compile(r"[0-9]{1,9}")
"""A class number as a list may have it."""

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SUFFIXES: Final = tuple(IMAGE_SUFFIXES)

_ONES: Final = frozenset(("1", "1.0"))
_MARKS: Final = _ONES | {"0", "0.0"}
_MOST_CLASSES: Final = 100_000  # a higher number is no class but something else, such as a year or an identifier
_STRAY: Final = 0.01  # share of lines with decimals that are taken for slips

_FIRST_TABLE_SIZE: Final = 1 << 12  # doubled whenever half of it is taken


def encoding_of(path: Path, chosen: str = "", *, asks: bool = True) -> str:
    """Return the encoding of a text file; every byte of it is looked at, so that reading it cannot fail.

    Args:
        path: the file.
        chosen: encoding that the user named; empty to find it out. A byte-order mark counts more.
        asks: whether a file is refused whose bytes speak for an Asian encoding; else it is read as a Western text.

    Returns:
        encoding: ``utf-8``, ``utf-8-sig`` or ``utf-16`` where the file is valid in it, else ``cp1252``, or Latin-1 for
            bytes that cp1252 does not have.

    Raises:
        DataError: where the file cannot be read, holds zero bytes and so is no text, or is not in the chosen encoding;
            or where its encoding must be asked for: ``details["field"]`` names the option then.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_by_mark(file.read(4)) or (codec_named(chosen) if chosen else UTF_8)
            file.seek(0)
            decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder(encoding)()
            zeros, fallback = False, single_byte_encoding(b"")
            while block := file.read(_BLOCK_BYTES):
                zeros = zeros or 0 in block
                fallback = max(fallback, single_byte_encoding(block))  # latin-1 comes after cp1252
                if decoder is not None:
                    decoder = _fed(decoder, block)
            if decoder is not None:
                decoder = _fed(decoder, b"", final=True)
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error.strerror}.") from None
    if zeros and (decoder is None or not encoding.startswith("utf-16")):
        raise DataError(
            f"`{path}` is no text: it holds zero bytes.",
            advice="Save it as UTF-8, or choose the format that it has.",
        )
    if decoder is not None:
        return encoding
    if chosen and encoding != "utf-8-sig":
        raise _not_in(path.name, chosen)
    if asks:
        _ask_for_encoding(path.name, _strange_lines(path))
    return fallback


def decode_text(content: bytes, chosen: str = "", *, name: str = "") -> tuple[str, str]:
    """Return a text and the encoding that it was in; cp1252 or Latin-1 take whatever is no UTF.

    Args:
        content: all bytes of a file.
        chosen: encoding that the user named; empty to find it out.
        name: of the file, if a content is refused whose bytes speak for an Asian encoding; empty if it is not.

    Raises:
        DataError: where the content is not in the chosen encoding, or its encoding must be asked for.
    """
    encoding = encoding_by_mark(content[:4]) or (codec_named(chosen) if chosen else UTF_8)
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError:
        if chosen:
            raise _not_in(name, chosen) from None
    if name:
        _ask_for_encoding(name, content.splitlines(keepends=True))
    encoding = single_byte_encoding(content)
    return content.decode(encoding), encoding


def encoding_problems(name: str, encoding: str, chosen: str = "") -> Iterator[Problem]:
    """Yield the problem of a file that was taken for cp1252 or Latin-1, although no option names it."""
    if not chosen and is_fallback(encoding):
        yield encoding_problem(name, encoding)


def _not_in(name: str, chosen: str) -> DataError:
    return DataError(
        f"The text is not in the encoding {chosen}.",
        received=f"`{name}`",
        advice="Set the option `encoding` to another one, or leave it out.",
        details={"field": "options.encoding"},
    )


def _ask_for_encoding(name: str, lines: Sequence[bytes]) -> None:
    lines = [line for line in lines if not line.isascii()]
    if likely := asian_encodings(b"".join(lines)[:_WEIGHED_BYTES]):
        raise encoding_question(name, lines, likely)


def _strange_lines(path: Path) -> list[bytes]:
    """Return the first lines with bytes beyond ASCII."""
    found, count = [], 0
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(_MAX_LINE_BYTES), b""):
            if not line.isascii():
                found.append(line)
                count += len(line)
            if count > _WEIGHED_BYTES:
                break
    return found


def head_lines(path: Path, chosen: str = "") -> list[str]:
    """Return the first lines of a text file with their ends; empty where it is none or cannot be read.

    Args:
        path: the file.
        chosen: encoding that the user named; empty to find it out.

    Raises:
        DataError: where there is no such encoding.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_HEAD_BYTES)
            while content.count(b"\n") < _HEAD_LINES and len(content) < _LONGEST_HEAD_BYTES:
                more = file.read(len(content))  # rows may have thousands of columns
                content += more
                if not more:
                    break
            whole = not file.read(1)
    except OSError:
        return []
    encoding = encoding_by_mark(content[:4]) or (codec_named(chosen) if chosen else UTF_8)
    if 0 in content and not encoding.startswith("utf-16"):
        return []
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content, whole)
    except UnicodeDecodeError:
        content = content.removeprefix(codecs.BOM_UTF8)
        lines_beyond = b"".join(line for line in content.splitlines(keepends=True) if not line.isascii())
        likely = asian_encodings(lines_beyond[:_WEIGHED_BYTES])
        text = content.decode(codec_named(likely[0]) if likely else single_byte_encoding(content), "replace")
    lines = list(io.StringIO(text, newline=""))  # str.splitlines would split at signs that end no line
    return lines if whole else lines[:-1]


def _fed(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> codecs.IncrementalDecoder | None:
    """Return the decoder, None where the bytes are not in its encoding."""
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return None
    return decoder


class Line(NamedTuple):
    """One line of a list.

    Args:
        number: from 1.
        text: without its end.
    """

    number: int
    text: str


def lines_of(path: Path, chosen: str = "") -> Iterator[Line]:
    """Yield the lines of a file that are not empty: UTF-8, or UTF-16 with its mark, and else cp1252, line by line.

    Args:
        path: the file.
        chosen: encoding that the user named; empty to find it out.

    Raises:
        DataError: where the file cannot be read, or there is no such encoding.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_by_mark(file.read(4)) or (codec_named(chosen) if chosen else "")
        with path.open("rb") as file:
            if encoding:  # its lines may end in more than one byte
                with io.TextIOWrapper(file, encoding, errors="replace") as text:
                    yield from _numbered(text)
            else:
                yield from _numbered(_decoded(raw) for raw in iter(lambda: file.readline(_MAX_LINE_BYTES), b""))
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error.strerror}.") from error


def names_in(path: Path) -> tuple[str, ...]:
    """Return the names in a file with one name a line.

    Raises:
        DataError: where it cannot be read, or a name is there twice.
    """
    names = tuple(line.text.strip() for line in lines_of(path))
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise DataError(f"The class `{twice}` is twice in `{path}`.", advice="Give one another name.")
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


def below_source(path: str) -> str | None:
    """Return a path without ``./`` and the like; None for a relative path that leads out of the source."""
    clean = posixpath.normpath(path.replace("\\", "/") if "/" not in path else path)
    return None if clean == ".." or clean.startswith("../") else clean


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(single_byte_encoding(raw))


def _numbered(lines: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield Line(number, text.rstrip("\r\n"))


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


def read_lines(
    path: Path, chosen: str = "", *, longest_bytes: int = _MAX_LINE_BYTES
) -> Iterator[tuple[int, str | None]]:
    """Yield (number from 1, text) of the lines that are not empty; None for the text of a line that is no path.

    Each is UTF-8 or else cp1252, as names of files may come from two machines; UTF-16 is known by its first bytes.

    Args:
        path: the file.
        chosen: encoding that the user named; empty to find it out.
        longest_bytes: of a line.

    Raises:
        DataError: where the file cannot be read, or there is no such encoding.
    """
    try:
        with path.open("rb") as file:
            mark = encoding_by_mark(file.read(3))
            encoding = mark or (codec_named(chosen) if chosen else "")
            if encoding.startswith("utf-16"):
                yield from _read_utf_16(path, encoding)
                return
            file.seek(len(codecs.BOM_UTF8) if mark else 0)
            number = 0
            while raw := file.readline(longest_bytes):
                number += 1
                is_whole = raw.endswith(b"\n") or len(raw) < longest_bytes
                is_path = is_whole
                while not is_whole:  # no path is that long
                    rest = file.readline(longest_bytes)
                    is_whole = rest.endswith(b"\n") or len(rest) < longest_bytes
                if raw.strip():
                    text = raw.decode(encoding, "replace") if encoding else _decoded(raw)
                    yield number, text if is_path else None
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {error.strerror}.") from None


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


def _read_utf_16(path: Path, encoding: str) -> Iterator[tuple[int, str | None]]:
    with path.open(encoding=encoding, errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


@dataclass(frozen=True, kw_only=True)
class Labels:
    """How the values of lines become labels.

    Args:
        form: ``number`` of a class, ``name`` of a class, or ``values`` to be predicted.
        names: of the classes, by number.
        width: values in a line.
        first: number of the first class, 0 or 1.
        marks: for several values in a line, how many a line has at most of 1 where all are 0 or 1; else 0.
    """

    form: str
    names: tuple[str, ...] = ()
    width: int = 1
    first: int = 0
    marks: int = 0

    def label(self, line: ListLine) -> Any:
        """Return a line's label.

        Raises:
            ValueError: where the line has another form; the message says which.
            KeyError: where there is no such class.
        """
        if self.form == "values":
            if len(line.values) != self.width or not all(map(is_number, line.values)):
                raise ValueError(f"a path and {self.width} numbers")
            return [float(value) for value in line.values]
        if len(line.values) != 1:
            raise ValueError("a path and one class")
        if self.form == "name":
            return self._numbers[line.values[0]]
        if not CLASS_NUMBER.fullmatch(line.values[0]):
            raise ValueError("a path and a whole number from 0")
        number = int(line.values[0]) - self.first
        if not 0 <= number < len(self.names):
            raise KeyError(line.values[0])
        return number

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in reversed(list(enumerate(self.names)))}


def survey(lines: Iterable[ListLine | None], names: Sequence[str] | None, kind: str) -> Labels | None:
    """Look through lines, and return how their values become labels; None where no line is valid.

    Args:
        lines: None for those that say nothing.
        names: of the classes; None if not given: then there are as many as the highest number says, or all
            names that the lines have, sorted.
        kind: ``auto``, or the kind that a person chose.
    """
    forms: Counter[str] = Counter()
    widths: Counter[int] = Counter()
    found: set[str] = set()
    highest, most, only_marks = -1, 0, True
    for line in lines:
        if line is None:
            continue
        form = _form(line)
        only_marks = only_marks and _MARKS.issuperset(line.values)
        most = max(most, sum(value in _ONES for value in line.values) if only_marks else 0)
        forms[form] += 1
        widths[len(line.values)] += 1
        if form == "number":
            highest = max(highest, int(line.values[0]) if int(line.values[0]) < _MOST_CLASSES else -1)
        if len(line.values) == 1 and len(found) < _MOST_CLASSES:
            found.add(line.values[0])
    form = _chosen(forms, kind)
    if not forms or (form == "number" and not forms["number"]):
        return None
    if form == "values":
        width = widths.most_common(1)[0][0]
        return Labels(form=form, width=width, marks=most if only_marks and width > 1 else 0)
    if names is None:
        names = sorted(found) if form == "name" else [str(number) for number in range(highest + 1)]
    return Labels(form=form, names=tuple(names))


def no_valid_lines(path: Path) -> DataError:
    """Return the error for a list that says nothing."""
    return DataError(
        f"`{path.name}` has no valid lines.",
        advice="Each is a path, blanks or a tab, and a class number from 0; or a path, a tab and a class name. For "
        "values to be predicted, write numbers behind the path.",
    )


def read_class_names(path: Path, chosen: str = "") -> list[str]:
    """Return the names of a file with one a line; the first is class 0.

    Args:
        path: the file.
        chosen: encoding that the user named; empty to find it out.

    Raises:
        DataError: where the file cannot be read or is no text, or its encoding must be asked for.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError("A file of class names is text with one name a line.", received=f"`{path}`: {error}") from None
    names = [line.rstrip("\r") for line in decode_text(content, chosen, name=path.name)[0].split("\n")]
    while names and not names[-1].strip():
        names.pop()
    return names


def _form(line: ListLine) -> str:
    if len(line.values) == 1 and CLASS_NUMBER.fullmatch(line.values[0]):
        return "number"
    return "values" if all(map(is_number, line.values)) else "name"


def _chosen(forms: Counter[str], kind: str) -> str:
    total = sum(forms.values())
    if kind == "image-regression":
        return "values"
    if 2 * forms["name"] > total:
        return "name"
    # One decimal point in a thousand class numbers is a slip of the pen, and in ten ages it is not.
    is_values = kind == "auto" and forms["values"] > max(_STRAY * total, 0)
    return "values" if is_values else "number"


class SeenKeys:
    """The keys that came so far, as hashes of 64 bits: two keys out of a million are one with a chance of 1 to 10^7."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * _FIRST_TABLE_SIZE))
        self._count = 0

    def is_new(self, key: str) -> bool:
        """Tell whether a key comes for the first time, and remember it."""
        if 2 * self._count >= len(self._table):
            self._grow()
        if not self._put(hash(key) & 0xFFFFFFFFFFFFFFFF or 1):
            return False
        self._count += 1
        return True

    def again(self, key: str) -> Problem | None:
        """Return the problem of a key that came before; None where it is new."""
        if self.is_new(key):
            return None
        return Problem(key=key, kind="duplicate-key", reason="A line before says the same.", left_out=True)

    def _put(self, value: int) -> bool:
        table, mask = self._table, len(self._table) - 1
        place = value & mask
        while table[place]:
            if table[place] == value:
                return False
            place = (place + 1) & mask
        table[place] = value
        return True

    def _grow(self) -> None:
        old = self._table
        self._table = array("Q", bytes(16 * len(old)))
        for value in old:
            if value:
                self._put(value)
