"""Previews of a training before it starts: images as the network will receive them, and the size of the data."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.dataflow.image_codec import encode_image, shrink_image
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.tasks.detection_arrays import CLASS, corners_of_rows
from ziggurat.tasks.segmentation import palette
from ziggurat.worker.build import data_options, learned_task
from ziggurat.worker.context import new_context
from ziggurat.worker.mixing import check_mixing
from ziggurat.worker.pipeline import DataOptions, Pipeline, TrainingStages
from ziggurat.worker.source import DataSource, open_source

__all__ = ["augmented", "loading"]

_VARIANTS: Final = 4
"""How often each of several images is shown."""

_ORIGINAL_SIDE_PX: Final = 512
_MEASURED: Final = 200
"""Records that are read to find out how fast they can be."""

_EPOCHS_BESIDE: Final = 20
"""So many further epochs are looked at where a row is left out of some."""


def augmented(request: Mapping[str, Any]) -> dict[str, Any]:
    """Show images of a split as the network gets them: with the random numbers of a training with that seed.

    Args:
        request: ``spec`` (of a training, complete); ``row`` (None for several, in the order of the first epoch);
            ``split``; ``count``: how many variants of the one row, or how many rows; ``seed``, which stands in the
            place of the spec's.

    Returns:
        ``seed``, ``epochs`` (how often each is shown at most), ``varied`` (whether chance has a part in them),
        ``second`` (what the second images are: ``target``, or ``second``; empty where there are none) and
        ``pictures``: ``row``, ``label``, ``label_name``, ``original_png`` (as it is stored, at most 512 px wide or
        high), ``augmented_png`` (one for each epoch), ``mask_png`` (as many, in the colors of the classes and clear
        where nothing is learned; none where there are no masks), and ``second_png`` (as many: the target image, or the
        second of a pair; none where it is the image itself), all PNG in base64; ``mixed``: for each augmented image
        its classes, ``label``, ``label_name`` and ``share``, the largest share first, which sum to 1; none where
        samples are not mixed. A mean that is taken off, and whitening, are not shown.
    """
    spec = _train_spec(request)
    source = open_source(spec.data.source, spec.data.options, spec.seed)
    split, row, count = request["split"], request["row"], request["count"]
    if split not in source.splits:
        raise UnknownNameError("split of this data", split, source.splits)
    flow: Any = source.splits[split]
    if row is not None and not 0 <= row < len(flow):
        raise UsageError(f"There is no row {row} in the split `{split}`, which has the rows 0 to {len(flow) - 1}.")
    if source.schema.parts[0] in ("row", "text"):
        raise UsageError(
            f"Augmentation is shown for images, and this is data of kind {source.schema.kind}.",
            advice="Look at the samples on the page of the dataset.",
        )
    options = data_options(spec)
    # A batch that is too large for the split is another preview's finding; its images can be looked at all the same.
    options = replace(options, batch_size=min(options.batch_size, len(source.splits["train"])))
    pipeline = _without_mean(source, options, spec)
    check_mixing(options.augmentation, options.batch_size, pipeline.context)
    rows = pipeline.training(by_row=True)
    try:
        chosen = [row] if row is not None else _first_rows(rows, split, len(flow), count)
        epochs = (1 if split != "train" else count if row is not None else _VARIANTS) if chosen else 0
        images = [_shown_image(pipeline, rows, split, number, epochs) for number in chosen]
    finally:
        rows.close()
    augmentation = options.augmentation
    is_random = pipeline.crops or augmentation.mixes or bool(augmentation.augmentors(rows.preprocessing.channels))
    is_random = is_random or any(len(set(each["second_png"])) > 1 for each in images)  # drawn anew in each epoch
    varied = split == "train" and is_random
    second = pipeline.context.task.sample_pictures[1:2] if images and images[0]["second_png"] else ()
    return {"seed": spec.seed, "epochs": epochs, "varied": varied, "second": "".join(second), "pictures": images}


def loading(request: Mapping[str, Any]) -> dict[str, Any]:
    """Measure the data of a training: its size, and how fast its images can be made ready.

    Args:
        request: ``spec`` (of a training, complete).

    Returns:
        ``sizes`` (split → samples), ``classes``, ``input_shape`` (height, width, channels), ``in_memory`` (whether
        images are decoded once, not in every epoch), ``measured`` (records that were read), ``records_per_s`` of
        one thread, None where none was read, and ``threads`` (that a training uses).
    """
    spec = _train_spec(request)
    source = open_source(spec.data.source, spec.data.options, spec.seed)
    options = data_options(spec)
    count = len(source.splits["train"])
    one_each = replace(options, batch_size=1)  # so that no row is left out for a batch
    rows = _without_mean(source, one_each, spec).training(by_row=True)
    try:
        measured, took_s = _read(rows, min(count, _MEASURED))
    finally:
        rows.close()
    return {
        "sizes": {split: len(flow) for split, flow in source.splits.items()},
        "classes": len(source.class_names),
        "input_shape": list(rows.preprocessing.shape),
        "in_memory": source.in_memory,
        "measured": measured,
        "records_per_s": measured / took_s if measured and took_s > 0 else None,
        "threads": options.worker_count,
    }


def _without_mean(source: DataSource, options: DataOptions, spec: TrainSpec) -> Pipeline:
    """Return the pipeline that a new job would have, but for the mean: computing it reads the whole split."""
    # The mean image alone keeps crops from being decoded by themselves, so it counts, whatever it is.
    whole = replace(options, decode="picture") if options.mean == "image" else options
    context = new_context(source, whole, learned_task(spec, source), with_mean=False)
    return Pipeline(source, whole, context)


def _train_spec(request: Mapping[str, Any]) -> TrainSpec:
    spec = parse_spec(request["spec"], source="the request")
    assert isinstance(spec, TrainSpec)
    seed = request.get("seed")
    return spec if seed is None else spec.model_copy(update={"seed": seed})


def _first_rows(rows: TrainingStages, split: str, length: int, count: int) -> list[int]:
    """Return the rows that come first: in the first epoch of training, or in the split."""
    order: Sequence[int] = rows.order(0).tolist() if split == "train" else range(length)
    return [int(row) for row in order[:count]]


def _shown_image(pipeline: Pipeline, rows: TrainingStages, split: str, row: int, epochs: int) -> dict[str, Any]:
    flow: Any = pipeline.source.splits[split]
    stored, *_, label = flow.datapoint(row)
    target = pipeline.context.task.target(pipeline.context)
    is_class = target is not None and target.is_class_number and target.classes is not None
    key = flow.key(row)
    parts = pipeline.context.task.moves_with_image
    mask, second, boxes = (parts.index(kind) + 1 if kind in parts else None for kind in ("mask", "image", "boxes"))
    mixed: list[list[dict[str, Any]]] = []
    if split == "train":
        variants = _variants(rows, row, epochs)
        shown = [arrays for _, arrays in variants]
        if pipeline.context.task.joins_objects and rows.mix is not None:
            shown = [found for epoch, _ in variants if (found := rows.joint(row, epoch)) is not None]
        elif rows.mix is not None:
            mixtures = [_mixed(rows, row, epoch, arrays) for epoch, arrays in variants]
            shown = [[image] for image, _ in mixtures]
            mixed = [_named_shares(shares, pipeline) for _, shares in mixtures]
    else:
        shown = [[rows.preprocessing.in_the_middle(each) for each in pipeline.reader(split)(row)[: 1 + len(parts)]]]
    return {
        "row": row,
        "label": int(label) if is_class else None,
        "label_name": pipeline.context.class_names[int(label)] if is_class else "",
        "original_png": _base64(shrink_image(_as_stored(stored, rows.preprocessing, key), _ORIGINAL_SIDE_PX)),
        "augmented_png": [_base64(arrays[0]) for arrays in shown],
        "mixed": mixed,
        "mask_png": [] if mask is None else [_mask_png(arrays[mask], pipeline) for arrays in shown],
        "boxes": [] if boxes is None else [_boxes(arrays[boxes]) for arrays in shown],
        "second_png": [] if second is None else _second_png([(arrays[0], arrays[second]) for arrays in shown]),
    }


def _boxes(rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the boxes of objects in px of the image that the network gets: ``box``, and ``number`` of the class."""
    numbers = rows[1:, CLASS].astype(int).tolist()
    boxes = corners_of_rows(rows).round(1).tolist()
    return [{"box": box, "number": number} for box, number in zip(boxes, numbers, strict=False)]


