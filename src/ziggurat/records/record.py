"""Form of one dataset record: its parts and its label, as one message of the codec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ziggurat.records.codec import DecodingError, pack, unpack

__all__ = ["FileReference", "Part", "Record", "pack_record", "unpack_record"]

_FILE: Final = "file"


class FileReference(NamedTuple):
    """A part that stays where it is: a file below the dataset's source.

    Args:
        path: relative to the source's folder, or absolute.
        size_bytes: its size when the dataset was made.
        modified_ns: when it was changed last, in nanoseconds since 1970, as it was then.
    """

    path: str
    size_bytes: int
    modified_ns: int


Part = bytes | str | np.ndarray | FileReference
"""An encoded image, a text, an array, or a file that is read when it is needed."""


class Record(NamedTuple):
    """One record.

    Args:
        parts: as the schema names them.
        label: a JSON value, in the form that the kind of the dataset says.
    """

    parts: tuple[Part, ...]
    label: Any


def pack_record(parts: Sequence[Part], label: Any) -> bytes:
    """Return a record as bytes for a store."""
    return pack([[(_FILE, *part) if isinstance(part, FileReference) else part for part in parts], label])


def unpack_record(value: bytes) -> Record:
    """Return the record in bytes of a store.

    Raises:
        DecodingError: where they are none.
    """
    try:
        parts, label = unpack(value)
        return Record(tuple(FileReference(*part[1:]) if type(part) is tuple else part for part in parts), label)
    except (TypeError, ValueError) as error:
        raise DecodingError("A record of a dataset is parts and a label.", received=str(error)) from error
