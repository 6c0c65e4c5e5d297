"""PyTorch networks give the inputs of their head, and take a head that was fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.tasks import TorchTasks
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.capabilities import GivesFeatures, TakesLinearHead
from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.errors import ConfigurationError

HEAD = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv, self.dropout = nn.Conv2d(1, 4, 3), nn.Dropout(0.5)
        self.fc = {layer}

    def forward(self, x):
        {body}
"""
LINEAR = HEAD.format(
    layer="nn.Linear(4, nclasses)",
    body="return self.fc(self.dropout(F.relu(self.conv(x)).mean((2, 3))))",
)
MAPS = HEAD.format(layer="nn.Conv2d(4, nclasses, 1)", body="return self.fc(self.conv(x)).mean((2, 3))")
TWICE = HEAD.format(
    layer="nn.Linear(4, nclasses)", body="v = self.conv(x).mean((2, 3)); return self.fc(v) + self.fc(v.square())"
)
SOFTMAX = HEAD.format(layer="nn.Linear(4, nclasses)", body="return self.fc(self.conv(x).mean((2, 3))).log_softmax(1)")
UNBIASED = HEAD.format(layer="nn.Linear(4, nclasses, bias=False)", body="return self.fc(self.conv(x).mean((2, 3)))")


def request(text: str, **fields: Any) -> ProgramRequest:
    chosen: dict[str, Any] = {**class_arrays((8, 8, 1), 3), "learning_rate": 0.01, "batch_size": 8, **fields}
    return ProgramRequest(network="net.py", network_text=text, **chosen)


def samples(count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    return random.random((count, 8, 8, 1), np.float32), random.integers(0, 3, count)


def test_the_head_of_the_features_gives_the_logits() -> None:
    program = TorchBackend().build(request(LINEAR))
    arrays = program.state()
    network = TorchTasks().open_trained(request(LINEAR), arrays)
    assert isinstance(network, GivesFeatures)
    x, _ = samples()
    features = network.features(x)
    assert (features.shape, features.dtype) == ((8, 4), np.float32)
    logits = features @ arrays["model/fc.weight"].T + arrays["model/fc.bias"]
    np.testing.assert_allclose(logits, network.predict(x)["output"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(program.features(x), features)


@pytest.mark.parametrize(
    ("text", "received"),
    [(MAPS, r"an input of shape \(8, 4, 6, 6\) for 8 samples"), (TWICE, "computed 2 times for a batch")],
)
def test_a_head_without_vectors_is_refused(text: str, received: str) -> None:
    network = TorchTasks().open_trained(request(text), TorchBackend().build(request(text)).state())
    with pytest.raises(ConfigurationError, match=f"one fully connected layer(.|\n)*{received}"):
        network.features(samples()[0])


@pytest.mark.parametrize("fields", [{}, {"ema_decay": 0.5}, {"fine_tuning": FineTuningRequest(head="fc.")}])
def test_a_program_takes_a_fitted_head(fields: dict[str, Any]) -> None:
    program = TorchBackend().build(request(LINEAR, **fields))
    assert isinstance(program, TakesLinearHead)
    x, y = samples()
    program.step([x, y], ())
    weights, bias = np.arange(12, dtype=np.float32).reshape(4, 3), np.float32([1, 2, 3])
    program.set_head(weights, bias)
    expected = program.features(x) @ weights + bias
    np.testing.assert_allclose(program.evaluate([x, y], ["output"])["output"], expected, rtol=1e-5, atol=1e-5)
    program.step([x, y], ())  # it trains on from there
    np.testing.assert_allclose(program.state()["model/fc.weight"].T, weights, atol=0.05)


@pytest.mark.parametrize(
    ("text", "received"), [(SOFTMAX, "computed from those of `fc`"), (UNBIASED, "bias=False"), (MAPS, "Conv2d")]
)
def test_only_the_last_step_of_a_network_can_be_fitted(text: str, received: str) -> None:
    program = TorchBackend().build(request(text))
    before = program.state()["model/fc.weight"]
    with pytest.raises(ConfigurationError, match=received):
        program.set_head(np.zeros((4, 3), np.float32), np.zeros(3, np.float32))
    np.testing.assert_array_equal(program.state()["model/fc.weight"], before)