def _variants(rows: TrainingStages, row: int, count: int) -> list[tuple[int, list[np.ndarray]]]:
    """Return the first epochs that a row is in, with the arrays that become of it there."""
    found: list[tuple[int, list[np.ndarray]]] = []
    for epoch in range(count + _EPOCHS_BESIDE):
        seen = rows.sample(row, epoch)
        if seen is not None:
            found.append((epoch, seen))
        if len(found) == count:
            break
    return found


def _mixed(
    rows: TrainingStages, row: int, epoch: int, arrays: Sequence[np.ndarray]
) -> tuple[np.ndarray, dict[int, float]]:
    """Return a row mixed with another one of its batch, and class → share, the largest first.

    Args:
        rows: mix their samples.
        row: of the training split.
        epoch: in which it fills a batch.
        arrays: image and class of the row in this epoch.
    """
    found = rows.mixture(row, epoch)
    assert found is not None
    mixture, partner = found
    other = rows.sample(partner, epoch)
    assert other is not None  # it is in the same batch
    first, second, share = mixture.labels(int(arrays[1]), int(other[1]))
    shares = {first: 1.0} if first == second else {first: share, second: 1.0 - share}
    return mixture.images(arrays[0][None], other[0][None])[0], shares


def _named_shares(shares: Mapping[int, float], pipeline: Pipeline) -> list[dict[str, Any]]:
    names = pipeline.context.class_names
    return [{"label": label, "label_name": names[label], "share": share} for label, share in shares.items()]


