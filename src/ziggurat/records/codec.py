"""Codec between values and bytes, for record stores and between machines: plain data only, never a pickle.

A packed value is one message::

    bytes 0-3    magic, b"ZGV1"
    bytes 4-7    CRC-32C of everything from byte 8 to the end of the header, uint32
    bytes 8-15   length of the header, uint64
    bytes 16-23  length of the whole message, uint64
    header       MessagePack: the value, with an extension for each array, tuple, big integer and large `bytes`
    buffers      the content of arrays and large `bytes`, each padded to start at a multiple of 64 bytes

All numbers are little-endian. Reading a message runs no code of the sender's, costs memory in proportion to the
message only, and has no limit below 2**63 bytes. Buffers are in the order in which the header names them, so a
message has exactly one reading.

A record of a dataset is the value (parts, label); a message over a pipe is the length of a value (uint64) before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import IO, Any, Final, NamedTuple

import google_crc32c
import msgpack
import numpy as np

from ziggurat.errors import DataError

__all__ = [
    "LENGTH",
    "DecodingError",
    "EncodingError",
    "FileReference",
    "Part",
    "Record",
    "pack",
    "pack_parts",
    "pack_record",
    "read_frame",
    "unpack",
    "unpack_record",
    "write_frame",
]


ALIGN_BYTES = 64
ARRAY, SCALAR, TUPLE, BIG_INTEGER, BLOB = 1, 2, 3, 4, 5
"""Codes of the header's extensions."""
_LARGE_BYTES = 4096


class EncodingError(DataError, TypeError):
    """A value holds something that is no plain data, such as an object of a class."""

    code = "encoding"


class _ForeignError(Exception):
    """Something that cannot be packed, before its place is known."""


class _Blob:
    """A large ``bytes`` that travels as a buffer of its own."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def pack_header(value: Any) -> tuple[bytes, list[memoryview]]:
    """Return the header of ``value`` and the buffers that belong behind it, in order.

    Raises:
        EncodingError: where a part of ``value`` is no plain data.
    """
    buffers: list[memoryview] = []
    try:
        return _header(value, buffers), buffers
    except _ForeignError as error:
        received, advice = error.args
        raise EncodingError(
            "A record holds plain data only: None, bool, int, float, str, bytes, NumPy arrays and scalars of numbers, "
            "text and bytes, and lists, tuples and dicts of them.",
            received=f"{received}, at `value{_place(value)}`",
            advice=advice,
        ) from None


def _header(value: Any, buffers: list[memoryview]) -> bytes:
    try:
        return _pack_tree(_with_blobs(value, deep=False), buffers)
    except (ValueError, RecursionError):  # `bytes` of 4 GiB and more inside nested containers, or nesting without end
        buffers.clear()
    try:
        return _pack_tree(_with_blobs(value, deep=True), buffers)
    except (ValueError, RecursionError) as error:
        raise EncodingError(
            "A record is nested at most 500 levels deep, and no container holds itself.", received=str(error)
        ) from None


def _with_blobs(value: Any, *, deep: bool) -> Any:
    """Put large ``bytes`` aside: those directly in a datapoint, which is cheap to look at, or everywhere."""
    kind = type(value)
    inner = (lambda item: _with_blobs(item, deep=True)) if deep else _one_blob
    if kind is list:
        return [inner(item) for item in value]
    if kind is tuple:
        return tuple(inner(item) for item in value)
    if kind is dict:
        return {key: inner(item) for key, item in value.items()}
    return _one_blob(value)


def _one_blob(value: Any) -> Any:
    return _Blob(value) if type(value) is bytes and len(value) > _LARGE_BYTES else value


def _pack_tree(value: Any, buffers: list[memoryview]) -> bytes:
    def replace(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            header = _array_header(type(item), item.dtype, item.shape)
            content: Any = np.ascontiguousarray(item).reshape(-1).view(np.uint8) if item.nbytes else b""
            buffers.append(memoryview(content))
            return msgpack.ExtType(ARRAY, header)
        if isinstance(item, np.generic):
            return msgpack.ExtType(SCALAR, _array_header(np.ndarray, item.dtype, ()) + item.tobytes())
        if isinstance(item, tuple):
            return msgpack.ExtType(TUPLE, _packb(list(item), replace, buffers))
        if isinstance(item, _Blob):
            buffers.append(memoryview(item.data))
            return msgpack.ExtType(BLOB, len(item.data).to_bytes(8, "little"))
        return _plain(item)

    return _packb(value, replace, buffers)


def _packb(value: Any, replace: Any, buffers: list[memoryview]) -> bytes:
    already = len(buffers)
    packb: Any = msgpack.packb
    try:
        return packb(value, default=replace, strict_types=True)
    except OverflowError:  # an integer beyond 64 bits, which MessagePack does not offer to `default`
        del buffers[already:]
        return packb(_with_big_integers(value), default=replace, strict_types=True)


def _with_big_integers(value: Any) -> Any:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return msgpack.ExtType(BIG_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if isinstance(value, tuple):
        return tuple(_with_big_integers(item) for item in value)
    if isinstance(value, list):
        return [_with_big_integers(item) for item in value]
    if isinstance(value, dict):
        return {_with_big_integers(key): _with_big_integers(item) for key, item in value.items()}
    return value


def _plain(item: Any) -> Any:
    """Return the plain base of a subclass, for MessagePack to write."""
    bases: tuple[Any, ...] = (dict, list, str, bytes, int, float)
    for base in bases:
        if isinstance(item, base):
            return base(item)
    kind = f"an object of type `{type(item).__module__}.{type(item).__qualname__}`"
    raise _ForeignError(kind, "Turn it into plain data first, for example with MapData.")


@lru_cache(maxsize=1024)
def _array_header(kind: type, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    if issubclass(kind, np.ma.MaskedArray):
        raise _ForeignError("a masked array", "Pack its `.data` and its `.mask`.")
    descriptor: Any = None if dtype.hasobject else np.lib.format.dtype_to_descr(dtype)
    if descriptor is None or np.lib.format.descr_to_dtype(descriptor) != dtype:
        advice = "Use lists for objects, and a view such as `.view(numpy.uint16)` for a dtype that NumPy itself lacks."
        raise _ForeignError(f"an array of dtype `{dtype}`", advice)
    packb: Any = msgpack.packb
    return packb((descriptor, shape))


def _place(value: Any) -> str:
    """Return where in ``value`` the first thing stands that cannot be packed, as subscripts."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return ""
    for key, item in items:
        try:
            _header(item, [])
        except _ForeignError:
            return f"[{key!r}]{_place(item)}"
    return ""


