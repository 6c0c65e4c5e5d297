"""Prediction: for a few inputs by one request, or for a folder or list of images as a job with results for each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from ziggurat.dataflow.images import IMAGE_SUFFIXES, read_file
from ziggurat.engine.capabilities import HasInferenceInputs, TrainedNetwork
from ziggurat.errors import DataError
from ziggurat.layout import JobFolder
from ziggurat.records.offered_folders import check_file, watched_source
from ziggurat.specs import InferSpec
from ziggurat.tasks import Task
from ziggurat.tasks.base import prediction, prediction_picture
from ziggurat.worker.commands.given_inputs import generated_count, given_inputs
from ziggurat.worker.commands.picture_folder import PictureFolder
from ziggurat.worker.commands.prediction_inputs import input_note, named_inputs
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.results import NAMED_FILES, SampleResults
from ziggurat.worker.source import FilePath

__all__ = ["generated_outputs", "list_images", "predict", "predict_inputs", "predict_many"]


_AT_ONCE: Final = 32


def predict(request: Mapping[str, Any]) -> dict[str, Any]:
    """Predict for image files, rows of a table, or texts; or without any, with a network that generates.

    Args:
        request: ``folder``; the inputs as ``images`` (paths: of images, or of videos, whose frames are predicted for;
            of CSV or JSON files with rows; of text files with a text in each line), ``rows`` (each column → value) or
            ``texts``, or none of them and ``count`` (how many predictions; the samples are zeros); ``inputs``, ``seed``
            and ``first`` (what the network is given beside its samples, see ``ziggurat.worker.commands.given_inputs``);
            ``top`` (default 5); ``checkpoint`` (as for ``evaluate``); ``pictures`` (a new or empty folder for
            predictions that are images).

    Returns:
        ``folder``, ``checkpoint``, ``step``, ``epoch``, ``task``; ``operating_point``, if one was chosen:
            ``thresholds``, ``used`` and ``problem``; ``predictions``, in the order of the inputs: ``file``
        (for a row or text its number from 1, after its file; without inputs the number) and what
        ``ziggurat.tasks.base.Task.decode`` returns: of a classifier ``classes`` (class, number, probability; best
        first), with ``pictures`` also ``picture`` (path of a PNG file, None where it is no image), and ``note`` (a
        sentence) for an input that loses something when it is read; ``failures``: ``file`` and the error's JSON shape,
        for inputs that cannot be read; ``notes``: sentences on what the network does not get, such as further columns.
    """
    job = open_trained_job(Path(request["folder"]), request.get("checkpoint"))
    count = generated_count(request)
    inputs, failures, notes = named_inputs(job.context, request)
    pictures = PictureFolder(Path(request["pictures"])) if request.get("pictures") else None
    predictions: list[dict[str, Any]] = []
    with open_network(job) as network:
        given = given_inputs(network, request, count or len(inputs))
        for start in range(0, count or len(inputs), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            beside = {name: rows[part] for name, rows in given.items()}
            if count:
                names = [str(number + 1) for number in range(count)[part]]
                read = [ReadInput(place) for place in range(len(names))]
                outputs = generated_outputs(job, network, len(names), beside)
            else:
                names = [name for name, _ in inputs[part]]
                read, outputs, bad = predict_inputs(job, network, inputs[part], beside)
                failures += bad
            for row, (place, size, note) in enumerate(read):
                one = {name: each[row] for name, each in outputs.items()}
                found = prediction(job.context, one, top=request.get("top") or 5, original_size=size)
                if pictures is not None:
                    found["picture"] = pictures.add(names[place], prediction_picture(job.context, one, size)[0])
                predictions.append({"file": names[place], **found, **note})
    return {**job.prediction_summary(), "predictions": predictions, "failures": failures, "notes": notes}


class ReadInput(NamedTuple):
    """An input that could be read.

    Args:
        place: among the inputs of its batch, from 0.
        size: (height, width) in px of an image before it was fitted; None for other inputs.
        note: ``note``, a sentence on what it loses; empty for an input that loses nothing.
    """

    place: int
    size: tuple[int, int] | None = None
    note: Mapping[str, str] = MappingProxyType({})


def predict_inputs(
    job: TrainedJob,
    network: TrainedNetwork,
    inputs: Sequence[tuple[str, Any]],
    given: Mapping[str, np.ndarray] | None = None,
) -> tuple[list[ReadInput], dict[str, np.ndarray], list[dict[str, Any]]]:
    """Predict for one batch.

    Args:
        job: what was trained.
        network: of it, open.
        inputs: name of each, and what it is: a ``FilePath`` of an image, a row, a text.
        given: what the network is given beside them, a row for each; nothing by default.

    Returns:
        The inputs that could be read; the outputs for them; and the failures: ``file`` and the error's JSON shape.
    """
    read: list[ReadInput] = []
    decoded: list[np.ndarray] = []
    failures = []
    for place, (name, data) in enumerate(inputs):
        try:
            content = read_file(data) if isinstance(data, FilePath) else data
            array, size = job.context.preprocessing.decode_sized(content, name)
            decoded.append(array)
            read.append(ReadInput(place, size, input_note(job.context, content)))
        except DataError as error:
            failures.append({"file": name, **error.as_dict()})
    if not decoded:
        return [], {}, failures
    places = [each.place for each in read]
    x = job.task.input_batch(job.context, np.stack(decoded), job.context.preprocessing.finish)
    return read, _outputs(network, x, {name: rows[places] for name, rows in (given or {}).items()}), failures


def generated_outputs(
    job: TrainedJob, network: TrainedNetwork, count: int, given: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs for samples that are zeros: what a network that generates makes of what it is given.

    Args:
        job: what was trained.
        network: of it, open.
        count: how many samples.
        given: name → (count, …), what the network is given beside them.
    """
    spec = job.task.input(job.context)
    return _outputs(network, np.zeros((count, *spec.shape), spec.dtype), given)


