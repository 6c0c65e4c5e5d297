"""Model and request handlers of an inference process: a network that follows its job, and answers from it.

Requests that wait at the same time are predicted in one batch.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

import cv2
import numpy as np

from ziggurat.atomic import file_signature
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.engine.capabilities import TrainedNetwork
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.errors import CheckpointError, DataError, UsageError
from ziggurat.layout import CheckpointFiles, JobFolder
from ziggurat.records.codec import DecodingError, read_frame
from ziggurat.specs import FileNetwork
from ziggurat.tasks import InputPreprocessing, MeansMetric, TaskContext
from ziggurat.tasks.base import as_color, prediction, prediction_picture
from ziggurat.worker.commands.prediction_inputs import input_note, named_inputs
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job

__all__ = [
    "PredictRequest",
    "PredictedSample",
    "Requests",
    "WarmModel",
    "decoded_image",
    "evaluate",
    "fitted_image",
    "png_of",
    "predict",
    "prediction_of",
    "top_of",
]


_Stamp = tuple[dict[str, str], dict[str, tuple[int, ...]], tuple[int, ...]]
"""Given name → checkpoint; checkpoint → when it was written, in nanoseconds; and when the operating point was."""


class WarmModel:
    """A trained network that stays open. A name such as ``latest`` is followed while a training moves it.

    Args:
        folder: the job folder.
        checkpoint: as for ``open_trained_job``.
        device: index of the accelerator, or ``cpu``; empty for the devices of the training.

    Raises:
        ZigguratError: as ``open_trained_job`` and ``open_network``.
    """

    def __init__(self, folder: Path, checkpoint: str | None = None, device: str = "") -> None:
        self._folder = folder
        self._asked = checkpoint
        self._device = device
        self._opened = ExitStack()
        # Before the checkpoint is read: one that is written meanwhile is noticed by the next request.
        self._stamp = self._look()
        self._open(open_trained_job(folder, checkpoint))

    @property
    def job(self) -> TrainedJob:
        """What is open: preprocessing, classes, arrays, and which checkpoint it is."""
        return self._job

    @property
    def network(self) -> TrainedNetwork:
        """The open network."""
        return self._network

    def follow(self) -> None:
        """Open the checkpoint that the asked name stands for now, unless it is open already.

        Raises:
            ZigguratError: where that cannot be opened; what was open stays.
        """
        stamp = self._look()
        if stamp == self._stamp:
            return
        try:
            job = open_trained_job(self._folder, self._asked)
        except CheckpointError:
            if self._asked == self._job.checkpoint:
                return  # the very checkpoint that is open was removed to save space; it is still a good answer
            raise
        if job.checkpoint != self._job.checkpoint or _written(stamp, job) != _written(self._stamp, job):
            before, self._opened = self._opened, ExitStack()
            try:
                self._open(job)
            except BaseException:
                self._opened = before
                raise
            before.close()
        else:  # another operating point: the network stays open
            self._job = replace(self._job, context=job.context, operating_point=job.operating_point)
        self._stamp = stamp

    def describe(self) -> dict[str, Any]:
        """Return which network it is and what it takes, as JSON values."""
        job = self._job
        network = job.spec.network
        return {
            **job.summary(),
            "network": network.path if isinstance(network, FileNetwork) else network.name,
            "backend": job.spec.backend,
            "device": self._device,
            "task": job.task.name,
            "class_names": list(job.class_names),
            **_input_of(job.context.preprocessing),
            "input_shape": list(job.task.input(job.context).shape),
        }

    def close(self) -> None:
        """Free the network; closing twice does nothing."""
        self._opened.close()

    def _open(self, job: TrainedJob) -> None:
        if self._device:
            # The devices of the training may be busy or hidden; the one that was asked for is the only one in sight.
            job = replace(job, request=replace(job.request, devices=()))
        self._network = self._opened.enter_context(open_network(job))
        self._job = job

    def _look(self) -> _Stamp:
        store = CheckpointStore(JobFolder(self._folder).checkpoints, writable=False)
        times = {info.name: _signature(CheckpointFiles(info.path).state) for info in store.list()}
        return dict(store.names()), times, _signature(JobFolder(self._folder).operating_point)


def _written(stamp: _Stamp, job: TrainedJob) -> tuple[int, ...] | None:
    return stamp[1].get(job.checkpoint)


def _signature(path: Path) -> tuple[int, ...]:
    try:
        return file_signature(path)
    except OSError:
        return ()


_TOP: Final = 5


_Image = tuple[str, bytes]


@dataclass
class PredictRequest:
    """A request for predictions, and its answer as it grows.

    Args:
        inputs: name and content of image files, rows or texts.
        top: how many classes are named.
        drawn: whether predictions that are images come as PNG too.
    """

    inputs: list[tuple[str, Any]]
    top: int = _TOP
    drawn: bool = False
    predictions: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, model: WarmModel, request: Mapping[str, Any]) -> PredictRequest:
        """Return what was asked.

        Raises:
            UsageError: where it was asked wrongly.
        """
        return cls(inputs_of(model, request), top_of(request), bool(request.get("drawn")))


def predict(model: WarmModel, requests: Sequence[PredictRequest]) -> None:
    """Fill in the answers of requests; their inputs share batches.

    ``predictions`` gets, in the order of the inputs, ``file`` (for a row or text its number from 1) and what the task
    says, as ``Task.decode`` has it; with ``drawn`` also ``picture`` (PNG, or None where the prediction is no image) and
    ``input`` (PNG, the image as the network gets it); and ``note`` (a sentence) for an input that loses something when
    it is read. ``failures`` gets ``file`` and the error's JSON shape.

    Args:
        model: the open network.
        requests: what was asked.
    """
    context = model.job.context
    waiting = [(request, name, content) for request in requests for name, content in request.inputs]
    for start in range(0, len(waiting), AT_ONCE):
        fitted = []
        for request, name, content in waiting[start : start + AT_ONCE]:
            try:
                sized = context.preprocessing.decode_sized(content, name)
                fitted.append((request, name, *sized, input_note(context, content)))
            except DataError as error:
                request.failures.append({"file": name, **error.as_dict()})
        if fitted:
            stacked = np.stack([array for _, _, array, *_ in fitted])
            batch = context.task.input_batch(context, stacked, context.preprocessing.finish)
            outputs = {name: np.asarray(each) for name, each in model.network.predict(batch).items()}
            for row, (request, name, decoded, size, note) in enumerate(fitted):
                sample = PredictedSample(name, _row(outputs, row), decoded, size)
                request.predictions.append({**prediction_of(sample, request, context), **note})


def evaluate(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of labeled images.

    Args:
        model: the open network.
        request: ``pictures`` as for ``predict``; ``labels``, a class number for each.

    Returns:
        ``samples``, ``scalars`` (means over the samples), ``failures``, ``notes`` (``file`` and ``note`` of images that
        lose something when they are read), ``classifier``, and of a classifier what the
        task ``evaluate`` gives: ``accuracy``, ``confusion``, ``classes``, and ``top_5`` with more than five classes.
    """
    images, job = images_of(request), model.job
    if not job.task.takes_class_lists:
        raise UsageError(
            f"The network is for {job.task.title}, and labeled images are for one that classifies.",
            advice="Evaluate it on a split of its dataset: ziggurat evaluate.",
        )
    labels = _labels(request.get("labels"), len(images), len(job.class_names))
    failures: list[dict[str, Any]] = []
    means, metrics, is_known = MeansMetric(), job.task.metrics(job.context), False
    for batch, numbers in _labelled_batches(model, images, labels, failures):
        values, targets = model.network.evaluate(job.images.finish(batch), numbers), {"y": numbers}
        means.update(values, targets)
        if all(name in values for name in job.task.outputs):
            is_known = True
            for metric in metrics:
                metric.update(values, targets)
    return {
        "samples": means.samples,
        "scalars": means.compute(),
        "failures": failures,
        "notes": [{"file": name, **note} for name, content in images if (note := input_note(job.context, content))],
        "classifier": is_known,
        **{name: value for metric in metrics for name, value in metric.compute().items()},
    }


