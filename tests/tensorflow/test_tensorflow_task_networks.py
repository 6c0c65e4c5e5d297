"""Standard networks of all tasks: each builds, learns a small set, predicts the right shape, and resumes exactly."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.nightly import some_nightly
from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.export.provider import TrainedTower
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.errors import ConfigurationError, UnknownNameError

Arrays = list[np.ndarray]
CLASSES = 3
TABLE = ArraySpec((5,), categories=(0, 0, 0, 4, 7))
TEXTS = ArraySpec((12,), "int32", classes=50)


def pictures(rng: np.random.Generator, shape: tuple[int, ...], count: int = 8) -> np.ndarray:
    """Return images with a bright part each, at another place."""
    x = rng.uniform(0, 100, (count, *shape)).astype(np.float32)
    for number in range(count):
        top, left = rng.integers(0, shape[0] // 2), rng.integers(0, shape[1] // 2)
        x[number, top : top + shape[0] // 2, left : left + shape[1] // 2] += 150
    return x


def masks(shape: tuple[int, ...], count: int) -> Callable[[np.random.Generator], Arrays]:
    """Return a set whose masks are 1 where the picture is bright, with a border that counts for nothing."""

    def made(rng: np.random.Generator) -> Arrays:
        x = pictures(rng, shape, count)
        y = (x.mean(axis=-1, keepdims=True) > 125).astype(np.int64)
        y[:, :2] = 255
        return [x, y]

    return made


def texts(rng: np.random.Generator) -> Arrays:
    """Return texts of several lengths; the class is which of three tokens is in them."""
    x, y = rng.integers(5, 50, (24, 12)).astype(np.int32), np.arange(24) % CLASSES
    x[:, 1] = y + 1
    for number, length in enumerate(rng.integers(3, 13, 24)):
        x[number, length:] = 0
    return [x, y]


def table(rng: np.random.Generator) -> np.ndarray:
    return np.column_stack(
        [rng.normal(size=(32, 3)), rng.integers(0, 4, 32), rng.integers(0, 7, 32)],
    ).astype(np.float32)


def rows_with_numbers(rng: np.random.Generator) -> Arrays:
    x = table(rng)
    return [x, np.column_stack([x[:, 0] + (x[:, 3] == 2), x[:, 1] - 2]).astype(np.float32)]


def rows_with_classes(rng: np.random.Generator) -> Arrays:
    x = table(rng)
    return [x, x[:, 4].astype(np.int64) % CLASSES]


def several_labels(rng: np.random.Generator) -> Arrays:
    x, y = pictures(rng, (16, 16, 3)), rng.integers(0, 2, (8, CLASSES)).astype(np.float32)
    return [x * (1 + y[:, np.newaxis, np.newaxis, :]) / 2, y]


def numbers_of_pictures(rng: np.random.Generator) -> Arrays:
    x = pictures(rng, (20, 14, 1))
    return [x, np.stack([x.mean(axis=(1, 2, 3)) / 100, x[:, :10].mean(axis=(1, 2, 3)) / 100], axis=1)]


def noisy(rng: np.random.Generator) -> Arrays:
    y = pictures(rng, (11, 13, 3))
    return [np.clip(y + rng.normal(0, 40, y.shape), 0, 255).astype(np.float32), y]


def pairs(rng: np.random.Generator) -> Arrays:
    x = pictures(rng, (28, 28, 2))
    x[::2, ..., 1] = x[::2, ..., 0]
    return [x, (np.arange(8) + 1) % 2]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network with a small set.

    Args:
        data: makes the set.
        x: what the network gets of a sample.
        y: what it learns to give for one; None for nothing.
        outputs: shapes of its outputs without N.
        options: of the request.
        steps: in which its cost falls by a fifth at least.
    """

    data: Callable[[np.random.Generator], Arrays]
    x: ArraySpec
    y: ArraySpec | None
    outputs: list[tuple[int, ...]]
    options: dict[str, Any]
    steps: int = 30


