"""Small standard networks on PyTorch: number of weights, shapes, that they learn, and what is theirs alone."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn
from zoo_cases import CASES, PUBLISHED, SAMPLES, batch_of, program_of

from ziggurat.engine.backend import ArraySpec
from ziggurat.worker.commands.networks import describe
from ziggurat.workspace.studio.measurements import Measurements
from ziggurat.workspace.training_estimates import facts_of
from ziggurat.zoo import ZOO

GENERATORS = [name for name in CASES if name.startswith("gan")]
NAMES = sorted({name.partition(" ")[0] for name in CASES} - set(PUBLISHED))


LARGE = {"alexnet", "googlenet", "unet_small", "unet", "deeplab of large images"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in LARGE else ())
        for name in CASES
        if name not in GENERATORS
    ],
)
def test_network_learns_a_batch(name: str) -> None:
    case = CASES[name]
    batch, program = batch_of(case), program_of(name, optimizer="adam", learning_rate=case.rate)
    module = program.network.module
    assert sum(each.numel() for each in module.parameters()) == case.weights
    costs = [program.step(batch, ("cost",))["cost"] for _ in range(case.steps)]
    assert np.isfinite(costs).all()
    assert np.mean(costs[-2:]) < 0.8 * costs[0], costs
    outputs = program.predict(batch[0])
    assert [each.shape for each in outputs] == [(SAMPLES, *shape) for shape in case.outputs]
    assert np.isfinite(program.evaluate(batch, ("cost",))["cost"])
    program.close()


@pytest.mark.parametrize("name", NAMES)
def test_network_has_the_parts_of_tensorflows(name: str) -> None:
    case = next(each for each in CASES if each.partition(" ")[0] == name)
    modules = list(program_of(case).network.module.modules())
    text = (ZOO / "tensorflow" / f"{name}.py").read_text(encoding="utf-8")
    kept = {float(share) for share in re.findall(r"slim\.dropout\(.*, (0\.\d+), is_training", text)}
    assert {round(1 - each.p, 9) for each in modules if isinstance(each, nn.Dropout)} == kept
    norms = [each for each in modules if isinstance(each, nn.BatchNorm1d | nn.BatchNorm2d)]
    assert {(each.momentum, each.eps) for each in norms} == ({(0.05, 0.001)} if "slim.batch_norm" in text else set())
    assert "decay" not in text or '"decay": 0.95' in text


@pytest.mark.parametrize("name", GENERATORS)
def test_loss_of_a_gan_moves_its_own_weights(name: str) -> None:
    batch, program = batch_of(CASES[name]), program_of(name, optimizer="adam", learning_rate=0.0005)
    network = program.network
    parts = ["discriminator", "generator"] + ["encoder"] * name.startswith("gan_encoder")
    assert sum(each.numel() for each in network.module.parameters()) == CASES[name].weights
    assert sorted(part for part, _ in network.module.named_children()) == sorted(parts)
    for part, variables in zip(parts, network.parts, strict=True):
        assert set(map(id, variables or ())) == set(map(id, network.module.get_submodule(part).parameters()))
    assert program.has_rival_losses()
    assert not program_of("lenet").has_rival_losses()
    before = program.state()
    first = program.step(batch, network.scalar_names)
    assert sorted(first) == sorted(f"{part}_loss" for part in parts)
    for _ in range(15):
        last = program.step(batch, network.scalar_names)
    after = program.state()
    assert last["discriminator_loss"] < first["discriminator_loss"]
    for part in parts:
        weights = [key for key in before if key.startswith(f"model/{part}.") and key.endswith(".weight")]
        assert weights
        assert all((before[key] != after[key]).any() for key in weights)
    outputs = program.predict(batch[0])
    assert [each.shape for each in outputs] == [(SAMPLES, *shape) for shape in CASES[name].outputs]
    assert 0 <= outputs[0].min() < outputs[0].max() <= 1
    program.close()


def test_generator_makes_images_of_given_noise() -> None:
    (x,), program = batch_of(CASES["gan"]), program_of("gan")
    assert program.network.inference_inputs() == {"noise": ArraySpec((64,))}
    np.testing.assert_array_equal(program.predict(x)[0], program.predict(x)[0])
    noise = np.random.default_rng(0).normal(size=(SAMPLES, 64)).astype(np.float32)
    (made,) = program.predict(x, {"noise": noise})
    (turned,) = program.predict(x, {"noise": noise[::-1].copy()})
    np.testing.assert_allclose(made, turned[::-1], atol=1e-6)
    assert np.abs(made[0] - made[1]).max() > 1e-4
    program.close()


def test_generator_takes_attributes_as_shares() -> None:
    batch, program = batch_of(CASES["gan_encoder"]), program_of("gan_encoder", optimizer="adam", learning_rate=0.003)
    for _ in range(20):
        program.step(batch, ())
    assert program.network.inference_inputs() == {"noise": ArraySpec((32,)), "attributes": ArraySpec((3,))}
    x = batch[0]
    first, second = np.eye(3, dtype=np.float32)[[0] * SAMPLES], np.eye(3, dtype=np.float32)[[1] * SAMPLES]
    made, noise = program.predict(x, {"attributes": first})
    assert np.abs(made - program.predict(x, {"attributes": second})[0]).max() > 1e-4
    # Any numbers are made shares of the classes.
    np.testing.assert_allclose(made, program.predict(x, {"attributes": 2 * first - 1e-3})[0], atol=1e-4)
    np.testing.assert_allclose(made, program.predict(x, {"attributes": first, "noise": noise})[0], atol=1e-5)
    program.close()


def test_siamese_network_shares_its_weights() -> None:
    program, (pairs, _) = program_of("siamese"), batch_of(CASES["siamese"])
    left, right = program.predict(np.repeat(pairs[..., :1], 2, axis=3))
    np.testing.assert_allclose(left, right, atol=1e-6)
    left, right = program.predict(pairs)
    assert np.abs(left - right).max() > 1e-3
    np.testing.assert_allclose(program.predict(pairs[..., ::-1])[0], right, atol=1e-6)
    program.close()


def test_autoencoder_learns_to_copy() -> None:
    program = program_of("autoencoder", optimizer="adam", learning_rate=0.003)
    (x,) = batch_of(CASES["autoencoder"])
    for _ in range(300):
        program.step([x], ())
    (made,) = program.predict(x)
    assert np.abs(made - x / 255).mean() < 0.05
    program.close()


def test_regression_finds_the_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 1, 13, 1)).astype(np.float32)
    factors = np.linspace(-1, 1, 13)
    y = (x.reshape(64, 13) @ factors + 3).astype(np.float32)
    program = program_of("regression", optimizer="sgd", learning_rate=0.1)
    for _ in range(400):
        program.step([x, y], ())
    state = program.state()
    np.testing.assert_allclose(state["model/linear.weight"].ravel(), factors, atol=1e-3)
    np.testing.assert_allclose(state["model/linear.bias"], [3], atol=1e-3)
    program.close()


@pytest.mark.parametrize("name", ["image_regression", "table_mlp", "table_linear"])
def test_numbers_are_in_the_units_of_the_target(name: str) -> None:
    case = CASES[name]
    batch, program = batch_of(case), program_of(name)
    y = ArraySpec((2,), mean=(100.0, -7.0), std=(50.0, 0.1))
    scaled = program_of(name, targets={"y": y})
    assert scaled.state().keys() == program.state().keys()
    np.testing.assert_allclose(
        scaled.predict(batch[0])[0], program.predict(batch[0])[0] * y.std + y.mean, rtol=1e-5, atol=1e-4
    )
    # A target that is k deviations off costs as much in any unit.
    costs = [program.evaluate([batch[0], batch[1]], ("cost",))["cost"]]
    costs.append(scaled.evaluate([batch[0], (batch[1] * y.std + y.mean).astype(np.float32)], ("cost",))["cost"])
    np.testing.assert_allclose(costs[1], costs[0], rtol=1e-3)


def test_text_of_no_tokens_has_finite_gradients() -> None:
    for name in ("text_cnn", "text_transformer"):
        program = program_of(name)
        batch = [np.zeros((SAMPLES, 12), np.int32), np.zeros(SAMPLES, np.int64)]
        assert np.isfinite(program.step(batch, ("gradient_norm",))["gradient_norm"])
        program.close()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("lenet", (28, 28, 1)),
        ("alexnet", (64, 64, 3)),
        ("googlenet", (32, 32, 3)),
        ("convnet", (48, 48, 3)),
        ("gan", (28, 28, 1)),
        ("deeplab", (96, 96, 3)),
    ],
)
def test_shipped_facts_are_those_of_the_networks(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    asked = {"network": name, "backend": "torch", "input_shape": list(shape), "classes": 10}
    shipped, described = Measurements(tmp_path / "none").facts("torch", name, shape, 10), facts_of(describe(asked))
    assert shipped is not None
    assert replace(shipped, outputs=None) == replace(described, outputs=None)
