"""Mosaics and blends of the images of a detector: every object is where its pixels are, or counted as dropped."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.preprocessing import Augmentation
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema
from ziggurat.tasks import task
from ziggurat.tasks.detection_arrays import COUNT, DROPPED, corners_of_rows
from ziggurat.worker.context import new_context
from ziggurat.worker.joining import JoinObjects, joined_rows, mosaic
from ziggurat.worker.mixing import check_mixing
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.source import DataSource

HEIGHT, WIDTH = 60, 80
MOST = 3


def sample_of(random, count):
    """Return a black image with a white box for each object, and its rows."""
    image, rows = np.zeros((HEIGHT, WIDTH, 1), np.uint8), np.zeros((MOST + 1, 16), np.float32)
    rows[0, :2] = count, 16
    for number in range(count):
        width, height = random.integers(8, 20, 2)
        left, top = random.integers(0, WIDTH - width), random.integers(0, HEIGHT - height)
        rows[1 + number, :6] = (left, top, width, height, 0, number)
        image[top : top + height, left : left + width] = 255
    return image, rows


def batch_of(seed, count):
    random = np.random.default_rng(seed)
    samples = [sample_of(random, int(random.integers(0, MOST + 1))) for _ in range(count)]
    images, rows = zip(*samples, strict=True)
    return [np.stack(images), np.stack(rows)[:, None]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.4]))
def test_no_object_is_lost_without_being_counted(seed, count, share, alpha) -> None:
    batch, join = batch_of(seed, count), JoinObjects(share, alpha)
    x, y = join(batch, np.random.RandomState(seed))
    assert (x.shape, y.shape) == (batch[0].shape, batch[1].shape)
    drawn = join.draw(count, HEIGHT, WIDTH, np.random.RandomState(seed))
    for place, each in enumerate(drawn):
        expected = sum(int(batch[1][one, 0, 0, COUNT]) for one in each.places)
        assert y[place, 0, 0, COUNT] + y[place, 0, 0, DROPPED] == expected
        corners = corners_of_rows(y[place, 0])
        assert (corners >= 0).all()
        assert (corners <= (WIDTH, HEIGHT, WIDTH, HEIGHT)).all()
        if len(each.places) == 1:
            np.testing.assert_array_equal(x[place], batch[0][place])
            np.testing.assert_array_equal(y[place], batch[1][place])


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_a_mosaic_lie_on_their_pixels(seed) -> None:
    random = np.random.default_rng(seed)
    images, rows = zip(*(sample_of(random, 1) for _ in range(4)), strict=True)
    middle = (int(random.integers(18, 42)), int(random.integers(24, 56)))
    found, joint = mosaic(images, rows, middle, random.uniform(0.7, 1, 4).tolist())
    assert found.shape == (HEIGHT, WIDTH, 1)
    for left, top, right, bottom in corners_of_rows(joint):
        inside = found[int(np.ceil(top)) : int(bottom), int(np.ceil(left)) : int(right), 0]
        assert inside.size
        assert (inside > 100).mean() > 0.9
    white = (found > 100).sum()
    areas = [(right - left) * (bottom - top) for left, top, right, bottom in corners_of_rows(joint)]
    assert white >= 0.85 * sum(areas)


def test_a_part_is_the_corner_of_its_image_at_full_size() -> None:
    images = [np.full((HEIGHT, WIDTH, 3), value, np.uint8) for value in (10, 20, 30, 40)]
    images[0][:30] = 0
    rows = [np.zeros((MOST + 1, 16), np.float32) for _ in images]
    found, _ = mosaic(images, rows, (20, 50), (1.0,) * 4)
    assert np.unique(found[:20, :50]).tolist() == [10]
    assert [int(found[at][0]) for at in ((0, 79), (59, 0), (59, 79))] == [20, 30, 40]


def test_objects_without_a_row_are_counted() -> None:
    random = np.random.default_rng(0)
    parts = [sample_of(random, MOST)[1] for _ in range(2)]
    joint = joined_rows(parts)
    assert (joint[0, COUNT], joint[0, DROPPED]) == (MOST, MOST)
    np.testing.assert_array_equal(joint[1:], parts[0][1:])


def test_a_blend_has_both_images_and_their_objects() -> None:
    batch = batch_of(1, 6)
    batch[0] = batch[0].astype(np.float32)
    join = JoinObjects(0.0, 1.0)
    x, y = join(batch, np.random.RandomState(3))
    for place, each in enumerate(join.draw(6, HEIGHT, WIDTH, np.random.RandomState(3))):
        own, other = each.places
        assert own == place
        assert 0.5 <= each.share <= 1
        expected = each.share * batch[0][own] + (1 - each.share) * batch[0][other]
        np.testing.assert_allclose(x[place], expected, atol=1e-3)
        counts = [int(batch[1][one, 0, 0, COUNT]) for one in each.places]
        assert y[place, 0, 0, COUNT] == min(MOST, sum(counts))


def source_of(count=12):
    """Return coded images with one object each, in memory."""
    points = []
    for number in range(count):
        image, rows = sample_of(np.random.default_rng(number), 1)
        left, top, width, height = rows[1, :4].tolist()
        label = objects_to_json([ImageObject(class_number=0, box=(left, top, left + width, top + height))])
        points.append([cv2.imencode(".png", image)[1].tobytes(), label])
    flow = DataFromList(points, shuffle=False)
    policy = flow.policy = ErrorPolicy("raise")
    schema = Schema(kind="detection", class_names=("box",))
    return DataSource(
        splits={"train": flow}, schema=schema, size=(HEIGHT, WIDTH), channels=1, in_memory=False, policy=policy
    )


def test_a_preview_shows_what_the_job_trains_on() -> None:
    source = source_of()
    options = DataOptions(
        batch_size=4, workers=1, seed=3, augmentation=Augmentation(mosaic=0.6, flip="fliplr"), uint8_images=True
    )
    context = new_context(source, options, task("detection"))
    with Pipeline(source, options, context).training().last as flow:
        epochs = [list(flow) for _ in range(2)]
    stages = Pipeline(source, options, context).training(by_row=True)
    for epoch, batches in enumerate(epochs):
        assert batches[0][0].dtype == np.uint8
        for place, row in enumerate(stages.order(epoch)):
            found = stages.joint(int(row), epoch)
            assert found is not None
            batch, inside = divmod(place, 4)
            np.testing.assert_array_equal(found[0], batches[batch][0][inside])
            np.testing.assert_array_equal(found[1], batches[batch][1][inside, 0])
    stages.close()


def test_what_does_not_fit_is_refused() -> None:
    source = source_of()
    context = new_context(source, DataOptions(batch_size=4), task("detection"))
    with pytest.raises(DataError, match="cuts through the objects"):
        check_mixing(Augmentation(cutmix=1.0), 4, context)
    check_mixing(Augmentation(mosaic=1.0, mixup=0.2), 4, context)
    classes = replace(context, task=task("classification"))
    with pytest.raises(DataError, match="in classification there are none"):
        check_mixing(Augmentation(mosaic=0.5), 4, classes)