_MAGIC = b"ZGV1"
_PREFIX = struct.Struct("<4sIQQ")
_PADDING = bytes(ALIGN_BYTES)


def pack(value: Any) -> bytes:
    """Return ``value`` as one message.

    Args:
        value: ``None``, a bool, int (of any size), float, str, bytes, NumPy scalar or array (of any dtype but objects),
            or a list, tuple or dict of such values, nested at will. Lists stay lists and tuples tuples. Of an array the
            dtype (byte order included), shape and content are kept, not the memory order. ``bytearray`` and
            ``memoryview`` come back as bytes, and subclasses (a named tuple, an ``OrderedDict``, an ``IntEnum``) as
            their plain base.

    Raises:
        EncodingError: for anything else; the message names the type and its place.
    """
    return b"".join(pack_parts(value))


def pack_parts(value: Any) -> list[Any]:
    """Return the message of ``pack()`` in pieces (bytes and memory views) that need not be copied together first.

    The views show the arrays themselves: write the pieces out before the arrays change.
    """
    header, buffers = pack_header(value)
    parts: list[Any] = [b"", header]
    position = _PREFIX.size + len(header)
    for buffer in buffers:
        padding = -position % ALIGN_BYTES
        parts += (_PADDING[:padding], buffer)
        position += padding + buffer.nbytes
    lengths = struct.pack("<QQ", len(header), position)
    checksum = google_crc32c.extend(google_crc32c.value(lengths), header)
    parts[0] = struct.pack("<4sI", _MAGIC, checksum) + lengths
    return parts


def unpack(buffer: Any, *, copy: bool = False) -> Any:
    """Return the value in a message.

    Args:
        buffer: bytes, a bytearray, a memory view, or anything with the buffer protocol.
        copy: whether arrays get memory of their own, which may be written to. Without it they are views of ``buffer``
            and keep it alive; they can be written to where ``buffer`` can. ``bytes`` are always copied.

    Raises:
        DecodingError: where the message is garbage, is cut off, has something after its end, or its header was changed.
            (The content of buffers has no checksum here: stores keep one.)
    """
    view = memoryview(buffer).cast("B")
    return unpack_header(_checked_header(view), view, _PREFIX.size, copy)


def _checked_header(view: memoryview) -> bytes:
    if view.nbytes < _PREFIX.size:
        raise damaged(f"{view.nbytes} bytes; the shortest message has {_PREFIX.size + 1}")
    magic, checksum, header_bytes, total_bytes = _PREFIX.unpack_from(view)
    if magic != _MAGIC:
        raise damaged(f"{view.nbytes} bytes that start with {bytes(view[:8])!r}")
    if total_bytes != view.nbytes:
        raise damaged(f"{view.nbytes} bytes of a message of {total_bytes}")
    if header_bytes > total_bytes - _PREFIX.size:
        raise damaged("a header that is longer than the message")
    start = _PREFIX.size
    header = bytes(view[start : start + header_bytes])
    if google_crc32c.extend(google_crc32c.value(bytes(view[8:start])), header) != checksum:
        raise damaged("a header whose checksum is wrong")
    return header


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
        raise DecodingError(
            f"A record of the dataset is damaged, not parts and a label: {str(error).rstrip('.')}."
        ) from error