def _outputs(network: TrainedNetwork, x: np.ndarray, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    taker: Any = network
    found = taker.predict(x, given) if given and isinstance(taker, HasInferenceInputs) else network.predict(x)
    return {name: np.asarray(each) for name, each in found.items()}


NO_LABEL: Final = -1

_ENDINGS: Final = "|".join(re.escape(suffix) for suffix in sorted(IMAGE_SUFFIXES))
_WITH_LABEL: Final = re.compile(rf"(.*(?:{_ENDINGS}))(?:\s*[,\t]\s*|\s+)(\S.*)", re.IGNORECASE)
_WITH_NUMBER: Final = re.compile(r"(.*\S)\s+([0-9]+)")
_ARCHIVES: Final = (".zip", ".tar", ".gz", ".bz2", ".tgz", ".xz")


@dataclass(frozen=True)
class ListedImages:
    """Images in their order.

    Args:
        keys: what names each: its path below the folder, or as the list has it.
        files: its path.
        labels: its class number, or -1 where it is not known.
    """

    keys: Sequence[str]
    files: Sequence[str]
    labels: Sequence[int]


def list_images(source: str, image_folder: str, class_names: Sequence[str], limit: int) -> ListedImages:
    """Return the images of a source.

    Args:
        source: a folder, of which every image at any depth counts, in the order of names; an image; or a text file
            with a path in each line, and after it, where it is known, the label: a class number or a name.
        image_folder: where relative paths of a list begin; empty for the folder of the list.
        class_names: by class number.
        limit: how many at most; 0 for all.

    Raises:
        DataError: where there is none, or a label of the list is no class; the line is named.
    """
    path = Path(source)
    if path.is_dir():
        found = [(name, str(path / name), NO_LABEL) for name in _below(path)]
    elif not path.is_file() or path.name.lower().endswith(_ARCHIVES):
        raise DataError(
            f"`{source}` is an archive, not a folder or list of images."
            if path.is_file()
            else f"`{source}` does not exist.",
            advice="Unpack an archive first; check the path.",
        )
    elif path.suffix.lower() in IMAGE_SUFFIXES:
        found = [(path.name, source, NO_LABEL)]
    else:
        root = Path(image_folder) if image_folder else path.parent
        found = [(name, _listed(root / name, path), label) for name, label in _lines(path, class_names)]
    found = found[:limit] if limit else found
    if not found:
        raise DataError(f"`{source}` has no image to predict for.")
    return ListedImages(*(list(part) for part in zip(*found, strict=True)))


def _listed(file: Path, source: Path) -> str:
    """Return a path that a list names, which may lead anywhere.

    Raises:
        DataError: where it leads out of the folders that a studio offers.
    """
    try:
        check_file(file)
    except PermissionError as error:
        raise DataError(
            f"`{file}` in {source} is not below the folders that this studio offers: {error.strerror}.",
            advice="Take the line out, or let an admin offer the folder.",
        ) from None
    return str(file)


def _below(folder: Path) -> Iterator[str]:
    """Yield the images below a folder by name; what is hidden is left out, and folders behind links are not read."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES:
                yield os.path.relpath(os.path.join(place, name), folder)


def _lines(path: Path, class_names: Sequence[str]) -> Iterator[tuple[str, int]]:
    numbers = {name: number for number, name in enumerate(class_names)}
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for count, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            name, label = _parts(text)
            yield name, NO_LABEL if label is None else _class_number(label, numbers, f"{path}, line {count}")


def _parts(text: str) -> tuple[str, str | None]:
    """Return path and label of a line. A path may hold spaces; a line that ends like an image has no label."""
    if os.path.splitext(text)[1].lower() in IMAGE_SUFFIXES:
        return text, None
    found = _WITH_LABEL.fullmatch(text) or _WITH_NUMBER.fullmatch(text)
    return (found[1], found[2].strip()) if found else (text, None)


def _class_number(label: str, numbers: dict[str, int], place: str) -> int:
    number = int(label) if label.isascii() and label.isdigit() else numbers.get(label)
    if number is None or number >= len(numbers):
        raise DataError(
            f"`{label}` in {place} is no class of the model, nor a class number from 0 to {len(numbers) - 1}.",
            advice="Mend the line, or leave labels out.",
        )
    return number


def predict_many(spec: InferSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Predict for many images, from the beginning in each attempt; return what is to be said.

    None stands for an end that was requested.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        watch: is told of progress, and asked whether to stop.

    Raises:
        ZigguratError: where model or images cannot be used.
    """
    with watched_source(_root(spec)):
        return _predict(spec, folder, watch)


def _root(spec: InferSpec) -> Path:
    """Return the folder that the paths of the images begin in."""
    source = Path(spec.source)
    return Path(spec.image_folder) if spec.image_folder else source if source.is_dir() else source.parent


def _predict(spec: InferSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    watch.progress("load", 0, 0)
    job = open_trained_job(Path(spec.model), spec.checkpoint or None)
    job.images  # noqa: B018 - refuses a network that takes something else
    images = list_images(spec.source, spec.image_folder, job.class_names, spec.limit)
    results = SampleResults(job.context, len(images.files), spec.top)
    failures: list[dict[str, Any]] = []
    notes: list[dict[str, str]] = []
    if watch.stop_requested():
        return None
    with open_network(job) as network:
        for start in range(0, len(images.files), spec.batch_size):
            part = slice(start, start + spec.batch_size)
            files = [(file, FilePath(file)) for file in images.files[part]]
            read, outputs, bad = predict_inputs(job, network, files)
            failures += bad
            notes += [
                {"key": images.keys[start + each.place], "reason": each.note["note"]} for each in read if each.note
            ]
            if read:
                _take(results, job.task, images, [start + each.place for each in read], outputs)
            watch.progress("predict", min(part.stop, len(images.files)), len(images.files))
            if watch.stop_requested():
                return None
    results.write(folder.results, _summary(spec, job, images, failures, notes, results.count))
    bad = f"; {len(failures)} could not be read" if failures else ""
    return f"{results.count} images{bad}" + (f"; {len(notes)} have values above the range of training" if notes else "")


def _take(
    results: SampleResults, learned: Task, images: ListedImages, rows: list[int], outputs: dict[str, np.ndarray]
) -> None:
    if not learned.takes_class_lists or any(name not in outputs for name in learned.outputs):
        raise DataError(
            "Predicting for many images needs a network that classifies.",
            received=f"{learned.title}, outputs {', '.join(outputs)}",
            advice="Ask it for single images: ziggurat predict.",
        )
    labels = np.array([images.labels[row] for row in rows], np.int64)
    results.add(rows, [images.keys[row] for row in rows], outputs, {"y": labels})


def _summary(
    spec: InferSpec,
    job: TrainedJob,
    images: ListedImages,
    failures: list[dict[str, Any]],
    notes: list[dict[str, str]],
    count: int,
) -> dict[str, Any]:
    keys = dict(zip(images.files, images.keys, strict=True))
    named = [{"key": keys[each["file"]], "reason": each["message"]} for each in failures[:NAMED_FILES]]
    return {
        "kind": spec.kind,
        "model": str(job.folder),
        "checkpoint": job.checkpoint,
        "step": job.summary()["step"],
        "epoch": job.summary()["epoch"],
        "split": "",
        "data": spec.source,
        "root": str(_root(spec)),
        "count": count,
        "skipped": len(failures),
        "failures": named,
        "noted": len(notes),
        "notes": notes[:NAMED_FILES],
        "scalars": {},
        "openings": None,
        "task": job.task.name,
        **({"operating_point": job.operating_point} if job.operating_point else {}),
        **job.task.summary_fields(job.context, True),
    }