def of_masks(shape: tuple[int, ...], rate: float, count: int = 2, steps: int = 8) -> Case:
    return Case(
        data=masks(shape, count),
        x=ArraySpec(shape),
        y=ArraySpec((*shape[:2], 1), "int64", CLASSES),
        outputs=[(*shape[:2], CLASSES)],
        options=with_rate("adam", rate),
        steps=steps,
    )


def with_rate(optimizer: str, rate: float) -> dict[str, Any]:
    return {"optimizer": optimizer, "learning_rate": rate}


CASES = {
    "unet": of_masks((20, 28, 3), 0.001),
    "unet_small": of_masks((19, 33, 1), 0.01, count=8, steps=30),
    "unet_lite0": of_masks((35, 66, 3), 0.002),
    "deeplab": of_masks((21, 30, 3), 0.001),
    "table_linear": Case(
        data=rows_with_numbers,
        x=TABLE,
        y=ArraySpec((2,)),
        outputs=[(2,)],
        options=with_rate("momentum", 0.02),
    ),
    "table_linear of classes": Case(
        data=rows_with_classes,
        x=TABLE,
        y=ArraySpec((), "int64", CLASSES),
        outputs=[(CLASSES,)],
        options=with_rate("momentum", 0.02),
    ),
    "table_mlp": Case(
        data=rows_with_numbers,
        x=TABLE,
        y=ArraySpec((2,)),
        outputs=[(2,)],
        options=with_rate("momentum", 0.01),
    ),
    "table_mlp of classes": Case(
        data=rows_with_classes,
        x=TABLE,
        y=ArraySpec((), "int64", CLASSES),
        outputs=[(CLASSES,)],
        options=with_rate("adam", 0.01),
    ),
    "text_cnn": Case(
        data=texts,
        x=TEXTS,
        y=ArraySpec((), "int64", CLASSES),
        outputs=[(CLASSES,)],
        options=with_rate("adam", 0.003),
    ),
    "text_transformer": Case(
        data=texts,
        x=TEXTS,
        y=ArraySpec((), "int64", CLASSES),
        outputs=[(CLASSES,)],
        options=with_rate("adam", 0.003),
    ),
    "image_regression": Case(
        data=numbers_of_pictures,
        x=ArraySpec((20, 14, 1)),
        y=ArraySpec((2,)),
        outputs=[(2,)],
        options=with_rate("adam", 0.003),
    ),
    "denoiser": Case(
        data=noisy,
        x=ArraySpec((11, 13, 3)),
        y=ArraySpec((11, 13, 3)),
        outputs=[(11, 13, 3)],
        options=with_rate("adam", 0.003),
    ),
    "multilabel": Case(
        data=several_labels,
        x=ArraySpec((16, 16, 3)),
        y=ArraySpec((CLASSES,), classes=CLASSES),
        outputs=[(CLASSES,)],
        options=with_rate("adam", 0.003),
    ),
    "siamese16": Case(
        data=pairs,
        x=ArraySpec((28, 28, 2)),
        y=ArraySpec((), "int64"),
        outputs=[(16,), (16,)],
        options=with_rate("momentum", 0.01),
    ),
}
"""Network, and of what it is made here → its set."""

SMALL = [name for name in CASES if name not in ("unet", "deeplab")]
"""Those whose states are read and written quickly."""


GAN = Case(
    data=lambda rng: [pictures(rng, (14, 18, 1))],
    x=ArraySpec((14, 18, 1)),
    y=None,
    outputs=[(14, 18, 1)],
    options={"optimizer": "adam", "learning_rate": 0.0005, "optimizer_options": {"beta_1": 0.5}},
)
ENCODER = Case(
    data=lambda rng: [pictures(rng, (14, 18, 1)), np.arange(8) % CLASSES],
    x=ArraySpec((14, 18, 1)),
    y=ArraySpec((), "int64", CLASSES),
    outputs=[(14, 18, 1), (32,)],
    options=GAN.options,
)
GENERATORS = {"gan": GAN, "gan_encoder": ENCODER}


