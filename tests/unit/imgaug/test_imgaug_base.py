"""Where random numbers come from; writing own augmentors, in the new style and in Tensorpack's old ones."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from ziggurat.dataflow import imgaug
from ziggurat.dataflow.imgaug import ImageAugmentor, PhotometricAugmentor, Transform, drawing_from
from ziggurat.dataflow.random import fix_rng_seed
from ziggurat.errors import UsageError

IMAGE = np.random.RandomState(0).randint(0, 255, (10, 12, 3)).astype(np.uint8)


@pytest.fixture
def fixed_seed():
    fix_rng_seed(7)
    yield
    fix_rng_seed(None)


# ---- random numbers


def test_an_augmentor_makes_a_generator_when_it_first_draws():
    first, second = imgaug.Brightness(50), imgaug.Brightness(50)
    assert first.get_transform(IMAGE).params != second.get_transform(IMAGE).params


@pytest.mark.usefixtures("fixed_seed")
def test_under_a_fixed_seed_augmentors_still_differ():
    drawn = [imgaug.Brightness(50).get_transform(IMAGE).params for _ in range(5)]
    assert len(set(drawn)) == 5


def test_reset_state_makes_a_new_generator():
    augmentor = imgaug.Brightness(50).set_rng(np.random.RandomState(1))
    before = augmentor.get_transform(IMAGE).params
    augmentor.reset_state()
    assert augmentor.get_transform(IMAGE).params != before
    assert before == np.random.RandomState(1).uniform(-50, 50)


def test_a_copy_for_another_process_draws_other_numbers():
    augmentor = imgaug.Brightness(50)
    assert augmentor.rng is augmentor.rng
    copy = pickle.loads(pickle.dumps(augmentor))
    assert copy.get_transform(IMAGE).params != augmentor.get_transform(IMAGE).params


FORKING = """
import os
import numpy as np
from ziggurat.dataflow.imgaug import Brightness
augmentor = Brightness(50)
image = np.zeros((2, 2), np.uint8)
augmentor.get_transform(image)
for _ in range(2):
    if os.fork() == 0:
        break
else:
    os.wait(), os.wait()
os.write(1, f"{augmentor.get_transform(image).params}\\n".encode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_draw_different_numbers():
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=60)
    assert len(set(done.stdout.split())) == 3


def test_a_lent_generator_serves_whole_trees_and_one_thread_only():
    inner = imgaug.Brightness(50)
    policy = imgaug.AugmentorList([imgaug.RandomApply(inner, 1)])
    lent = np.random.RandomState(5)
    elsewhere = []
    with drawing_from(lent):
        assert policy.rng is lent
        assert inner.rng is lent
        with drawing_from(np.random.RandomState(6)):
            assert inner.rng is not lent
        assert inner.rng is lent
        thread = threading.Thread(target=lambda: elsewhere.append(inner.rng))
        thread.start()
        thread.join()
    assert elsewhere[0] is not lent
    assert inner.rng is not lent


def test_rand_range_gives_python_floats_in_range():
    class Drawing(ImageAugmentor):
        def get_transform(self, img):
            return self._rand_range(2), self._rand_range(3.0, 4.0), self._rand_range(0, 1, (2, 2))

    below_two, between, many = Drawing().get_transform(IMAGE)
    assert type(below_two) is float
    assert 0 <= below_two < 2
    assert 3 <= between < 4
    assert many.shape == (2, 2)


# ---- own augmentors


class DropRows(ImageAugmentor):
    """A user's augmentor in today's style."""

    def __init__(self, most):
        self._init(locals())

    def get_transform(self, img):
        return imgaug.CropTransform(int(self.rng.randint(self.most)), 0, img.shape[0] - self.most, img.shape[1])


def test_an_own_augmentor():
    augmentor = DropRows(most=4).set_rng(np.random.RandomState(0))
    assert repr(augmentor) == "DropRows(most=4)"
    transform, result = augmentor.draw(IMAGE)
    assert result.shape == (6, 12, 3)
    assert transform.apply_boxes(np.array([[0, 4, 5, 6]]))[0, 1] == 4 - transform.y0


