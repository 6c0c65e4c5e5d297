"""Text format of protocol buffers, as in ``.prototxt`` files: a tree of fields that remember their lines.

No schema is needed to read it. Who uses a message asks for its fields by name and kind, and may refuse those that it
does not know. Strings are joined and unescaped, comments begin with ``#``, and ``[a, b]`` is a repeated field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ziggurat.compat.caffe.errors import CaffeError

__all__ = ["Entry", "Message", "Scalar", "parse_text", "quoted"]

_MOST_BYTES: Final = 4 << 20
_MOST_FIELDS: Final = 60_000
_DEEPEST: Final = 40
_LARGEST: Final = 1 << 62
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\#[^\n]*)
    |(?P<line>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z0-9_.+\-]+)
    |(?P<sign>[{}<>:;,\[\]])""",
    re.VERBOSE,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ENDS: Final = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Scalar:
    """A number, a word or a string.

    Args:
        text: as it stands there; of a string what is between its quotes, unescaped.
        is_string: whether it was in quotes.
    """

    text: str
    is_string: bool = False


@dataclass(frozen=True)
class Entry:
    """A field of a message.

    Args:
        name: of the field.
        value: what it holds.
        line: where it begins, from 1.
    """

    name: str
    value: Scalar | Message
    line: int


@dataclass
class Message:
    """A message: its fields in their order.

    Args:
        line: where it begins, from 1.
        entries: its fields.
        kind: what it is called in errors.
    """

    line: int = 0
    entries: list[Entry] = field(default_factory=list)
    kind: str = "the file"

    # ---- fields by kind; each raises ``CaffeError`` where the file has something else there

    def only(self, *names: str) -> None:
        """Refuse fields with other names: what they ask for would be left undone in silence."""
        for entry in self.entries:
            if entry.name not in names:
                raise CaffeError(
                    f"`{entry.name}` is not a field of {self.kind} that an import knows.",
                    line=entry.line,
                    advice=f"Known: {', '.join(sorted(names))}.",
                )

    def has(self, name: str) -> bool:
        """Return whether there is a field of that name."""
        return any(entry.name == name for entry in self.entries)

    def all(self, name: str) -> list[Entry]:
        """Return all fields of a name."""
        return [entry for entry in self.entries if entry.name == name]

    def line_of(self, name: str) -> int:
        """Return where a field begins; that of the message where there is none."""
        return next((entry.line for entry in self.entries if entry.name == name), self.line)

    def messages(self, name: str) -> list[Message]:
        """Return the messages of a repeated field."""
        return [self._message(entry) for entry in self.all(name)]

    def message(self, name: str) -> Message:
        """Return the message of a field; an empty one where it is not there."""
        entry = self._one(name)
        return Message(self.line, kind=f"`{name}`") if entry is None else self._message(entry)

    def text(self, name: str, default: str = "") -> str:
        """Return a string, or a word."""
        entry = self._one(name)
        return default if entry is None else _scalar(entry).text

    def texts(self, name: str) -> list[str]:
        """Return the strings of a repeated field."""
        return [_scalar(entry).text for entry in self.all(name)]

    def flag(self, name: str, default: bool) -> bool:
        """Return whether a flag is set."""
        entry = self._one(name)
        if entry is None:
            return default
        word = _scalar(entry).text
        if word in ("true", "True", "t", "1"):
            return True
        if word in ("false", "False", "f", "0"):
            return False
        raise _wrong(entry, "`true` or `false`")

    def integer(self, name: str, default: int, least: int = 0, most: int = 1 << 31) -> int:
        """Return a whole number from ``least`` to ``most``."""
        entry = self._one(name)
        return default if entry is None else _integer(entry, least, most)

    def integers(self, name: str, least: int = 0, most: int = 1 << 31) -> list[int]:
        """Return the whole numbers of a repeated field."""
        return [_integer(entry, least, most) for entry in self.all(name)]

    def number(self, name: str, default: float) -> float:
        """Return a finite number."""
        entry = self._one(name)
        return default if entry is None else _number(entry)

    def numbers(self, name: str) -> list[float]:
        """Return the finite numbers of a repeated field."""
        return [_number(entry) for entry in self.all(name)]

    def choice(self, name: str, words: Sequence[str], default: str, first: int = 0) -> str:
        """Return one of some words, which a file may also name by number.

        Args:
            name: of the field.
            words: in the order of their numbers.
            default: where it is not there.
            first: number of the first word.
        """
        entry = self._one(name)
        if entry is None:
            return default
        word = _scalar(entry).text
        if word.isdecimal() and 0 <= int(word[:9]) - first < len(words):
            return words[int(word[:9]) - first]
        if word not in words:
            raise _wrong(entry, " or ".join(f"`{each}`" for each in words))
        return word

    def _message(self, entry: Entry) -> Message:
        if not isinstance(entry.value, Message):
            raise _wrong(entry, "a message in braces")
        return entry.value

    def _one(self, name: str) -> Entry | None:
        found = self.all(name)
        if len(found) > 1:
            raise CaffeError(f"`{name}` may stand only once in {self.kind}.", line=found[1].line)
        return found[0] if found else None


