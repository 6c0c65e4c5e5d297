"""Batches of a job: its source, preprocessed identically for training, validation and prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ziggurat.dataflow.augmentation import Augmentation
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.batching import BatchData
from ziggurat.dataflow.imgaug.components import ComponentAugmentation
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.parallel.maps import MultiThreadMapData
from ziggurat.dataflow.preprocessing import Mean, Preprocessing, mean_of
from ziggurat.dataflow.sources import DataFromArrays
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError
from ziggurat.worker.image_source import ImageSource

__all__ = [
    "DataOptions",
    "FinishAtRandom",
    "JobData",
    "fitted_flow",
    "fitted_preprocessing",
    "prepare_data",
    "training_flow",
]


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What a job asks of its data.

    Args:
        batch_size: samples in a step.
        size: (height, width) of the images; None for what the source has.
        channels: 1 or 3; None for what the source has.
        resize_mode: how images of other sizes get there.
        crop: side of the crop; None for none.
        mean: ``none``, ``pixel`` or ``image``.
        whitening: whether each image is scaled to mean 0 and deviation 1.
        augmentation: how images are varied in training.
        shuffle: a new order in every epoch of training.
        seed: of order, crops and augmentation.
        threads: that decode and augment images.
    """

    batch_size: int
    size: tuple[int, int] | None = None
    channels: int | None = None
    resize_mode: Any = "squash"
    crop: int | None = None
    mean: Mean = "none"
    whitening: bool = False
    augmentation: Augmentation = field(default_factory=Augmentation)
    shuffle: bool = True
    seed: int = 0
    threads: int = 2


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
    chosen = preprocessing or fitted_preprocessing(source, options)
    fitted = {split: fitted_flow(flow, source, chosen) for split, flow in source.splits.items() if split != "train"}
    return JobData(
        train=training_flow(source, chosen, options).seed(options.seed),
        evaluation={
            split: _finished(BatchData(flow, options.batch_size, remainder=True), chosen)
            for split, flow in fitted.items()
        },
        preprocessing=chosen,
        class_names=source.class_names,
        sizes={split: len(flow) for split, flow in source.splits.items()},
    )


def fitted_flow(
    flow: DataFlow, source: ImageSource, preprocessing: Preprocessing, *, numbered: bool = False
) -> DataFlow:
    """Return a split of a source with its images fitted: ``[picture, label]``, in the order of the split.

    With ``numbered`` it is ``[picture, label, row]``.

    A file that cannot be used is named by its key in the split, such as its path, in errors and in the counts of
    ``source.policy``.

    Args:
        flow: the split.
        source: what it is of.
        preprocessing: fits the images.
        numbered: whether each is told with its row in the split: rows that cannot be read leave gaps.
    """
    if source.in_memory:
        points = _Numbered(flow) if numbered else flow
        return MapData(points, lambda point: [preprocessing.fit(point[0]), *point[1:]])
    keyed = _Keyed(flow)
    return MapData(_Numbered(keyed) if numbered else keyed, _Decode(preprocessing, None), on_error=source.policy)


def fitted_preprocessing(source: ImageSource, options: DataOptions) -> Preprocessing:
    """Return what is done to every image; a mean takes reading the whole training split."""
    plain = Preprocessing(
        size=options.size or source.size,
        channels=options.channels or source.channels,  # pyright: ignore[reportArgumentType]
        resize_mode=options.resize_mode,
        crop=options.crop,
        whitening=options.whitening,
    )
    if options.mean == "none":
        return plain
    pictures = (point[0] for point in fitted_flow(source.splits["train"], source, plain))
    return replace(plain, mean=options.mean, mean_values=mean_of(pictures, options.mean))


