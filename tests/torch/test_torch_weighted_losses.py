"""Losses with class weights: validation over several batches and training in parts equal one large batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from torch_networks import digit_images

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_torch_devices import build as build_on
from test_torch_training import build

from ziggurat.engine.callbacks.validation import ScalarStats

PLAIN = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)

    def forward(self, x):
        return self.fc1(x.flatten(1) * 0.0125)
"""

REGULARIZED = (
    PLAIN
    + """
    def loss(self, output, y):
        return digits.classification_loss(output, y) + digits.l2_regularization(self, 0.1)
"""
)

OWN = (
    PLAIN
    + """
    def loss(self, output, y):
        return F.cross_entropy(output, y)
"""
)

TWO_LOSSES = """
class UserModel(Tower):
    def build(self):
        self.fc1 = nn.Linear(64, self.nclasses)
        self.fc2 = nn.Linear(64, 1)

    @model_property
    def inference(self):
        return self.fc1(self.x.flatten(1) * 0.0125)

    @model_property
    def loss(self):
        sums = self.fc2(self.x.flatten(1) * 0.0125)[:, 0]
        return [
            {"loss": digits.mse_loss(sums, self.y / 10.0), "vars": list(self.fc2.parameters())},
            {"loss": digits.classification_loss(self.inference, self.y), "vars": list(self.fc1.parameters())},
        ]
"""

PIXELS = """
class UserModel(Tower):
    def build(self):
        self.conv = nn.Conv2d(1, self.nclasses, 3, padding=1)

    @model_property
    def inference(self):
        return self.conv(self.x * 0.0125)

    @model_property
    def loss(self):
        numbers = self.y[:, None, None].expand(-1, 8, 8)
        labels = torch.where(self.x[:, 0] > 3.0 * numbers, numbers, 255)
        return digits.segmentation_loss(self.inference, labels)
"""

FACTORS = tuple(float(number**2) for number in range(10))  # class 0 has the weight 0


def rows(count: int) -> list[np.ndarray]:
    """Return digits ordered by class, so that batches have different sums of weights."""
    x, y = digit_images()
    order = np.argsort(y[:count], kind="stable")
    return [x[:count][order], y[:count][order]]


def validation_cost(program: Any, data: Sequence[np.ndarray], size: int) -> float:
    """Return the cost over all rows, in batches of a size."""
    stats = ScalarStats("cost")
    stats.before_inference()
    for first in range(0, len(data[0]), size):
        batch = [each[first : first + size] for each in data]
        stats.on_values(program.evaluate(batch, ("cost",)), batch)
    return stats.after_inference()["validation_cost"]


@pytest.mark.parametrize("text", [PLAIN, REGULARIZED, TWO_LOSSES, PIXELS], ids=["plain", "l2", "list", "pixels"])
def test_weighted_cost_does_not_depend_on_the_batch_size(text):
    program, data = build(text, class_weights=FACTORS), rows(50)
    whole = float(program.evaluate(data, ("cost",))["cost"])
    assert [validation_cost(program, data, size) for size in (3, 16, 50)] == pytest.approx([whole] * 3, rel=1e-5)


def test_own_loss_counts_by_samples():
    program, data = build(OWN, class_weights=FACTORS), rows(23)
    parts = [float(program.evaluate([each[s] for each in data], ("cost",))["cost"]) for s in (slice(16), slice(16, 23))]
    assert validation_cost(program, data, 16) == pytest.approx((16 * parts[0] + 7 * parts[1]) / 23, rel=1e-6)


def assert_alike(one: Any, other: Any) -> None:
    for name, values in one.state().items():
        np.testing.assert_allclose(other.state()[name], values, rtol=2e-4, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("text", [PLAIN, REGULARIZED, TWO_LOSSES, PIXELS], ids=["plain", "l2", "list", "pixels"])
@pytest.mark.parametrize("parts", [3, 4])
def test_weighted_parts_equal_the_whole_batch(text, parts):
    whole, split = (build(text, class_weights=FACTORS, gradient_accumulation_steps=count) for count in (1, parts))
    for _ in range(3):
        costs = [float(each.step(rows(24), ("cost",))["cost"]) for each in (whole, split)]
        assert costs[0] == pytest.approx(costs[1], rel=1e-5)
    assert_alike(whole, split)


def test_batch_of_weight_zero_changes_nothing():
    program = build(PLAIN, class_weights=FACTORS, gradient_accumulation_steps=2)
    x, y = digit_images()
    batch = [x[:8], np.zeros_like(y[:8])]
    before = program.state()["model/fc1.weight"]
    assert float(program.step(batch, ("cost",))["cost"]) == 0.0
    np.testing.assert_array_equal(program.state()["model/fc1.weight"], before)
    assert validation_cost(program, batch, 3) == 0.0


@pytest.mark.parametrize("text", [PLAIN, TWO_LOSSES, PIXELS], ids=["plain", "list", "pixels"])
@pytest.mark.parametrize(("count", "parts"), [(24, 3), (5, 4)], ids=["even", "device-without-rows"])
def test_weighted_parts_of_two_devices_equal_one(text, count, parts):
    fields = {"class_weights": FACTORS, "gradient_accumulation_steps": parts}
    whole, shared = build_on(text, 1, class_weights=FACTORS), build_on(text, 2, **fields)
    try:
        for _ in range(2):
            costs = [float(each.step(rows(count), ("cost",))["cost"]) for each in (whole, shared)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-5)
        assert_alike(whole, shared)
    finally:
        shared.close()
