"""Programs of the nine contracts by name, and a training of one of them in a process of its own.

``python -m tests.contract_program NAME FOLDER`` trains three epochs with samples from two worker processes. It goes on
from the newest checkpoint of the folder, and notes its steps there. ``--slow`` gives seconds to wait behind each step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_digits

from tests.contract_samples import noisy
from tests.waiting import take_time
from ziggurat.callbacks import Callback, LearningRateSchedule, ModelSaver, Trainer, bind_folder
from ziggurat.dataflow import BatchData, DataFromList, MultiProcessMapData
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities.backend_info import open_backend
from ziggurat.layout import JobFolder

__all__ = ["BATCH_SIZE", "PROGRAMS", "digit_points", "make_program", "train"]

BATCH_SIZE: Final = 8

_TENSORFLOW: Final = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.fully_connected(slim.flatten(self.x / 255.0), 16, scope="fc1")
        net = slim.dropout(net, 0.7, is_training=self.is_training)
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc2")

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

_TORCH: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, 16)
        self.dropout = nn.Dropout(0.3)
        self.fc2 = nn.Linear(16, nclasses)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x.flatten(1) / 255.0))))
"""


def _of_backend(name: str, prefetch_batches: int, network: str) -> Any:
    """Return the program of a job."""
    chosen: dict[str, Any] = {"network": "net.py", "network_text": network} if network else {"network": "mlp"}
    options = {"prefetch_batches": prefetch_batches} if network else {"hidden": 16, "dropout": 0.3}
    request = ProgramRequest(
        **chosen,
        **class_arrays((8, 8, 1), 10),
        batch_size=BATCH_SIZE,
        optimizer="momentum",
        learning_rate=0.05,
        seed=3,
        options=options,
    )
    return open_backend(name).build(request)


def _of_module(prefetch_batches: int) -> Any:
    """Return a program of ``ziggurat.torch``."""
    import torch
    from torch import nn

    from ziggurat.torch import ModuleProgram, Options

    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 10))
    return ModuleProgram(
        module,
        torch.optim.Adam(module.parameters(), 0.003),
        lambda output, y: nn.functional.cross_entropy(output, y.long()),
        options=Options(seed=3, device="cpu", prefetch_batches=prefetch_batches),
    )


PROGRAMS: Final[Mapping[str, Callable[[int], Any]]] = {
    "null": lambda ahead: _of_backend("null", ahead, ""),
    "tensorflow": lambda ahead: _of_backend("tensorflow", ahead, _TENSORFLOW),
    "torch": lambda ahead: _of_backend("torch", ahead, _TORCH),
    "ziggurat.torch": _of_module,
}
"""Name → maker of a program with dropout, which takes how many batches are made ahead."""


def make_program(name: str, prefetch_batches: int = 0) -> Any:
    """Return a new program; every call gives the same first weights."""
    return PROGRAMS[name](prefetch_batches)


def digit_points(count: int = 64) -> list[list[Any]]:
    """Return the first digits of scikit-learn: [(8, 8, 1) float32 from 0 to 240, class number]."""
    x, y = load_digits(return_X_y=True)
    images = (x * 15).astype(np.float32).reshape(-1, 8, 8, 1)
    return [[image, int(label)] for image, label in zip(images[:count], y[:count], strict=True)]


class _Steps(Callback):
    """Notes each step in a file, and waits behind it."""

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path, self._wait_s = path, wait_s

    def trigger_step(self) -> None:
        with self._path.open("a") as file:
            file.write(f"{self.global_step}\n")
        take_time(self._wait_s)


def train(name: str, folder: Path, wait_s: float = 0.0) -> None:
    """Train three epochs from the newest checkpoint of a folder on, and leave checkpoints and ``steps`` there."""
    folder.mkdir(exist_ok=True)
    callbacks = [
        LearningRateSchedule("cosine", 0.05),
        ModelSaver(every_k_steps=3),
        _Steps(folder / "steps", wait_s),
    ]
    bind_folder(callbacks, JobFolder(folder))
    data = BatchData(MultiProcessMapData(DataFromList(digit_points(), shuffle=True), 2, noisy), BATCH_SIZE).seed(5)
    program = make_program(name)
    trainer = Trainer(program, data, callbacks=callbacks)
    found = CheckpointStore(JobFolder(folder).checkpoints, writable=False).latest()
    if found is not None:
        trainer.load_state(found[1])
    trainer.train(3)
    program.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slow", type=float, default=0.0)
    arguments = parser.parse_args()
    train(arguments.name, arguments.folder, arguments.slow)
