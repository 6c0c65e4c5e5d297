"""Samples of a job's own splits with what its network says of them now, for pages that draw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from ziggurat.errors import DataError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.worker.inference.handlers import WarmModel, png_of, top_of
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.source import open_source

__all__ = ["SplitReaders", "samples"]

_MOST: Final = 64
"""Samples of a request: each comes with several images."""


class SplitReaders:
    """Reads samples of the data of a job by their row; what is opened stays open.

    Args:
        model: the open network.
    """

    def __init__(self, model: WarmModel) -> None:
        job = model.job
        self._source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(job.folder))
        self._pipeline = Pipeline(self._source, DataOptions(batch_size=1), job.context)
        self._readers: dict[str, Callable[[int], list[np.ndarray]]] = {}

    def arrays(self, split: str, row: int) -> list[np.ndarray]:
        """Return the arrays of one sample.

        Raises:
            UnknownNameError: where the data has no such split.
            DataError: where the sample is not there, or cannot be read.
        """
        if split not in self._source.splits:
            raise UnknownNameError("split of this data", split, self._source.splits)
        flow: Any = self._source.splits[split]
        if not 0 <= row < len(flow):
            raise DataError(f"There is no row {row} in this split, which has the rows 0 to {len(flow) - 1}.")
        if split not in self._readers:
            self._readers[split] = self._pipeline.reader(split)
        return self._readers[split](row)


_READERS: Final[WeakKeyDictionary[WarmModel, SplitReaders]] = WeakKeyDictionary()
"""Of the model of this process; its task and data are those of every checkpoint that it follows."""


def samples(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return images and predictions of samples of a split of the job's data.

    Args:
        model: the open network.
        request: ``split``; ``rows``, 64 at most; ``top`` (default 5); ``max_side_px`` of the images (default: as the
            network gets them).

    Returns:
        ``samples``: ``row``, what ``Task.decode`` returns, and ``drawn``: name → PNG, as ``Task.pictures`` names them;
        ``failures``: ``row`` and the error's JSON shape.

    Raises:
        UsageError: where it was asked wrongly.
    """
    rows = request.get("rows")
    if not isinstance(rows, list) or len(rows) > _MOST or not all(isinstance(row, int) for row in rows):
        raise UsageError(f"`rows` is {repr(rows)[:100]}, not a list of at most {_MOST} rows of a split.")
    readers = _READERS.get(model) or SplitReaders(model)
    _READERS[model] = readers
    # They stand beside figures of an evaluation, which obey no operating point.
    context = replace(model.job.context, thresholds=())
    top, most = top_of(request), int(request.get("max_side_px") or 0)
    found: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for row in rows:
        try:
            arrays = readers.arrays(str(request.get("split")), row)
        except DataError as error:
            failures.append({"row": row, **error.as_dict()})
            continue
        # The batch may be changed in place, and what is drawn may not.
        batch = context.task.batch(context, [np.array(each)[None] for each in arrays], context.preprocessing.finish)
        outputs = {name: np.asarray(each)[0] for name, each in model.network.predict(batch[0]).items()}
        drawn = context.task.pictures(context, arrays, outputs)
        found.append(
            {
                "row": row,
                **context.task.decode(context, outputs, top=top),
                "drawn": {name: png_of(_smaller(image, most)) for name, image in drawn.items()},
            }
        )
    return {**model.job.summary(), "samples": found, "failures": failures}


def _smaller(image: np.ndarray, most_px: int) -> np.ndarray:
    """Return an image with a longer side of at most so many pixels; 0 for any. No new colors come in: of masks."""
    height, width = image.shape[:2]
    if not most_px or max(height, width) <= most_px:
        return image
    factor = most_px / max(height, width)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return cv2.resize(image, size, interpolation=cv2.INTER_NEAREST)
