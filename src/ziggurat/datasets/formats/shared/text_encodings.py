"""Encodings of text: by mark, content or XML declaration, and the question where bytes speak for an Asian one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ziggurat.datasets.importer import ImporterOption
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = [
    "CP1252",
    "ENCODING_OPTION",
    "LATIN_1",
    "UTF_8",
    "asian_encodings",
    "codec_named",
    "encoding_by_mark",
    "encoding_problem",
    "encoding_question",
    "is_fallback",
    "single_byte_encoding",
    "xml_text",
]

UTF_8: Final = "utf-8"
CP1252: Final = "cp1252"
LATIN_1: Final = "latin-1"

ENCODING_OPTION: Final = ImporterOption(
    name="encoding",
    type=str,
    default="",
    help="Encoding of the text, such as utf-8, cp1252, gb18030, shift_jis or cp1251; empty to find it out.",
)
"""Option of all importers that read text files."""

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_NOT_CP1252: Final = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_LARGER: Final = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "iso8859-1": CP1252}
"""Encoding → the one that has its characters and those that programs write under its name all the same."""

_DECLARED: Final = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")

_COMMON: Final = {
    "gb18030": ("gb2312", ((0xA1, 0xA1), (0xA3, 0xA5), (0xB0, 0xD7))),
    "shift_jis": ("cp932", ((0x81, 0x83), (0x88, 0x98))),
    "big5": ("big5", ((0xA1, 0xA2), (0xA4, 0xC6))),
    "euc_jp": ("euc_jp", ((0xA1, 0xA1), (0xA4, 0xA5), (0xB0, 0xCF))),
    "euc_kr": ("euc_kr", ((0xA1, 0xA1), (0xB0, 0xC8))),
}
"""Encoding → its codec, and the first bytes of the characters that nearly all texts consist of."""

_RUN: Final = re.compile(r"[^\x00-\x7f]+")
_LEAST_SHARE: Final = 0.9  # of the characters beyond ASCII that stand together as in an Asian text
_LEAST_COMMON: Final = 0.6
_MOST_WRONG: Final = 0.01
_SHOWN_CELLS: Final = 3
_CELL_CHARACTERS: Final = 20


def encoding_by_mark(start: bytes) -> str:
    """Return the encoding that the byte-order mark at the start of a file says; empty where there is none."""
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), "")


def single_byte_encoding(content: bytes) -> str:
    """Return cp1252, or Latin-1 for bytes that cp1252 does not have; each decodes every content."""
    return LATIN_1 if _NOT_CP1252.search(content) else CP1252


def is_fallback(encoding: str) -> bool:
    """Say whether an encoding is one that takes all bytes, and so is a guess."""
    return encoding in (CP1252, LATIN_1)


def codec_named(name: str) -> str:
    """Return the codec for the name of an encoding, of any that Python has for text.

    Raises:
        DataError: where there is none; ``details["field"]`` names the option ``encoding``.
    """
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # some codecs of Python are no encodings of text
    except (LookupError, ValueError):
        raise DataError(
            "There is no such encoding.",
            received=repr(name),
            advice="Set the option `encoding` to one such as utf-8, utf-16, cp1252, gb18030, big5, shift_jis, euc_kr, "
            "cp1251 or iso8859-2.",
            details={"field": "options.encoding"},
        ) from None
    return _LARGER.get(found.name, found.name)


def xml_text(content: bytes) -> str:
    """Return the text of an XML file: by its mark, its declaration (any encoding of Python's), or as UTF-8.

    ``xml.etree.ElementTree.fromstring`` takes it with its declaration, which does not count any more.

    Raises:
        ValueError: where it declares an encoding that does not exist, or bytes are not in it.
    """
    encoding = encoding_by_mark(content[:4])
    if not encoding:
        declared = _DECLARED.match(content[:512])
        encoding = declared[1].decode() if declared else UTF_8
        try:
            encoding = _LARGER.get(codecs.lookup(encoding).name, encoding)
        except LookupError:
            raise ValueError(f"it declares the encoding {encoding!r}, which does not exist") from None
    if encoding == CP1252:
        encoding = single_byte_encoding(content)
    return content.decode(encoding)


def asian_encodings(content: bytes) -> list[str]:
    """Return the Asian encodings that bytes speak for, the likeliest first; none for Western texts.

    Accents and curly quotes of Western texts are often valid there as well, each with the letter behind it. They stand
    between letters, though, and most become characters that hardly a text has.
    """
    if not any(byte >= 0x80 for byte in content):
        return []
    found = {name: _common_share(content, name) for name in _COMMON}
    return sorted((name for name, share in found.items() if share >= _LEAST_COMMON), key=lambda name: -found[name])


def encoding_question(name: str, lines: Iterable[bytes], likely: list[str]) -> DataError:
    """Return the error that asks for the encoding of a file, with both readings of three cells.

    Args:
        name: of the file.
        lines: with bytes beyond ASCII.
        likely: Asian encodings.
    """
    asian = _COMMON[likely[0]][0] if likely[0] != "gb18030" else "gb18030"
    cells = [cell for line in lines for cell in re.split(r"[,;\t\r\n]+", line.decode(asian, "replace"))]
    chosen = list(dict.fromkeys(cell.strip(' "') for cell in cells if not cell.isascii()))[:_SHOWN_CELLS]
    shown = [cell[:_CELL_CHARACTERS] for cell in chosen]
    as_western = [cell.encode(asian, "replace").decode(LATIN_1) for cell in shown]
    as_western = [text.encode(LATIN_1).decode(CP1252, "replace") for text in as_western]
    return DataError(
        f"The encoding of the text is not clear. As {likely[0]} it reads {_quoted(shown)}, as cp1252 "
        f"{_quoted(as_western)}.",
        received=f"`{name}`, which is no UTF-8",
        advice=f"Set the option `encoding` to {', '.join(likely)} or cp1252, or save the file as UTF-8.",
        details={"field": "options.encoding", "values": [*likely, CP1252]},
    )


def encoding_problem(name: str, encoding: str) -> Problem:
    """Return the problem of a file that was taken for cp1252 or Latin-1."""
    title = "Latin-1" if encoding == LATIN_1 else encoding
    reason = (
        f"Text that is no valid UTF-8 was read as {title}; check its special letters. "
        "The option `encoding` names another encoding."
    )
    return Problem(key=name, kind="encoding", reason=reason)


def _quoted(texts: list[str]) -> str:
    return ", ".join(f"“{text}”" for text in texts)


@lru_cache
def _common(name: str) -> frozenset[str]:
    codec, leads = _COMMON[name]
    firsts = [lead for first, last in leads for lead in range(first, last + 1)]
    pairs = (bytes((lead, trail)).decode(codec, "replace") for lead in firsts for trail in range(0x40, 0xFF))
    found = frozenset(text for text in pairs if len(text) == 1 and text != "\ufffd")
    return found | _common("big5") if name == "gb18030" else found  # it holds traditional characters, too


def _common_share(content: bytes, name: str) -> float:
    """Return the share of common characters among all beyond ASCII; 0 where they do not stand as in an Asian text."""
    codec = "gb18030" if name == "gb18030" else _COMMON[name][0]
    text, common = content.decode(codec, "replace"), _common(name)
    total = wrong = together = usual = 0
    different: set[str] = set()
    for run in _RUN.finditer(text):
        characters = run[0]
        total += len(characters)
        wrong += characters.count("\ufffd")
        around = text[max(0, run.start() - 1) : run.start()] + text[run.end() : run.end() + 1]
        if len(characters) == 1 and (any(map(str.isalpha, around)) or not _may_stand_alone(characters, codec)):
            continue
        together += len(characters)
        usual += sum(each in common for each in characters)
        different.update(characters)
    if not total or wrong > _MOST_WRONG * total or together < _LEAST_SHARE * total or len(different) < 2:
        return 0.0
    return usual / total


def _may_stand_alone(character: str, codec: str) -> bool:
    """Say whether one character alone is more than a Western letter and the letter behind it."""
    written = character.encode(codec, "ignore")
    return len(written) == 2 and (written[1] >= 0x80 or (codec == "cp932" and written[0] <= 0x98))