@dataclass(frozen=True)
class DecodedImage:
    """One image of a request.

    Args:
        name: of its file.
        seen: resized and cropped as the network sees it, (H, W, C) uint8.
        x: as the network gets it, also less the mean and whitened: (1, H, W, C) float32.
    """

    name: str
    seen: np.ndarray
    x: np.ndarray


def decoded_image(model: WarmModel, request: Mapping[str, Any]) -> DecodedImage:
    """Return a request's one image.

    Raises:
        UsageError: where there is not just one.
        DatapointError: where it cannot be read.
    """
    images, preprocessing = images_of(request), model.job.images
    if len(images) != 1:
        raise UsageError("This is asked of one image.", received=f"{len(images)} images")
    ((name, content),) = images
    fitted = preprocessing.decode(content, name)
    seen = preprocessing.in_the_middle(fitted)
    context = model.job.context
    return DecodedImage(name, seen, context.task.input_batch(context, fitted[None], preprocessing.finish))


def fitted_image(model: WarmModel, request: Mapping[str, Any]) -> tuple[str, np.ndarray]:
    """Return the name of a request's one image, and it as the network gets it: (1, H, W, C) float32.

    Raises:
        UsageError, DatapointError: as ``decoded_image``.
    """
    image = decoded_image(model, request)
    return image.name, image.x


