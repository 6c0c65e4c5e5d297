"""Pipeline of a job's samples: source, decode, vary, batch, finish, as training, evaluation and previews read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from ziggurat.dataflow.augment import ComponentAugmentation
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.fast import JpegCropBatches, ScaledRandomCrop
from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.parallel.maps import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.parallel.options import default_workers
from ziggurat.dataflow.preprocessing import Augmentation, Mean, Preprocessing
from ziggurat.dataflow.sources import DataFromArrays
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError
from ziggurat.tasks.base import Task, TaskContext
from ziggurat.tasks.detection_arrays import PLACE, corners_of_rows, moved_rows
from ziggurat.worker.finishing import Finish, FinishAtRandom
from ziggurat.worker.joining import JoinObjects
from ziggurat.worker.mixing import MixSamples, Mixture, check_mixing
from ziggurat.worker.oversampling import check_oversampling, repeat_factors
from ziggurat.worker.source import DataSource, FilePath, ImportedSplit, labels_of

__all__ = ["DataOptions", "JobData", "Pipeline", "TrainingStages", "middle_crop", "prepare_data"]


_MOST_WORKERS: Final = 16
"""By default: more of them wait for the step of most networks, and each costs memory."""
_LOOKED_AT: Final = 16
_JPEG_START: Final = b"\xff\xd8\xff"


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
        numbers: what is done to the measured numbers of a table.
        text_length: tokens of a text that the network gets; None for what most texts of the training split have.
        vocabulary_size: different tokens at most.
        workers: that decode and vary images; None: one for each CPU, at most 16.
        worker_kind: ``threads`` or ``processes``; crops are decoded by threads in any case.
        prefetch: batches that are made ready while a step runs.
        decode: ``crop`` where only what a random crop needs may be decoded, ``picture`` for whole images.
        uint8_images: whether images of training batches stay uint8 where nothing changes their numbers.
        oversample_below: share of samples; those of classes that fewer have are seen more often in training.
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
    numbers: Literal["none", "standardize", "whiten"] = "standardize"
    text_length: int | None = None
    vocabulary_size: int = 20_000
    workers: int | None = None
    worker_kind: Literal["threads", "processes"] = "threads"
    prefetch: int = 2
    decode: Literal["crop", "picture"] = "crop"
    uint8_images: bool = False
    oversample_below: float = 0.0

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
        vary: decodes and varies single samples; None where nothing is varied, or the batch does all of it.
        batches: the arrays of samples, images as uint8.
        finish: ``[x, y]`` as the network gets them.
        mix: ``[x, y, second_y, share]``, see ``ziggurat.worker.mixing``, or joint images with their objects, see
            ``ziggurat.worker.joining``; None where samples are not mixed.
    """

    preprocessing: Preprocessing
    augmentation: Augmentation
    rows: IndexedFlow
    vary: MapData | MultiThreadMapData | MultiProcessMapData | None
    batches: BatchData | JpegCropBatches
    finish: MapData
    mix: MapData | None = None
    _orders: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def last(self) -> MapData:
        """The stage whose batches are trained on."""
        return self.finish if self.mix is None else self.mix

    def order(self, epoch: int) -> np.ndarray:
        """Return the rows in the order of an epoch, counted from 0."""
        if epoch not in self._orders:
            self.rows.load_state({**self.rows.state(), "pass": epoch, "ended": False})
            self._orders[epoch] = self.rows.order()
        return self._orders[epoch]

    def seen(self, row: int, epoch: int) -> np.ndarray | None:
        """Return an image as the network gets it, (H, W, C) uint8, before a mean is taken off and before whitening.

        See ``sample``.
        """
        found = self.sample(row, epoch)
        return None if found is None else found[0]

    def sample(self, row: int, epoch: int) -> list[np.ndarray] | None:
        """Return the arrays of a sample as they are batched: an image as ``seen`` has it, what moves with it, a target.

        Every random number depends on the seed, the stage, the epoch and the place in it only. So one place is asked
        for without reading the ones before. Where a sample cannot be read, a training may go on with the next one, and
        the places behind it move by one; a dataset that Ziggurat made has no such sample.

        Args:
            row: in the training split.
            epoch: from 0.

        Returns:
            None where the row is among the last of the epoch, which fill no batch and are left out, or is not in it.

        Raises:
            DatapointError: where it cannot be read.
            DataError: where it does not fit to the others of its batch.
        """
        order = self.order(epoch)
        # Samples that a task draws anew have other indices in each epoch: their numbers, and the epochs before.
        places = np.flatnonzero(order % len(self.rows) == row)
        if not len(places):  # rarer classes take its place in this epoch
            return None
        place = int(places[0])
        batch, inside = divmod(place, self.batches.batch_size)
        if (batch + 1) * self.batches.batch_size > len(self.rows):
            return None
        point: Any = self.rows.datapoint(int(order[place]))
        if isinstance(self.batches, JpegCropBatches):
            return [self.batches.crop_of(point, epoch, place), *point[1:]]
        if self.vary is not None:
            vary: Any = self.vary.func
            point = vary(point, rng=self.vary.stream("map").seek(epoch, place))
        preprocessing: Any = self.preprocessing
        if isinstance(preprocessing, Preprocessing) and point[0].shape[:2] != preprocessing.size:
            self.augmentation.check_size(preprocessing.size)
        finish = self.finish.func
        if not isinstance(finish, FinishAtRandom):
            return list(point)
        offsets = finish.offsets(self.batches.batch_size, self.finish.stream("map").seek(epoch, batch))
        top, left = offsets[inside]
        height, width, _ = self.preprocessing.output_shape
        return [point[0][top : top + height, left : left + width], *point[1:]]

    def joint(self, row: int, epoch: int) -> list[np.ndarray] | None:
        """Return image and objects of a row as its batch joins them; None where the row is in no batch.

        Args:
            row: in the training split.
            epoch: from 0.
        """
        order, size = self.order(epoch), self.batches.batch_size
        places = np.flatnonzero(order == row)
        batch, inside = divmod(int(places[0]) if len(places) else len(order), size)
        if self.mix is None or (batch + 1) * size > len(self.rows):
            return None
        height, width, _ = self.preprocessing.output_shape
        join: Any = self.mix.func
        drawn = join.draw(size, height, width, self.mix.stream("map").seek(epoch, batch))[inside]
        parts = [self.sample(int(order[batch * size + place]), epoch) for place in drawn.places]
        images, rows = zip(*(part[:2] for part in parts if part is not None), strict=True)
        return list(drawn.join(images, rows))

    def mixture(self, row: int, epoch: int) -> tuple[Mixture, int] | None:
        """Return how the batch of a row is mixed, and the row that is mixed into this one.

        Args:
            row: in the training split.
            epoch: from 0.

        Returns:
            None where nothing is mixed, or the row is among those that fill no batch.
        """
        order, size = self.order(epoch), self.batches.batch_size
        places = np.flatnonzero(order == row)
        if not len(places):
            return None
        batch, inside = divmod(int(places[0]), size)
        if self.mix is None or (batch + 1) * size > len(self.rows):
            return None
        height, width, _ = self.preprocessing.output_shape
        draw: Any = self.mix.func
        mixture = draw.draw(size, height, width, self.mix.stream("map").seek(epoch, batch))
        return mixture, int(order[batch * size + mixture.order[inside]])

    def close(self) -> None:
        """Close the split."""
        self.last.close()


