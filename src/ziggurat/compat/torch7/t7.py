"""Files of Torch (``.t7``), binary and text: numbers, strings, tables, objects, booleans, tensors over shared storages.

Nothing that a file names is executed or looked up: an object is its class name and its fields. Functions are refused
where they would be needed, and read over elsewhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.compat.torch7.errors import TorchError

__all__ = ["Function", "TorchObject", "parse_t7", "read_t7"]

_MOST_BYTES: Final = 4 << 30
_MOST_OBJECTS: Final = 1 << 20
_MOST_EXPANDED: Final = 1 << 24
_DEEPEST: Final = 120
_MOST_AXES: Final = 16
_LONGEST: Final = 1 << 20
_NIL, _NUMBER, _STRING, _TABLE, _TORCH, _BOOLEAN = range(6)
_FUNCTIONS: Final = (6, 7, 8)
_TYPES: Final = {
    "Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "<i1",
    "Byte": "<u1",
    "Cuda": "<f4", "CudaDouble": "<f8", "CudaHalf": "<f2", "CudaLong": "<i8", "CudaInt": "<i4", "CudaShort": "<i2",
    "CudaChar": "<i1", "CudaByte": "<u1",
}  # fmt: skip


@dataclass
class TorchObject:
    """An object: its class and its fields.

    Args:
        kind: name of the class, such as ``nn.Linear``.
        fields: name → value.
    """

    kind: str
    fields: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """A function of Lua, which is not read."""


def read_t7(path: Path) -> Any:
    """Return what a file holds.

    Raises:
        TorchError: if the file is damaged, too large, or cannot be read.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise TorchError("A model of Torch is read up to 4 GiB.", received=f"`{path.name}` of {size:,} bytes")
        content = np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
    except (OSError, ValueError) as error:
        raise TorchError("The file must be readable.", received=f"`{path.name}`: {error}") from None
    return parse_t7(content.data)


def parse_t7(content: bytes | memoryview) -> Any:
    """Return what bytes of a file hold: numbers, texts, dictionaries, arrays, ``TorchObject`` and ``Function``.

    Raises:
        TorchError: if they are damaged, or too large.
    """
    view = memoryview(content)
    is_text = len(view) > 1 and bytes(view[:1]).isdigit() and bytes(view[1:2]) in (b"\n", b"\r", b" ")
    reader = (_TextReader if is_text else _Reader)(view)
    return reader.value(0)


