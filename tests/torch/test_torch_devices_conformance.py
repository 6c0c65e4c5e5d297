"""Programs of the PyTorch backend on two devices: the conformance suite, which starts a process for each of them."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_networks import SMALL, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.testing import BackendConformance


@pytest.mark.nightly
class TestConformance(BackendConformance):
    """Digits, a network with dropout, averaged weights, and batches that are computed in two parts."""

    rows_name = "output"

    def program(self) -> Any:
        request = ProgramRequest(
            network="net.py",
            network_text=SMALL,
            devices=("cpu:0", "cpu:1"),
            **class_arrays((8, 8, 1), 10),
            batch_size=32,
            optimizer="momentum",
            learning_rate=0.01,
            ema_decay=0.9,
            gradient_accumulation_steps=2,
        )
        return TorchBackend().build(request)

    def batches(self) -> list[Any]:
        return batches(5, 32)