def inputs_of(model: WarmModel, request: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (name, content) of everything that is to be predicted for: images, rows of a table, or texts.

    Raises:
        UsageError: where the network takes something else.
    """
    if request.get("pictures") is not None or not any(request.get(name) for name in ("rows", "texts")):
        if model.job.context.schema.parts[0] != "image":
            model.job.images  # noqa: B018 - says what it takes
        return list(images_of(request))
    return named_inputs(model.job.context, {name: request.get(name) for name in ("rows", "texts")}).found


def images_of(request: Mapping[str, Any]) -> list[_Image]:
    """Return the images of a request: name and content of image files.

    Raises:
        UsageError: where they are something else.
    """
    images = request.get("pictures")
    if not isinstance(images, list) or not all(_is_image(each) for each in images):
        raise UsageError(
            "`pictures` is "
            f"{'a ' + type(images).__name__ if not isinstance(images, list) else 'a list of something else'}, "
            "not a list of name (text) and content (bytes).",
            advice="Send the bytes of image files as they are.",
        )
    return [(each[0], each[1]) for each in images]


def top_of(request: Mapping[str, Any]) -> int:
    """Return how many classes a request wants to see named.

    Raises:
        UsageError: where that is no number of classes.
    """
    top = request.get("top", _TOP)
    if not isinstance(top, int) or top < 1:
        raise UsageError("`top` is a whole number from 1 up.", received=repr(top))
    return top


def _is_image(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and isinstance(value[0], str) and isinstance(value[1], bytes)


def _labels(labels: Any, images: int, classes: int) -> np.ndarray:
    numbers = np.asarray([] if labels is None else labels)
    is_right = numbers.shape == (images,) and (not images or numbers.dtype.kind in "iu")
    if not is_right or (images and not (numbers.min() >= 0 and numbers.max() < classes)):
        raise UsageError(
            f"`labels` is {numbers.tolist()!r:.200} for {images} images, not a class number for each "
            f"from 0 to {classes - 1}."
        )
    return numbers.astype(np.int64)


def _labelled_batches(
    model: WarmModel, images: Sequence[_Image], labels: np.ndarray, failures: list[dict[str, Any]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield fitted images (N, height, width, C) uint8 with their labels; add those that are none to the failures."""
    for start in range(0, len(images), AT_ONCE):
        fitted, kept = [], []
        for number, (name, content) in enumerate(images[start : start + AT_ONCE], start=start):
            try:
                fitted.append(model.job.images.decode(content, name))
                kept.append(number)
            except DataError as error:
                failures.append({"file": name, **error.as_dict()})
        if fitted:
            yield np.stack(fitted), labels[kept]


def _row(outputs: Mapping[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    return {name: each[row] for name, each in outputs.items()}


def _input_of(preprocessing: InputPreprocessing) -> dict[str, Any]:
    """Return what an image must be like, under ``picture``; nothing for other inputs."""
    if not isinstance(preprocessing, Preprocessing):
        return {"picture": None}
    size, channels, mode = preprocessing.size, preprocessing.channels, preprocessing.resize_mode
    return {"picture": {"size": list(size), "channels": channels, "resize_mode": mode}}


@dataclass(frozen=True)
class PredictedSample:
    """One sample of a request, and what the network gave for it.

    Args:
        name: of the sample.
        outputs: name → values of this sample.
        decoded: the input, as ``InputPreprocessing.decode`` returns it; None where there is none.
        size: (height, width) in px of an image before it was fitted; None where there is none.
    """

    name: str
    outputs: Mapping[str, np.ndarray]
    decoded: np.ndarray | None = None
    size: tuple[int, int] | None = None


def prediction_of(sample: PredictedSample, request: PredictRequest, context: TaskContext) -> dict[str, Any]:
    """Return what the task says of one sample, and what else a request asks for.

    Args:
        sample: with the outputs of the network.
        request: how it is asked.
        context: of the job.
    """
    said = prediction(context, sample.outputs, top=request.top, original_size=sample.size)
    found = {"file": sample.name, **said}
    if request.drawn:
        picture, is_placed = prediction_picture(context, sample.outputs, sample.size)
        found["picture"] = None if picture is None else png_of(picture)
        before = context.preprocessing
        if picture is not None and not is_placed and sample.decoded is not None and isinstance(before, Preprocessing):
            found["input"] = png_of(as_color(before.in_the_middle(sample.decoded)))
    return found


def png_of(image: np.ndarray) -> bytes:
    """Return an image (H, W, 3) RGB, or (H, W, 4) RGBA, uint8, as PNG."""
    order = cv2.COLOR_RGBA2BGRA if image.shape[2] == 4 else cv2.COLOR_RGB2BGR
    return cv2.imencode(".png", cv2.cvtColor(np.ascontiguousarray(image), order))[1].tobytes()


AT_ONCE: Final = 32
"""Images that a network gets in one batch; as many as the task ``predict`` gives it, so that both say the same."""


_WAIT_S: Final = 0.005


_END: Final[Mapping[str, Any]] = {}


class Requests:
    """Hands out what was asked, in its order.

    Args:
        source: where requests come from; a thread reads it until it ends.
        clock: seconds, never going back.
    """

    def __init__(self, source: IO[bytes], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._queue: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._kept: deque[Mapping[str, Any]] = deque()
        self._was_group = False
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def end(self) -> None:
        """Let ``take`` return nothing from now on; also a signal handler may call it."""
        self._queue.put(_END)

    def take(self, idle_s: float) -> list[Mapping[str, Any]]:
        """Return the next request, or several that ask for predictions; nothing where it is time to end.

        Requests that are there already are taken together. Only where that has just happened it waits some
        milliseconds for more, so that a single request never waits.

        Args:
            idle_s: longest time to wait for a request.
        """
        first = self._next(idle_s)
        if not first:
            return []
        group, last = [first], self._clock() + (_WAIT_S if self._was_group else 0)
        while first.get("do") == "predict" and _images(group) < AT_ONCE:
            following = self._next(max(0.0, last - self._clock()))
            if following is None:
                break
            if following.get("do") != "predict" or _images([*group, following]) > AT_ONCE:
                self._kept.append(following)
                break
            group.append(following)
        self._was_group = len(group) > 1
        return group

    def _next(self, wait_s: float) -> Mapping[str, Any] | None:
        if self._kept:
            return self._kept.popleft()
        try:
            return self._queue.get(timeout=wait_s) if wait_s else self._queue.get_nowait()
        except queue.Empty:
            return None

    def _read(self) -> None:
        try:
            while isinstance(request := read_frame(self._source), dict) and request:
                self._queue.put(request)
        except (DecodingError, OSError) as error:
            sys.stderr.write(f"Requests cannot be read any more: {error}\n")
        self.end()


def _images(group: list[Mapping[str, Any]]) -> int:
    given = (request.get(name) for request in group for name in ("pictures", "rows", "texts"))
    return sum(len(each) for each in given if isinstance(each, list))