def _second_png(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """Return the second image of each; none where all are the first ones."""
    if all(np.array_equal(first, second) for first, second in pairs):
        return []
    return [_base64(second.astype(np.uint8)) for _, second in pairs]


def _mask_png(mask: np.ndarray, pipeline: Pipeline) -> str:
    """Return a mask (H, W) as PNG in base64: the colors of the classes, clear where no class of the data is."""
    colors = palette(pipeline.context.schema)
    is_class = mask < len(colors)
    if pipeline.context.schema.ignore_class is not None:
        is_class &= mask != pipeline.context.schema.ignore_class
    picture = np.zeros((*mask.shape[:2], 4), np.uint8)
    picture[is_class, :3] = colors[mask[is_class]]
    picture[is_class, 3] = 255
    done, png = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGBA2BGRA))
    assert done
    return base64.b64encode(png.tobytes()).decode()


def _as_stored(stored: Any, preprocessing: Preprocessing, key: Any) -> np.ndarray:
    if isinstance(stored, np.ndarray):
        return stored
    decoded = cv2.imdecode(np.frombuffer(stored, np.uint8), cv2.IMREAD_COLOR)
    return preprocessing.decode(stored, key) if decoded is None else cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)


def _base64(image: np.ndarray) -> str:
    return base64.b64encode(encode_image(np.ascontiguousarray(image), "png")).decode()


def _read(rows: TrainingStages, count: int) -> tuple[int, float]:
    """Make the first rows of an epoch ready; return how many, and the seconds that it took."""
    order = rows.order(0)[:count].tolist()
    began = time.perf_counter()
    for row in order:
        rows.sample(row, 0)
    return len(order), time.perf_counter() - began
