"""Jobs with ``compile``: they train as without, resume bit for bit, and say which compiler is missing."""

import os
import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_torch_training import build
from torch_networks import SMALL, batches

from ziggurat.errors import ConfigurationError

PLAIN = SMALL.replace("nn.Dropout(0.3)", "nn.Dropout(0.0)")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="there is no C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_network_trains_alike_and_resumes() -> None:
    plain, whole, resumed = build(PLAIN), *(build(PLAIN, options={"compile": True}) for _ in range(2))
    data = batches(4, 32)
    costs = []
    for number, batch in enumerate(data):
        if number == 2:
            resumed.load_state(whole.state())
        costs.append(float(whole.step(batch, ("cost",))["cost"]))
        assert costs[-1] == pytest.approx(float(plain.step(batch, ("cost",))["cost"]), rel=1e-4)
    assert [float(resumed.step(batch, ("cost",))["cost"]) for batch in data[2:]] == costs[2:]
    for name, array in whole.state().items():
        np.testing.assert_array_equal(resumed.state()[name], array, err_msg=name)
    assert whole.evaluate(data[0], ("cost",))["cost"] < costs[0]


def test_a_missing_compiler_is_told_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ConfigurationError, match=r"no C\+\+ compiler `no-such-compiler` on the path.*Install g\+\+"):
        build(options={"compile": True})