class _Reader:
    """Reads the binary form, with little-endian numbers of 64 bits.

    Args:
        content: of the file.
    """

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.place = 0
        self._known: dict[int, Any] = {}
        self._count = 0

    # ---- parts of the form

    def take(self, count: int) -> memoryview:
        """Return the next bytes."""
        if count < 0 or count > len(self.content) - self.place:
            raise self.damaged(f"{count:,} bytes are announced")
        found = self.content[self.place : self.place + count]
        self.place += count
        return found

    def integer(self) -> int:
        return int(struct.unpack("<i", self.take(4))[0])

    def long(self) -> int:
        return int(struct.unpack("<q", self.take(8))[0])

    def double(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def text(self) -> str:
        size = self.integer()
        if size > _LONGEST:
            raise self.damaged(f"a text of {size:,} bytes")
        return bytes(self.take(size)).decode("utf-8", "replace")

    def numbers(self, kind: str, count: int) -> np.ndarray:
        """Return the elements of a storage."""
        element = np.dtype(kind)
        return np.frombuffer(self.take(count * element.itemsize if count >= 0 else -1), element)

    def damaged(self, received: str) -> TorchError:
        """Return an error with the place in the file."""
        return TorchError(
            "The file must be a whole `.t7` file of Torch.", received=f"{received} at byte {self.place:,}"
        )

    # ---- values

    def value(self, depth: int) -> Any:
        """Return the next value."""
        self._count += 1
        if depth > _DEEPEST or self._count > _MOST_OBJECTS:
            raise TorchError("A model of Torch has at most a million values, nested 120 deep.")
        kind = self.integer()
        if kind == _NIL:
            return None
        if kind == _NUMBER:
            return self.double()
        if kind == _STRING:
            return self.text()
        if kind == _BOOLEAN:
            return self.integer() != 0
        if kind == _TABLE:
            return self._table(depth)
        if kind == _TORCH:
            return self._object(depth)
        if kind in _FUNCTIONS:
            return self._function(kind, depth)
        raise self.damaged(f"a value of the unknown kind {kind}")

    def _table(self, depth: int) -> Any:
        index = self.integer()
        if index in self._known:
            return self._known[index]
        found: dict[Any, Any] = {}
        self._known[index] = found
        for _ in range(self._size()):
            key, value = self.value(depth + 1), self.value(depth + 1)
            if isinstance(key, float) and key.is_integer():
                key = int(key)
            if isinstance(key, int | float | str | bool):
                found[key] = value
        return found

    def _size(self) -> int:
        size = self.integer()
        if not 0 <= size <= _MOST_OBJECTS:
            raise self.damaged(f"a table of {size:,} fields")
        return size

    def _function(self, kind: int, depth: int) -> Function:
        index = self.integer() if kind != 6 else -self._count
        if index not in self._known:
            self._known[index] = Function()
            self.text()
            self.value(depth + 1)  # what it was closed over
        return Function()

    def _object(self, depth: int) -> Any:
        index = self.integer()
        if index in self._known:
            return self._known[index]
        name = self.text()
        if name.startswith("V "):
            name = self.text()
        library, _, kind = name.rpartition(".")
        if library == "torch" and kind.endswith("Tensor") and kind.removesuffix("Tensor") in _TYPES:
            self._known[index] = None  # a tensor cannot hold itself
            self._known[index] = found = self._tensor(depth)
            return found
        if library == "torch" and kind.endswith("Storage") and kind.removesuffix("Storage") in _TYPES:
            size = self.long()
            self._known[index] = values = self.numbers(_TYPES[kind.removesuffix("Storage")], size)
            return values
        made = TorchObject(name[:200])
        self._known[index] = made
        fields = self.value(depth + 1)
        made.fields = fields if isinstance(fields, dict) else {}
        return made

    def _tensor(self, depth: int) -> np.ndarray:
        axes = self.integer()
        if not 0 <= axes <= _MOST_AXES:
            raise self.damaged(f"a tensor of {axes} axes")
        sizes = [self.long() for _ in range(axes)]
        strides = [self.long() for _ in range(axes)]
        first = self.long() - 1
        storage = self.value(depth + 1)
        if not axes or storage is None:
            return np.empty(0, np.float32)
        if not isinstance(storage, np.ndarray):
            raise self.damaged("a tensor without a storage")
        total = 1
        for size in sizes:
            if size < 1:
                return np.empty(0, storage.dtype)
            total *= size
        last = first + sum((size - 1) * stride for size, stride in zip(sizes, strides))
        if first < 0 or min(strides) < 0 or last >= len(storage):
            raise self.damaged(f"a tensor beyond its {len(storage):,} numbers")
        if total > max(len(storage), _MOST_EXPANDED):
            raise self.damaged(f"a tensor of {total:,} numbers")
        steps = [stride * storage.itemsize for stride in strides]
        return np.lib.stride_tricks.as_strided(storage[first:], sizes, steps, writeable=False)


class _TextReader(_Reader):
    """Reads the text form: numbers with blanks between."""

    def _word(self) -> str:
        content, size = self.content, len(self.content)
        while self.place < size and content[self.place] in b" \n\r\t":
            self.place += 1
        first = self.place
        while self.place < size and content[self.place] not in b" \n\r\t" and self.place - first < 64:
            self.place += 1
        if first == self.place:
            raise self.damaged("the end")
        return bytes(content[first : self.place]).decode("latin-1")

    def integer(self) -> int:
        word = self._word()
        try:
            value = int(word)
        except ValueError:
            raise self.damaged(f"`{word}` instead of a whole number") from None
        if abs(value) > 1 << 62:
            raise self.damaged("a number beyond 64 bits")
        return value

    long = integer

    def double(self) -> float:
        word = self._word()
        try:
            return float(word)
        except ValueError:
            raise self.damaged(f"`{word}` instead of a number") from None

    def text(self) -> str:
        size = self.integer()
        if not 0 <= size <= _LONGEST:
            raise self.damaged(f"a text of {size:,} bytes")
        self.take(1)  # the line's end
        return bytes(self.take(size)).decode("utf-8", "replace")

    def numbers(self, kind: str, count: int) -> np.ndarray:
        if not 0 <= count <= len(self.content) - self.place:
            raise self.damaged(f"a storage of {count:,} numbers")
        if kind in ("<u1", "<i1"):  # bytes stand as they are
            self.take(1)
            return np.frombuffer(self.take(count), kind)
        return np.array([self.double() for _ in range(count)], np.float64).astype(kind)