MAX_BYTES: Final = 1 << 30
"""A longer message is a mistake: nothing of it is read."""

LENGTH: Final = struct.Struct("<Q")
"""Form of the length before each message."""


def read_frame(source: IO[bytes]) -> Any:
    """Return the next value; None at the end, also where that comes in the middle of a message.

    Raises:
        DecodingError: where it is too long, or no packed value.
    """
    header = source.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    if length > MAX_BYTES:
        raise DecodingError(f"A message has {length} bytes; {MAX_BYTES} is the most.")
    content = source.read(length)
    return unpack(content) if len(content) == length else None


def write_frame(target: IO[bytes], value: Any) -> None:
    """Write a value and flush.

    Raises:
        EncodingError: where it is no plain value; nothing is written then.
    """
    parts = [memoryview(part).cast("B") for part in pack_parts(value)]
    target.write(LENGTH.pack(sum(part.nbytes for part in parts)))
    for part in parts:
        target.write(part)
    target.flush()


class DecodingError(DataError, ValueError):
    """Bytes are no packed value: garbage, cut off, or changed on the way."""

    code = "decoding"


def unpack_header(header: bytes, view: memoryview, header_start: int, copy: bool) -> Any:
    """Return the value whose header is given; its buffers follow the header in ``view``.

    Raises:
        DecodingError: where header and buffers do not fit.
    """
    reader = _TreeReader(view, header_start + len(header), copy)
    try:
        value = reader.read(header)
    except DecodingError:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise damaged(f"a header that cannot be read ({error})") from error
    if reader.position != view.nbytes:
        raise damaged(f"{view.nbytes - reader.position} bytes that the header does not name")
    return value


def damaged(received: str) -> DecodingError:
    """Return the error for a message that is not as it was written."""
    return DecodingError(
        "A packed value is read as it was written.",
        received=received,
        advice="The data is damaged or cut off, or was not written by `ziggurat.records.codec.pack`.",
    )


class _TreeReader:
    """Reads a header, and takes the buffers in the order in which the header names them."""

    def __init__(self, view: memoryview, position: int, copy: bool) -> None:
        self.view = view
        self.position = position
        self.copy = copy

    def read(self, packed: bytes) -> Any:
        return msgpack.unpackb(packed, ext_hook=self._extension, strict_map_key=False)

    def _extension(self, code: int, data: bytes) -> Any:
        if code == ARRAY:
            return self._array(data)
        if code == TUPLE:
            return tuple(self.read(data))
        if code == SCALAR:
            return _scalar(data)
        if code == BLOB:
            return bytes(self._take(int.from_bytes(data, "little")))
        if code == BIG_INTEGER:
            return int.from_bytes(data, "little", signed=True)
        raise damaged(f"an extension of unknown kind {code}")

    def _array(self, data: bytes) -> np.ndarray:
        dtype, shape, size_bytes = _array_layout(data)
        content = self._take(size_bytes)
        if size_bytes == 0:
            return np.empty(shape, dtype)
        array = np.frombuffer(content, dtype).reshape(shape)
        return array.copy() if self.copy else array

    def _take(self, size_bytes: int) -> memoryview:
        start = self.position + -self.position % ALIGN_BYTES
        self.position = start + size_bytes
        if self.position > self.view.nbytes:
            raise damaged("a buffer that ends after the message")
        return self.view[start : self.position]


@lru_cache(maxsize=1024)
def _array_layout(data: bytes) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    dtype, shape = _dtype_and_shape(msgpack.unpackb(data, use_list=False))
    count = 1
    for length in shape:  # Python's integers: no overflow
        count *= length
    return dtype, shape, count * dtype.itemsize


def _dtype_and_shape(pair: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    descriptor, shape = pair
    dtype = np.lib.format.descr_to_dtype(_fields(descriptor))
    if dtype.hasobject or not all(type(length) is int and length >= 0 for length in shape):
        raise damaged(f"an array of dtype {dtype} and shape {shape}")
    return dtype, shape


def _fields(descriptor: Any) -> Any:
    """Return a dtype's descriptor with lists where MessagePack gave tuples: lists are what NumPy tells fields by."""
    if isinstance(descriptor, str):
        return descriptor
    return [(name, _fields(kind), *shape) for name, kind, *shape in descriptor]


def _scalar(data: bytes) -> Any:
    unpacker = msgpack.Unpacker(use_list=False)
    unpacker.feed(data)
    dtype, _shape = _dtype_and_shape(unpacker.unpack())
    content = data[unpacker.tell() :]
    if len(content) != dtype.itemsize:
        raise damaged("a scalar of the wrong size")
    return np.frombuffer(content, dtype)[0] if content else np.zeros((), dtype)[()]
