"""Request handlers of an inference process: predictions batched across requests, metrics of labeled images.

Images become batches through the same steps as in the task ``predict``: the preprocessing of the job, 32 at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, UsageError
from ziggurat.worker.commands.evaluation import Confusion
from ziggurat.worker.commands.prediction import described
from ziggurat.worker.inference.model import WarmModel
from ziggurat.worker.inference.request_queue import AT_ONCE

__all__ = [
    "DecodedPicture",
    "PredictRequest",
    "decoded_picture",
    "evaluate",
    "fitted_picture",
    "pictures_of",
    "predict",
    "top_of",
]

_TOP: Final = 5
_Picture = tuple[str, bytes]


@dataclass
class PredictRequest:
    """A request for predictions, and its answer as it grows.

    Args:
        pictures: name and content of image files.
        top: how many classes are named.
        raw: whether the outputs come as arrays too.
    """

    pictures: list[_Picture]
    top: int = _TOP
    raw: bool = False
    predictions: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> PredictRequest:
        """Return what was asked.

        Raises:
            UsageError: where it was asked wrongly.
        """
        return cls(pictures_of(request), top_of(request), bool(request.get("raw")))


def predict(model: WarmModel, requests: Sequence[PredictRequest]) -> None:
    """Fill in the answers of requests; their images share batches.

    ``predictions`` gets, in the order of the images, ``file`` and, of a classifier, ``classes``, else ``outputs``, as
    the task ``predict`` has them; with ``raw`` also ``arrays`` (name → array). ``failures`` gets ``file`` and the
    error's JSON shape.

    Args:
        model: the open network.
        requests: what was asked.
    """
    waiting = [(request, name, content) for request in requests for name, content in request.pictures]
    for start in range(0, len(waiting), AT_ONCE):
        fitted = []
        for request, name, content in waiting[start : start + AT_ONCE]:
            try:
                fitted.append((request, name, model.job.preprocessing.decode(content, name)))
            except DataError as error:
                request.failures.append({"file": name, **error.as_dict()})
        if fitted:
            batch = model.job.preprocessing.finish(np.stack([picture for _, _, picture in fitted]))
            outputs = {name: np.asarray(each) for name, each in model.network.predict(batch).items()}
            for row, (request, name, _) in enumerate(fitted):
                request.predictions.append(_prediction(name, _row(outputs, row), request, model.job.class_names))


def evaluate(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of labeled images.

    Args:
        model: the open network.
        request: ``pictures`` as for ``predict``; ``labels``, a class number for each.

    Returns:
        ``samples``, ``scalars`` (means over the samples), ``failures``, ``classifier``, and of a classifier what the
        task ``evaluate`` gives: ``accuracy``, ``confusion``, ``classes``, and ``top_5`` with more than five classes.
    """
    pictures = pictures_of(request)
    labels = _labels(request.get("labels"), len(pictures), len(model.job.class_names))
    failures: list[dict[str, Any]] = []
    sums: dict[str, float] = {}
    samples, confusion = 0, Confusion(model.job.class_names)
    for batch, numbers in _labelled_batches(model, pictures, labels, failures):
        values = model.network.evaluate(model.job.preprocessing.finish(batch), numbers)
        samples += len(numbers)
        for name, value in values.items():
            if np.ndim(value) == 0:
                sums[name] = sums.get(name, 0.0) + float(value) * len(numbers)
        if "probabilities" in values:
            confusion.add(values["probabilities"], numbers)
    return {
        "samples": samples,
        "scalars": {name: total / samples for name, total in sorted(sums.items())},
        "failures": failures,
        "classifier": confusion.samples > 0,
        **(confusion.figures() if confusion.samples else {}),
    }


@dataclass(frozen=True)
class DecodedPicture:
    """One image of a request.

    Args:
        name: of its file.
        seen: resized and cropped as the network sees it, (H, W, C) uint8.
        x: as the network gets it, also less the mean and whitened: (1, H, W, C) float32.
    """

    name: str
    seen: np.ndarray
    x: np.ndarray


