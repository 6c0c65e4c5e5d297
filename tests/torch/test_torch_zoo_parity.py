"""With the same weights, the small standard networks give the same as TensorFlow's, which run in another process."""

import functools
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from zoo_cases import CASES, batch_of, on_tensorflow, program_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")

QUICK = ("lenet", "convnet", "unet_small", "table_mlp", "text_cnn", "text_transformer", "gan", "googlenet")
REST = [name for name in CASES if name not in QUICK]
GROUPS = (QUICK, REST[::2], REST[1::2])
"""Networks whose answers one process of TensorFlow gives, which takes seconds to start."""

MODEL = "model/"


def any_weights(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the state of a new program with biases and averages that are not the first ones."""
    rng = np.random.default_rng(3)
    found = dict(state)
    for key, value in state.items():
        if key.endswith("running_var"):
            found[key] = rng.uniform(0.5, 2, value.shape).astype(np.float32)
        elif key.startswith(MODEL) and value.ndim == 1:
            found[key] = (value + rng.normal(0, 0.3, value.shape)).astype(np.float32)
    return found


@functools.cache
def both(names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ``name:NUMBER`` → an output, ``name:cost`` and ``name:weights`` of PyTorch, and of TensorFlow."""
    ours, given = {}, {}
    for name in names:
        batch, program = batch_of(CASES[name]), program_of(name)
        state = any_weights(program.state())
        program.load_state(state)
        beside = {"noise": np.random.default_rng(4).normal(size=(len(batch[0]), 64)).astype(np.float32)}
        beside = beside if name == "gan" else {}
        outputs = program.predict(batch[0], beside)
        ours.update({f"{name}:{number}": each for number, each in enumerate(outputs)})
        ours[f"{name}:cost"] = program.evaluate(batch, ("cost",))["cost"]
        ours[f"{name}:weights"] = sum(each.numel() for each in program.network.module.parameters())
        weights = {key.removeprefix(MODEL): value for key, value in state.items() if key.startswith(MODEL)}
        arrays = {**dict(zip("xy", batch, strict=False)), **beside, **on_tensorflow(name, weights)}
        given.update({f"{name}:{key}": value for key, value in arrays.items()})
        program.close()
    return ours, of_tensorflow(names, given)


def of_tensorflow(names: Sequence[str], given: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the answers of TensorFlow's networks, whose script says what is given and returned."""
    cases = {name: {"x": asdict(CASES[name].x)} for name in names}
    for name in names:
        target = CASES[name].y
        if target is not None:
            cases[name]["y"] = asdict(target)
    script = Path(__file__).with_name("zoo_on_tensorflow.py")
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(inputs, **given)
        command = [sys.executable, str(script), json.dumps(cases), str(inputs), str(outputs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        with np.load(outputs) as arrays:
            return dict(arrays)


@pytest.mark.parametrize("name", CASES)
def test_network_gives_what_tensorflow_gives(name: str) -> None:
    found = both(next(tuple(group) for group in GROUPS if name in group))
    ours, theirs = ({key: value for key, value in each.items() if key.startswith(f"{name}:")} for each in found)
    assert ours.keys() == theirs.keys()
    assert ours.pop(f"{name}:weights") == theirs[f"{name}:weights"] == CASES[name].weights
    if name == "gan":
        del ours["gan:cost"]  # the noise of a validation is not the same in both
    for key, value in ours.items():
        scale = max(1.0, float(np.abs(value).max()))  # logits of new weights may be large
        np.testing.assert_allclose(value / scale, theirs[key] / scale, atol=1e-4, rtol=0, err_msg=key)
