"""Forms: fields that were sent, files of browsers without scripts, and the field of an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

from starlette.datastructures import FormData, UploadFile

from ziggurat.errors import UsageError, ZigguratError
from ziggurat.specs.flags import json_or_text
from ziggurat.workspace.studio import Studio

__all__ = [
    "FieldError",
    "at_field",
    "json_or_text",
    "priority_of",
    "sent_files",
    "small_number",
    "take_files",
    "typed_texts",
    "whole_number",
]


_LONGEST: Final = 4096
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}")
_Found = TypeVar("_Found")


class FieldError(Exception):
    """What is wrong with a field of a form.

    Args:
        field: its name; empty where it is the form as a whole.
        error: of the tree.
    """

    def __init__(self, field: str, error: ZigguratError) -> None:
        super().__init__(field, error)
        self.field = field
        self.error = error


def typed_texts(form: FormData) -> dict[str, str]:
    """Return what was typed."""
    return {name: value[:_LONGEST] for name, value in form.items() if isinstance(value, str)}


def sent_files(form: FormData, name: str) -> list[UploadFile]:
    """Return the files of a field; an empty file field is sent without a name."""
    return [each for each in form.getlist(name) if isinstance(each, UploadFile) and each.filename]


def at_field(field: str, read: Callable[..., _Found], *values: Any) -> _Found:
    """Return what a function gives; an error of it becomes one of a field.

    Raises:
        FieldError: where it fails.
    """
    try:
        return read(*values)
    except ZigguratError as error:
        raise FieldError(field, error) from None


def whole_number(typed: Mapping[str, str], name: str, usual: int, least: int, most: int) -> int:
    """Return a whole number that was typed; the usual one where nothing was.

    Raises:
        FieldError: where it is none, or out of its range.
    """
    text = typed.get(name, "").strip()
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or not least <= int(text[:12]) <= most:
        error = UsageError(f"`{text[:50]}` is not a whole number from {least} to {most}, as `{name}` must be.")
        raise FieldError(name, error)
    return int(text)


def small_number(text: str) -> int | None:
    """Return a whole number from 0 with at most nine digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def priority_of(text: str) -> int:
    """Return the typed priority of a job; 0 for an empty text.

    Raises:
        UsageError: if it is not a whole number, or has more than 32 bits.
    """
    text = text.strip() or "0"
    if not _WHOLE.fullmatch(text) or not -(2**31) <= int(text) < 2**31:
        raise UsageError("A priority must be a whole number, such as 0 or -5.", received=text[:50])
    return int(text)


_BLOCK_BYTES: Final = 1 << 20
_SYSTEM: Final = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN", "System Volume Information"})


def take_files(studio: Studio, sent: Iterable[Any]) -> str:
    """Keep files that were sent; return the source that they make, empty where there are none.

    Raises:
        DataError: where a name leads elsewhere, or there is too much.
        StorageError: where the disk is full.
    """
    upload_id = source = ""
    for file in sent:
        if not isinstance(file, UploadFile) or not file.filename or is_hidden(file.filename):
            continue
        incoming = studio.uploads.add(file.filename, upload_id)
        with incoming:
            while block := file.file.read(_BLOCK_BYTES):
                incoming.write(block)
        upload = incoming.result()
        upload_id, source = upload.id, upload.source
    return source


def is_hidden(name: str) -> bool:
    """Tell whether a file is one of a system's own, which no dataset wants."""
    parts = PurePosixPath(name).parts
    return any((part.startswith(".") and part != "..") or part in _SYSTEM for part in parts)
