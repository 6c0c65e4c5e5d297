"""Fine-tuning on PyTorch: rates by stage, a backbone that stands still, and exact resume in and after that."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_networks import batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.errors import ConfigurationError
from ziggurat.testing import BackendConformance

NETWORK = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 6, 3, padding=1)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(6 * 16, nclasses)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x * 0.0125)))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.dropout(x.flatten(1)))
"""

TWO_LOSSES = (
    NETWORK
    + """
    def loss(self, output, y):
        cost = F.cross_entropy(output, y)
        return [
            {"loss": cost, "vars": [*self.conv1.parameters()]},
            {"loss": cost, "vars": [*self.conv2.parameters(), *self.fc.parameters()]},
        ]
"""
)

TUNED = FineTuningRequest(backbone_rate=0.5, layer_decay=0.5)
FACTORS = {"conv1": 0.125, "bn1": 0.25, "conv2": 0.5, "fc": 1.0}


def program(text: str = NETWORK, tuned: FineTuningRequest | None = TUNED, **fields: Any) -> Any:
    chosen: dict[str, Any] = {"batch_size": 32, "optimizer": "sgd", "learning_rate": 0.05, "seed": 4, **fields}
    return TorchBackend().build(
        ProgramRequest(
            network="net.py",
            network_text=text,
            **class_arrays((8, 8, 1), 10),
            fine_tuning=tuned,
            pretrained={},
            **chosen,
        )
    )


def moved(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    return {name for name in before if name.startswith("model/") and (before[name] != after[name]).any()}


class TestTuned(BackendConformance):
    """The suite of all backends, with one hyperparameter more."""

    rows_name = "output"

    def program(self) -> Any:
        return program(optimizer="adam", learning_rate=0.001, ema_decay=0.9)

    def batches(self) -> list[Any]:
        return batches(5, 32)


def test_weights_move_in_proportion_to_their_factor():
    (batch,) = batches(1, 32)
    whole, tuned = program(tuned=None), program()
    first = whole.state()
    whole.step(batch, ())
    tuned.step(batch, ())
    for name, factor in FACTORS.items():
        key = f"model/{name}.weight"
        expected = factor * (whole.state()[key] - first[key])
        np.testing.assert_allclose(tuned.state()[key] - first[key], expected, rtol=2e-3, atol=1e-7)
        assert np.abs(expected).max() > 1e-5


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw", "rmsprop"])
def test_factors_of_one_change_nothing(optimizer: str):
    plain = program(tuned=None, optimizer=optimizer, weight_decay=0.01)
    tuned = program(tuned=FineTuningRequest(), optimizer=optimizer, weight_decay=0.01)
    for batch in batches(4, 32):
        plain.step(batch, ())
        tuned.step(batch, ())
    one, other = plain.state(), tuned.state()
    assert other.pop("ziggurat/backbone_rate") == 1
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.parametrize(
    "fields", [{}, {"optimizer": "adamw", "weight_decay": 0.1}, {"gradient_accumulation_steps": 2}]
)
def test_a_frozen_backbone_keeps_weights_and_statistics(fields: dict[str, Any]):
    tuned = program(**fields)
    tuned.set_hyperparameter("backbone_rate", 0.0)
    before = tuned.state()
    for batch in batches(3, 32):
        tuned.step(batch, ())
        tuned.evaluate(batch, ["cost"])
    assert moved(before, tuned.state()) == {"model/fc.weight", "model/fc.bias"}
    assert not any("conv" in name for name in tuned.state() if name.startswith("optimizer/"))


def test_a_frozen_step_has_no_gradients_of_the_backbone():
    tuned = program()
    tuned.set_hyperparameter("backbone_rate", 0.0)
    tuned.step(batches(1, 32)[0], ())
    assert [name for name, each in tuned.module.named_parameters() if each.grad is not None] == ["fc.weight", "fc.bias"]
    tuned.set_hyperparameter("backbone_rate", 1.0)
    assert tuned.module.training
    tuned.step(batches(1, 32)[0], ())
    assert all(each.grad is not None for each in tuned.module.parameters())


def test_a_frozen_step_computes_as_in_validation():
    batch = batches(1, 32)[0]
    tuned = program()
    tuned.set_hyperparameter("backbone_rate", 0.0)
    expected = tuned.evaluate(batch, ["cost"])["cost"]
    tuned.declare(["cost"])
    assert tuned.step(batch, ["cost"])["cost"] == pytest.approx(float(expected), rel=1e-6)


def test_losses_of_the_backbone_alone_rest_while_it_is_frozen():
    tuned = program(TWO_LOSSES, precision="fp16")
    tuned.set_hyperparameter("backbone_rate", 0.0)
    before = tuned.state()
    tuned.step(batches(1, 32)[0], ())
    assert moved(before, tuned.state()) <= {"model/fc.weight", "model/fc.bias"}
    tuned.set_hyperparameter("backbone_rate", 1.0)
    tuned.step(batches(1, 32)[0], ())
    assert "model/conv1.weight" in moved(before, tuned.state())


@pytest.mark.parametrize("saved_after", [1, 2, 3])
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_resume_is_exact_in_frozen_steps_and_after(optimizer: str, saved_after: int):
    fields: dict[str, Any] = {"optimizer": optimizer, "learning_rate": 0.01, "ema_decay": 0.9}
    given = batches(5, 32)

    def train(tuned: Any, first: int, last: int) -> None:
        for number in range(first, last):
            if number == 2:
                tuned.set_hyperparameter("backbone_rate", 1.0)
            tuned.step(given[number], ())

    whole = program(**fields)
    whole.set_hyperparameter("backbone_rate", 0.0)
    train(whole, 0, 5)
    begun = program(**fields)
    begun.set_hyperparameter("backbone_rate", 0.0)
    train(begun, 0, saved_after)
    resumed = program(**fields)
    resumed.load_state(begun.state())
    assert resumed.hyperparameters()["backbone_rate"] == (0 if saved_after < 3 else 1)
    train(resumed, saved_after, 5)
    one, other = whole.state(), resumed.state()
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_the_learning_rate_moves_all_rates():
    (batch,) = batches(1, 32)
    tuned = program()
    tuned.set_hyperparameter("learning_rate", 0.0)
    before = tuned.state()
    tuned.step(batch, ())
    assert {name for name in moved(before, tuned.state()) if "running" not in name} <= {"model/bn1.num_batches_tracked"}


def test_frozen_patterns_hold_when_the_backbone_learns_again():
    tuned = program(freeze=("conv1",))
    tuned.set_hyperparameter("backbone_rate", 0.0)
    tuned.set_hyperparameter("backbone_rate", 1.0)
    before = tuned.state()
    tuned.step(batches(1, 32)[0], ())
    assert "model/conv1.weight" not in moved(before, tuned.state())
    assert "model/conv2.weight" in moved(before, tuned.state())


def test_a_network_of_one_layer_is_refused():
    text = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)

    def forward(self, x):
        return self.fc1(x.flatten(1))