def training_flow(
    source: ImageSource, preprocessing: Preprocessing, options: DataOptions, *, by_row: bool = False
) -> DataFlow:
    """Return the batches of the training split, before they are given a seed.

    Args:
        source: its splits.
        preprocessing: what is done to every image.
        options: what the job asks for.
        by_row: read each image when it is its turn, also where all of them fit into memory: the batches are the same,
            and a single row can be asked for at once.
    """
    flow = source.splits["train"]
    augmentors = options.augmentation.augmentors(preprocessing.channels)
    vary = ComponentAugmentation(augmentors, 0)
    if source.in_memory:
        if by_row:
            flow = _Fitted(flow, preprocessing, shuffle=options.shuffle)
        else:
            points = list(fitted_flow(flow, source, preprocessing))
            pictures, labels = np.stack([point[0] for point in points]), np.array([point[1] for point in points])
            flow = DataFromArrays(pictures, labels, shuffle=options.shuffle)
        if augmentors:
            flow = MapData(flow, vary)
    else:
        decode = _Decode(preprocessing, vary if augmentors else None)
        keyed = _Keyed(flow, shuffle=options.shuffle)
        flow = MultiThreadMapData(keyed, options.threads, decode, on_error=source.policy)
    batches = BatchData(flow, options.batch_size)
    crops = preprocessing.crop is not None and preprocessing.output_shape[:2] != preprocessing.size
    return MapData(batches, FinishAtRandom(preprocessing)) if crops else _finished(batches, preprocessing)


def _finished(batches: DataFlow, preprocessing: Preprocessing) -> DataFlow:
    return MapData(batches, lambda batch: [preprocessing.finish(batch[0]), batch[1].astype(np.int64)])


class _Keyed(IndexedFlow):
    """A split of files as ``[bytes, label, key]``, so that whatever fails later can name the file."""

    def __init__(self, flow: DataFlow, *, shuffle: bool = False) -> None:
        super().__init__(shuffle=shuffle)
        self._flow: Any = flow
        self.policy = self._flow.policy

    def __len__(self) -> int:
        return len(self._flow)

    def key(self, index: int) -> str | int:
        """Return the key of the split."""
        return self._flow.key(index)

    def datapoint(self, index: int) -> list[Any]:
        """Return one file with its key."""
        return [*self._flow.datapoint(index), self.key(index)]

    def close(self) -> None:
        """Close the split."""
        self._flow.close()
        super().close()


class _Fitted(IndexedFlow):
    """A split that fits into memory, read row by row: ``[picture, label]``, the image fitted."""

    def __init__(self, flow: DataFlow, preprocessing: Preprocessing, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self._flow: Any = flow
        self._preprocessing = preprocessing

    def __len__(self) -> int:
        return len(self._flow)

    def datapoint(self, index: int) -> list[Any]:
        """Return one image with its label."""
        picture, label = self._flow.datapoint(index)
        return [self._preprocessing.fit(picture), label]

    def close(self) -> None:
        """Close the split."""
        self._flow.close()
        super().close()


class _Numbered(IndexedFlow):
    """An indexed flow whose datapoints have their index as last component."""

    def __init__(self, flow: DataFlow) -> None:
        super().__init__()
        self._flow: Any = flow
        self.policy = self._flow.policy

    def __len__(self) -> int:
        return len(self._flow)

    def key(self, index: int) -> str | int:
        """Return the key of the flow."""
        return self._flow.key(index)

    def datapoint(self, index: int) -> list[Any]:
        """Return one datapoint with its index."""
        return [*self._flow.datapoint(index), index]

    def close(self) -> None:
        """Close the flow."""
        self._flow.close()
        super().close()


class _Decode:
    """Decodes a file's bytes, fits the image, and varies it."""

    def __init__(self, preprocessing: Preprocessing, vary: Callable[..., Any] | None) -> None:
        self._preprocessing = preprocessing
        self._vary = vary

    def __call__(self, point: Any, rng: np.random.RandomState) -> Any:
        data, label, key, *row = point
        fitted = [self._preprocessing.decode(data, key), label, *row]
        return fitted if self._vary is None else self._vary(fitted, rng)


class FinishAtRandom:
    """Finishes a batch with crops at random places.

    Args:
        preprocessing: has a crop that is smaller than the images.
    """

    def __init__(self, preprocessing: Preprocessing) -> None:
        self._preprocessing = preprocessing
        height, width, _ = preprocessing.output_shape
        self._most = np.array(preprocessing.size) - (height, width)

    def offsets(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        """Return (N, 2) top and left of each crop of a batch of so many."""
        return np.stack([rng.randint(0, most + 1, count) for most in self._most], axis=1)

    def __call__(self, batch: Any, rng: np.random.RandomState) -> Any:
        """Return the batch as the network gets it."""
        offsets = self.offsets(len(batch[0]), rng)
        return [self._preprocessing.finish(batch[0], offsets), batch[1].astype(np.int64)]
