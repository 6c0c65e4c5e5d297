"""Choice of validation samples for sample predictions: few, deterministic, spread over the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.atomic import replaced_file, storage_errors
from ziggurat.dataflow.image_codec import encode_image, shrink_image
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.entities.sample_content import sample_content
from ziggurat.entities.sample_predictions import MOST_SAMPLES
from ziggurat.errors import DatapointError
from ziggurat.layout import JobFolder
from ziggurat.tasks import Task, TaskContext
from ziggurat.worker.pipeline import middle_crop
from ziggurat.worker.source import DataSource

__all__ = ["ChosenSamples", "choose_samples", "spread_over_classes"]

_LOOKED_AT: Final = 90
"""Maximum number of candidates, evenly over the split."""

_SIDE_PX: Final = 256
_SPLIT: Final = "val"


@dataclass(frozen=True, kw_only=True)
class ChosenSamples:
    """Samples of the validation split.

    Args:
        batch: ``[x, y]``, the input of the network.
        samples: ``split``, ``row``, ``key`` and ``label`` of each, as JSON values.
        pictures: (height, width, C) uint8 of each, fitted to the network's size.
        are_shown_fitted: whether pages show ``pictures``, also of samples of a dataset, as labels and predictions have
            places in them.
    """

    batch: list[np.ndarray]
    samples: list[dict[str, Any]]
    pictures: list[np.ndarray]
    are_shown_fitted: bool = False

    def save_images(self, folder: JobFolder) -> None:
        """Save the images in a job folder, for samples that are in no dataset.

        Raises:
            StorageError: if the disk is full.
        """
        for number, picture in enumerate(self.pictures):
            path = folder.sample_image(number)
            if path.exists():
                continue
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with replaced_file(path, "The image of a sample", durable=False) as whole:
                    whole.write_bytes(encode_image(shrink_image(picture, _SIDE_PX), "png"))


def choose_samples(source: DataSource, context: TaskContext, most: int = MOST_SAMPLES) -> ChosenSamples | None:
    """Return samples of the validation split; None if it has none, the task shows none, or none can be read by row.

    Args:
        source: of the job.
        context: of the job.
        most: samples at most.
    """
    flow: Any = source.splits.get(_SPLIT)
    preprocessing, target = context.preprocessing, context.task.target(context)
    if not isinstance(flow, IndexedFlow) or not len(flow) or target is None:
        return None
    has_classes = target.is_class_number and target.classes is not None
    if not has_classes or not isinstance(preprocessing, Preprocessing):
        return _with_labels(flow, context, most, has_classes=has_classes)
    labels: dict[int, int] = {}
    for row in _candidates(flow):
        try:
            labels[row] = int(flow.datapoint(row)[1])
        except (DatapointError, OSError):
            continue  # the validation reports unreadable samples
    pictures = _decoded(flow, labels, preprocessing, most)
    keys = {row: str(flow.key(row)) for row in pictures}
    flow.close()  # the next pass, perhaps in another process, opens its files again
    if not pictures:
        return None
    images = list(pictures.values())
    return ChosenSamples(
        batch=[preprocessing.finish(np.stack(images)), np.array([labels[row] for row in pictures], np.int64)],
        samples=[{"split": _SPLIT, "row": row, "key": keys[row], "label": labels[row]} for row in pictures],
        pictures=images,
    )


def _candidates(flow: IndexedFlow) -> list[int]:
    return np.unique(np.linspace(0, len(flow) - 1, min(len(flow), _LOOKED_AT)).astype(int)).tolist()


def _with_labels(flow: Any, context: TaskContext, most: int, *, has_classes: bool) -> ChosenSamples | None:
    """Return samples whose label the task tells, spread over classes or the split; None where none can be read."""
    target, crop = context.task.target(context), middle_crop(context)
    if target is None or type(context.task).sample_label is Task.sample_label:
        return None
    ranks = dict.fromkeys(_candidates(flow), 0)
    for row in list(ranks) if has_classes or target.has_objects else ():
        try:
            label = flow.datapoint(row)[1]
            ranks[row] = int(label) if has_classes else int(not label)  # images without an object come last
        except (DatapointError, OSError, TypeError):
            del ranks[row]  # the validation reports unreadable samples
    rows = list(ranks)
    if has_classes:
        rows = [rows[place] for place in spread_over_classes(list(ranks.values()), most)]
    else:
        rows = [row for row, rank in ranks.items() if rank == 0] or rows
        rows = _evenly(rows, min(most, len(rows)))
    is_image = isinstance(context.preprocessing, Preprocessing)
    samples, found = [], []
    for row in rows:
        try:
            point, key = flow.datapoint(row), str(flow.key(row))
            arrays = [np.asarray(each) for each in context.task.sample(context, point, key)]
        except (DatapointError, OSError):
            continue
        arrays = arrays if crop is None else crop(arrays, np.random.RandomState(0))
        label = context.task.sample_label(context, arrays)
        if label is None:
            break
        shown = {} if is_image else {"content": sample_content(point[0], context.schema).as_json()}
        samples.append({"split": _SPLIT, "row": row, "key": key, "label": label, **shown})
        found.append(arrays)
    flow.close()
    if not found:
        return None
    stacked = [np.stack(part) for part in zip(*found, strict=True)]
    return ChosenSamples(
        batch=context.task.batch(context, stacked, context.preprocessing.finish),
        samples=samples,
        pictures=[arrays[0] for arrays in found] if is_image else [],
        are_shown_fitted=is_image,
    )


def _decoded(
    flow: IndexedFlow, labels: dict[int, int], preprocessing: Preprocessing, most: int
) -> dict[int, np.ndarray]:
    """Return row → image of the chosen samples. Only these are decoded: large photos take a tenth of a second each.

    Args:
        flow: with the samples.
        labels: row → class number of the candidates; those that cannot be decoded are removed.
        preprocessing: of the job.
        most: samples at most.
    """
    known: dict[int, np.ndarray] = {}
    while True:
        rows = list(labels)
        chosen = [rows[place] for place in spread_over_classes(list(labels.values()), most)]
        missing = next((row for row in chosen if row not in known), None)
        if missing is None:
            return {row: known[row] for row in chosen}
        try:
            known[missing] = preprocessing.decode(flow.datapoint(missing)[0], flow.key(missing))
        except (DatapointError, OSError):
            del labels[missing]


def spread_over_classes(labels: Sequence[int], most: int) -> list[int]:
    """Return places of at most ``most`` labels: one of each class in turn, in the order of the classes.

    >>> spread_over_classes([0, 0, 0, 2, 1, 2], 4)
    [0, 1, 4, 3]
    """
    by_class: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        by_class.setdefault(label, []).append(place)
    names = sorted(by_class)
    if len(names) > most:  # evenly over the classes
        names = [names[place * len(names) // most] for place in range(most)]
    counts = dict.fromkeys(names, 0)
    while sum(counts.values()) < most:
        open_names = [name for name in names if counts[name] < len(by_class[name])]
        if not open_names:
            break
        for name in open_names[: most - sum(counts.values())]:
            counts[name] += 1
    return [place for name in names for place in _evenly(by_class[name], counts[name])]


def _evenly(places: Sequence[int], count: int) -> list[int]:
    return [places[number * len(places) // count] for number in range(count)]
