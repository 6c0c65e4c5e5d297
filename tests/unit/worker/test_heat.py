"""The heat of Grad-CAM and its images, on numbers that can be worked out by hand."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.errors import UnknownNameError
from ziggurat.worker.inference.views import (
    HEAT_COLORS,
    class_number_of,
    colored,
    draw_heat,
    draw_overlay,
    heat_of,
    resized,
)


def decoded(png: bytes) -> np.ndarray:
    """Return the RGB of a PNG file."""
    shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None
    return shown[:, :, ::-1]


def test_maps_count_by_mean_gradients_and_negatives_are_none() -> None:
    maps = np.zeros((2, 2, 2), np.float32)
    maps[0, 0], maps[0, 1], maps[1, 0] = (4, 0), (2, 0), (0, 3)
    gradients = np.zeros((2, 2, 2), np.float32)
    gradients[0, 0] = (2, -4)  # means over the four places: 0.5 and -1

    heat, largest = heat_of(maps, gradients)

    assert largest == 2.0
    assert heat.tolist() == [[1.0, 0.5], [0.0, 0.0]]


def test_where_nothing_speaks_for_a_class_the_heat_is_zero() -> None:
    heat, largest = heat_of(np.ones((3, 3, 1)), np.full((3, 3, 1), -1.0))

    assert largest == 0.0
    assert not heat.any()
    picture = np.full((3, 3, 1), 90, np.uint8)
    assert (decoded(draw_overlay(picture, heat)) == 90).all()  # the bare image


def test_the_heat_of_pixels_stays_from_0_to_1_and_where_it_was() -> None:
    heat = np.zeros((4, 4))
    heat[1, 2] = 1.0

    pixels = resized(heat, (32, 64))

    assert pixels.shape == (32, 64)
    assert 0 <= pixels.min() <= pixels.max() <= 1
    row, column = np.unravel_index(pixels.argmax(), pixels.shape)
    assert (8 <= row < 16, 32 <= column < 48) == (True, True)


def test_colours_get_lighter_from_step_to_step_for_every_eye() -> None:
    shown = colored(np.linspace(0, 1, 65)).astype(float)

    assert [tuple(each) for each in shown[::8].astype(int)] == list(HEAT_COLORS)
    linear = np.where(shown <= 10.31, shown / 255 / 12.92, ((shown / 255 + 0.055) / 1.055) ** 2.4)
    # What of red, green and blue is seen: by all, and by those who miss the cones for red or for green (Vienot, 1999).
    for weights in ((0.2126, 0.7152, 0.0722), (0.1124, 0.8876, 0.0), (0.2927, 0.7073, 0.0)):
        assert (np.diff(linear @ np.array(weights)) > 0).all()


def test_the_overlay_is_grey_with_colour_where_it_is_hot() -> None:
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[:, :, 0] = 120
    heat = np.zeros((8, 8))
    heat[1:4, 4:7] = 1.0

    shown = decoded(draw_overlay(picture, heat))

    assert shown.shape == (256, 256, 3)  # each pixel by 32
    assert shown[250, 10].tolist() == [40, 40, 40]
    hottest = shown[2 * 32 + 16, 5 * 32 + 16].astype(int)
    assert hottest == pytest.approx(0.2 * 40 + 0.8 * np.array(HEAT_COLORS[-1]), abs=1)


@pytest.mark.parametrize(
    ("size", "shown"), [((32, 32), (256, 256)), ((300, 200), (300, 200)), ((1024, 512), (512, 256))]
)
def test_pictures_are_as_large_as_they_are_looked_at(size: tuple[int, int], shown: tuple[int, int]) -> None:
    heat = np.linspace(0, 1, 16).reshape(4, 4)

    assert decoded(draw_overlay(np.zeros((*size, 1), np.uint8), heat)).shape[:2] == shown
    alone = decoded(draw_heat(heat, size))
    assert alone.shape[:2] == shown
    assert len({tuple(colour) for colour in alone.reshape(-1, 3)}) == 16  # a square for each place


def test_a_class_is_named_by_its_number_or_name() -> None:
    names, probabilities = ["cat", "dog", "7"], np.array([0.2, 0.7, 0.1])

    assert class_number_of(None, names, probabilities) == 1
    assert class_number_of("", names, probabilities) == 1
    assert class_number_of(0, names, probabilities) == 0
    assert class_number_of(" 2 ", names, probabilities) == 2
    assert class_number_of("cat", names, probabilities) == 0
    assert class_number_of("7", names, probabilities) == 2
    for wrong in ("3", "-1", "cats"):
        with pytest.raises(UnknownNameError, match=f"`{wrong}` is not a known class of this network"):
            class_number_of(wrong, names, probabilities)
