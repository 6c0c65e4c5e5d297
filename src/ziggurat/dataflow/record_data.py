"""Flow over a split of a dataset that `ziggurat dataset create` wrote, with exact resume at any size."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import cv2
import numpy as np

from ziggurat.dataflow.base import Datapoint
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DatapointError, UsageError
from ziggurat.records.manifest import Manifest
from ziggurat.records.split_reader import SplitReader

__all__ = ["RecordData", "decode_mask"]

Content = Literal["image", "bytes", "record"]
_CONTENTS: Final = ("image", "bytes", "record")


class RecordData(IndexedFlow):
    """The samples of a split.

    A datapoint depends on the kind of the dataset (``image`` is (H, W, C) uint8, RGB, or the encoded bytes):

    - image-classification: ``[image, class]``; image-regression: ``[image, values (V) float32]``
    - detection: ``[image, boxes (K, 4) float32: left, top, right, bottom in pixels, classes (K) int64]``
      or with ``whole_objects`` ``[image, objects as they are stored]``, see ``ziggurat.records.objects``
    - segmentation: ``[image, mask (H, W) uint8 or uint16]``; image-to-image: ``[image, image]``
    - image-pairs: ``[image, image, same]``; text-classification: ``[text, class]``
    - table: ``[row (a list, in the order of the columns), target]``; generic: ``[array…, label]``

    Args:
        dataset: folder of the dataset.
        split: ``train``, ``val`` or ``test``.
        shuffle: a new random order in every pass; costs 8 bytes a sample, at any size of the records.
        content: ``image`` decodes images; ``bytes`` gives them encoded; ``record`` gives ``[key, parts, label]``.
        channels: of decoded images, 1 or 3; None for what the dataset says, or 3.
        on_error: what happens with a sample that cannot be read: "raise", "skip", "log", or an ``ErrorPolicy``.
        whole_objects: whether all that is known of the objects of a detection dataset is given, not boxes and classes.

    Raises:
        DataError: where the folder holds no finished dataset.
        UnknownNameError: where it has no such split.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str],
        split: str = "train",
        shuffle: bool = False,
        *,
        content: Content = "image",
        channels: Literal[1, 3] | None = None,
        on_error: OnError | ErrorPolicy = "raise",
        whole_objects: bool = False,
    ) -> None:
        super().__init__(shuffle=shuffle)
        if content not in _CONTENTS:
            raise UsageError("`content` is image, bytes or record.", received=repr(content))
        self.policy = ErrorPolicy.of(on_error)
        self.reader = SplitReader(Path(dataset), split)
        self._content = content
        self.whole_objects = whole_objects
        image = self.manifest.image
        stored = image.channels if image is not None else None
        self.bits = image.bits if image is not None else 16
        self._channels: Any = channels or (stored if stored in (1, 3) else 3)

    @property
    def manifest(self) -> Manifest:
        """What the dataset holds."""
        return self.reader.manifest

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, by number."""
        return self.manifest.schema.class_names

    def __len__(self) -> int:
        return len(self.reader)

    def key(self, index: int) -> str:
        """Return the key of a sample."""
        return self.reader.key(index)

    def label(self, index: int) -> Any:
        """Return the label as it is stored; nothing is decoded."""
        return self.reader.label(index)

    def datapoint(self, index: int) -> Datapoint:
        """Return one sample."""
        key, parts, label = self.reader.sample(index)
        if self._content == "record":
            return [key, parts, label]
        return _MAKERS[self.manifest.schema.kind](self, key, parts, label)

    def image(self, part: Any, key: str) -> Any:
        """Return an image as this flow gives it: decoded, or its bytes."""
        if self._content == "bytes" or isinstance(part, np.ndarray):
            return part
        return decode_image(part, channels=self._channels, key=key, bits=self.bits)

    def mask(self, part: Any, key: str) -> Any:
        """Return a mask as this flow gives it."""
        return part if self._content == "bytes" or isinstance(part, np.ndarray) else decode_mask(part, key)

    def close(self) -> None:
        """Close the files; the next pass opens them again."""
        self.reader.close()
        super().close()


def decode_mask(data: bytes, key: str) -> np.ndarray:
    """Return the class numbers in an encoded mask, (H, W) uint8 or uint16.

    Raises:
        DatapointError: where it is no image of one channel.
    """
    mask = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if data else None
    if mask is None or mask.ndim != 2:
        raise DatapointError(key, "its mask is no image of one channel.")
    return mask


def _classified(flow: RecordData, key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    return [flow.image(parts[0], key), label]


def _measured(flow: RecordData, key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    return [flow.image(parts[0], key), np.asarray(label, np.float32)]


def _detected(flow: RecordData, key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    if flow.whole_objects:
        return [flow.image(parts[0], key), label]
    boxes = np.array([each["box"] for each in label], np.float32).reshape(-1, 4)
    return [flow.image(parts[0], key), boxes, np.array([each["class"] for each in label], np.int64)]


def _segmented(flow: RecordData, key: str, parts: tuple[Any, ...], _label: Any) -> Datapoint:
    return [flow.image(parts[0], key), flow.mask(parts[1], key)]


def _transformed(flow: RecordData, key: str, parts: tuple[Any, ...], _label: Any) -> Datapoint:
    image = flow.image(parts[0], key)
    return [image, flow.image(parts[1], key) if len(parts) > 1 else image]


def _paired(flow: RecordData, key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    return [flow.image(parts[0], key), flow.image(parts[1], key), label]


def _tabled(_flow: RecordData, _key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    return [json.loads(parts[0]), label]


def _text(_flow: RecordData, _key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    part = parts[0]
    return [part if isinstance(part, str) else part.decode("utf-8"), label]


def _generic(_flow: RecordData, _key: str, parts: tuple[Any, ...], label: Any) -> Datapoint:
    return [*parts] if label is None else [*parts, label]


_MAKERS: Final[Mapping[str, Callable[[RecordData, str, tuple[Any, ...], Any], Datapoint]]] = {
    "image-classification": _classified,
    "image-regression": _measured,
    "detection": _detected,
    "segmentation": _segmented,
    "image-to-image": _transformed,
    "image-pairs": _paired,
    "table": _tabled,
    "text-classification": _text,
    "generic": _generic,
}