def decoded_picture(model: WarmModel, request: Mapping[str, Any]) -> DecodedPicture:
    """Return a request's one image.

    Raises:
        UsageError: where there is not just one.
        DatapointError: where it cannot be read.
    """
    pictures, preprocessing = pictures_of(request), model.job.preprocessing
    if len(pictures) != 1:
        raise UsageError("This is asked of one image.", received=f"{len(pictures)} images")
    ((name, content),) = pictures
    fitted = preprocessing.decode(content, name)
    height, width, _ = preprocessing.output_shape
    top, left = (fitted.shape[0] - height) // 2, (fitted.shape[1] - width) // 2
    return DecodedPicture(name, fitted[top : top + height, left : left + width], preprocessing.finish(fitted[None]))


def fitted_picture(model: WarmModel, request: Mapping[str, Any]) -> tuple[str, np.ndarray]:
    """Return the name of a request's one image, and it as the network gets it: (1, H, W, C) float32.

    Raises:
        UsageError, DatapointError: as ``decoded_picture``.
    """
    picture = decoded_picture(model, request)
    return picture.name, picture.x


def pictures_of(request: Mapping[str, Any]) -> list[_Picture]:
    """Return the images of a request: name and content of image files.

    Raises:
        UsageError: where they are something else.
    """
    pictures = request.get("pictures")
    if not isinstance(pictures, list) or not all(_is_picture(each) for each in pictures):
        raise UsageError(
            "`pictures` is a list of name (text) and content (bytes).",
            received=type(pictures).__name__ if not isinstance(pictures, list) else "a list of something else",
            advice="Send the bytes of image files as they are.",
        )
    return [(each[0], each[1]) for each in pictures]


def top_of(request: Mapping[str, Any]) -> int:
    """Return how many classes a request wants to see named.

    Raises:
        UsageError: where that is no number of classes.
    """
    top = request.get("top", _TOP)
    if not isinstance(top, int) or top < 1:
        raise UsageError("`top` is a whole number from 1 up.", received=repr(top))
    return top


def _is_picture(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and isinstance(value[0], str) and isinstance(value[1], bytes)


def _labels(labels: Any, pictures: int, classes: int) -> np.ndarray:
    numbers = np.asarray([] if labels is None else labels)
    is_right = numbers.shape == (pictures,) and (not pictures or numbers.dtype.kind in "iu")
    if not is_right or (pictures and not (numbers.min() >= 0 and numbers.max() < classes)):
        raise UsageError(
            f"`labels` has a class number for each image, from 0 to {classes - 1}.",
            received=f"{numbers.tolist()!r:.200} for {pictures} images",
        )
    return numbers.astype(np.int64)


def _labelled_batches(
    model: WarmModel, pictures: Sequence[_Picture], labels: np.ndarray, failures: list[dict[str, Any]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield fitted images (N, height, width, C) uint8 with their labels; add those that are none to the failures."""
    for start in range(0, len(pictures), AT_ONCE):
        fitted, kept = [], []
        for number, (name, content) in enumerate(pictures[start : start + AT_ONCE], start=start):
            try:
                fitted.append(model.job.preprocessing.decode(content, name))
                kept.append(number)
            except DataError as error:
                failures.append({"file": name, **error.as_dict()})
        if fitted:
            yield np.stack(fitted), labels[kept]


def _row(outputs: Mapping[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    return {name: each[row] for name, each in outputs.items()}


def _prediction(
    name: str, outputs: Mapping[str, np.ndarray], request: PredictRequest, class_names: Sequence[str]
) -> dict[str, Any]:
    found = {"file": name, **described(outputs, class_names, request.top)}
    # A copy: a row is a view that would keep the outputs of the whole batch.
    return {**found, "arrays": {key: np.array(value) for key, value in outputs.items()}} if request.raw else found
