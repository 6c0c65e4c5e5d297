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
