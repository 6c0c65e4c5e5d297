"""The nine contracts on PyTorch: of the program of a job, and of a module of ``ziggurat.torch``."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.nine_contracts import NineContracts

pytestmark = pytest.mark.usefixtures("cold_starts")


class TestTorchJob(NineContracts):
    name = "torch"
    makes_ahead = (0, 3)


class TestTorchModule(NineContracts):
    name = "ziggurat.torch"
    modules = (*NineContracts.modules, "ziggurat.torch")
    makes_ahead = (0, 3)
