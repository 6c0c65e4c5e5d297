"""What a job learns and from what: made from the training split when it begins, kept in its folder from then on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import replaced_file, storage_errors
from ziggurat.dataflow.preprocessing import Preprocessing, mean_of
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.errors import DataError, DatapointError
from ziggurat.layout import JobFolder
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, InputPreprocessing, Task, TaskContext, default_task, task
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.source import DataSource

__all__ = ["load_context", "new_context", "save_context", "task_of"]

_VERSION: Final = 1
_PREPROCESSING_NAME: Final = "preprocessing.json"


def task_of(source: DataSource, name: str = "") -> Task:
    """Return the task that is learned from a source.

    Args:
        source: of the job.
        name: of the task; empty for the default one of the data.

    Raises:
        UnknownNameError: where there is no task of that name.
        DataError: where the data has not what the task needs.
    """
    if name:
        found = task(name)
        reason = found.accepts(source.schema)
        if reason:
            raise DataError(
                f"The task `{found.name}` does not fit the dataset: {reason}",
                advice="Choose another network, or other data.",
            )
        return found
    found = default_task(source.schema)
    if found is None:
        raise DataError(
            f"Training on a dataset of kind {source.schema.kind} is not available yet.",
            advice="Read it in your own program with: ziggurat.dataflow.RecordData.",
        )
    return found


def new_context(
    source: DataSource, options: DataOptions, learned: Task | None = None, *, with_mean: bool = True
) -> TaskContext:
    """Return the context of a new job, fitted on the training split.

    Args:
        source: of the job.
        options: what the job asks for.
        learned: its task; None for the default one of the data.
        with_mean: whether the mean image is computed, which reads the whole split.
    """
    chosen = learned or task_of(source)
    source = source.for_task(chosen)
    schema = chosen.completed(replace(source.schema, details={}), lambda: _readable(source))
    splits = tuple(source.splits) if chosen.fits_every_split else ("train",)
    statistics = chosen.fit(schema, _labels(source, splits))
    plain = _new_preprocessing(source, options)
    context = TaskContext(chosen, schema, plain, statistics)
    if not with_mean or options.mean == "none" or not isinstance(plain, Preprocessing):
        return context
    return replace(
        context, preprocessing=replace(plain, mean=options.mean, mean_values=_mean(source, options, context))
    )


def _labels(source: DataSource, splits: Sequence[str]) -> Iterator[Any]:
    """Yield the label of each sample of some splits that can be read, without decoding it."""
    for split in splits:
        for point in _readable(source, split):
            yield point[-1]


def _readable(source: DataSource, split: str = "train") -> Iterator[Any]:
    flow: Any = source.splits[split]
    for row in range(len(flow)):
        try:
            yield flow.datapoint(row)
        except DatapointError:
            continue  # it is counted when its turn comes
    flow.close()


def _mean(source: DataSource, options: DataOptions, context: TaskContext) -> np.ndarray | None:
    """Return the mean of the training images, as ``mean_of`` has it.

    Raises:
        DataError: where no sample can be used; it has the reason of the first.
    """
    with Pipeline(source, options, context).fitted("train") as fitted:
        images = (point[0] for point in fitted)
        first = next(images, None)
        dropped = source.policy.counts()
        if first is None and dropped.first:
            raise DataError(
                f"No sample of the training split can be used: none of {dropped.total:,}; the first, "
                f"{dropped.first[0][0]}: {dropped.first[0][1]}",
                advice="Fix the data, or the code that reads it.",
            )
        return mean_of(images if first is None else chain([first], images), options.mean)


def _new_preprocessing(source: DataSource, options: DataOptions) -> InputPreprocessing:
    """Return the preprocessing of a new job, without a mean image."""
    part = source.schema.parts[0]
    if part == "row":
        rows = (point[0] for point in _readable(source))
        return TablePreprocessing.fit(source.schema.columns, source.schema.target, rows, numbers=options.numbers)
    if part == "text":
        texts = (point[0] for point in _readable(source))
        return TextPreprocessing.fit(texts, length=options.text_length, vocabulary_size=options.vocabulary_size)
    if source.size is None:
        raise DataError(
            f"No network is trained on records of {', '.join(source.schema.parts)}, only on images, "
            "rows of a table, or texts.",
            advice="Read them in your own program with: ziggurat.dataflow.RecordData.",
        )
    return Preprocessing(
        size=options.size or source.size,
        channels=options.channels or source.channels,  # pyright: ignore[reportArgumentType]
        resize_mode=options.resize_mode,
        crop=options.crop,
        whitening=options.whitening,
        bits=source.bits,
    )


# ---- in the folder of a job


def save_context(context: TaskContext, job: JobFolder) -> None:
    """Write what a job learns, and from what, into its folder.

    Raises:
        StorageError: where it cannot be written.
    """
    content = {
        "version": _VERSION,
        "task": context.task.name,
        "schema": context.schema.as_json(),
        "statistics": dict(context.statistics),
    }
    with storage_errors(job.path):
        context.preprocessing.save(job.path)
        job.class_names.write_text(json.dumps(list(context.class_names)))
        with replaced_file(job.task, "The task of a job") as whole:
            whole.write_text(json.dumps(content))


def load_context(job: JobFolder) -> TaskContext:
    """Return what ``save_context`` wrote; a job without a ``task.json`` classifies images, as all did before.

    Raises:
        DataError: where it has none: it never began to train; or where it is damaged.
    """
    preprocessing = load_preprocessing(job.path)
    try:
        content = json.loads(job.task.read_text())
    except FileNotFoundError:
        schema = Schema(kind="image-classification", class_names=tuple(_class_names(job.class_names)))
        return TaskContext(CLASSIFICATION, schema, preprocessing)
    except (OSError, ValueError) as error:
        raise _damaged(job.task, error) from error
    try:
        name, statistics = str(content["task"]), dict(content["statistics"])
        schema = Schema.from_json(content["schema"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(job.task, error) from error
    return TaskContext(task(name), schema, preprocessing, statistics)


def load_preprocessing(folder: Path) -> InputPreprocessing:
    """Return the preprocessing in the folder of a job or an export.

    Raises:
        DataError: where it is not there or damaged.
    """
    try:
        kind = json.loads((folder / _PREPROCESSING_NAME).read_text()).get("kind", "image")
    except (OSError, ValueError, AttributeError):
        kind = "image"  # it tells what is wrong
    kinds: dict[str, Any] = {"table": TablePreprocessing, "text": TextPreprocessing}
    return kinds.get(kind, Preprocessing).load(folder)


def _class_names(path: Path) -> list[str]:
    try:
        return [str(name) for name in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(
        f"What the job learned cannot be read from {path}: {str(error).rstrip('.')}.",
        advice="Use the folder of a job that has begun to train.",
    )
