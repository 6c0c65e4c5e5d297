"""Batches of a job: its source, preprocessed identically for training, validation and prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.errors import DataError
from ziggurat.worker.image_source import ImageSource
from ziggurat.worker.pipeline import DataOptions, Pipeline

__all__ = ["JobData", "prepare_data"]


@dataclass(frozen=True, kw_only=True)
class JobData:
    """The batches of a job: ``[x, y]`` with ``x: (N, H, W, C) float32`` as the network gets it, ``y: (N) int64``.

    Args:
        train: shuffled, without a smaller last batch.
        evaluation: ``val`` and ``test``, where there are any, in order, with the remainder.
        preprocessing: what was done.
        class_names: by class number.
        sizes: split → number of samples.
    """

    train: DataFlow
    evaluation: Mapping[str, DataFlow]
    preprocessing: Preprocessing
    class_names: Sequence[str]
    sizes: Mapping[str, int]


def prepare_data(source: ImageSource, options: DataOptions, preprocessing: Preprocessing | None = None) -> JobData:
    """Return the batches of a job.

    Args:
        source: its splits.
        options: what it asks for.
        preprocessing: that of a trained model, to use it again; None to make one, with the mean of the training split.

    Raises:
        DataError: where a batch is larger than the training split, or quarter turns meet images that are no squares.
    """
    train = source.splits["train"]
    if len(train) < options.batch_size:
        raise DataError(
            "A batch is not larger than the training split.",
            received=f"`batch_size` {options.batch_size} for {len(train)} samples",
            advice="Make `batch_size` smaller.",
        )
    options.augmentation.check_size(preprocessing.size if preprocessing else options.size or source.size)
    pipeline = Pipeline(source, options, preprocessing)
    return JobData(
        train=pipeline.training().finish,
        evaluation={split: pipeline.evaluation(split) for split in source.splits if split != "train"},
        preprocessing=pipeline.preprocessing,
        class_names=source.class_names,
        sizes={split: len(flow) for split, flow in source.splits.items()},
    )
