"""What holds for every augmentor: types, shapes, seeds, copies; and that none is kept alive."""

from __future__ import annotations

import gc
import pickle
import weakref

import cv2
import numpy as np
import pytest

from ziggurat.dataflow import imgaug

PALETTE = ([0.2, 0.02, 0.005], np.eye(3))

GEOMETRIC = {
    "Affine": lambda: imgaug.Affine((0.8, 1.2), (0.1, 0.1), 20, 10),
    "AugmentorList": lambda: imgaug.AugmentorList([imgaug.Flip(horiz=True), imgaug.RandomCrop(10)]),
    "CenterCrop": lambda: imgaug.CenterCrop((10, 12)),
    "CenterPaste": lambda: imgaug.CenterPaste((40, 50)),
    "Flip": lambda: imgaug.Flip(vert=True),
    "GoogleNetRandomCropAndResize": lambda: imgaug.GoogleNetRandomCropAndResize(target_shape=16),
    "Identity": lambda: imgaug.Identity(),
    "RandomApplyAug": lambda: imgaug.RandomApplyAug(imgaug.Transpose(1), 0.5),
    "RandomChooseAug": lambda: imgaug.RandomChooseAug([imgaug.Transpose(1), imgaug.RandomCrop(9)]),
    "RandomCrop": lambda: imgaug.RandomCrop(11),
    "RandomCropRandomShape": lambda: imgaug.RandomCropRandomShape(5, 6),
    "RandomCutout": lambda: imgaug.RandomCutout((2, 5), (3, 6), fill=9),
    "RandomOrderAug": lambda: imgaug.RandomOrderAug([imgaug.Transpose(1), imgaug.RandomCrop((9, 11))]),
    "RandomPaste": lambda: imgaug.RandomPaste((40, 50)),
    "RandomResize": lambda: imgaug.RandomResize((0.5, 1.5), (0.5, 1.5)),
    "Rescale": lambda: imgaug.Rescale(0.1),
    "Resize": lambda: imgaug.Resize((20, 25), mode="half_crop"),
    "ResizeShortestEdge": lambda: imgaug.ResizeShortestEdge(13),
    "Rotation": lambda: imgaug.Rotation(30, border=cv2.BORDER_CONSTANT, border_value=3),
    "Rotation90": lambda: imgaug.Rotation90(),
    "RotationAndCropValid": lambda: imgaug.RotationAndCropValid(10),
    "Shear": lambda: imgaug.Shear(15),
    "Shift": lambda: imgaug.Shift(0.2, 0.2),
    "Transpose": lambda: imgaug.Transpose(),
}

PHOTOMETRIC = {
    "Brightness": lambda: imgaug.Brightness(30),
    "BrightnessScale": lambda: imgaug.BrightnessScale((0.5, 1.5)),
    "Clip": lambda: imgaug.Clip(10, 200),
    "Contrast": lambda: imgaug.Contrast((0.5, 1.5)),
    "Gamma": lambda: imgaug.Gamma(),
    "GaussianBlur": lambda: imgaug.GaussianBlur((1, 4), (0.5, 2), symmetric=False),
    "GaussianNoise": lambda: imgaug.GaussianNoise(5),
    "SaltPepperNoise": lambda: imgaug.SaltPepperNoise(),
}

COLOR = {
    "ColorSpace": lambda: imgaug.ColorSpace(cv2.COLOR_RGB2BGR),
    "Hue": lambda: imgaug.Hue(),
    "HueSaturationValue": lambda: imgaug.HueSaturationValue(),
    "Lighting": lambda: imgaug.Lighting(20, *PALETTE),
    "Saturation": lambda: imgaug.Saturation(),
}

CHANGING = {
    "Grayscale": lambda: imgaug.Grayscale(),
    "JpegNoise": lambda: imgaug.JpegNoise(),
    "MeanVarianceNormalize": lambda: imgaug.MeanVarianceNormalize(),
    "MinMaxNormalize": lambda: imgaug.MinMaxNormalize(),
    "ToFloat32": lambda: imgaug.ToFloat32(),
    "ToUint8": lambda: imgaug.ToUint8(),
}

EVERY = {**GEOMETRIC, **PHOTOMETRIC, **COLOR, **CHANGING}


def picture(shape=(24, 30, 3), dtype="uint8", seed=0):
    return (np.random.RandomState(seed).random_sample(shape) * 255).astype(dtype)


def seeded(name, seed=3):
    return EVERY[name]().set_rng(np.random.RandomState(seed))


def test_the_table_has_every_augmentor():
    classes = [each for each in vars(imgaug).values() if isinstance(each, type)]
    augmentors = {each.__name__ for each in classes if issubclass(each, imgaug.ImageAugmentor)}
    assert augmentors - {"ImageAugmentor", "PhotometricAugmentor", "MapImage"} == set(EVERY)