class Shear(Transform):
    """A user's transform that knows points only."""

    def apply_image(self, img):
        return img

    def apply_coords(self, coords):
        return coords + coords[:, ::-1] * [1, 0]


def test_an_own_transform_gets_boxes_and_polygons_for_nothing():
    transform = Shear()
    assert transform.apply_boxes(np.array([[0, 0, 2, 3]])).tolist() == [[0, 0, 5, 3]]
    assert transform.apply_polygons([np.array([[1.0, 1.0]])])[0].tolist() == [[2, 1]]
    with pytest.raises(NotImplementedError, match=r"`apply_mask` needs a transform that defines it; Shear\(\) does"):
        transform.apply_mask(np.zeros((2, 2), int))
    with pytest.raises(imgaug.UnsupportedLabelError, match=r"`apply_lines` needs"):
        transform.apply_lines([])
    with pytest.raises(AttributeError, match="no attribute 'lines'"):
        _ = transform.lines


class OldShift(ImageAugmentor):
    """An augmentor of Tensorpack's first style, which writes into its input."""

    def _get_augment_params(self, img):
        return self.rng.randint(1, 3)

    def _augment(self, img, params):
        img[:, params:] = img[:, :-params]
        return img

    def _augment_coords(self, coords, params):
        coords[:, 0] += params
        return coords


def test_the_old_style_is_adapted_and_its_input_stays():
    augmentor = OldShift().set_rng(np.random.RandomState(0))
    before = IMAGE.copy()
    points = np.array([[1.0, 1.0]])
    transform, result = augmentor.draw(IMAGE)
    steps = transform.params
    assert np.array_equal(IMAGE, before)
    assert np.array_equal(result[:, steps:], IMAGE[:, :-steps])
    assert transform.apply_coords(points).tolist() == [[1 + steps, 1]]
    assert transform.apply_boxes(np.array([[0, 0, 2, 2]])).tolist() == [[steps, 0, 2 + steps, 2]]


def test_the_old_style_does_not_write_into_points():
    transform, _ = OldShift().draw(IMAGE)
    points = np.array([[1.0, 1.0]])
    transform.apply_coords(points)
    assert points.tolist() == [[1, 1]]


def test_the_old_style_without_coords_leaves_points_alone():
    class Darken(ImageAugmentor):
        def _augment(self, img, params):
            return img // 2

    transform, result = Darken().draw(IMAGE)
    assert np.array_equal(result, IMAGE // 2)
    assert transform.apply_coords(np.array([[1.0, 2.0]])).tolist() == [[1, 2]]
    assert transform.apply_boxes(np.array([[0, 0, 2, 3]])).tolist() == [[0, 0, 2, 3]]


class OldInvert(PhotometricAugmentor):
    """A photometric augmentor, as users of Tensorpack write them."""

    def _augment(self, img, _):
        img[:] = 255 - img
        return img


def test_own_photometric_augmentors():
    before = IMAGE.copy()
    transform, result = OldInvert().draw(IMAGE)
    assert np.array_equal(result, 255 - before)
    assert np.array_equal(IMAGE, before)
    assert transform.apply_coords(np.array([[1.0, 2.0]])).tolist() == [[1, 2]]


def test_the_old_method_names_warn_and_work():
    augmentor = imgaug.Flip(horiz=True, prob=1)
    with pytest.warns(DeprecationWarning, match=r"`augment_return_params\(img\)` is deprecated. Use `draw\(img\)`"):
        image, params = augmentor.augment_return_params(IMAGE)
    with pytest.warns(DeprecationWarning, match=r"Use `transform.apply_image\(img\)`"):
        assert np.array_equal(augmentor.augment_with_params(IMAGE, params), image)
    with pytest.warns(DeprecationWarning, match=r"Use `transform.apply_coords\(coords\)`"):
        assert augmentor.augment_coords(np.array([[0.0, 0.0]]), params).tolist() == [[12, 0]]
    assert np.array_equal(augmentor.augment(IMAGE), image)


def test_an_augmentor_without_a_policy_says_so():
    class Empty(ImageAugmentor):
        pass

    with pytest.raises(UsageError, match=r"defines `get_transform\(img\)` \(received: class Empty without it"):
        Empty().augment(IMAGE)
