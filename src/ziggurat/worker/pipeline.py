"""Pipeline of a job's images: source, decode, vary, batch, finish, as training, evaluation and previews read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from ziggurat.dataflow.augment import ComponentAugmentation
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.fast import JpegCropBatches, ScaledRandomCrop
from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.parallel.maps import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.parallel.options import default_workers
from ziggurat.dataflow.preprocessing import Augmentation, Mean, Preprocessing, mean_of
from ziggurat.dataflow.sources import DataFromArrays
from ziggurat.dataflow.stages.batching import BatchBuffers, BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError
from ziggurat.worker.source import ImageSource, ImportedSplit

__all__ = ["DataOptions", "JobData", "Pipeline", "TrainingStages", "prepare_data"]


_MOST_WORKERS: Final = 16
"""By default: more of them wait for the step of most networks, and each costs memory."""
_LOOKED_AT: Final = 16
_JPEG_START: Final = b"\xff\xd8\xff"
_KEPT_BATCHES: Final = 3


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
        workers: that decode and vary images; None: one for each CPU, at most 16.
        worker_kind: ``threads`` or ``processes``; crops are decoded by threads in any case.
        prefetch: batches that are made ready while a step runs.
        decode: ``crop`` where only what a random crop needs may be decoded, ``picture`` for whole images.
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
    workers: int | None = None
    worker_kind: Literal["threads", "processes"] = "threads"
    prefetch: int = 2
    decode: Literal["crop", "picture"] = "crop"

    @property
    def worker_count(self) -> int:
        """How many workers there are."""
        return self.workers or min(default_workers(None, "workers"), _MOST_WORKERS)


@dataclass(frozen=True, kw_only=True)
class TrainingStages:
    """The stages of a training split, each of which reads the one before; a single image can be asked for, too.

    Args:
        preprocessing: what is done to every image.
        augmentation: how images are varied.
        rows: the samples, in the order of an epoch.
        vary: decodes and varies single images; None where nothing is varied, or the batch does all of it.
        batches: ``[pictures, labels]``, uint8.
        finish: ``[x, y]`` as the network gets them.
    """

    preprocessing: Preprocessing
    augmentation: Augmentation
    rows: IndexedFlow
    vary: MapData | MultiThreadMapData | MultiProcessMapData | None
    batches: BatchData | JpegCropBatches
    finish: MapData
    _orders: dict[int, np.ndarray] = field(default_factory=dict)

    def order(self, epoch: int) -> np.ndarray:
        """Return the rows in the order of an epoch, counted from 0."""
        if epoch not in self._orders:
            self.rows.load_state({**self.rows.state(), "pass": epoch, "ended": False})
            self._orders[epoch] = self.rows.order()
        return self._orders[epoch]

    def seen(self, row: int, epoch: int) -> np.ndarray | None:
        """Return an image as the network gets it, (H, W, C) uint8, before a mean is taken off and before whitening.

        Every random number depends on the seed, the stage, the epoch and the place in it only. So one place is asked
        for without reading the ones before. Where a sample cannot be read, a training may go on with the next one, and
        the places behind it move by one; a dataset that Ziggurat made has no such sample.

        Args:
            row: in the training split.
            epoch: from 0.

        Returns:
            None where the row is among the last of the epoch, which fill no batch and are left out.

        Raises:
            DatapointError: where it cannot be read.
            DataError: where it does not fit to the others of its batch.
        """
        place = int(np.flatnonzero(self.order(epoch) == row)[0])
        batch, inside = divmod(place, self.batches.batch_size)
        if (batch + 1) * self.batches.batch_size > len(self.rows):
            return None
        point: Any = self.rows.datapoint(row)
        if isinstance(self.batches, JpegCropBatches):
            return self.batches.crop_of(point, epoch, place)
        if self.vary is not None:
            vary: Any = self.vary.func
            point = vary(point, rng=self.vary.stream("map").seek(epoch, place))
        if point[0].shape[:2] != self.preprocessing.size:
            self.augmentation.check_size(self.preprocessing.size)
        finish = self.finish.func
        if not isinstance(finish, FinishAtRandom):
            return point[0]
        offsets = finish.offsets(self.batches.batch_size, self.finish.stream("map").seek(epoch, batch))
        top, left = offsets[inside]
        height, width, _ = self.preprocessing.output_shape
        return point[0][top : top + height, left : left + width]

    def close(self) -> None:
        """Close the split."""
        self.finish.close()


class Pipeline:
    """What becomes of the images of a source on their way to the network.

    Args:
        source: its splits.
        options: what the job asks for.
        preprocessing: that of a trained model, to use it again; None to make one, with the mean of the training split.

    Attributes:
        preprocessing: what is done to every image.
    """

    def __init__(self, source: ImageSource, options: DataOptions, preprocessing: Preprocessing | None = None) -> None:
        self.source = source
        self.options = options
        self.preprocessing = preprocessing or self._new_preprocessing()

    @classmethod
    def without_mean(cls, source: ImageSource, options: DataOptions) -> Pipeline:
        """Return the pipeline that a new job would have, but for the mean: computing it reads the whole split."""
        # The mean image alone keeps crops from being decoded by themselves, so it counts, whatever it is.
        whole = replace(options, decode="picture") if options.mean == "image" else options
        return cls(source, replace(whole, mean="none"))

    # ---- training

    def training(self, *, by_row: bool = False) -> TrainingStages:
        """Return the stages of the training split, with the job's seed.

        Args:
            by_row: read each image when it is its turn, also where all of them fit into memory: the batches are the
                same, and a single row can be asked for at once.
        """
        if self.decodes_crops:
            stages = self._crops()
        elif self.source.in_memory:
            stages = self._images_in_memory(by_row=by_row)
        else:
            stages = self._files()
        stages.finish.seed(self.options.seed)
        return stages

    @property
    def crops(self) -> bool:
        """Whether images are cropped at random places in training."""
        return self.preprocessing.crop is not None and self.preprocessing.output_shape[:2] != self.preprocessing.size

    @property
    def decodes_crops(self) -> bool:
        """Whether training decodes of each JPEG file only what its crop needs.

        That takes crops in color from a source of JPEG files, a resize mode that is a box of the image, no mean
        image (which depends on the place of the crop), and no variation but mirrors left and right.
        """
        before, options = self.preprocessing, self.options
        return (
            options.decode == "crop"
            and self.crops
            and before.channels == 3
            and before.resize_mode in ("squash", "crop")
            and before.mean != "image"
            and replace(options.augmentation, flip="none") == Augmentation()
            and options.augmentation.flip in ("none", "fliplr")
            and not self.source.in_memory
            and _holds_jpeg_files(self.source.splits["train"])
        )

    def _crops(self) -> TrainingStages:
        before, options = self.preprocessing, self.options
        rows = _Keyed(self.source.splits["train"], shuffle=options.shuffle)
        mode: Any = before.resize_mode
        crop = ScaledRandomCrop(before.size, before.output_shape[:2], mode, flip=options.augmentation.flip == "fliplr")
        batches = JpegCropBatches(
            rows,
            options.batch_size,
            crop,
            on_error=self.source.policy,
            num_thread=options.worker_count,
            prefetch=options.prefetch,
            key_index=2,
            replace_failed=True,
        )
        return self._stages(rows, None, batches, _Finish(before))

    def _images_in_memory(self, *, by_row: bool) -> TrainingStages:
        split, shuffle = self.source.splits["train"], self.options.shuffle
        if by_row:
            rows: IndexedFlow = _Fitted(split, self.preprocessing, shuffle=shuffle)
        else:
            points = list(self.fitted("train"))
            images, labels = np.stack([point[0] for point in points]), np.array([point[1] for point in points])
            rows = DataFromArrays(images, labels, shuffle=shuffle)
        augmentors = self.options.augmentation.augmentors(self.preprocessing.channels)
        vary = MapData(rows, ComponentAugmentation(augmentors, 0)) if augmentors else None
        return self._batched(rows, vary)

    def _files(self) -> TrainingStages:
        rows = _Keyed(self.source.splits["train"], shuffle=self.options.shuffle)
        augmentors = self.options.augmentation.augmentors(self.preprocessing.channels)
        vary = ComponentAugmentation(augmentors, 0) if augmentors else None
        return self._batched(rows, self._in_workers(rows, _Decode(self.preprocessing, vary)))

    def _batched(self, rows: IndexedFlow, vary: Any) -> TrainingStages:
        batches = BatchData(rows if vary is None else vary, self.options.batch_size)
        finish = FinishAtRandom(self.preprocessing) if self.crops else _Finish(self.preprocessing)
        return self._stages(rows, vary, batches, finish)

    def _stages(self, rows: IndexedFlow, vary: Any, batches: Any, finish: Callable[..., Any]) -> TrainingStages:
        return TrainingStages(
            preprocessing=self.preprocessing,
            augmentation=self.options.augmentation,
            rows=rows,
            vary=vary,
            batches=batches,
            finish=MapData(batches, finish),
        )

    # ---- evaluation

    def evaluation(self, split: str, *, numbered: bool = False) -> DataFlow:
        """Return batches of a split in its order, with a smaller last one: ``[x, y]``, and the rows where numbered."""
        batches = BatchData(self.fitted(split, numbered=numbered), self.options.batch_size, remainder=True)
        return MapData(batches, _Finish(self.preprocessing))

    def fitted(self, split: str, *, numbered: bool = False) -> DataFlow:
        """Return a split with its images fitted: ``[picture, label]``, in the order of the split.

        With ``numbered`` it is ``[picture, label, row]``: rows that cannot be read leave gaps.

        A file that cannot be used is named by its key in the split, such as its path, in errors and in the counts of
        ``source.policy``.
        """
        return self._fitted(split, self.preprocessing, numbered=numbered)

    def _fitted(self, split: str, preprocessing: Preprocessing, *, numbered: bool = False) -> DataFlow:
        flow = self.source.splits[split]
        if self.source.in_memory:
            points = _Numbered(flow) if numbered else flow
            return MapData(points, lambda point: [preprocessing.fit(point[0]), *point[1:]])
        keyed = _Keyed(flow)
        points = _Numbered(keyed) if numbered else keyed
        decode = _Decode(preprocessing, None)
        if self.options.decode == "picture":  # the shape of the flow is that of the checkpoints of 0.1
            return MapData(points, decode, on_error=self.source.policy)
        return self._in_workers(points, decode)

    # ---- inside

    def _new_preprocessing(self) -> Preprocessing:
        options = self.options
        plain = Preprocessing(
            size=options.size or self.source.size,
            channels=options.channels or self.source.channels,  # pyright: ignore[reportArgumentType]
            resize_mode=options.resize_mode,
            crop=options.crop,
            whitening=options.whitening,
        )
        if options.mean == "none":
            return plain
        with self._fitted("train", plain) as fitted:
            values = mean_of((point[0] for point in fitted), options.mean)
        return replace(plain, mean=options.mean, mean_values=values)

    def _in_workers(self, flow: DataFlow, function: Callable[..., Any]) -> MultiThreadMapData | MultiProcessMapData:
        options = self.options
        kind = MultiProcessMapData if options.worker_kind == "processes" else MultiThreadMapData
        ahead = (1 + options.prefetch) * options.batch_size
        return kind(flow, options.worker_count, function, buffer_size=ahead, on_error=self.source.policy)


def _holds_jpeg_files(flow: Any) -> bool:
    """Return whether most of the first images are JPEG files."""
    looked_at = min(len(flow), _LOOKED_AT)
    found = 0
    for row in range(looked_at):
        try:
            image = flow.datapoint(row)[0]
        except Exception:  # what cannot be read is told of when its turn comes
            continue
        found += isinstance(image, bytes | memoryview) and bytes(image[: len(_JPEG_START)]) == _JPEG_START
    flow.close()
    return 2 * found > looked_at


class _Keyed(IndexedFlow):
    """A split of files as ``[bytes, label, key]``, so that whatever fails later can name the file.

    Where the split knows the paths of its files, they replace the bytes: the decoder reads the files, too.
    """

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
        point = self._flow.unread(index) if isinstance(self._flow, ImportedSplit) else self._flow.datapoint(index)
        return [*point, self.key(index)]

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
        image, label = self._flow.datapoint(index)
        return [self._preprocessing.fit(image), label]

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
        if isinstance(data, str):
            data = read_file(data)
        fitted = [self._preprocessing.decode(data, key), label, *row]
        return fitted if self._vary is None else self._vary(fitted, rng)


class _Finish:
    """Finishes a batch: cropped already, or cropped in the middle; the memory of a batch is used again when it can."""

    def __init__(self, preprocessing: Preprocessing) -> None:
        self._preprocessing = preprocessing
        self._buffers: dict[int, BatchBuffers] = {}

    def __call__(self, batch: Any) -> Any:
        images, labels, *rows = batch
        finished = self._preprocessing.finish(images, out=self._memory(len(images)))
        return [finished, labels.astype(np.int64), *rows]

    def _memory(self, count: int) -> np.ndarray:
        if count not in self._buffers:
            shape = (count, *self._preprocessing.output_shape)
            self._buffers[count] = BatchBuffers(shape, _KEPT_BATCHES, np.float32)
        return self._buffers[count].take()


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


@dataclass(frozen=True, kw_only=True)
class JobData:
    """The batches of a job: ``[x, y]`` with ``x: (N, H, W, C) float32`` as the network gets it, ``y: (N) int64``.

    Args:
        train: shuffled, without a smaller last batch.
        evaluation: ``val`` and ``test``, where there are any, in order, with the remainder.
        preprocessing: what was done.
        class_names: by class number.
        sizes: split → number of samples.
        source: its splits, sample by sample; None where there are none, as of a trained model.
    """

    train: DataFlow
    evaluation: Mapping[str, DataFlow]
    preprocessing: Preprocessing
    class_names: Sequence[str]
    sizes: Mapping[str, int]
    source: ImageSource | None = None


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
        source=source,
    )