def quoted(text: str) -> str:
    """Return a part of a file for an error, short and printable."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


def parse_text(text: str) -> Message:
    """Return the message of a text.

    Raises:
        CaffeError: where it is not in the text format, names the line; or is too large or too deep.
    """
    if len(text) > _MOST_BYTES:
        raise CaffeError(f"The text has {len(text):,} characters; {_MOST_BYTES:,} is the most.")
    return _Parser(text).message()


class _Parser:
    """Reads one text, from its first token to its last."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._fields = 0
        self._line = 1
        self._kind = self._word = ""
        self._next()

    def message(self) -> Message:
        """Return the whole text as a message; open braces are kept in a list, so that depth costs no stack."""
        root = Message(1)
        open_ones: list[tuple[Message, str]] = []
        current = root
        while True:
            if not self._kind:
                if open_ones:
                    raise CaffeError(
                        "A message has an end.", line=current.line, received=f"{current.kind} without `}}`"
                    )
                return root
            if open_ones and self._kind == "sign" and self._word == open_ones[-1][1]:
                open_ones.pop()
                current = open_ones[-1][0] if open_ones else root
                self._next()
                self._separator()
                continue
            line = self._line
            name = self._name()
            is_colon = self._take(":")
            if self._kind == "sign" and self._word in _ENDS:
                if len(open_ones) >= _DEEPEST:
                    raise CaffeError(f"Messages lie in each other at most {_DEEPEST} deep.", line=line)
                inner = Message(line, kind=f"`{name}`")
                self._add(current, Entry(name, inner, line))
                open_ones.append((inner, _ENDS[self._word]))
                current = inner
                self._next()
                continue
            if not is_colon:
                raise self._unexpected("`:` or `{`")
            self._values(current, name, line)
            self._separator()

    def _values(self, message: Message, name: str, line: int) -> None:
        """Read a scalar, or a list of scalars."""
        if not self._take("["):
            self._add(message, Entry(name, self._scalar(), line))
            return
        if self._take("]"):
            return
        while True:
            self._add(message, Entry(name, self._scalar(), self._line))
            if self._take("]"):
                return
            if not self._take(","):
                raise self._unexpected("`,` or `]`")

    def _scalar(self) -> Scalar:
        if self._kind == "string":
            parts = []
            while self._kind == "string":
                parts.append(_unescaped(self._word[1:-1]))
                self._next()
            return Scalar("".join(parts), True)
        if self._kind != "word":
            raise self._unexpected("a value")
        word = self._word
        self._next()
        return Scalar(word)

    def _name(self) -> str:
        if self._kind != "word" or not _NAME.fullmatch(self._word):
            raise self._unexpected("the name of a field")
        name = self._word
        self._next()
        return name

    def _add(self, message: Message, entry: Entry) -> None:
        self._fields += 1
        if self._fields > _MOST_FIELDS:
            raise CaffeError(f"A text has at most {_MOST_FIELDS:,} fields.", line=entry.line)
        message.entries.append(entry)

    def _separator(self) -> None:
        if not self._take(","):
            self._take(";")

    def _take(self, sign: str) -> bool:
        if self._kind == "sign" and self._word == sign:
            self._next()
            return True
        return False

    def _next(self) -> None:
        self._kind, self._word, self._line = next(self._tokens, ("", "", self._line))

    def _unexpected(self, wanted: str) -> CaffeError:
        received = quoted(self._word) if self._kind else "the end of the file"
        return CaffeError(f"Here is {wanted} expected.", line=self._line, received=received)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and line of each token."""
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise CaffeError(
                "This is not in the text format of protocol buffers.",
                line=line,
                received=quoted(text[place : place + 20].split("\n")[0]),
                advice='A `.prototxt` holds fields such as `name: "conv1"`; a `.caffemodel` belongs to the weights.',
            )
        place = match.end()
        kind = str(match.lastgroup)
        if kind == "line":
            line += 1
        elif kind != "space":
            yield kind, match.group(), line


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text) if "\\" in text else text


def _scalar(entry: Entry) -> Scalar:
    if not isinstance(entry.value, Scalar):
        raise _wrong(entry, "a value, and no message")
    return entry.value


def _integer(entry: Entry, least: int, most: int) -> int:
    word = _scalar(entry).text
    try:
        value = int(word, 0) if len(word) <= 24 else _LARGEST
    except ValueError:
        raise _wrong(entry, "a whole number") from None
    if not least <= value <= most:
        raise _wrong(entry, f"a whole number from {least} to {most}")
    return value


def _number(entry: Entry) -> float:
    word = _scalar(entry).text
    try:
        value = float(word.removesuffix("f") if word[:1] in "+-.0123456789" else word) if len(word) <= 60 else math.inf
    except ValueError:
        raise _wrong(entry, "a number") from None
    if not math.isfinite(value):
        raise _wrong(entry, "a finite number")
    return value


def _wrong(entry: Entry, wanted: str) -> CaffeError:
    received = quoted(entry.value.text) if isinstance(entry.value, Scalar) else "a message"
    return CaffeError(
        f"`{entry.name}` is {received}, not {wanted}.",
        line=entry.line,
    )
