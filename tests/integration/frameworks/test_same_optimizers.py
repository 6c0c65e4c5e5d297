"""FTRL and Adagrad with dual averaging take the same steps on both frameworks, and those of their papers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import optimizer_steps
import pytest

PROGRAM = Path(optimizer_steps.__file__)

FTRL: list[dict[str, float]] = [
    {},
    {"l1": 0.3, "l2": 0.05},
    {"learning_rate_power": -0.7, "initial_accumulator": 0.5, "l1": 0.1},
    {"learning_rate_power": 0.0, "l2": 0.1},
]
ADAGRAD_DA: list[dict[str, float]] = [{}, {"l1": 0.2, "l2": 0.05}, {"initial_accumulator": 1.5, "l1": 0.4}]
CASES = [*(("ftrl", each) for each in FTRL), *(("adagrad_da", each) for each in ADAGRAD_DA)]


def taken_on(framework: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), framework, json.dumps(CASES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ftrl(options: dict[str, float]) -> list[Any]:
    """Compute algorithm 1 of McMahan et al. (KDD 2013), with 1/(lr·n^-p) in place of (β + √n)/α."""
    l1, l2, power = options.get("l1", 0), options.get("l2", 0), -options.get("learning_rate_power", -0.5)
    weights = [each.astype(np.float64) for each in optimizer_steps.first_weights()]
    sums = [np.full(each.shape, options.get("initial_accumulator", 0.1)) for each in weights]
    z = [np.zeros(each.shape) for each in weights]
    for rate, gradients in zip(optimizer_steps.RATES, optimizer_steps.gradients(), strict=True):
        for place, g in enumerate(gradients):
            new = sums[place] + g.astype(np.float64) ** 2
            z[place] += g - (new**power - sums[place] ** power) / rate * weights[place]
            sums[place] = new
            shrunk = np.sign(z[place]) * l1 - z[place]
            weights[place] = np.where(np.abs(z[place]) > l1, shrunk / (new**power / rate + 2 * l2), 0)
    return weights


def adagrad_da(options: dict[str, float]) -> list[Any]:
    """Compute the primal-dual update of Duchi et al. (JMLR 2011), with both penalties, from all gradients so far."""
    l1, l2, first = options.get("l1", 0), options.get("l2", 0), options.get("initial_accumulator", 0.1)
    weights = []
    for place in range(len(optimizer_steps.SHAPES)):
        all_gradients = np.array([each[place] for each in optimizer_steps.gradients()], np.float64)
        count, total = len(all_gradients), all_gradients.sum(0)
        scale = np.sqrt(first + (all_gradients**2).sum(0))
        kept = np.sign(total) * np.maximum(np.abs(total) - l1 * count, 0)
        rate = optimizer_steps.RATES[-1]
        weights.append(-rate * kept / (l2 * count * rate + scale))
    return weights


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_optimizers_on_pytorch_follow_their_papers() -> None:
    formulas = {"ftrl": ftrl, "adagrad_da": adagrad_da}
    zeros = 0
    for (name, options), weights in zip(CASES, taken_on("torch"), strict=True):
        for one, other in zip(weights, formulas[name](options), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6, rtol=1e-5)
            zeros += int(options.get("l1", 0) > 0) * np.count_nonzero(np.equal(one, 0.0))
    assert zeros > 0, "an L1 penalty makes weights exactly 0"


@pytest.mark.nightly
@pytest.mark.skipif(
    not (find_spec("tensorflow") and find_spec("torch")), reason="TensorFlow and PyTorch are not both installed"
)
def test_optimizers_equal_those_of_tensorflow() -> None:
    for case, one, other in zip(CASES, taken_on("torch"), taken_on("tensorflow"), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6, rtol=0, err_msg=str(case))
