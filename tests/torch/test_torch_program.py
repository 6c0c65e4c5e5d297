"""Programs of the PyTorch backend: the conformance suite for each form and option, and what is theirs alone."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.testing import BackendConformance


def request(text: str = SMALL, **fields: Any) -> ProgramRequest:
    chosen: dict[str, Any] = {"batch_size": 32, "optimizer": "momentum", "learning_rate": 0.01, **fields}
    return ProgramRequest(network="net.py", network_text=text, **class_arrays((8, 8, 1), 10), **chosen)


class Conforming(BackendConformance):
    """Digits, and a network with dropout."""

    rows_name = "output"
    options: dict[str, Any] = {}
    text = SMALL

    def program(self) -> Any:
        return TorchBackend().build(request(self.text, **self.options))

    def batches(self) -> list[Any]:
        return batches(5, 32)


class TestPlainModule(Conforming):
    """A ``UserModel(nn.Module)``."""


class TestTower(Conforming):
    """A ``UserModel(Tower)`` with summaries."""

    text = TOWER


class TestAdam(Conforming):
    options = {"optimizer": "adam", "learning_rate": 0.001, "gradient_clip": 1.0, "weight_decay": 0.01}


class TestAveragedWeights(Conforming):
    options = {"ema_decay": 0.9}


class TestParts(Conforming):
    options = {"gradient_accumulation_steps": 2, "weight_decay": 0.01}


class TestHalfPrecision(Conforming):
    options = {"precision": "bf16"}


@pytest.mark.parametrize("watched", [(), ("error",)])
@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2}, {"precision": "bf16"}])
def test_recorded_shares_are_those_of_each_step(options: dict[str, Any], watched: tuple[str, ...]) -> None:
    names = ("cost", "error", "accuracy")
    recording, fetching = (TorchBackend().build(request(seed=3, **options)) for _ in range(2))
    recording.record(names, watched)
    steps = [[part[:rows] for part in batch] for batch, rows in zip(batches(4, 32), (32, 32, 20, 32), strict=True)]
    fetched = [fetching.step(batch, names) for batch in steps]
    for batch in steps:
        assert recording.step(batch, ()) == {}
    recorded = recording.recorded()
    for name in names:
        assert recorded[name].tolist() == [float(values[name]) for values in fetched], "to the last bit"
    assert len(set(recorded["error"].tolist())) > 1
    assert recording.recorded()["error"].tolist() == []
    assert recording.step(steps[0], ("accuracy",))["accuracy"] == fetching.step(steps[0], ("accuracy",))["accuracy"]
    assert recording.recorded()["accuracy"].shape == (1,)


@pytest.mark.parametrize("first", [(), ("accuracy",)])
def test_steps_that_are_fetched_stand_among_recorded_ones(first: tuple[str, ...]) -> None:
    names = ("error", "accuracy")
    recording, fetching = (TorchBackend().build(request(seed=3)) for _ in range(2))
    recording.record(names, ())
    steps = batches(4, 32)
    fetched = [fetching.step(batch, names) for batch in steps]
    for batch, asked in zip(steps, (first, ("accuracy",), (), ("cost",)), strict=True):
        recording.step(batch, asked)
    recorded = recording.recorded()
    for name in names:
        assert recorded[name].tolist() == [float(values[name]) for values in fetched], "to the last bit"