def program_of(name: str, **changes: Any) -> TensorFlowProgram:
    """Return a new program of a case."""
    return TensorFlowBackend().build(request_of(name, **changes))


def request_of(name: str, **changes: Any) -> ProgramRequest:
    case = {**CASES, **GENERATORS}[name]
    targets = {} if case.y is None else {"y": case.y}
    return ProgramRequest(
        network=name.partition(" ")[0],
        inputs={"x": case.x},
        targets=targets,
        batch_size=8,
        seed=1,
        **{**case.options, **changes},
    )


@functools.cache
def set_of(name: str) -> Arrays:
    return {**CASES, **GENERATORS}[name].data(np.random.default_rng(0))


@pytest.mark.parametrize("name", some_nightly(CASES, nightly=["deeplab", "unet"]))
def test_a_network_learns_and_predicts(name: str) -> None:
    batch, program = set_of(name), program_of(name)
    costs = [program.step(batch, ("cost",))["cost"] for _ in range(CASES[name].steps)]
    assert np.isfinite(costs).all()
    assert np.mean(costs[-3:]) < 0.8 * np.mean(costs[:3]), costs
    outputs = program.predict(batch[0])
    assert [each.shape for each in outputs] == [(len(batch[0]), *shape) for shape in CASES[name].outputs]
    assert np.isfinite(program.evaluate(batch, ("cost",))["cost"])
    program.close()


@pytest.mark.parametrize("name", [*SMALL, *GENERATORS])
def test_a_network_resumes_bit_for_bit(name: str) -> None:
    batch, program = set_of(name), program_of(name)
    for _ in range(3):
        program.step(batch, ())
    state = program.state()
    went_on = [program.step(batch, ("cost",))["cost"] for _ in range(2)]
    again = program_of(name)
    again.load_state(state)
    assert [again.step(batch, ("cost",))["cost"] for _ in range(2)] == went_on
    expected = program.state()
    for key, value in again.state().items():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)
    program.close()
    again.close()


def test_an_encoder_with_and_without_classes_is_asked() -> None:
    batch, program = set_of("gan_encoder"), program_of("gan_encoder")
    names = ("discriminator_loss", "generator_loss", "encoder_loss")
    first = program.step(batch, names)
    for _ in range(20):
        last = program.step(batch, names)
    assert last["encoder_loss"] < first["encoder_loss"]
    tower = TrainedTower(request_of("gan_encoder"), program.state())
    assert tower.inference_inputs() == {"noise": ArraySpec((32,)), "attributes": ArraySpec((CLASSES,))}
    made = tower.predict(batch[0])
    assert [each.shape[1:] for each in made.values()] == ENCODER.outputs
    given = {"noise": made["output_1"], "attributes": np.eye(CLASSES, dtype=np.float32)[np.zeros(8, int)]}
    one = tower.predict(batch[0], given)["output"]
    given["attributes"] = np.eye(CLASSES, dtype=np.float32)[np.ones(8, int)]
    assert np.abs(one - tower.predict(batch[0], given)["output"]).max() > 0.001
    doubled = {**given, "attributes": 2 * given["attributes"] - 1e-3}  # any numbers are made shares of the classes
    np.testing.assert_allclose(
        tower.predict(batch[0], doubled)["output"], tower.predict(batch[0], given)["output"], atol=1e-4
    )
    program.close()
    alone = ProgramRequest(network="gan_encoder", inputs={"x": ENCODER.x}, batch_size=8, **ENCODER.options)
    program = TensorFlowBackend().build(alone)
    assert np.isfinite(program.step(batch[:1], ("cost",))["cost"])
    assert list(TrainedTower(alone, program.state()).inference_inputs()) == ["noise"]
    program.close()


