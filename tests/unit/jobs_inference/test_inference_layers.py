"""What is shown of layers: figures that NumPy confirms, and images of any array."""

import io

import numpy as np
import pytest
from PIL import Image

from ziggurat.worker.inference.views import draw_activation, draw_weights, figures, weights_of


def pixels(png: bytes | None) -> np.ndarray:
    assert png is not None
    return np.asarray(Image.open(io.BytesIO(png)))


def test_figures_leave_out_what_is_not_finite() -> None:
    found = figures(np.array([[1.0, 3.0], [np.nan, np.inf]], np.float32))
    assert (found["shape"], found["not_finite"]) == ([2, 2], 2)
    assert [found[name] for name in ("mean", "deviation", "minimum", "maximum")] == [2.0, 1.0, 1.0, 3.0]
    assert len(found["histogram"]["edges"]) == 21
    assert found["histogram"]["counts"] == [1, *[0] * 18, 1]


@pytest.mark.parametrize("values", [np.zeros(0), np.full((2, 2), np.nan)])
def test_figures_of_nothing(values: np.ndarray) -> None:
    found = figures(values)
    assert (found["mean"], found["histogram"]) == (None, {"counts": [], "edges": []})
    assert draw_activation(values) is None


def test_weights_are_told_from_what_an_optimizer_keeps() -> None:
    ones, one = np.ones(2, np.float32), np.float32(1)
    arrays = {
        "model/conv/W": ones,
        "model/conv/W/Momentum": ones,
        "ziggurat/sums/model/conv/W": ones,
        "momentum/layer1/W": ones,
        "layer1/W": ones,
        "model/norm/moving_mean": ones,
        "ziggurat/learning_rate": one,
        "beta1_power": one,
        "random/pcg64": np.zeros(6, np.uint64),
    }
    assert list(weights_of(arrays)) == ["model/conv/W", "layer1/W", "model/norm/moving_mean"]


def test_a_tile_is_a_channel_from_black_to_white() -> None:
    values = np.zeros((12, 12, 2), np.float32)
    values[:, :, 1] = 5
    drawn = pixels(draw_activation(values))
    side = (drawn.shape[1] - 1) // 2
    assert (drawn[:, :side] == 0).all()
    assert (drawn[:, side + 1 :] == 255).all()


def test_three_channels_may_be_colours() -> None:
    picture = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
    assert pixels(draw_activation(picture, as_color=True)).shape == (4, 4, 3)


@pytest.mark.parametrize(
    "shape", [(1,), (10,), (5000,), (3, 1), (2000, 4), (1, 1, 1), (7, 5, 200), (900, 600, 3), (1, 900, 2)]
)
def test_pictures_stay_small(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    assert max(pixels(draw_activation(values)).shape) <= 320


@pytest.mark.parametrize("shape", [(3, 3, 1, 20), (5, 5, 20, 50), (1, 1, 3, 2), (784, 32), (32,)])
def test_filters_side_by_side(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    assert max(pixels(draw_weights(values)).shape) <= 320


def test_what_has_no_picture() -> None:
    assert draw_weights(np.ones((2, 2, 2, 2, 2))) is None
    assert draw_weights(np.ones((2, 2, 2))) is None
    assert draw_activation(np.float32(1)) is None


def test_numbers_of_any_size() -> None:
    limits = np.finfo(np.float64)
    drawn = pixels(draw_activation(np.array([limits.min, 0.0, limits.max, np.nan])))
    assert (drawn.min(), drawn.max()) == (0, 255)
    assert len(np.unique(pixels(draw_activation(np.zeros((4, 4)))))) == 1
