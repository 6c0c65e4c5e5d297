"""Decoding of a saved record's value to a datapoint, and the errors when that fails."""

from __future__ import annotations

import pickle
from typing import Any

from ziggurat.dataflow.base import Datapoint
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.codec import DecodingError, unpack

__all__ = ["PickledDataError", "decode_value"]

_PICKLE = b"\x80"


class PickledDataError(DataError):
    """Saved datapoints are pickles, and nobody said that they may be read."""

    code = "pickled_data"

    def __init__(self, key: Any) -> None:
        super().__init__(
            "A pickle can run any code of whoever wrote it, so it is read only where that is asked for.",
            received=f"a pickled value in record {_text(key)!r}, as Tensorpack writes them",
            advice="If you trust the file, pass `allow_pickle=True`, and save the flow anew to be rid of the pickles.",
        )


def decode_value(key: Any, value: bytes, *, allow_pickle: bool = False) -> Datapoint:
    """Return the datapoint in a record.

    Args:
        key: of the record, for errors; or a function that returns it, as reading it costs something.
        value: what ``ziggurat.records.codec.pack`` made, or a pickle.
        allow_pickle: whether a pickle is read.

    Returns:
        the datapoint, with arrays that may be written to.

    Raises:
        PickledDataError: for a pickle that is not allowed.
        DatapointError: where the value is neither, or damaged.
    """
    if value[:1] == _PICKLE:
        if not allow_pickle:
            raise PickledDataError(key)
        return _unpickled(key, value)
    try:
        return unpack(value, copy=True)
    except DecodingError as error:
        raise DatapointError(
            _text(key),
            f"it is no saved datapoint ({error.received}).",
            advice="Read other records as bytes, with `LMDBData` or `TFRecordData`.",
        ) from error


def _unpickled(key: Any, value: bytes) -> Datapoint:
    try:
        return pickle.loads(value)
    except Exception as error:  # what a damaged pickle raises is not limited
        raise DatapointError(_text(key), f"its pickle cannot be read ({type(error).__name__}: {error}).") from error


def _text(key: Any) -> Any:
    key = key() if callable(key) else key
    return key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key
