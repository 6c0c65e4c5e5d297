"""Images and histograms of networks as TensorBoard's ``Summary`` messages, written without its libraries."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Final

import numpy as np
import torch
from PIL import Image

from ziggurat.backends.torch.digits import Summary
from ziggurat.protobuf_wire import bytes_field, double_field, integer_field

__all__ = ["summary_of"]

_IMAGES_AT_MOST: Final = 4
_BUCKETS: Final = 30


def summary_of(summaries: Iterable[Summary]) -> bytes:
    """Return a serialized ``Summary`` (tensorflow/core/framework/summary.proto) of images and histograms.

    Args:
        summaries: of one batch; scalars are left out, for they are curves already.
    """
    parts: list[bytes] = []
    for each in summaries:
        if each.kind == "image":
            count = min(_IMAGES_AT_MOST, len(each.value))
            for number in range(count):
                tag = each.tag if count == 1 else f"{each.tag}/{number}"
                parts.append(_value(tag, 4, _image(each.value[number])))
        elif each.kind == "histogram":
            parts.append(_value(each.tag, 5, _histogram(each.value)))
    return b"".join(parts)


def _value(tag: str, field: int, content: bytes) -> bytes:
    return bytes_field(1, bytes_field(1, tag.encode()) + bytes_field(field, content))


def _image(image: torch.Tensor) -> bytes:
    """Return a message ``Summary.Image`` of (C, H, W)."""
    pixels = image.detach().cpu()
    if pixels.is_floating_point():
        pixels = (pixels.float().nan_to_num().clamp(0, 1) * 255).round()
    array = pixels.to(torch.uint8).permute(1, 2, 0).numpy()
    height, width, channels = array.shape
    file = io.BytesIO()
    Image.fromarray(array[:, :, 0] if channels == 1 else array).save(file, format="PNG")
    size = integer_field(1, height) + integer_field(2, width) + integer_field(3, channels)
    return size + bytes_field(4, file.getvalue())


def _histogram(values: torch.Tensor) -> bytes:
    """Return a message ``HistogramProto``."""
    numbers = values.detach().double().cpu().numpy().ravel()
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return double_field(3, 0.0)
    counts, edges = np.histogram(numbers, bins=_BUCKETS)
    facts = (numbers.min(), numbers.max(), float(len(numbers)), numbers.sum(), np.square(numbers).sum())
    head = b"".join(double_field(place, float(value)) for place, value in enumerate(facts, start=1))
    limits, buckets = np.asarray(edges[1:], "<f8").tobytes(), np.asarray(counts, "<f8").tobytes()
    return head + bytes_field(6, limits) + bytes_field(7, buckets)
