"""Augmentors made of augmentors, and of functions."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow import imgaug
from ziggurat.dataflow.imgaug import (
    AugmentorList,
    Brightness,
    CenterCrop,
    Flip,
    Identity,
    MapImage,
    RandomApply,
    RandomApplyAug,
    RandomChooseAug,
    RandomCrop,
    RandomOrderAug,
    Resize,
    ResizeShortestEdge,
    Transpose,
)
from ziggurat.errors import UsageError

IMAGE = np.random.RandomState(0).randint(0, 255, (20, 30, 3)).astype(np.uint8)


def rng(seed=0):
    return np.random.RandomState(seed)


def test_a_list_draws_each_for_the_image_that_came_before():
    policy = AugmentorList([ResizeShortestEdge(40), RandomCrop((40, 50)), Flip(horiz=True, prob=1)])
    transform, result = policy.set_rng(rng()).draw(IMAGE)
    assert result.shape == (40, 50, 3)
    assert [type(each).__name__ for each in transform.tfms] == ["ResizeTransform", "CropTransform", "FlipTransform"]
    assert np.array_equal(transform.apply_image(IMAGE), result)


def test_lists_in_lists():
    policy = AugmentorList([AugmentorList([Transpose(1)]), AugmentorList([]), CenterCrop(5)])
    assert policy.augment(IMAGE).shape == (5, 5, 3)
    assert len(policy.get_transform(IMAGE).tfms) == 2
    assert AugmentorList([]).augment(IMAGE) is IMAGE


def test_apply_with_a_probability():
    assert RandomApply is RandomApplyAug
    augmentor = RandomApply(Transpose(1), 0.3).set_rng(rng())
    assert 230 < sum(augmentor.augment(IMAGE).shape[0] == 30 for _ in range(1000)) < 370
    both = RandomApply([Transpose(1), CenterCrop(7)], 1)
    assert both.augment(IMAGE).shape == (7, 7, 3)


def test_choose_one_equally_or_by_weight():
    sizes = [CenterCrop(size) for size in (5, 6, 7)]
    augmentor = RandomChooseAug(sizes).set_rng(rng())
    found = [augmentor.augment(IMAGE).shape[0] for _ in range(900)]
    assert all(240 < found.count(size) < 360 for size in (5, 6, 7))
    weighted = RandomChooseAug([(sizes[0], 3), (sizes[1], 1), (sizes[2], 0)]).set_rng(rng())
    found = [weighted.augment(IMAGE).shape[0] for _ in range(400)]
    assert 260 < found.count(5) < 340
    assert found.count(7) == 0


def test_random_order_is_right_for_shape_changing_augmentors():
    policy = RandomOrderAug([Resize((24, 16)), RandomCrop((12, 10)), Transpose(1)]).set_rng(rng())
    shapes = set()
    for _ in range(40):
        transform, result = policy.draw(IMAGE)
        assert np.array_equal(transform.apply_image(IMAGE), result)
        shapes.add(result.shape[:2])
    assert shapes == {(24, 16), (16, 24), (12, 10), (10, 12)}


def test_identity_and_functions():
    assert Identity().augment(IMAGE) is IMAGE
    half = MapImage(lambda image: image[::2, ::2], lambda points: points / 2, lambda mask: mask[::2, ::2])
    transform, result = half.draw(IMAGE)
    assert result.shape == (10, 15, 3)
    assert transform.apply_boxes(np.array([[2, 4, 6, 8]])).tolist() == [[1, 2, 3, 4]]
    assert transform.apply_mask(np.ones((20, 30), int)).shape == (10, 15)


def test_a_function_without_its_label_functions_says_so():
    transform = MapImage(lambda image: image).get_transform(IMAGE)
    with pytest.raises(NotImplementedError, match=r"`apply_coords` needs a transform that defines it; MapImage\("):
        transform.apply_coords(np.zeros((1, 2)))
    with pytest.raises(imgaug.UnsupportedLabelError, match=r"Define `apply_mask` in its class"):
        transform.apply_mask(np.zeros((20, 30), int))


def test_set_rng_reaches_every_member():
    inner = Brightness(5)
    policy = AugmentorList([RandomApply(RandomChooseAug([RandomOrderAug([inner])]), 0.5)])
    generator = rng()
    assert policy.set_rng(generator) is policy
    assert inner.rng is generator
    policy.reset_state()
    assert inner.rng is not generator


def test_errors():
    with pytest.raises(
        UsageError, match=r"Each augmentor is an `ImageAugmentor` \(received: 5\). Wrap a plain function"
    ):
        AugmentorList([5])
    with pytest.raises(
        UsageError, match=r"Augmentors come in a list \(received: Flip\). Put the augmentor in brackets"
    ):
        AugmentorList(Flip(horiz=True))
    with pytest.raises(UsageError, match=r"one augmentor, and weights of which none is negative \(received: \[\]"):
        RandomChooseAug([])
    with pytest.raises(UsageError, match=r"received: \[-1.0\]"):
        RandomChooseAug([(Identity(), -1)])
    with pytest.raises(UsageError, match=r"`prob` is from 0 to 1 \(received: 2"):
        RandomApply(Identity(), 2)
