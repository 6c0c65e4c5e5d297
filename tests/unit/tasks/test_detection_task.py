"""Object detection as a task: objects on their way from a label to the network and back, none lost uncounted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.preprocessing import Augmentation, Preprocessing
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.tasks.detection import DETECTION
from ziggurat.tasks.detection_arrays import COUNT, DROPPED, PLACE, SCALE, corners_of_rows, kept_rows, targets_of
from ziggurat.tasks.detection_boxes import to_original
from ziggurat.worker.pipeline import DataOptions, Pipeline, middle_crop
from ziggurat.worker.source import DataSource

MODES = ("squash", "crop", "fill", "half_crop")


def context_of(size=(64, 96), *, mode="fill", crop=None, most=8):
    schema = Schema(kind="detection", class_names=("cat", "dog"))
    preprocessing = Preprocessing(size=size, resize_mode=mode, crop=crop)
    return TaskContext(DETECTION, schema, preprocessing, {"most": most})


def rows_of(label, size, **options):
    """Return the rows of a label for an image of (height, width)."""
    image = np.zeros((*size, 3), np.uint8)
    return DETECTION.sample(context_of(**options), [image, label], "key")[1]


def an_object(box, number=0, **more):
    return {"class": number, "box": box, **more}


boxes = st.tuples(*[st.floats(0, 199, width=32)] * 4).map(
    lambda each: [min(each[0], each[2]), min(each[1], each[3]), max(each[0], each[2]), max(each[1], each[3])]
)


def test_rows_are_those_of_digits() -> None:
    details = {"alpha": 0.5, "rotation_y": 1.5, "truncated": 0.25, "occluded": 2}
    details |= {"dimensions": [3, 4, 5], "location": [6, 7, 8]}

    rows = rows_of([an_object([10, 20, 30, 60], 1, details=details)], (64, 96))

    assert rows.shape == (9, 16)
    assert rows[0].tolist() == [1, 16, 64, 96, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert rows[1].tolist() == [10, 20, 20, 40, 0.5, 1, 0, 1.5, 0.25, 2, 5, 4, 3, 6, 7, 8]


def test_what_does_not_count_is_marked() -> None:
    label = [
        an_object([1, 1, 9, 9], crowd=True),
        an_object([1, 1, 9, 9], difficult=True),
        an_object([1, 1, 9, 9], -1),
        an_object([5, 5, 5, 9]),
        an_object([1, 1, 9, 9], 1),
    ]

    targets = targets_of(rows_of(label, (64, 96))[None, None])

    assert targets.is_ignored[0].tolist() == [True, True, True, True, False, False, False, False]
    assert targets.is_object[0].tolist() == [False, False, False, False, True, False, False, False]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MODES), st.integers(20, 200), st.integers(20, 200), boxes)
def test_placement_and_its_inverse_are_exact(mode, height, width, box) -> None:
    rows = rows_of([an_object(box, crowd=True)], (height, width), mode=mode)
    preprocessing = context_of(mode=mode).preprocessing
    scale_y, scale_x, top, left = preprocessing.placement((height, width))

    assert rows[0, SCALE] == pytest.approx((scale_y, scale_x), rel=1e-6)
    assert rows[0, PLACE] == pytest.approx((top, left), rel=1e-6)
    moved = np.array(
        [
            [
                each * scale + place
                for each, scale, place in zip(box, (scale_x, scale_y) * 2, (left, top) * 2, strict=True)
            ]
        ]
    )
    header = np.zeros(16)
    header[SCALE], header[PLACE] = (scale_y, scale_x), (top, left)
    assert to_original(moved, header)[0] == pytest.approx(box, abs=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.lists(boxes, max_size=12), st.sampled_from(MODES), st.integers(0, 9))
def test_no_object_is_lost_uncounted(label, mode, most) -> None:
    rows = rows_of([an_object(box) for box in label], (200, 150), mode=mode, most=most)

    assert rows[0, COUNT] + rows[0, DROPPED] == len(label)
    assert rows[0, COUNT] <= most
    corners = corners_of_rows(rows)
    assert (corners >= 0).all()
    assert (corners[:, [1, 3]] <= 64).all()
    assert (corners[:, [0, 2]] <= 96.0001).all()


def test_an_object_that_is_mostly_outside_is_dropped() -> None:
    rows = np.zeros((4, 16), np.float32)
    rows[0, COUNT] = 3
    rows[1:, :4] = (-8, 0, 10, 10), (-7, 0, 10, 10), (50, 50, 4, 4)

    kept = kept_rows(rows, (20, 20), 3)

    assert (kept[0, COUNT], kept[0, DROPPED]) == (1, 2)
    assert kept[1, :4].tolist() == [0, 0, 3, 10]


def test_a_crop_in_the_middle_moves_objects_and_their_place() -> None:
    context = context_of((64, 96), crop=32)
    image = np.zeros((128, 192, 3), np.uint8)
    crop = middle_crop(context)
    assert crop is not None
    arrays = DETECTION.sample(context, [image, [an_object([80, 40, 120, 90])]], "key")

    _, rows = crop(arrays, np.random.RandomState(0))

    assert rows[1, :4].tolist() == [8, 4, 20, 25]
    assert to_original(corners_of_rows(rows), rows[0])[0].tolist() == [80, 40, 120, 90]


def squares():
    """Return ten images (40, 40, 3) with a bright rectangle each, and its box."""
    random = np.random.default_rng(0)
    samples = []
    for _ in range(10):
        left, top = random.integers(4, 12, 2)
        image = np.zeros((40, 40, 3), np.uint8)
        image[top : top + 12, left : left + 16] = 255
        samples.append((image, [an_object([int(left), int(top), int(left) + 16, int(top) + 12])]))
    return samples


@pytest.mark.parametrize(
    "augmentation",
    [
        Augmentation(flip="fliplr"),
        Augmentation(flip="fliplrud", quad_rotation="rotall"),
        Augmentation(scale=0.2, hue=0.1, noise=0.01),
    ],
)
def test_boxes_move_with_the_image(augmentation) -> None:
    context = context_of((40, 40), mode="squash")
    pipeline = Pipeline(
        DataSource(splits={}, schema=context.schema, size=(40, 40)),
        DataOptions(batch_size=2, augmentation=augmentation),
        context,
    )
    vary = pipeline.variation()
    random = np.random.RandomState(3)
    for image, label in squares():
        arrays = DETECTION.sample(context, [image, label], "key")
        found, rows = vary(arrays, random)
        left, top, right, bottom = corners_of_rows(rows)[0]
        bright = np.argwhere(found.max(axis=2) > 128)
        assert bright.min(axis=0) == pytest.approx((top, left), abs=1.5)
        assert bright.max(axis=0) + 1 == pytest.approx((bottom, right), abs=1.5)


def test_predictions_are_placed_in_the_original_image() -> None:
    context = context_of((64, 96), mode="fill")
    output = np.array([[24, 16, 48, 32, 0.1, 0.8], [0, 0, 9, 9, 0, 0]], np.float32)

    found = DETECTION.placed(context, DETECTION.decode(context, {"output": output}), (128, 128))

    assert found["size"] == [128, 128]
    best, second = found["boxes"]
    assert (best["class"], best["number"], round(best["score"], 3)) == ("dog", 1, 0.8)
    assert best["box"] == [16, 32, 64, 64]
    assert second["class"] == "cat"


def test_96_rows_without_a_confidence_are_no_detections() -> None:
    output = np.array([[1, 1, 9, 9, 0, 0], [1, 1, 9, 9, -1, 0]], np.float32)

    assert DETECTION.decode(context_of(), {"output": output})["boxes"] == []


def test_outputs_of_another_form_are_shown_as_they_are() -> None:
    found = DETECTION.decode(context_of(), {"output": np.zeros((3, 4, 4))})

    assert found["outputs"]["output"]["shape"] == [3, 4, 4]
