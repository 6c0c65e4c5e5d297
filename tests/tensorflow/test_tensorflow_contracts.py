"""The nine contracts on TensorFlow, of the program of a job; those of ``ziggurat.tf`` are in ``library``."""

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.nine_contracts import NineContracts

pytestmark = pytest.mark.usefixtures("cold_starts")


class TestTensorflowJob(NineContracts):
    name = "tensorflow"
    modules = (*NineContracts.modules, "ziggurat.tf")
    makes_ahead = (0, 3)
