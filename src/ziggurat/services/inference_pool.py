"""Inference process pool: predictions by networks that stay open, one request or many images in parts."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import psutil

from ziggurat.errors import CheckpointError, DatapointError, JobError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.services.inference_process import ProcessEndedError, WarmProcess
from ziggurat.services.process_pool import Entry, ProcessPool

__all__ = [
    "INFERENCE_COMMAND",
    "InferencePool",
]


ImageFile = tuple[str, bytes]
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
    predict: Callable[[Sequence[ImageFile]], Mapping[str, Any]],
    items: Iterable[Path | ImageFile],
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
    for images, unread in _parts(items, at_once):
        if shall_end():
            return ManyResult(predicted, failed, False)
        found: Mapping[str, Any] = predict(images) if images else {"predictions": [], "failures": []}
        failures = [*unread, *found["failures"]]
        predicted += len(found["predictions"])
        failed += len(failures)
        sink(ManyPart(found["predictions"], failures, predicted + failed))
    return ManyResult(predicted, failed, True)


def _parts(items: Iterable[Path | ImageFile], at_once: int) -> Iterator[tuple[list[ImageFile], list[dict[str, Any]]]]:
    """Yield images with the failures of files that cannot be read."""
    images: list[ImageFile] = []
    failures: list[dict[str, Any]] = []
    size_bytes = 0
    for item in items:
        try:
            image = _read(item) if isinstance(item, Path) else item
        except DatapointError as error:
            failures.append({"file": str(item), **error.as_dict()})
        else:
            if images and size_bytes + len(image[1]) > _PART_BYTES:
                yield images, failures
                images, failures, size_bytes = [], [], 0
            images.append(image)
            size_bytes += len(image[1])
        if len(images) + len(failures) >= at_once:
            yield images, failures
            images, failures, size_bytes = [], [], 0
    if images or failures:
        yield images, failures


def _read(path: Path) -> ImageFile:
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        raise DatapointError(str(path), f"it cannot be read ({error.strerror}).") from error


INFERENCE_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker.inference")
"""Starts a warm process; the job folder and options are added."""

_MOST_BYTES: Final = 256 << 20
_LONGER_S: Final = 30.0
"""A process ends by itself that much later than the pool would end it: only where the pool failed to."""


@dataclass(frozen=True)
class _Key:
    folder: Path
    checkpoint: str | None
    device: str


@dataclass(frozen=True, kw_only=True)
class WarmStatus:
    """One warm process, as the strip of devices shows it.

    Args:
        folder: the job folder.
        checkpoint: as it was asked for; None for the best, else the latest.
        device: index of the accelerator, or ``cpu``; empty for the devices of the training.
        pid: its process.
        is_ready: False while it opens the network.
        users: requests that it has now.
        answered: requests that it has answered.
        idle_s: time since the last request; 0 during one.
        memory_bytes: resident memory of the process; None if unknown.
    """

    folder: Path
    checkpoint: str | None
    device: str
    pid: int
    is_ready: bool
    users: int
    answered: int
    idle_s: float
    memory_bytes: int | None


class InferencePool:
    """Asks trained networks. Any thread may call any method; use it as a context manager.

    The first request for a network starts a process that opens it; the next ones find it warm. A process that died is
    replaced by the next request. Each request may name a ``timeout_s`` of its own.

    Args:
        command: starts a warm process.
        environment: of the processes.
        logs: folder of their output; a temporary one where it is left out.
        idle_s: a network without a request for so long is unloaded.
        most: networks that are open at a time; for one more, the least recently used is freed.
        start_timeout_s: longest time until a network is open.
        timeout_s: longest time for an answer. A process without an answer for so long is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        logs: Path | None = None,
        idle_s: float = 300.0,
        most: int = 4,
        start_timeout_s: float = 120.0,
        timeout_s: float = 60.0,
    ) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._temporary = tempfile.TemporaryDirectory(prefix="ziggurat-inference-") if logs is None else None
        self._logs = logs or Path("." if self._temporary is None else self._temporary.name)
        self._idle_s = idle_s
        self._start_timeout_s = start_timeout_s
        self._timeout_s = timeout_s
        self._pool: ProcessPool[_Key, WarmProcess] = ProcessPool(
            self._start, most=most, idle_s=idle_s, what="warm networks"
        )

    def predict(
        self,
        folder: Path,
        checkpoint: str | None,
        images: Sequence[ImageFile],
        top: int = 5,
        device: str | int | None = None,
        *,
        drawn: bool = False,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Predict for images; each that cannot be read is among the ``failures``, beside the others' predictions.

        Args:
            folder: the job folder.
            checkpoint: its name, a given name, ``best`` or ``latest``; None for the best, or else the latest.
            images: name and content of image files.
            top: how many classes are named.
            device: index of an accelerator, or ``cpu``; None for the devices of the training.
            drawn: whether each prediction that is an image has it as ``picture`` too (PNG), else None.
            timeout_s: longest time for the answer, once the network is open.

        Returns:
            What the task ``predict`` gives: ``folder``, ``checkpoint``, ``step``, ``epoch``, ``predictions``,
            ``failures``; ``file`` is the name that was sent.

        Raises:
            ZigguratError: of the family of what went wrong there.
            JobError: where the process was killed, or did not answer in time.
        """
        fields = {"pictures": _checked(images), "top": top, "drawn": drawn}
        return self._ask(folder, checkpoint, device, "predict", fields, timeout_s)

    def predict_values(
        self,
        folder: Path,
        checkpoint: str | None,
        inputs: Mapping[str, Sequence[Any]],
        top: int = 5,
        device: str | int | None = None,
        *,
        drawn: bool = False,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Predict for rows of a table, or for texts; the answer is that of ``predict``, ``file`` a number from 1.

        Args:
            folder: the job folder.
            checkpoint: as for ``predict``.
            inputs: ``rows`` (each column → value, or a list in their order) or ``texts``.
            top: as for ``predict``.
            device: as for ``predict``.
            drawn: as for ``predict``.
            timeout_s: as for ``predict``.
        """
        fields = {**{name: list(values) for name, values in inputs.items()}, "top": top, "drawn": drawn}
        return self._ask(folder, checkpoint, device, "predict", fields, timeout_s)

    def generate(
        self,
        folder: Path,
        checkpoint: str | None,
        count: int,
        device: str | int | None = None,
        *,
        drawn: bool = False,
        timeout_s: float | None = None,
        **given: Any,
    ) -> dict[str, Any]:
        """Return what a network makes without any sample; the answer is that of ``predict``, ``file`` from 1.

        It has ``inputs`` beside, what the network may be given: name → ``shape`` and ``dtype`` of a row.

        Args:
            folder: the job folder.
            checkpoint: as for ``predict``.
            count: how many samples.
            device: as for ``predict``.
            drawn: as for ``predict``.
            timeout_s: as for ``predict``.
            given: ``seed``, ``inputs`` and ``first``, see ``ziggurat.worker.commands.given_inputs``.
        """
        fields = {"count": count, "drawn": drawn, **given}
        return self._ask(folder, checkpoint, device, "generate", fields, timeout_s)

    def samples(
        self,
        folder: Path,
        checkpoint: str | None,
        split: str,
        rows: Sequence[int],
        device: str | int | None = None,
        *,
        timeout_s: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return samples of the job's own data with what the network says of them now.

        Args:
            folder: the job folder.
            checkpoint: as for ``predict``.
            split: of the data.
            rows: in the split, 64 at most.
            device: as for ``predict``.
            timeout_s: as for ``predict``.
            options: ``top``, and ``max_side_px`` of the images.

        Returns:
            ``samples``: ``row``, the prediction, and ``drawn`` (name → PNG); ``failures``: ``row`` and the error.
        """
        fields = {"split": split, "rows": list(rows), **options}
        return self._ask(folder, checkpoint, device, "samples", fields, timeout_s)

    def evaluate(
        self,
        folder: Path,
        checkpoint: str | None,
        images: Sequence[ImageFile],
        labels: Sequence[int],
        device: str | int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the figures of labeled images: ``samples``, ``scalars``, ``failures``, those of a classifier."""
        fields = {"pictures": _checked(images), "labels": [int(label) for label in labels]}
        return self._ask(folder, checkpoint, device, "evaluate", fields, timeout_s)

    def activations(
        self,
        folder: Path,
        checkpoint: str | None,
        image: ImageFile,
        device: str | int | None = None,
        *,
        weights: bool = True,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return what a network makes of one image, layer by layer, and its weights.

        Returns:
            ``file`` and its prediction; ``input``, ``activations`` and ``weights``: ``name``, ``shape``, ``mean``,
            ``deviation``, ``minimum``, ``maximum``, ``not_finite``, ``histogram`` (20 ``counts``, 21 ``edges``) and
            ``png`` (bytes of a small image, or None); weights also ``parameters``; and ``parameters`` in all.
        """
        fields = {"pictures": _checked([image]), "weights": weights}
        return self._ask(folder, checkpoint, device, "activations", fields, timeout_s)

    def grad_cam(
        self,
        folder: Path,
        checkpoint: str | None,
        image: ImageFile,
        device: str | int | None = None,
        *,
        timeout_s: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return where in one image a network finds what speaks for a class (Grad-CAM).

        Args:
            folder: the job folder.
            checkpoint: as for ``predict``.
            image: name and content of an image file.
            device: as for ``predict``.
            timeout_s: as for ``predict``.
            options: ``class`` (number or name; the likeliest), ``layer`` (the one of the last convolution), ``top``.

        Returns:
            ``file`` and its prediction; ``class``, ``number``, ``probability``, ``layer``, ``layers``, ``heat`` (rows
            of numbers from 0 to 1), ``largest``, ``png`` and ``heat_png`` (bytes of small images), ``colours``.
        """
        fields = {"pictures": _checked([image]), **options}
        return self._ask(folder, checkpoint, device, "grad_cam", fields, timeout_s)

    def describe(
        self, folder: Path, checkpoint: str | None, device: str | int | None = None, *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Return which network it is: checkpoint, step, epoch, ``class_names``, and the ``picture`` that it takes."""
        return self._ask(folder, checkpoint, device, "describe", {}, timeout_s)

    def predict_many(
        self,
        folder: Path,
        items: Iterable[Path | ImageFile],
        sink: Callable[[ManyPart], None],
        options: ManyOptions | None = None,
        *,
        shall_end: Callable[[], bool] = lambda: False,
    ) -> ManyResult:
        """Predict for any number of images, part by part; other requests get their turn between the parts.

        Args:
            folder: the job folder.
            items: files, or name and content; taken one by one, never held all together.
            sink: gets each part in order, with how many are done.
            options: the rest.
            shall_end: asked before each part; True ends it there.
        """
        chosen = options or ManyOptions()

        def predict(images: Sequence[ImageFile]) -> Mapping[str, Any]:
            return self.predict(folder, chosen.checkpoint, images, chosen.top, chosen.device)

        return predict_parts(predict, items, sink, chosen.at_once, shall_end)

    def status(self) -> list[WarmStatus]:
        """Return the processes that there are, least recently used first."""
        return [self._status(key, entry) for key, entry in self._pool.entries() if entry.process is not None]

    def release(self, folder: Path) -> None:
        """End the processes of a job, as before its folder is deleted or its device is needed."""
        resolved = folder.resolve()
        self._pool.release(lambda key: key.folder == resolved)

    def close(self) -> None:
        """End all processes with all that they started; closing twice does nothing."""
        self._pool.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _ask(
        self,
        folder: Path,
        checkpoint: str | None,
        device: str | int | None,
        what: str,
        fields: Mapping[str, Any],
        timeout_s: float | None,
    ) -> dict[str, Any]:
        if not JobFolder(folder).spec.is_file():
            raise JobError(
                f"`{folder}` is not the folder of a job: it has no spec.json.", advice="Name another folder."
            )
        key = _Key(folder.resolve(), _checkpoint_name(checkpoint), _device_name(device))
        longest_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            return self._ask_once(key, what, fields, longest_s)
        except ProcessEndedError as error:
            if not error.may_retry:
                raise
        return self._ask_once(key, what, fields, longest_s)  # it ended before the request came to it

    def _ask_once(self, key: _Key, what: str, fields: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        with self._pool.use(key, timeout_s) as process:
            process.wait_until_ready()
            return dict(process.ask(what, fields, timeout_s))

    def _start(self, key: _Key) -> WarmProcess:
        chosen = [] if key.checkpoint is None else [f"--checkpoint={key.checkpoint}"]
        chosen += [f"--device={key.device}"] if key.device else []
        return WarmProcess(
            key.folder,
            [
                *(*self._command, *chosen, "--idle", str(self._idle_s + _LONGER_S)),
                *("--end-with", str(os.getpid()), "--", str(key.folder)),
            ],
            self._environment,
            self._logs / f"{key.folder.name}.log",
            start_timeout_s=self._start_timeout_s,
        )

    def _status(self, key: _Key, entry: Entry[WarmProcess]) -> WarmStatus:
        process = entry.process
        assert process is not None
        return WarmStatus(
            folder=key.folder,
            checkpoint=key.checkpoint,
            device=key.device,
            pid=process.pid,
            is_ready=process.is_ready,
            users=entry.users,
            answered=process.answered,
            idle_s=0.0 if entry.users else max(0.0, time.monotonic() - entry.used_at),
            memory_bytes=_memory_bytes(process.pid),
        )


def _checked(images: Sequence[ImageFile]) -> list[list[Any]]:
    size_bytes = sum(len(content) for _, content in images)
    if size_bytes > _MOST_BYTES:
        raise UsageError(
            f"The images of the request have {size_bytes >> 20} MiB; {_MOST_BYTES >> 20} MiB is the most.",
            advice="Send fewer at a time, or predict for many.",
        )
    return [[name, bytes(content)] for name, content in images]


def _checkpoint_name(name: str | None) -> str | None:
    """Return the name as it came, or None for an empty one; a path out of the folder of checkpoints is none."""
    if name and (name.startswith("/") or ".." in name.split("/") or not name.isprintable()):
        raise CheckpointError(f"The name of a checkpoint is a path: {name!r}.")
    return name or None


def _device_name(device: str | int | None) -> str:
    name = "" if device is None else str(device)
    if name and name != "cpu" and not name.isdecimal():
        raise UsageError(f"`device` is {name!r}, not `cpu` or the index of an accelerator.")
    return name


def _memory_bytes(pid: int) -> int | None:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
