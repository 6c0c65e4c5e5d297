"""Messages and files of DIGITS and Caffe: ``Datum``, ``BlobProto`` (caffe.proto), and the mean image of the exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ziggurat.dataflow.image_codec import encode_image, highest_value
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.exports import Export, pixels_of
from ziggurat.errors import DatapointError
from ziggurat.protobuf_wire import (
    FIXED32,
    WireFormatError,
    as_message,
    bytes_field,
    fields,
    fixed_size_values,
    integer_field,
    integers,
    signed,
)

__all__ = [
    "MEAN_QUALITY",
    "Datum",
    "ImageShape",
    "pack_blob",
    "pack_datum",
    "unpack_blob",
    "unpack_datum",
    "write_mean",
]

MEAN_QUALITY: Final = 90


@dataclass(frozen=True, kw_only=True)
class Datum:
    """One record of Caffe.

    Args:
        data: an encoded image, or (channels, height, width) uint8; empty where the values are floats.
        values: the floats, (channels, height, width) float32; empty where there are bytes.
        channels: of the array; 0 if not given.
        height_px: of the array; 0 if not given.
        width_px: of the array; 0 if not given.
        label: number of the class; 0 if not given.
        encoded: whether ``data`` is an encoded image.
    """

    data: bytes = b""
    values: np.ndarray | None = None
    channels: int = 0
    height_px: int = 0
    width_px: int = 0
    label: int = 0
    encoded: bool = False

    def array(self) -> np.ndarray:
        """Return the values as they are stored: (channels, height, width) uint8 or float32.

        Raises:
            WireFormatError: where there are more or fewer values than the shape says, or none at all.
        """
        flat = np.frombuffer(self.data, np.uint8) if self.data else self.values
        shape = (self.channels, self.height_px, self.width_px)
        if self.encoded or flat is None or not flat.size or flat.size != shape[0] * shape[1] * shape[2]:
            held = "an encoded image" if self.encoded else f"{0 if flat is None else flat.size} values"
            raise WireFormatError("A Datum of Caffe has as many values as its shape says.", received=f"{held}, {shape}")
        return flat.reshape(shape)


def unpack_datum(message: bytes | memoryview) -> Datum:
    """Return the record in a serialized ``Datum``.

    Raises:
        WireFormatError: where it is none.
    """
    numbers: dict[int, int] = {}
    data = b""
    for number, content in fields(message):
        if isinstance(content, int):
            numbers[number] = content
        elif number == 4:
            data = bytes(content)
    return Datum(
        data=data,
        values=None if data else np.frombuffer(fixed_size_values(message, 6, 4), "<f4"),
        channels=numbers.get(1, 0),
        height_px=numbers.get(2, 0),
        width_px=numbers.get(3, 0),
        label=signed(numbers.get(5, 0)),
        encoded=bool(numbers.get(7, 0)),
    )


def pack_datum(datum: Datum) -> bytes:
    """Return a serialized ``Datum``."""
    head = integer_field(1, datum.channels) + integer_field(2, datum.height_px) + integer_field(3, datum.width_px)
    if datum.values is None:
        return head + bytes_field(4, datum.data) + integer_field(5, datum.label) + integer_field(7, int(datum.encoded))
    # Old Caffe declares the floats without packing; every reader of the format takes both forms.
    floats = np.ascontiguousarray(datum.values, "<f4").reshape(-1)
    keyed = np.empty(len(floats), np.dtype([("key", "u1"), ("value", "<f4")]))
    keyed["key"], keyed["value"] = 6 << 3 | FIXED32, floats
    return head + integer_field(5, datum.label) + keyed.tobytes()


def unpack_blob(message: bytes) -> np.ndarray:
    """Return the array in a serialized ``BlobProto``, float32: (N, C, H, W), or the shape that newer files name.

    Raises:
        WireFormatError: where it is none.
    """
    sizes = {1: 1, 2: 1, 3: 1, 4: 1}
    shape: list[int] = []
    for number, content in fields(message):
        if number in sizes and isinstance(content, int):
            sizes[number] = content
        elif number == 7:
            shape = integers(as_message(content))
    values = np.frombuffer(fixed_size_values(message, 5, 4), "<f4")
    try:
        return values.reshape(shape or list(sizes.values()))
    except ValueError:
        raise WireFormatError(
            "A BlobProto of Caffe has as many values as its shape says.",
            received=f"{values.size} values, {tuple(shape or sizes.values())}",
        ) from None


def pack_blob(values: np.ndarray) -> bytes:
    """Return a serialized ``BlobProto`` of an array (N, C, H, W) float32."""
    head = b"".join(integer_field(number, size) for number, size in enumerate(values.shape, start=1))
    return head + bytes_field(5, np.ascontiguousarray(values, "<f4").tobytes())


class ImageShape:
    """Lets only images of one size and number of channels through: those of the first."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self.shape: tuple[int, ...] = ()

    def pixels(self, dataset: Dataset, sample: StoredSample) -> np.ndarray | None:
        """Return the pixels of a sample, (H, W, C) uint8; None where it had to be left out."""
        try:
            pixels = pixels_of(dataset, sample)
        except DatapointError as error:
            self._export.leave_out(sample.key, "unreadable", error.rule)
            return None
        part = sample.parts[0]
        self._export.narrowed += isinstance(part, bytes) and highest_value(part) is not None
        self.shape = self.shape or pixels.shape
        if pixels.shape == self.shape:
            return pixels
        reason = f"It has height, width and channels {pixels.shape}, the first image {self.shape}."
        self._export.leave_out(sample.key, "other-size", reason)
        return None


def write_mean(export: Export) -> None:
    """Write ``mean.binaryproto``, (1, C, H, W) in BGR, and ``mean.jpg``, where the dataset has a mean image.

    DIGITS rounds the mean to whole numbers, and so does this.
    """
    mean = export.dataset.mean()
    if mean is None:
        export.notes.append("The dataset has no mean image, so `mean.binaryproto` is not written.")
        return
    pixels = np.rint(mean).clip(0, 255).astype(np.uint8)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    bgr = np.ascontiguousarray(pixels[:, :, ::-1].transpose(2, 0, 1))
    export.write("mean.binaryproto", pack_blob(bgr[None].astype(np.float32)))
    export.write("mean.jpg", encode_image(pixels, "jpeg", quality=MEAN_QUALITY))
