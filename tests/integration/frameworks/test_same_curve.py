"""The same data order, schedule and first weights give the same loss curve on both frameworks."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("one_training.py")
STEPS = 20


@pytest.mark.timeout(600)
@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("tensorflow") and find_spec("torch")), reason="TensorFlow and PyTorch are not both installed"
)
@pytest.mark.parametrize(
    ("optimizer", "how"),
    [
        ("momentum", "whole"),
        ("adam", "tuned"),
        pytest.param("momentum", "tuned", marks=pytest.mark.nightly),
        pytest.param("adam", "whole", marks=pytest.mark.nightly),
    ],
)
def test_both_frameworks_give_the_same_losses(optimizer: str, how: str) -> None:
    curves = []
    for framework in ("tensorflow", "torch"):
        done = subprocess.run(
            [sys.executable, str(PROGRAM), framework, optimizer, how], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        curves.append(np.array(json.loads(done.stdout.splitlines()[-1])))
    one, other = curves
    assert len(one) == len(other) == STEPS
    assert one[-1] < 0.97 * one[0], "it learns"
    assert np.max(np.abs(one - other) / one) < 1e-4
