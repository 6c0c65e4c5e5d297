"""Prediction for large numbers of images in a pooled process: in parts, with progress, and cancelable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import DatapointError, UsageError

__all__ = ["ManyOptions", "ManyPart", "ManyResult", "Picture", "predict_parts"]

Picture = tuple[str, bytes]
"""Name and content of an image file."""

_PART_BYTES: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class ManyOptions:
    """How very many images are predicted for.

    Args:
        checkpoint: as for ``InferencePool.predict``.
        device: likewise.
        top: how many classes are named.
        at_once: images in a part; a part has at most 64 MiB besides.
    """

    checkpoint: str | None = None
    device: str | int | None = None
    top: int = 5
    at_once: int = 32

    def __post_init__(self) -> None:
        if self.at_once < 1:
            raise UsageError("`at_once` is at least 1.", received=self.at_once)


@dataclass(frozen=True)
class ManyPart:
    """What a part gave.

    Args:
        predictions: as ``InferencePool.predict`` gives them.
        failures: likewise, with files that cannot be read.
        done: images so far, those of this part and failures included.
    """

    predictions: Sequence[Mapping[str, Any]]
    failures: Sequence[Mapping[str, Any]]
    done: int


@dataclass(frozen=True)
class ManyResult:
    """How it went.

    Args:
        predicted: images with a prediction.
        failed: images without.
        is_complete: False where it was ended before.
    """

    predicted: int
    failed: int
    is_complete: bool


def predict_parts(
    predict: Callable[[Sequence[Picture]], Mapping[str, Any]],
    items: Iterable[Path | Picture],
    sink: Callable[[ManyPart], None],
    at_once: int,
    shall_end: Callable[[], bool],
) -> ManyResult:
    """Predict in parts; never more than one part is held in memory.

    Args:
        predict: for the images of a part.
        items: files, or images that are read already; taken one by one.
        sink: gets each part, in order.
        at_once: images in a part.
        shall_end: asked before each part.
    """
    predicted = failed = 0
    for pictures, unread in _parts(items, at_once):
        if shall_end():
            return ManyResult(predicted, failed, False)
        found: Mapping[str, Any] = predict(pictures) if pictures else {"predictions": [], "failures": []}
        failures = [*unread, *found["failures"]]
        predicted += len(found["predictions"])
        failed += len(failures)
        sink(ManyPart(found["predictions"], failures, predicted + failed))
    return ManyResult(predicted, failed, True)


def _parts(items: Iterable[Path | Picture], at_once: int) -> Iterator[tuple[list[Picture], list[dict[str, Any]]]]:
    """Yield images with the failures of files that cannot be read."""
    pictures: list[Picture] = []
    failures: list[dict[str, Any]] = []
    size_bytes = 0
    for item in items:
        try:
            picture = _read(item) if isinstance(item, Path) else item
        except DatapointError as error:
            failures.append({"file": str(item), **error.as_dict()})
        else:
            if pictures and size_bytes + len(picture[1]) > _PART_BYTES:
                yield pictures, failures
                pictures, failures, size_bytes = [], [], 0
            pictures.append(picture)
            size_bytes += len(picture[1])
        if len(pictures) + len(failures) >= at_once:
            yield pictures, failures
            pictures, failures, size_bytes = [], [], 0
    if pictures or failures:
        yield pictures, failures


def _read(path: Path) -> Picture:
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        raise DatapointError(str(path), f"it cannot be read ({error.strerror}).") from error
