"""With the same weights, the small standard networks give the same as TensorFlow's, which run in another process."""

import importlib.util
import json
import subprocess
import sys
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


def both(names: Sequence[str], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
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
    np.savez(folder / "given.npz", **given)
    cases = {name: {"x": asdict(CASES[name].x)} for name in names}
    for name in names:
        target = CASES[name].y
        if target is not None:
            cases[name]["y"] = asdict(target)
    script = Path(__file__).with_name("zoo_on_tensorflow.py")
    command = [sys.executable, str(script), json.dumps(cases), str(folder / "given.npz"), str(folder / "found.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(folder / "found.npz") as arrays:
        return ours, dict(arrays)


def compare(name: str, found: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, theirs = ({key: value for key, value in each.items() if key.startswith(f"{name}:")} for each in found)
    assert ours.keys() == theirs.keys()
    assert ours.pop(f"{name}:weights") == theirs[f"{name}:weights"] == CASES[name].weights
    if name == "gan":
        del ours["gan:cost"]  # the noise of a validation is not the same in both
    for key, value in ours.items():
        scale = max(1.0, float(np.abs(value).max()))  # logits of new weights may be large
        np.testing.assert_allclose(value / scale, theirs[key] / scale, atol=1e-4, rtol=0, err_msg=key)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return both(QUICK, tmp_path_factory.mktemp("quick"))


@pytest.mark.parametrize("name", QUICK)
def test_network_gives_what_tensorflow_gives(name: str, quick: Any) -> None:
    compare(name, quick)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return both(REST, tmp_path_factory.mktemp("rest"))


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_other_network_gives_what_tensorflow_gives(name: str, rest: Any) -> None:
    compare(name, rest)
