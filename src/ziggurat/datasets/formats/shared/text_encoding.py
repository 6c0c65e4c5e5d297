"""Detection of text encodings: UTF-8, UTF-16 with a byte-order mark, or else Latin-1."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import Final

from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["LATIN_1", "decode_text", "encoding_by_mark", "encoding_of", "encoding_problem", "head_lines"]

LATIN_1: Final = "latin-1"
_UTF_8: Final = "utf-8"
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_BLOCK_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 1 << 18  # read for a guess
_HEAD_LINES: Final = 20
_LONGEST_HEAD_BYTES: Final = 1 << 24  # where rows are so long that fewer bytes hold too few of them


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file; every byte of it is looked at, so that reading it cannot fail.

    Args:
        path: the file.

    Returns:
        encoding: ``utf-8``, ``utf-8-sig`` or ``utf-16`` where the file is valid in it, else ``latin-1``.

    Raises:
        DataError: where the file cannot be read, or holds zero bytes and so is no text.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_by_mark(file.read(4)) or _UTF_8
            file.seek(0)
            decoder = codecs.getincrementaldecoder(encoding)()
            zeros = False
            while block := file.read(_BLOCK_BYTES):
                zeros = zeros or 0 in block
                if decoder is not None:
                    decoder = _fed(decoder, block)
            if decoder is not None:
                decoder = _fed(decoder, b"", final=True)
    except OSError as error:
        raise DataError("A source can be read.", received=f"`{path}`: {error.strerror}") from None
    if zeros and (decoder is None or encoding != "utf-16"):
        raise DataError(
            "A file of texts holds letters.",
            received=f"`{path}`, which holds zero bytes",
            advice="Save it as UTF-8, or choose the format that it has.",
        )
    return LATIN_1 if decoder is None else encoding


def decode_text(content: bytes) -> tuple[str, str]:
    """Return a text and the encoding that it was in; Latin-1 takes whatever is no UTF.

    Args:
        content: all bytes of a file.
    """
    encoding = encoding_by_mark(content[:4]) or _UTF_8
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError:
        return content.decode(LATIN_1), LATIN_1


def encoding_by_mark(start: bytes) -> str:
    """Return the encoding that the byte-order mark at the start of a file says; empty where there is none."""
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), "")


def encoding_problem(name: str) -> Problem:
    """Return the problem of a file that was taken for Latin-1."""
    return Problem(
        key=name, kind="encoding", reason="It is no valid UTF-8 and was read as Latin-1; check its special letters."
    )


def head_lines(path: Path) -> list[str]:
    """Return the first lines of a text file with their ends; empty where it is none or cannot be read."""
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
    encoding = encoding_by_mark(content[:4]) or _UTF_8
    if 0 in content and encoding != "utf-16":
        return []
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content, whole)
    except UnicodeDecodeError:
        text = content.decode(LATIN_1)
    lines = list(io.StringIO(text, newline=""))  # str.splitlines would split at signs that end no line
    return lines if whole else lines[:-1]


def _fed(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> codecs.IncrementalDecoder | None:
    """Return the decoder, None where the bytes are not in its encoding."""
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return None
    return decoder