class Pipeline:
    """What becomes of the samples of a source on their way to the network.

    Args:
        source: its splits.
        options: what the job asks for.
        context: of the job: its task and preprocessing.
    """

    def __init__(self, source: DataSource, options: DataOptions, context: TaskContext) -> None:
        self.source = source.for_task(context.task)
        self.options = options
        self.context = context
        self._image = context.preprocessing if isinstance(context.preprocessing, Preprocessing) else None
        self._moving = context.task.moves_with_image

    # ---- training

    def training(self, *, by_row: bool = False) -> TrainingStages:
        """Return the stages of the training split, with the job's seed.

        Args:
            by_row: read each image when it is its turn, also where all of them fit into memory: the batches are the
                same, and a single row can be asked for at once.
        """
        if self.decodes_crops:
            stages = self._crops()
        elif self._is_in_memory:
            stages = self._samples_in_memory(by_row=by_row)
        else:
            stages = self._files()
        stages.rows.repeats = self._repeats()
        stages.last.seed(self.options.seed)
        return stages

    def _repeats(self) -> np.ndarray | None:
        """Return how often each sample of the training split is due in an epoch; None for once each."""
        share, task = self.options.oversample_below, self.context.task
        if not share:
            return None
        labels = labels_of(self.source.splits["train"])
        return repeat_factors([task.classes_of(label) for label in labels], share)

    @property
    def crops(self) -> bool:
        """Whether images are cropped at random places in training."""
        image = self._image
        return image is not None and image.crop is not None and image.output_shape[:2] != image.size

    @property
    def _is_in_memory(self) -> bool:
        """Whether samples are encoded once; those whose parts are cropped together are cropped one by one."""
        makes_rows = type(self.context.task).rows is not Task.rows
        return self.source.in_memory and not makes_rows and not (self._moving and self.crops)

    @property
    def decodes_crops(self) -> bool:
        """Whether training decodes of each JPEG file only what its crop needs.

        That takes crops in color from a source of JPEG files, a resize mode that is a box of the image, no mean
        image (which depends on the place of the crop), and no variation but mirrors left and right.
        """
        before, options = self._image, self.options
        return (
            before is not None
            and options.decode == "crop"
            and self.crops
            and not self._moving
            and before.channels == 3
            and before.resize_mode in ("squash", "crop")
            and before.mean != "image"
            and replace(options.augmentation, flip="none", mixup=0.0, cutmix=0.0) == Augmentation()
            and options.augmentation.flip in ("none", "fliplr")
            and not self.source.in_memory
            and _holds_jpeg_files(self.source.splits["train"])
        )

    def _crops(self) -> TrainingStages:
        before, options = self._image, self.options
        assert before is not None
        rows = _Keyed(self.source.splits["train"], shuffle=options.shuffle, context=self.context)
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
        return self._stages(rows, None, batches, Finish(self.context, uint8=self._uint8))

    def _samples_in_memory(self, *, by_row: bool) -> TrainingStages:
        split, shuffle = self.source.splits["train"], self.options.shuffle
        if by_row:
            rows: IndexedFlow = _Fitted(split, self.context, shuffle=shuffle)
        else:
            points = list(self.fitted("train"))
            rows = DataFromArrays(*(np.stack(part) for part in zip(*points, strict=True)), shuffle=shuffle)
        vary = self.variation()
        return self._batched(rows, None if vary is None else MapData(rows, vary))

    def _files(self) -> TrainingStages:
        rows = self._rows("train", shuffle=self.options.shuffle) or _Keyed(
            self.source.splits["train"], shuffle=self.options.shuffle
        )
        decode = _Decode(self.context, self.variation(), self._moving_crop(at_random=True))
        return self._batched(rows, self._in_workers(rows, decode))

    def _rows(self, split: str, *, shuffle: bool) -> IndexedFlow | None:
        """Return a flow that makes samples of those of a split, where the task does.

        Those of an evaluation depend on the data only: all jobs and models are measured on the same.
        """
        flow: Any = self.source.splits[split]
        task, schema = self.context.task, self.source.schema

        return task.rows(
            schema, flow, lambda: labels_of(flow), shuffle=shuffle, seed=self.options.seed if shuffle else 0
        )

    def variation(self) -> ComponentAugmentation | _InTurn | None:
        """Return what varies the arrays of a sample: images, and what moves with them; None for nothing."""
        if self._image is None:
            return None
        augmentors = self.options.augmentation.augmentors(self._image.channels)
        if not augmentors:
            return None
        if not self._moving:
            return ComponentAugmentation(augmentors, 0)
        geometric = [each for each in augmentors if not isinstance(each, PhotometricAugmentor)]
        photometric = [each for each in augmentors if isinstance(each, PhotometricAugmentor)]
        images = [0, *(place for place, kind in enumerate(self._moving, 1) if kind == "image")]
        masks = [place for place, kind in enumerate(self._moving, 1) if kind == "mask"]
        labels: Any = {"mask_index": masks, "mask_fill": self.context.task.mask_fill(self.context)} if masks else {}
        stages: list[Any] = []
        if geometric:
            boxes = [place for place, kind in enumerate(self._moving, 1) if kind == "boxes"]
            if boxes:
                labels["boxes_index"] = boxes
            moving = ComponentAugmentation(geometric, images, labels=labels)
            stages.append(_WithBoxes(moving, boxes) if boxes else moving)
        return _InTurn([*stages, *([ComponentAugmentation(photometric, 0)] if photometric else [])])

    def _moving_crop(self, *, at_random: bool) -> _MovingCrop | None:
        return _moving_crop(self.context, at_random=at_random)

    def _batched(self, rows: IndexedFlow, vary: Any) -> TrainingStages:
        batches = BatchData(rows if vary is None else vary, self.options.batch_size)
        if self.crops and not self._moving:
            return self._stages(rows, vary, batches, FinishAtRandom(self.context, uint8=self._uint8))
        return self._stages(rows, vary, batches, Finish(self.context, uint8=self._uint8))

    @property
    def _uint8(self) -> bool:
        """Whether images of training batches stay uint8; mixed ones have other numbers."""
        return (
            self.options.uint8_images
            and self._image is not None
            and self._image.keeps_uint8
            and not self.options.augmentation.mixes
        )

    def _stages(self, rows: IndexedFlow, vary: Any, batches: Any, finish: Callable[..., Any]) -> TrainingStages:
        preprocessing: Any = self.context.preprocessing
        augmentation = self.options.augmentation
        finished = MapData(batches, finish)
        mix: Callable[..., Any] | None = None
        if self.context.task.joins_objects and (augmentation.mosaic or augmentation.mixup):
            mix = JoinObjects(augmentation.mosaic, augmentation.mixup)
        elif augmentation.mixes:
            mix = MixSamples(augmentation.mixup, augmentation.cutmix)
        return TrainingStages(
            preprocessing=preprocessing,
            augmentation=augmentation,
            rows=rows,
            vary=vary,
            batches=batches,
            finish=finished,
            mix=None if mix is None else MapData(finished, mix),
        )

    # ---- evaluation

    def evaluation(self, split: str, *, numbered: bool = False) -> DataFlow:
        """Return batches of a split in its order, with a smaller last one: ``[x, y]``, and the rows where numbered."""
        batches = BatchData(self.fitted(split, numbered=numbered), self.options.batch_size, remainder=True)
        return MapData(batches, Finish(self.context, numbered=numbered))

    def fitted(self, split: str, *, numbered: bool = False) -> DataFlow:
        """Return the arrays of a split's samples, images fitted: ``[image, target]``, in the order of the split.

        With ``numbered`` the row is the last: rows that cannot be read leave gaps.

        A file that cannot be used is named by its key in the split, such as its path, in errors and in the counts of
        ``source.policy``.
        """
        flow = self.source.splits[split]
        if self._is_in_memory:
            points = _Numbered(flow) if numbered else flow
            return MapData(points, _Encode(self.context, numbered=numbered), on_error=self.source.policy)
        keyed = self._rows(split, shuffle=False) or _Keyed(flow)
        points = _Numbered(keyed) if numbered else keyed
        decode = _Decode(self.context, None, self._moving_crop(at_random=False), numbered=numbered)
        if self.options.decode == "picture":  # the shape of the flow is that of the checkpoints of 0.1
            return MapData(points, decode, on_error=self.source.policy)
        return self._in_workers(points, decode)

    def reader(self, split: str) -> Callable[[int], list[np.ndarray]]:
        """Return what reads one sample of a split by its row: the arrays that ``fitted`` gives.

        It raises a DatapointError where the sample cannot be read.
        """
        flow: Any = self.source.splits[split]
        if self._is_in_memory:
            encode = _Encode(self.context)
            return lambda row: encode(flow.datapoint(row))
        keyed = self._rows(split, shuffle=False) or _Keyed(flow)
        decode = _Decode(self.context, None, self._moving_crop(at_random=False))
        unused = np.random.RandomState(0)  # nothing is varied
        return lambda row: decode(keyed.datapoint(row), unused)

    # ---- inside

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

    Where the split knows the paths of its files, they replace the bytes: the decoder reads the files, too. With a
    context, the label is the target already.
    """

    def __init__(self, flow: DataFlow, *, shuffle: bool = False, context: TaskContext | None = None) -> None:
        super().__init__(shuffle=shuffle)
        self._flow: Any = flow
        self._context = context
        self.policy = self._flow.policy

    def __len__(self) -> int:
        return len(self._flow)

    def key(self, index: int) -> str | int:
        """Return the key of the split."""
        return self._flow.key(index)

    def datapoint(self, index: int) -> list[Any]:
        """Return one file with its key."""
        point = self._flow.unread(index) if isinstance(self._flow, ImportedSplit) else self._flow.datapoint(index)
        key = self.key(index)
        if self._context is None:
            return [*point, key]
        return [point[0], self._context.task.encode(self._context, point[1], key), key]

    def close(self) -> None:
        """Close the split."""
        self._flow.close()
        super().close()


class _Fitted(IndexedFlow):
    """A split that fits into memory, read row by row: ``[image, target]``, the image fitted."""

    def __init__(self, flow: DataFlow, context: TaskContext, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self._flow: Any = flow
        self._encode = _Encode(context)

    def __len__(self) -> int:
        return len(self._flow)

    def datapoint(self, index: int) -> list[Any]:
        """Return the arrays of one sample."""
        return self._encode(self._flow.datapoint(index))

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


class _InTurn:
    """Varies a sample in several stages: its geometry with what moves with it, then the colors of the image."""

    def __init__(self, stages: Sequence[Callable[..., Any]]) -> None:
        self._stages = stages

    def __call__(self, point: Any, rng: np.random.RandomState) -> Any:
        for stage in self._stages:
            point = stage(point, rng)
        return point


class _WithBoxes:
    """Varies the geometry of a sample whose rows of objects are to be moved with the image.

    Args:
        vary: moves boxes (objects, 4) at ``places``.
        places: of the rows in a sample.
    """

    def __init__(self, vary: ComponentAugmentation, places: Sequence[int]) -> None:
        self._vary = vary
        self._places = places

    def __call__(self, point: Any, rng: np.random.RandomState) -> Any:
        with_boxes = list(point)
        for place in self._places:
            with_boxes[place] = corners_of_rows(point[place])
        found = self._vary(with_boxes, rng)
        for place in self._places:
            found[place] = moved_rows(point[place], found[place], found[0].shape[:2])
        return found


class _Encode:
    """Makes arrays of a sample that stands in memory."""

    def __init__(self, context: TaskContext, *, numbered: bool = False) -> None:
        self._context = context
        self._numbered = numbered

    def __call__(self, point: Any) -> Any:
        *parts, row = point if self._numbered else [*point, None]
        arrays = self._context.task.sample(self._context, parts, row)
        return [*arrays, row] if self._numbered else arrays


class _Decode:
    """Reads and decodes the parts of a sample, fits the image, varies and crops it.

    Args:
        context: of the job.
        vary: of training; None to leave the sample as it is.
        crop: of the image and the parts that move with it; None where samples are cropped in their batch.
        numbered: the row follows the key.
    """

    def __init__(
        self,
        context: TaskContext,
        vary: Callable[..., Any] | None,
        crop: _MovingCrop | None = None,
        *,
        numbered: bool = False,
    ) -> None:
        self._context = context
        self._vary = vary
        self._crop = crop
        self._numbered = numbered

    def __call__(self, point: Any, rng: np.random.RandomState) -> Any:
        *parts, key, row = point if self._numbered else [*point, None]
        read = [read_file(part) if isinstance(part, FilePath) else part for part in parts]
        arrays = self._context.task.sample(self._context, read, key)
        if self._vary is not None:
            arrays = self._vary(arrays, rng)
        if self._crop is not None:
            arrays = self._crop(arrays, rng)
        return [*arrays, row] if self._numbered else arrays


class _MovingCrop:
    """Crops the image of a sample, and the parts that move with it, at one place.

    Args:
        preprocessing: has a crop that is smaller than the images.
        moving: what is cropped with the image, see ``Task.moves_with_image``.
        at_random: at a random place; in the middle otherwise.
    """

    def __init__(self, preprocessing: Preprocessing, moving: Sequence[str], *, at_random: bool) -> None:
        self._height, self._width, _ = preprocessing.output_shape
        self._most = (preprocessing.size[0] - self._height, preprocessing.size[1] - self._width)
        self._kinds = ("image", *moving)
        self._at_random = at_random

    def __call__(self, arrays: list[np.ndarray], rng: np.random.RandomState) -> list[np.ndarray]:
        top, left = (rng.randint(0, most + 1) if self._at_random else most // 2 for most in self._most)
        window = np.s_[top : top + self._height, left : left + self._width]
        cropped = [
            self._rows(array, top, left) if kind == "boxes" else array[window]
            for kind, array in zip(self._kinds, arrays, strict=False)
        ]
        return [*cropped, *arrays[len(self._kinds) :]]

    def _rows(self, rows: np.ndarray, top: int, left: int) -> np.ndarray:
        """Return objects as the crop has them; its header row says where the original image lies in it."""
        moved = moved_rows(rows, corners_of_rows(rows) - (left, top, left, top), (self._height, self._width))
        moved[0, PLACE] -= (top, left)
        return moved


def middle_crop(context: TaskContext) -> Callable[..., list[np.ndarray]] | None:
    """Return what crops a sample in the middle, as an evaluation does; None where its batch is cropped, or nothing."""
    return _moving_crop(context, at_random=False)


def _moving_crop(context: TaskContext, *, at_random: bool) -> _MovingCrop | None:
    image, moving = context.preprocessing, context.task.moves_with_image
    if not isinstance(image, Preprocessing) or not moving or image.output_shape[:2] == image.size:
        return None
    return _MovingCrop(image, moving, at_random=at_random)


@dataclass(frozen=True, kw_only=True)
class JobData:
    """The batches of a job: ``[x, y]`` as the network gets them, or ``[x]`` where there is no target.

    Args:
        train: shuffled, without a smaller last batch.
        evaluation: ``val`` and ``test``, where there are any, in order, with the remainder.
        context: task, schema and preprocessing.
        sizes: split → number of samples.
        source: its splits, sample by sample; None where there are none, as of a trained model.
        mixes_labels: whether batches of training are ``[x, y, second_y, share]``, see ``ziggurat.worker.mixing``.
        decodes: whether samples are read and decoded when it is their turn.
    """

    train: DataFlow
    evaluation: Mapping[str, DataFlow]
    context: TaskContext
    sizes: Mapping[str, int]
    source: DataSource | None = None
    mixes_labels: bool = False
    decodes: bool = False

    @property
    def class_names(self) -> Sequence[str]:
        """Names of the classes, by number; empty where there are none."""
        return self.context.class_names


def prepare_data(source: DataSource, options: DataOptions, context: TaskContext) -> JobData:
    """Return the batches of a job.

    Args:
        source: its splits.
        options: what it asks for.
        context: task and preprocessing, see ``ziggurat.worker.context``.

    Raises:
        DataError: where a batch is larger than the training split, quarter turns meet images that are no squares, or
            samples shall be mixed, or seen more often, that cannot be.
    """
    train = source.splits["train"]
    if len(train) < options.batch_size:
        raise DataError(
            "A batch is not larger than the training split.",
            received=f"`batch_size` {options.batch_size} for {len(train)} samples",
            advice="Make `batch_size` smaller.",
        )
    check_mixing(options.augmentation, options.batch_size, context)
    check_oversampling(options.oversample_below, context)
    if isinstance(context.preprocessing, Preprocessing):
        options.augmentation.check_size(context.preprocessing.size)
        _check_crop(context.preprocessing, context.task)
    pipeline = Pipeline(source, options, context)
    return JobData(
        train=pipeline.training().last,
        evaluation={split: pipeline.evaluation(split) for split in source.splits if split != "train"},
        context=context,
        sizes={split: len(flow) for split, flow in source.splits.items()},
        source=source,
        mixes_labels=options.augmentation.mixes and not context.task.joins_objects,
        decodes=isinstance(context.preprocessing, Preprocessing) and not source.in_memory,
    )


def _check_crop(preprocessing: Preprocessing, task: Task) -> None:
    """Refuse a mean image with crops of targets that move with the image: they are cut before the mean is taken off."""
    is_cropped = preprocessing.output_shape[:2] != preprocessing.size
    if task.moves_with_image and is_cropped and preprocessing.mean == "image":
        raise DataError(
            f"A mean image and a crop do not go together in {task.title}.",
            received=f"`preprocessing.mean` image, `preprocessing.crop` {preprocessing.crop}",
            advice="Use the mean of each channel: `preprocessing.mean` pixel.",
        )
