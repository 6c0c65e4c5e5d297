"""Standard detectors and their loss on PyTorch: what the loss rewards, and the same numbers as on TensorFlow."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from tests.nightly import some_nightly
from ziggurat.backends.torch import digits
from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.engine.feed import BatchCycle
from ziggurat.zoo import STANDARD_NETWORKS
from ziggurat.zoo.names import to_tensorflow

HERE = Path(__file__).parent
SAMPLES = 4
Y = ArraySpec((1, 4, 16), classes=3, has_objects=True)
CASES = {
    "detector_nano": ((33, 70, 3), 66, 0.004),
    "detector_small": ((65, 70, 1), 115, 0.001),
    "detector_medium": ((65, 70, 3), 115, 0.001),
    "detector_lite0": ((65, 70, 3), 115, 0.002),
}
"""Network → shape of its input, rows of its output, rate of AdamW; sides that the feature maps round up."""


def objects(height, width):
    """Return a target (4, 1, 4, 16): 0, 1, 2 and 3 objects, the last one of them ignored."""
    random = np.random.default_rng(0)
    y = np.zeros((SAMPLES, *Y.shape), np.float32)
    for sample in range(SAMPLES):
        y[sample, 0, 0, :2] = sample, 16
        for row in y[sample, 0, 1 : 1 + sample]:
            sides = random.uniform(0.2, 0.6, 2) * (width, height)
            row[:4] = (*random.uniform(0, 0.4, 2) * (width, height), *sides)
            row[5] = random.integers(0, 3)
    y[3, 0, 3, 6] = 2
    return y


def batch_of(name):
    shape = CASES[name][0]
    return [np.random.default_rng(1).uniform(0, 255, (SAMPLES, *shape)).astype(np.float32), objects(*shape[:2])]


def program_of(name, **fields):
    shape = CASES[name][0]
    arrays = {"inputs": {"x": ArraySpec(shape)}, "targets": {"y": Y}}
    return TorchBackend().build(ProgramRequest(network=name, batch_size=SAMPLES, seed=1, **arrays, **fields))


@pytest.mark.parametrize("name", some_nightly(CASES, but=["detector_nano", "detector_lite0"]))
def test_detector_learns_a_batch(name) -> None:
    _, rows, rate = CASES[name]
    batch, program = batch_of(name), program_of(name, optimizer="adamw", learning_rate=rate)
    costs = [program.step(batch, ("cost",))["cost"] for _ in range(30)]
    assert np.isfinite(costs).all()
    assert np.mean(costs[-3:]) < 0.6 * np.mean(costs[:3]), costs
    (output,) = program.predict(batch[0])
    assert output.shape == (SAMPLES, rows, 7)
    assert (output[..., 2:4] >= output[..., :2]).all()
    assert ((output[..., 4:] >= 0) & (output[..., 4:] <= 1)).all()
    program.close()


@pytest.mark.slow
def test_detectors_give_what_tensorflow_gives(tmp_path: Path) -> None:
    cases, given, expected = {}, {}, {}
    for name, (shape, _, _) in CASES.items():
        batch, program = batch_of(name), program_of(name, learning_rate=1e-9)
        for each in program.network.module.modules():
            if isinstance(each, torch.nn.BatchNorm2d):
                each.momentum = 1.0  # the averages of the first batch: without any, deep networks give huge numbers
        program.step(batch, ())
        state = {key: value for key, value in program.state().items() if key.startswith("model/")}
        weights = to_tensorflow({key.removeprefix("model/"): value for key, value in state.items()})
        cases[name] = {"x": asdict(ArraySpec(shape)), "y": asdict(Y)}
        arrays = {**dict(zip("xy", batch, strict=True)), **weights}
        given.update({f"{name}:{key}": value for key, value in arrays.items()})
        expected[name] = (program.predict(batch[0])[0], program.evaluate(batch, ("cost",))["cost"])
        program.close()
    np.savez(tmp_path / "given.npz", **given)
    command = [HERE / "zoo_on_tensorflow.py", json.dumps(cases), tmp_path / "given.npz", tmp_path / "found.npz"]
    subprocess.run([sys.executable, *map(str, command)], check=True, stderr=subprocess.DEVNULL)
    with np.load(tmp_path / "found.npz") as found:
        for name, (output, cost) in expected.items():
            # The sides of boxes, in pixels, are sums that batch statistics of 4 images make sensitive to rounding.
            np.testing.assert_allclose(found[f"{name}:0"][..., :4], output[..., :4], rtol=1e-3, atol=0.05, err_msg=name)
            np.testing.assert_allclose(found[f"{name}:0"][..., 4:], output[..., 4:], atol=1e-3, err_msg=name)
            assert found[f"{name}:cost"] == pytest.approx(cost, rel=1e-4)


def test_loss_and_its_gradients_equal_tensorflows(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    points, sizes = (each.numpy() for each in digits.anchor_points(128, 96))
    distances = np.exp(random.normal(0, 0.5, (SAMPLES, len(points), 4))) * sizes
    boxes = np.concatenate([points - distances[..., :2], points + distances[..., 2:]], axis=2).astype(np.float32)
    logits = random.normal(-2, 2, (SAMPLES, len(points), 3)).astype(np.float32)
    y = objects(128, 96)
    np.savez(tmp_path / "given.npz", boxes=boxes, logits=logits, y=y, points=points)
    command = [HERE / "detection_loss_on_tensorflow.py", tmp_path / "given.npz", tmp_path / "found.npz"]
    subprocess.run([sys.executable, *map(str, command)], check=True, stderr=subprocess.DEVNULL)

    leaves = [torch.tensor(each, requires_grad=True) for each in (boxes, logits)]
    loss = digits.detection_loss(*leaves, torch.tensor(y), torch.tensor(points))
    loss.backward()

    with np.load(tmp_path / "found.npz") as found:
        assert found["loss"] == pytest.approx(loss.item(), rel=1e-5)
        for name, leaf in zip(("boxes", "logits"), leaves, strict=True):
            assert leaf.grad is not None
            np.testing.assert_allclose(found[name], leaf.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def loss_of(boxes, logits, y):
    points, _ = digits.anchor_points(32, 32)
    return digits.detection_loss(torch.tensor(boxes), torch.tensor(logits), torch.tensor(y), points).item()


def one_object(number=1, state=0, box=(4, 4, 16, 16)):
    y = np.zeros((1, 1, 3, 16), np.float32)
    y[0, 0, 0, :2] = 1, 16
    y[0, 0, 1, :4], y[0, 0, 1, 5:7] = box, (number, state)
    return y


def answers(box, number, count=21):
    """Return boxes (1, 21, 4) and logits (1, 21, 3) of which all rows say the same."""
    logits = np.full((1, count, 3), -8, np.float32)
    logits[..., number] = 4
    return np.tile(np.float32(box), (1, count, 1)), logits


def test_loss_is_smaller_the_better_box_and_class_are() -> None:
    y = one_object()
    losses = [
        loss_of(*answers(box, number), y)
        for box, number in (((4, 4, 20, 20), 1), ((6, 6, 22, 22), 1), ((4, 4, 20, 20), 0))
    ]
    assert losses[0] < 0.8 * min(losses[1:])


@pytest.mark.parametrize("y", [one_object(state=2), one_object(state=1), one_object(number=-1)])
def test_what_is_ignored_costs_nothing(y) -> None:
    everywhere = one_object()
    y[0, 0, 1, :4] = 0, 0, 32, 32
    assert loss_of(*answers((0, 0, 9, 9), 2), y) == 0
    assert loss_of(*answers((0, 0, 9, 9), 2), everywhere) > 1


def test_an_object_between_the_points_is_learned() -> None:
    boxes, logits = answers((7, 7, 9, 9), 1)
    leaf = torch.tensor(boxes, requires_grad=True)
    points, _ = digits.anchor_points(32, 32)
    digits.detection_loss(leaf, torch.tensor(logits), torch.tensor(one_object(box=(7, 7, 1.5, 1.5))), points).backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().sum() > 0


def test_images_without_objects_have_a_finite_loss() -> None:
    y = one_object()
    y[0, 0, 0, 0] = 0
    assert 0 < loss_of(*answers((0, 0, 9, 9), 2), y) < 1000


def test_an_object_much_larger_than_the_first_boxes_is_learned() -> None:
    points, sizes = digits.anchor_points(512, 512)
    boxes = torch.cat([points - sizes, points + sizes], dim=1)[None].requires_grad_()
    logits = torch.full((1, len(points), 3), -4.6)
    digits.detection_loss(boxes, logits, torch.tensor(one_object(box=(16, 16, 480, 480))), points).backward()
    assert boxes.grad is not None
    assert boxes.grad.abs().sum() > 1e-3


MASKS = ArraySpec((96, 96, 1), "int64", classes=3)
TOPS = ("fc.", "conv_head.", "bn1.")
"""Layers of EfficientNet-Lite0 behind its last block, which a pyramid and a decoder do without."""


@pytest.mark.parametrize(
    ("name", "backbone", "y", "tops"),
    [
        ("detector_small", "resnet18", Y, ("fc.",)),
        ("detector_medium", "resnet50", Y, ("fc.",)),
        ("detector_lite0", "efficientnet_lite0", Y, TOPS),
        ("unet_lite0", "efficientnet_lite0", MASKS, TOPS),
    ],
)
def test_weights_of_a_backbone_fit_by_name(name, backbone, y, tops) -> None:
    assert STANDARD_NETWORKS[name].backbone == backbone
    fields = {"inputs": {"x": ArraySpec((96, 96, 3))}, "batch_size": 2}
    asked = (
        ProgramRequest(network=name, targets={"y": y}, **fields),
        ProgramRequest(network=backbone, targets={"y": ArraySpec((), "int64", 3)}, **fields),
    )
    shapes = []
    for each in asked:
        program = TorchBackend().build(each)
        shapes.append({key: value.shape for key, value in program.network.module.state_dict().items()})
        program.close()
    detector, classifier = shapes
    wanted = {key: shape for key, shape in classifier.items() if not key.startswith(tops)}
    assert len(wanted) > 100
    assert {key: detector.get(key) for key in wanted} == wanted


@pytest.mark.slow
def test_two_processes_equal_one() -> None:
    """The objects, and so the sum that the loss is divided by, lie unevenly in the two parts."""
    x, y = batch_of("detector_nano")
    batch = [np.concatenate([each[1:3], each[:1], each[:1]]) for each in (x, y)]
    states, costs = [], []
    for devices in (("cpu:0",), ("cpu:0", "cpu:1")):
        program = program_of("detector_nano", devices=devices, options={"sync_batch_norm": True}, learning_rate=0.01)
        program.connect(BatchCycle([batch]))
        costs.append([float(program.step(batch, ("cost",))["cost"]) for _ in range(3)])
        states.append(program.state())
        program.close()
    np.testing.assert_allclose(costs[0], costs[1], rtol=1e-4)
    for name, array in states[0].items():
        np.testing.assert_allclose(array, states[1][name], rtol=1e-3, atol=1e-4, err_msg=name)