def test_the_discriminator_and_the_generator_learn() -> None:
    batch, program = set_of("gan"), program_of("gan")
    names = ("discriminator_loss", "generator_loss")
    first = program.step(batch, names)
    before = program.state()
    for _ in range(20):
        last = program.step(batch, names)
    after = program.state()
    assert last["discriminator_loss"] < first["discriminator_loss"]
    for scope in ("generator", "discriminator"):
        weights = [key for key in before if key.startswith(f"model/{scope}/") and key.endswith("weights")]
        assert weights
        assert all((before[key] != after[key]).any() for key in weights)
    (made,) = program.predict(batch[0])
    assert made.shape == batch[0].shape
    assert 0 <= made.min() < made.max() <= 1
    np.testing.assert_array_equal(program.predict(batch[0])[0], made)

    noise = np.random.default_rng(3).normal(size=(2, 64)).astype(np.float32)
    tower = TrainedTower(request_of("gan"), after)
    assert tower.inference_inputs() == {"noise": ArraySpec((64,))}
    np.testing.assert_allclose(tower.predict(batch[0])["output"], made, atol=1e-5)
    one, other = tower.predict(batch[0][:2], {"noise": noise})["output"]
    assert np.abs(one - other).max() > 0.001
    assert np.isfinite(tower.evaluate(batch[0], np.zeros(0))["cost"])
    with pytest.raises(UnknownNameError, match="Did you mean `noise`"):
        program.predict(batch[0], {"nois": noise})
    with pytest.raises(ConfigurationError, match=r"`noise` of this network has rows of shape \(64,\)"):
        program.predict(batch[0], {"noise": noise[:, :9]})
    tower.close()
    program.close()


def test_masked_pixels_do_not_count() -> None:
    x, y = set_of("unet_small")
    program = program_of("unet_small")
    names = ("cost", "pixel_accuracy", "regularization")
    whole = program.evaluate([x, y], names)
    others = np.where(y == 255, CLASSES + 4, y)
    assert program.evaluate([x, others], names) == whole
    nothing = program.evaluate([x, np.full_like(y, 255)], names)
    assert nothing["cost"] == pytest.approx(nothing["regularization"])
    assert nothing["pixel_accuracy"] == 0
    logits = program.predict(x)[0]
    known = y[..., 0] != 255
    shifted = logits - logits.max(-1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_shares, np.where(known[..., None], y, 0), -1)[..., 0][known].mean()
    assert whole["cost"] - whole["regularization"] == pytest.approx(expected, rel=1e-4)
    assert whole["pixel_accuracy"] == pytest.approx((logits.argmax(-1) == y[..., 0])[known].mean(), rel=1e-5)
    program.close()


@pytest.mark.parametrize("name", ["text_cnn", "text_transformer"])
def test_what_is_behind_the_end_of_a_text_does_not_count(name: str) -> None:
    program = program_of(name)
    x = set_of(name)[0][:4].copy()
    x[:, 8:] = 0
    scores = program.predict(x)[0]
    state = program.state()
    key = "model/embedding/weights"
    state[key][0] += 7
    program.load_state(state)
    np.testing.assert_allclose(program.predict(x)[0], scores, atol=1e-5)
    assert np.isfinite(program.predict(np.zeros_like(x))[0]).all(), "an empty text"
    program.close()


def test_a_category_counts_by_its_own_weight() -> None:
    program = program_of("table_linear")
    state = program.state()
    assert state["model/linear/weights"].shape == (3 + 4 + 7, 2)
    state["model/linear/weights"] = np.arange(28, dtype=np.float32).reshape(14, 2)
    program.load_state(state)
    (found,) = program.predict(np.array([[0, 0, 0, 2, 6]], np.float32))
    weights = state["model/linear/weights"]
    np.testing.assert_allclose(found[0], weights[3 + 2] + weights[7 + 6])
    program.close()


@pytest.mark.parametrize("name", ["table_linear", "text_cnn", "unet_small", "multilabel", "denoiser"])
def test_two_towers_are_one(name: str) -> None:
    devices = {"devices": ("/cpu:0", "/cpu:1")}
    program = program_of(name, **devices)
    costs = [program.step([part[:8] for part in set_of(name)], ("cost",))["cost"] for _ in range(2)]
    assert np.isfinite(costs).all()
    program.close()