@pytest.mark.parametrize("shape", [(24, 30), (24, 30, 1), (24, 30, 3), (24, 30, 6)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("name", [*GEOMETRIC, *PHOTOMETRIC])
def test_type_and_axes_stay(name, dtype, shape):
    result = seeded(name).augment(picture(shape, dtype))
    assert result.dtype == dtype
    assert result.shape[2:] == shape[2:]


@pytest.mark.parametrize("name", GEOMETRIC)
def test_geometric_ones_take_16_bits(name):
    assert seeded(name).augment(picture(dtype="uint16")).dtype == np.uint16


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("name", COLOR)
def test_colors_keep_type_and_shape(name, dtype):
    result = seeded(name).augment(picture(dtype=dtype))
    assert result.dtype == dtype
    assert result.shape == (24, 30, 3)


@pytest.mark.parametrize("name", EVERY)
def test_bytes_stay_bytes_unless_the_class_says_otherwise(name):
    result = seeded(name).augment(picture())
    expected = "float32" if name in ("MeanVarianceNormalize", "MinMaxNormalize", "ToFloat32") else "uint8"
    assert result.dtype == expected


@pytest.mark.parametrize("name", [*PHOTOMETRIC, *COLOR])
def test_floating_images_stay_between_black_and_white(name):
    image = picture(dtype="float32")
    for seed in range(5):
        result = seeded(name, seed).augment(image)
        assert result.min() >= -1e-3
        assert result.max() <= 255.001


@pytest.mark.parametrize("name", EVERY)
def test_the_input_is_not_written(name):
    image = picture()
    image.flags.writeable = False
    for seed in range(4):
        transform, _result = seeded(name, seed).draw(image)
        transform.apply_image(image)
    assert np.array_equal(image, picture())


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_image(name):
    image = picture()
    first, second = (seeded(name, 11) for _ in range(2))
    for _ in range(3):
        assert np.array_equal(first.augment(image), second.augment(image))


@pytest.mark.parametrize("name", EVERY)
def test_a_transform_is_deterministic_and_is_what_draw_applied(name):
    image = picture()
    transform, result = seeded(name).draw(image)
    assert np.array_equal(transform.apply_image(image), result)
    assert np.array_equal(seeded(name).get_transform(image).apply_image(image), result)


@pytest.mark.parametrize("name", [*PHOTOMETRIC, *COLOR, *CHANGING])
def test_photometric_ones_leave_labels_where_they_are(name):
    transform = seeded(name).get_transform(picture())
    points = np.array([[1.5, 2.0], [20.0, 4.0]])
    mask = np.arange(24 * 30).reshape(24, 30)
    assert np.array_equal(transform.apply_coords(points), points)
    assert np.array_equal(transform.apply_boxes(np.array([[1.0, 2, 5, 6]])), [[1, 2, 5, 6]])
    assert np.array_equal(transform.apply_mask(mask), mask)


@pytest.mark.parametrize("name", EVERY)
def test_augmentors_and_transforms_are_pickled(name):
    image = picture()
    augmentor = seeded(name)
    copy = pickle.loads(pickle.dumps(augmentor))
    transform, result = augmentor.draw(image)
    assert np.array_equal(copy.augment(image), result)
    assert np.array_equal(pickle.loads(pickle.dumps(transform)).apply_image(image), result)
    assert repr(copy) == repr(augmentor)


@pytest.mark.parametrize("name", EVERY)
def test_nothing_keeps_an_augmentor_alive(name):
    augmentor = EVERY[name]()
    augmentor.augment(picture())
    gone = weakref.ref(augmentor)
    del augmentor
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", EVERY)
def test_other_types_are_refused(name):
    with pytest.raises(
        imgaug.ImageError, match=r"takes images of type .* \(received: int32\). Convert the image first"
    ):
        seeded(name).augment(picture().astype("int32"))


@pytest.mark.parametrize("name", [*PHOTOMETRIC, *COLOR])
def test_16_bits_are_refused_where_values_are_computed(name):
    if name == "Clip":
        assert imgaug.Clip(0, 99).augment(picture(dtype="uint16")).max() == 99
        return
    with pytest.raises(imgaug.ImageError, match=r"uint8, float32, float64 \(received: uint16\)."):
        seeded(name).augment(picture(dtype="uint16"))


@pytest.mark.parametrize(
    ("thing", "received"),
    [
        (None, "NoneType"),
        ([[1, 2]], "list"),
        (np.zeros((0, 4, 3), "uint8"), r"an array of shape \(0, 4, 3\)"),
        (np.zeros(5, "uint8"), r"an array of shape \(5,\)"),
        (np.zeros((2, 3, 4, 5), "uint8"), r"an array of shape \(2, 3, 4, 5\)"),
    ],
)
def test_what_is_no_image_is_refused(thing, received):
    with pytest.raises(
        imgaug.ImageError, match=rf"Flip needs an image: an array .* \(received: {received}\). Check the"
    ):
        imgaug.Flip(horiz=True).augment(thing)
