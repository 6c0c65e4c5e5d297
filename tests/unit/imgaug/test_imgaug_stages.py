"""Augmentation in a pipeline: stages, and the same as functions for parallel maps."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from ziggurat.dataflow import imgaug
from ziggurat.dataflow.augment import (
    AugmentImageComponent,
    AugmentImageComponents,
    AugmentImageCoordinates,
    augment_component,
    augment_components,
)
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DatapointError, UnknownNameError, UsageError

POLICY = imgaug.AugmentorList(
    [imgaug.RandomCrop((16, 20)), imgaug.Flip(horiz=True), imgaug.Brightness(20), imgaug.GaussianNoise(3)]
)


class Images(DataFlow):
    """Images with a box, its center, its mask and a number; the one numbered ``broken`` is too small."""

    def __init__(self, count=8, broken=-1):
        self.count = count
        self.broken = broken

    def __len__(self):
        return self.count

    def iterate(self):
        for number in range(self.resume_index, self.count):
            image = np.random.RandomState(number).randint(0, 255, (24, 28, 3)).astype(np.uint8)
            mask = np.zeros((24, 28), np.int64)
            mask[8:14, 10:18] = 3
            box = np.array([[10.0, 8, 18, 14]])
            yield [image[:5] if number == self.broken else image, box, np.array([[14.0, 11.0]]), mask, number]


def images(flow, index=0):
    return [dp[index].tobytes() for dp in flow]


def test_one_component():
    flow = AugmentImageComponent(Images(), POLICY).seed(1)
    assert len(flow) == 8
    result = list(flow)
    assert [dp[4] for dp in result] == list(range(8))
    assert {dp[0].shape for dp in result} == {(16, 20, 3)}
    assert images(AugmentImageComponent(Images(), POLICY).seed(1)) == [dp[0].tobytes() for dp in result]
    assert images(AugmentImageComponent(Images(), POLICY).seed(2)) != [dp[0].tobytes() for dp in result]


def test_passes_differ():
    flow = AugmentImageComponent(Images(), POLICY).seed(1)
    assert images(flow) != images(flow)


def test_all_labels_move_together():
    flow = AugmentImageComponents(Images(), POLICY, (0,), (2,), boxes_index=1, mask_index=(3,)).seed(1)
    for image, boxes, points, mask, _number in flow:
        assert mask.shape == image.shape[:2]
        (kept,), _places = imgaug.keep_boxes(boxes, image.shape)
        rows, columns = np.nonzero(mask)
        assert kept.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert points[0].tolist() == [(boxes[0, 0] + boxes[0, 2]) / 2, (boxes[0, 1] + boxes[0, 3]) / 2]


def test_coordinates():
    flip = [imgaug.Flip(horiz=True, prob=1)]
    points = [dp[2].tolist() for dp in AugmentImageCoordinates(Images(1), flip, 0, 2)]
    assert points == [[[14.0, 11.0]]]
    function = augment_components(flip, (0,), coords_index=1)
    assert function([np.zeros((4, 10, 3), np.uint8), np.array([[1, 2]])])[1].tolist() == [[9, 2]]


def test_several_images_get_the_same_transform():
    flow = MapData(Images(), lambda dp: [dp[0], dp[0]])
    for one, other in AugmentImageComponents(flow, POLICY).seed(0):
        assert np.array_equal(one, other)


def test_polygons_and_keypoints():
    dp = {
        "image": np.zeros((4, 10, 3), np.uint8),
        "polygons": [np.array([[0.0, 0], [2, 0], [2, 2]])],
        "keypoints": np.array([[[1.0, 1, 2], [8, 1, 2]]]),
        "class": 5,
    }
    function = augment_components(
        imgaug.Flip(horiz=True, prob=1),
        "image",
        polygons_index="polygons",
        keypoints_index="keypoints",
        mirror_pairs=[(0, 1)],
    )
    result = function(dp)
    assert result["polygons"][0].tolist() == [[10, 0], [8, 0], [8, 2]]
    assert result["keypoints"].tolist() == [[[2, 1, 2], [9, 1, 2]]]
    assert result["class"] == 5
    assert dp["polygons"][0][0].tolist() == [0, 0]


def test_mask_fill():
    function = augment_components(imgaug.CenterPaste(6), 0, mask_index=1, mask_fill=255)
    _image, mask = function((np.zeros((4, 4, 3), np.uint8), np.ones((4, 4), np.uint8)))
    assert (mask == 255).sum() == 36 - 16


@pytest.mark.parametrize("stage", [MultiThreadMapData, MultiProcessMapData])
@pytest.mark.parametrize("workers", [1, 2])
def test_parallel_maps_give_what_the_stage_gives(stage, workers):
    serial = AugmentImageComponents(Images(), POLICY, (0,), boxes_index=1).seed(9)
    expected = [(dp[0].tobytes(), dp[1].tolist()) for _ in range(2) for dp in serial]
    with stage(Images(), workers, augment_components(POLICY, (0,), boxes_index=1)).seed(9) as parallel:
        assert [(dp[0].tobytes(), dp[1].tolist()) for _ in range(2) for dp in parallel] == expected


def test_resume_in_mid_pass():
    flow = AugmentImageComponent(Images(), POLICY).seed(4)
    whole = images(flow)
    other = AugmentImageComponent(Images(), POLICY).seed(4)
    iterator = iter(other)
    start = [next(iterator)[0].tobytes() for _ in range(3)]
    resumed = AugmentImageComponent(Images(), POLICY)
    resumed.load_state(other.state())
    assert start + images(resumed) == whole


def test_what_is_yielded_shares_no_memory_with_what_came_in():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for augmentor in (imgaug.Identity(), imgaug.CenterCrop(3)):
        (result,) = augment_component(augmentor)([image])
        assert not np.shares_memory(result, image)
        (view,) = augment_component(augmentor, copy=False)([image])
        assert np.shares_memory(view, image)


def test_a_users_function_may_write_into_its_image():
    image = np.zeros((4, 5, 3), np.uint8)

    def paint(img):
        img[:] = 9
        return img

    (result,) = augment_component([imgaug.RandomApply(imgaug.MapImage(paint), 1)])([image])
    assert result.all()
    assert not image.any()


def test_an_error_names_the_datapoint():
    flow = AugmentImageComponent(Images(broken=3), POLICY)
    with pytest.raises(DatapointError, match=r"Datapoint 3 cannot be used: ImageError: RandomCrop needs images"):
        list(flow)


def test_errors_may_be_skipped_and_are_counted(caplog):
    with caplog.at_level(logging.WARNING):
        flow = AugmentImageComponent(Images(broken=3), POLICY, catch_exceptions=True)
        assert [dp[4] for dp in flow] == [0, 1, 2, 4, 5, 6, 7]
    assert "Datapoint 3 was skipped: ImageError" in caplog.text
    quiet = AugmentImageCoordinates(Images(broken=3), POLICY, 0, 2, on_error="skip")
    assert len(list(quiet)) == 7
    assert quiet.error_counts()[0].counts.by_kind == {"ImageError": 1}


def test_a_dropped_datapoint_changes_no_other():
    good = images(AugmentImageComponent(Images(), POLICY).seed(2))
    rest = images(AugmentImageComponent(Images(broken=3), POLICY, on_error="skip").seed(2))
    assert rest == good[:3] + good[4:]


def test_a_transform_that_cannot_move_a_label_is_never_skipped():
    flow = AugmentImageComponents(Images(), [imgaug.MapImage(np.copy)], 0, boxes_index=1, on_error="skip")
    with pytest.raises(NotImplementedError, match=r"`apply_coords` needs a transform that defines it; MapImage"):
        list(flow)


def test_a_component_that_is_not_there_is_never_skipped():
    with pytest.raises(UsageError, match=r"There is no component 9 in the datapoints \(received: a list with 5"):
        list(AugmentImageComponent(Images(), POLICY, 9, on_error="skip"))
    with pytest.raises(UsageError, match=r"There is no component 'boxes'"):
        list(AugmentImageComponents(Images(), POLICY, 0, boxes_index="boxes"))


def test_wrong_arguments():
    with pytest.raises(UnknownNameError, match=r"`box_index` is not a known kind of label. Did you mean `boxes_index`"):
        AugmentImageComponents(Images(), POLICY, 0, box_index=1)
    with pytest.raises(UsageError, match=r"At least one component is an image \(received: no index"):
        augment_components(POLICY, ())
    with pytest.raises(UsageError, match=r"Each augmentor is an `ImageAugmentor`"):
        AugmentImageComponent(Images(), [np.copy])
    assert augment_component(POLICY)([np.zeros((24, 28, 3), np.uint8)])[0].shape == (16, 20, 3)


def test_users_augmentors_are_reset_once_in_a_process():
    class Counting(imgaug.Identity):
        resets = 0

        def reset_state(self):
            super().reset_state()
            self.resets += 1

    augmentor = Counting()
    flow = AugmentImageComponent(Images(2), [augmentor])
    list(flow)
    list(flow)
    assert augmentor.resets == 1