"""
    with pytest.raises(ConfigurationError, match="needs a network with a last layer and layers before it"):
        program(text)


def tuned_resnet(**fields: Any) -> Any:
    return TorchBackend().build(
        ProgramRequest(
            network="resnet18",
            **class_arrays((8, 8, 1), 10),
            fine_tuning=FineTuningRequest(head="fc."),
            pretrained={},
            batch_size=16,
            optimizer="momentum",
            learning_rate=0.05,
            seed=4,
            **fields,
        )
    )


def counted(tuned: Any) -> list[int]:
    """Return a list that gets the rows of each batch that goes through the backbone."""
    rows: list[int] = []
    tuned.network.module.layer1.register_forward_hook(lambda _, inputs, output: rows.append(len(output)))
    return rows


class TestKeptFeatures:
    """While a backbone stands still, it computes each sample once."""

    def test_epochs_after_the_first_run_the_head_alone(self) -> None:
        states, costs = [], []
        for keeps in (True, False):
            tuned = tuned_resnet()
            tuned.set_hyperparameter("backbone_rate", 0.0)
            if not keeps:
                tuned._features = None
            rows = counted(tuned)
            costs.append(
                [float(tuned.step(batch, ("cost",))["cost"]) for _ in range(4) for batch in batches(3, 16)],
            )
            assert len(rows) == (3 if keeps else 12)
            states.append(tuned.state())
            tuned.close()
        np.testing.assert_allclose(costs[0], costs[1], rtol=1e-6)
        for name, array in states[0].items():
            np.testing.assert_allclose(array, states[1][name], rtol=1e-5, atol=1e-7, err_msg=name)
        assert costs[0][-1] < costs[0][0]

    def test_a_batch_with_a_new_sample_is_computed_as_a_whole(self) -> None:
        tuned = tuned_resnet()
        tuned.set_hyperparameter("backbone_rate", 0.0)
        rows = counted(tuned)
        x, y = batches(1, 17)[0]
        for part in (slice(0, 16), slice(1, 17), slice(0, 16), slice(1, 17)):
            tuned.step([x[part], y[part]], ())
        assert rows == [16, 16]
        tuned.step([x[:16] + 1, y[:16]], ())
        assert rows == [16, 16, 16], "what was varied is another sample"
        tuned.close()

    def test_what_changes_the_backbone_forgets(self) -> None:
        tuned = tuned_resnet()
        tuned.set_hyperparameter("backbone_rate", 0.0)
        rows, batch = counted(tuned), batches(1, 16)[0]
        tuned.step(batch, ())
        tuned.step(batch, ())
        assert len(rows) == 1
        tuned.load_state(tuned.state())
        tuned.step(batch, ())
        assert len(rows) == 2
        tuned.set_hyperparameter("backbone_rate", 1.0)
        tuned.step(batch, ())
        assert len(rows) == 3
        tuned.set_hyperparameter("backbone_rate", 0.0)
        tuned.step(batch, ())
        tuned.step(batch, ())
        assert len(rows) == 4
        tuned.close()

    def test_what_has_no_room_is_computed_again(self) -> None:
        tuned = tuned_resnet()
        tuned.set_hyperparameter("backbone_rate", 0.0)
        tuned._features._most_bytes = 4 * 512 * 20
        rows = counted(tuned)
        for _ in range(3):
            for batch in batches(2, 16):
                tuned.step(batch, ())
        assert len(rows) == 2 + 1 + 1, "16 of 32 samples are kept, and 4 of the second batch"
        tuned.close()

    def test_networks_of_files_keep_nothing(self) -> None:
        assert program()._features is None
