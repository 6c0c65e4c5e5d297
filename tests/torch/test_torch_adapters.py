"""Models that others made, trained for real: a vision model of transformers, and a Keras 3 model on PyTorch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_networks import batches

from ziggurat.torch import ModuleProgram, Trainer

KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from torch.nn import functional as F
from ziggurat.torch import Callback, ModuleProgram, Trainer

keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((8, 8, 1)), keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.BatchNormalization(),
    keras.layers.Flatten(), keras.layers.Dense(10),
])
assert isinstance(model, torch.nn.Module)
data = [list(each) for each in zip(*(np.load(f"{{folder}}/{each}.npy") for each in "xy"))]
costs = []

class Costs(Callback):
    def before_run(self):
        return ("cost",)

    def declares(self):
        return ("cost",)

    def after_run(self, values):
        costs.append(float(values["cost"]))

program = ModuleProgram(model, torch.optim.Adam(model.parameters(), 0.01), F.cross_entropy)
Trainer(program, data, callbacks=[Costs()], monitors=[]).train(6)
state = program.state()
again = ModuleProgram(model, torch.optim.Adam(model.parameters(), 0.01), F.cross_entropy)
again.load_state(state)
assert np.mean(costs[-4:]) < 0.6 * np.mean(costs[:4]), costs
assert len(state) > 6, sorted(state)
"""


@pytest.mark.slow
def test_a_vision_model_of_transformers_trains() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.ViTConfig(image_size=8, patch_size=2, num_channels=1, num_labels=10, **sizes)
    model = transformers.ViTForImageClassification(config)
    assert "torchvision" not in sys.modules

    def of_model(batch):
        output = model(**batch)
        return {"cost": output.loss, "error": (output.logits.argmax(1) != batch["labels"]).float().mean()}

    data = [
        {"pixel_values": x.transpose(0, 3, 1, 2) / np.float32(128) - 1, "labels": y.astype(np.int64)}
        for x, y in batches(20, 32)
    ]
    program = ModuleProgram(model, torch.optim.AdamW(model.parameters(), 0.003), batch_loss=of_model, scalars=["error"])
    before = np.mean([program.evaluate(each, ("cost",))["cost"] for each in data])
    Trainer(program, data, monitors=[]).train(8)
    after = np.mean([program.evaluate(each, ("cost",))["cost"] for each in data])
    assert after < 0.6 * before
    state = program.state()
    program.load_state(state)
    program.close()


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_of_keras_trains(tmp_path: Path) -> None:
    pytest.importorskip("keras", reason="Keras is not installed")
    x, y = zip(*batches(16, 32), strict=True)
    for name, part in (("x", x), ("y", y)):
        np.save(tmp_path / f"{name}.npy", np.stack(part) / (np.float32(128) if name == "x" else 1))
    np.save(tmp_path / "y.npy", np.stack(y).astype(np.int64))
    # A process of its own: the backend of Keras is chosen by its first import.
    environment = {**os.environ, "KERAS_BACKEND": "torch", "KERAS_HOME": str(tmp_path)}
    code = KERAS.replace("{{folder}}", str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
