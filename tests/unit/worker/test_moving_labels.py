"""What moves with an image in augmentation shows the same as the image; what has no label is counted."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.preprocessing import Augmentation
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import DataError
from ziggurat.records.schema import Column, Schema
from ziggurat.tasks import task
from ziggurat.worker.context import new_context
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.source import DataSource

SIDE = 36
FILL = 255
SOFT_PX = 3
"""Rotation and rescaling interpolate the image, each by less than 1.5 pixels, and take the nearest number of a mask."""

SEEDS = st.integers(0, 2**31 - 1)
GEOMETRY = st.builds(
    Augmentation,
    flip=st.sampled_from(["none", "fliplr", "flipud", "fliplrud"]),
    quad_rotation=st.sampled_from(["none", "rot90", "rot180", "rotall"]),
    rotation_deg=st.sampled_from([0.0, 5.0, 45.0, 180.0]),
    scale=st.sampled_from([0.0, 0.1, 0.3]),
)
CROPS = st.sampled_from([None, 20, 30])


def blocks(seed: int, classes: int) -> np.ndarray:
    """Return a mask (H, W) uint8 of blocks of 12 pixels."""
    numbers = np.random.default_rng(seed).integers(0, classes, (SIDE // 12, SIDE // 12), np.uint8)
    return np.kron(numbers, np.ones((12, 12), np.uint8))


def source_of(points, kind, *, in_memory=False, policy=None, **fields):
    schema = Schema(kind=kind, **fields)
    policy = policy or ErrorPolicy("raise")
    flow = DataFromList(points, shuffle=False)
    flow.policy = policy
    size = None if schema.parts[0] in ("row", "text") else (SIDE, SIDE)
    return DataSource(splits={"train": flow}, schema=schema, size=size, channels=1, in_memory=in_memory, policy=policy)


def pipeline_of(source, name, **options):
    chosen = DataOptions(**{"batch_size": 2, "workers": 1, "seed": 3, **options})
    return Pipeline(source, chosen, new_context(source, chosen, task(name)))


def one_epoch(source, name, **options):
    """Return the samples of an epoch of training, each array of all batches together."""
    stages = pipeline_of(source, name, **options).training()
    with stages.finish as train:
        return [np.concatenate(parts) for parts in zip(*train, strict=True)]


def is_inside(mask: np.ndarray) -> np.ndarray:
    """Return the pixels (H, W) whose neighborhood has their number only; the edge of the image has none."""
    kernel = np.ones((2 * SOFT_PX + 1,) * 2, np.uint8)
    same = cv2.dilate(mask, kernel) == cv2.erode(mask, kernel)
    same[[*range(SOFT_PX), *range(-SOFT_PX, 0)]] = same[:, [*range(SOFT_PX), *range(-SOFT_PX, 0)]] = False
    return same


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 6), GEOMETRY, CROPS)
@example(296007070, 3, Augmentation(flip="fliplr", quad_rotation="rot90", rotation_deg=180.0, scale=0.3), None)
def test_a_mask_shows_what_its_image_shows(seed, classes, augmentation, crop):
    step = 240 // classes
    masks = [blocks(seed + number, classes) for number in range(4)]
    points = [[(mask * step + step // 2)[:, :, None], mask] for mask in masks]
    names = tuple(map(str, range(classes)))
    source = source_of(points, "segmentation", class_names=names)
    images, found = one_epoch(source, "segmentation", augmentation=augmentation, crop=crop, seed=seed % 1000)
    side = crop or SIDE
    assert images.shape == found.shape == (4, side, side, 1)
    assert np.isin(found, [*range(classes), FILL]).all()
    told = differing = 0
    for image, mask in zip(images[..., 0], found[..., 0].astype(np.uint8), strict=True):
        shown = np.clip((image // step).astype(np.int64), 0, classes - 1)
        known = mask != FILL
        inside = known & is_inside(mask)
        if augmentation.rotation_deg and augmentation.scale:
            # Rotation may leave a mixed pixel at the edge of the image, and making that smaller repeats it outward.
            assert (shown[inside] != mask[inside]).sum() <= 0.03 * mask.size
        else:
            np.testing.assert_array_equal(shown[inside], mask[inside])
        told += known.sum()
        differing += (known & (shown != mask)).sum()
    # Between two blocks, pixels mix: of 12 by 12 pixels less than two on each side can differ.
    assert differing <= 0.45 * told
    if not augmentation.rotation_deg and not augmentation.scale:
        assert told == found.size
        assert differing == 0


@settings(max_examples=40, deadline=None)
@given(SEEDS, GEOMETRY, CROPS, st.sampled_from(["image-to-image", "image-pairs"]))
def test_a_second_image_moves_as_the_first_does(seed, augmentation, crop, kind):
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (4, SIDE, SIDE, 1), np.uint8)
    if kind == "image-to-image":
        source, name = source_of([[image, image.copy()] for image in images], kind), "image-to-image"
    else:
        source, name = source_of([[image, image.copy(), 1] for image in images], kind), "pairs"
    found = one_epoch(source, name, augmentation=augmentation, crop=crop, seed=seed % 1000)
    first, second = (found[0], found[1]) if name == "image-to-image" else np.split(found[0], 2, axis=3)
    np.testing.assert_array_equal(first, second)
    if augmentation == Augmentation() and crop is None:
        assert {each.tobytes() for each in first} == {each.astype(np.float32).tobytes() for each in images}


@settings(max_examples=20, deadline=None)
@given(SEEDS, GEOMETRY)
def test_noise_is_put_on_the_input_only(seed, augmentation):
    images = np.random.default_rng(seed).integers(60, 200, (4, SIDE, SIDE, 1), np.uint8)
    source = source_of([[image, image.copy()] for image in images], "image-to-image")
    noisy = Augmentation(**{**vars(augmentation), "noise": 0.2})
    _, clean = one_epoch(source, "image-to-image", augmentation=augmentation)
    varied, target = one_epoch(source, "image-to-image", augmentation=noisy)
    np.testing.assert_array_equal(target, clean)
    assert np.abs(varied - target).mean() > 10


BAD = st.sets(st.integers(0, 11), max_size=5)


@settings(max_examples=25, deadline=None)
@given(BAD, st.booleans())
def test_masks_that_cannot_be_read_are_counted(bad, named):
    image = encode_image(np.zeros((SIDE, SIDE, 1), np.uint8), "png")
    masks = [b"nothing" if row in bad else encode_image(blocks(row, 3), "png") for row in range(12)]
    policy = ErrorPolicy("skip", remember=20)
    names = ("a", "b", "c") if named else ()
    source = source_of([[image, mask] for mask in masks], "segmentation", class_names=names, policy=policy)
    pipeline = pipeline_of(source, "segmentation")
    with pipeline.fitted("train", numbered=True) as flow:
        rows = [point[-1] for point in flow]
    assert rows == sorted(set(range(12)) - bad)
    assert policy.counts().total == len(bad)
    with pipeline.training().finish as train:
        trained = sum(len(batch[0]) for batch in train)
    assert policy.counts().total == 2 * len(bad)
    assert trained == (12 - len(bad)) // 2 * 2


COLUMNS = (Column(name="x", type="number"), Column(name="y", type="number"))


@pytest.mark.parametrize("name", ["regression", "classification"])
@settings(max_examples=25, deadline=None)
@given(bad=BAD)
def test_rows_without_a_target_are_counted(name, bad):
    names = ("a", "b") if name == "classification" else ()
    targets = [None if row in bad else row % 2 for row in range(12)]
    points = [[[float(row), target], target] for row, target in enumerate(targets)]
    policy = ErrorPolicy("skip", remember=20)
    options = {"columns": COLUMNS, "target": "y", "class_names": names, "policy": policy, "in_memory": True}
    source = source_of(points, "table", **options)
    pipeline = pipeline_of(source, name)
    with pipeline.fitted("train", numbered=True) as flow:
        rows = [point[-1] for point in flow]
    assert rows == sorted(set(range(12)) - bad)
    assert policy.counts().total == len(bad)
    x, y = one_epoch(source, name)
    assert policy.counts().total == 2 * len(bad)
    assert len(x) == len(y) == (12 - len(bad)) // 2 * 2
    assert np.isfinite(y).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_images_with_a_value_that_is_no_number_are_counted(value):
    image = np.zeros((SIDE, SIDE, 1), np.uint8)
    points = [[image, np.array([value if row == 4 else row], np.float32)] for row in range(12)]
    policy = ErrorPolicy("skip")
    pipeline = pipeline_of(source_of(points, "image-regression", in_memory=True, policy=policy), "regression")
    assert np.isfinite(pipeline.context.statistics["target"]["mean"]).all()
    with pipeline.fitted("train", numbered=True) as flow:
        assert [point[-1] for point in flow] == [row for row in range(12) if row != 4]
    assert policy.counts().total == 1


def test_a_split_without_any_value_is_refused():
    points = [[np.zeros((SIDE, SIDE, 1), np.uint8), np.array([np.nan], np.float32)]] * 4
    with pytest.raises(DataError, match="No sample of the training split has a value to learn"):
        pipeline_of(source_of(points, "image-regression", in_memory=True), "regression")
