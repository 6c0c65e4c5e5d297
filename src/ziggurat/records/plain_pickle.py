"""Safe reading of old pickle files: containers and plain values, never code.

A pickle may name any function of any module and have it called. The reader here refuses every name that its caller
did not list, before anything is imported or called.
"""

from __future__ import annotations

import codecs
import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ziggurat.errors import DataError

__all__ = ["ARRAY_NAMES", "load_plain_pickle"]


class PickleRefusedError(DataError):
    """A pickle names something that is not plain data, or is no whole pickle."""

    code = "pickle_refused"


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    # How Python 2's strings are written by protocols 0 to 2; any other codec might do more than encode.
    if encoding != "latin1":
        raise PickleRefusedError(f"A pickle has byte strings in the encoding {encoding}, not latin1.")
    return codecs.encode(text, "latin1")


def _array_from_nothing(kind: type, shape: Any, typecode: Any) -> np.ndarray:
    # The array's real shape and content follow as its state.
    if kind is not np.ndarray:
        raise PickleRefusedError(f"A pickle has an array of the class {kind!r}, not a plain array.")
    return np.ndarray.__new__(np.ndarray, shape, typecode)


ARRAY_NAMES: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
    **{(module, "_reconstruct"): _array_from_nothing for module in ("numpy.core.multiarray", "numpy._core.multiarray")},
}
"""What pickled NumPy arrays of numbers name."""


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, names: Mapping[tuple[str, str], Callable[..., Any]], encoding: str) -> None:
        super().__init__(io.BytesIO(data), encoding=encoding)
        self._names = names

    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return self._names[module_name, global_name]
        except KeyError:
            raise PickleRefusedError(
                "A pickle is read here only where it holds plain data, since any other one could run code.",
                received=f"one that names `{module_name}.{global_name}`",
            ) from None

    def persistent_load(self, pid: Any) -> Any:
        raise PickleRefusedError("A pickle of plain data refers to nothing outside.", received=repr(pid))


def load_plain_pickle(data: bytes, *, names: Mapping[tuple[str, str], Any] = {}, encoding: str = "bytes") -> Any:
    """Return what is in a pickle of plain values.

    Args:
        data: the pickle; what follows its end is ignored.
        names: the globals that it may name, with what to call for them; none by default, which leaves lists, tuples,
            dicts, sets, text, bytes, numbers and None.
        encoding: how strings of Python 2 are read: "bytes" leaves them bytes.

    Raises:
        PickleRefusedError: where it names anything else, or is damaged.
    """
    try:
        return _PlainUnpickler(data, names, encoding).load()
    except PickleRefusedError:
        raise
    except Exception as error:  # what a damaged pickle raises is not limited
        raise PickleRefusedError(
            "A pickle is read as it was written.", received=f"one that is damaged ({type(error).__name__}: {error})"
        ) from error
