"""Sides of the benchmark of PyTorch training loops: one function each, which trains until its process is ended."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bench.parts.turns import Turns
from ziggurat.torch import Callback, ModuleProgram, Trainer, default_callbacks

__all__ = ["OURS", "OURS_APART", "RAW", "RAW_APART", "SIDES", "Net", "missing"]

RAW, OURS = "raw loop", "ziggurat.torch"
RAW_APART, OURS_APART = "raw loop, PyTorch's calls left out", "ziggurat.torch, PyTorch's calls left out"
_LIGHTNING, _ACCELERATE = "Lightning", "Accelerate"
_FOREVER = 1_000_000


@dataclass(frozen=True)
class Net:
    """What is trained.

    Args:
        name: ``tiny``, ``lenet`` or ``resnet18``.
        size: height and width of an image.
        batch_size: images in a step.
        steps: steps in a turn.
    """

    name: str
    size: int
    batch_size: int
    steps: int

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return 3 if self.name == "resnet18" else 1

    def module(self) -> nn.Module:
        """Return the module with weights of seed 0; one thread computes."""
        torch.set_num_threads(1)
        torch.manual_seed(0)
        return {"tiny": _tiny, "lenet": _lenet, "resnet18": _resnet18}[self.name](self.size)

    def batches(self) -> list[list[torch.Tensor]]:
        """Return 16 batches [images: (N, C, H, W) float32, labels: (N,) int64]."""
        drawn = torch.Generator().manual_seed(0)
        shape = (self.batch_size, self.channels, self.size, self.size)
        return [
            [torch.rand(shape, generator=drawn), torch.randint(0, 10, (self.batch_size,), generator=drawn)]
            for _ in range(16)
        ]


def missing(name: str) -> str:
    """Return why a side cannot take part; empty where it can."""
    package = {_LIGHTNING: "lightning", _ACCELERATE: "accelerate"}.get(name)
    return "it is not installed" if package and importlib.util.find_spec(package) is None else ""


# ---- networks


def _tiny(size: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(size * size, 10))


def _lenet(size: int) -> nn.Module:
    left = (((size - 4) // 2) - 4) // 2
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(50 * left * left, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )


class _Block(nn.Module):
    """Residual block of two convolutions (He et al., CVPR 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = (
            nn.Identity()
            if inputs == outputs and stride == 1
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.inner(x) + self.shortcut(x))


def _resnet18(_size: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [_Block(inputs, outputs, 1 if outputs == 64 else 2), _Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def _optimizer(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), 1e-4, momentum=0.9)


# ---- sides


def _raw(net: Net, turns: Turns) -> None:
    _train_raw(net, turns, net.module(), functional.cross_entropy)


def _raw_apart(net: Net, turns: Turns) -> None:
    module = net.module()
    _train_raw(net, turns, module, _apart(module, turns))


def _train_raw(net: Net, turns: Turns, module: nn.Module, loss_of: Callable[..., torch.Tensor]) -> None:
    optimizer, batches = _optimizer(module), net.batches()
    while True:
        turns.begin()
        for number in range(net.steps):
            x, y = batches[number % 16]
            optimizer.zero_grad()
            loss_of(module(x), y).backward()
            optimizer.step()
        turns.end()


def _ours(net: Net, turns: Turns) -> None:
    _train_ours(net, turns, net.module(), functional.cross_entropy)


def _ours_apart(net: Net, turns: Turns) -> None:
    module = net.module()
    _train_ours(net, turns, module, _apart(module, turns))


def _train_ours(net: Net, turns: Turns, module: nn.Module, loss_of: Callable[..., torch.Tensor]) -> None:
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what a terminal shows is not measured

    class First(Callback):
        def _after_epoch(self) -> None:
            turns.end()

    class Last(Callback):
        def _before_epoch(self) -> None:
            turns.begin()

    # The clocks run from the last callback that begins an epoch to the first that ends it.
    trainer = Trainer(
        ModuleProgram(module, _optimizer(module), loss_of),
        net.batches(),
        callbacks=[First()],
        extra_callbacks=[*default_callbacks(), Last()],
        steps_per_epoch=net.steps,
    )
    trainer.train(_FOREVER)


def _apart(module: nn.Module, turns: Turns) -> Callable[..., torch.Tensor]:
    """Let the turns leave out what PyTorch computes: forward, loss, backward, and the step of the optimizer."""

    def clocked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                turns.left_out_s += time.thread_time() - began

        return call

    module.forward = clocked(module.forward)
    torch.Tensor.backward = clocked(torch.Tensor.backward)
    torch.optim.SGD.step = clocked(torch.optim.SGD.step)
    return clocked(functional.cross_entropy)


def _lightning(net: Net, turns: Turns) -> None:
    lightning: Any = importlib.import_module("lightning")
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    class Task(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net.module()

        def training_step(self, batch: Any, number: int) -> Any:
            x, y = batch
            return functional.cross_entropy(self.inner(x), y)

        def configure_optimizers(self) -> Any:
            return _optimizer(self.inner)

    class Clock(lightning.Callback):
        def on_train_epoch_start(self, *_: Any) -> None:
            turns.begin()

        def on_train_epoch_end(self, *_: Any) -> None:
            turns.end()

    batches = net.batches()
    epoch = [batches[number % 16] for number in range(net.steps)]
    settings = {"accelerator": "cpu", "max_epochs": _FOREVER, "logger": False, "enable_checkpointing": False}
    trainer = lightning.Trainer(**settings, callbacks=[Clock()])
    trainer.fit(Task(), torch.utils.data.DataLoader(epoch, batch_size=None))


def _accelerate(net: Net, turns: Turns) -> None:
    accelerator: Any = importlib.import_module("accelerate").Accelerator(cpu=True)
    module = net.module()
    module, optimizer = accelerator.prepare(module, _optimizer(module))
    batches = net.batches()
    while True:
        turns.begin()
        for number in range(net.steps):
            x, y = batches[number % 16]
            optimizer.zero_grad()
            accelerator.backward(functional.cross_entropy(module(x), y))
            optimizer.step()
        turns.end()


SIDES: dict[str, Callable[[Net, Turns], None]] = {
    RAW: _raw,
    OURS: _ours,
    RAW_APART: _raw_apart,
    OURS_APART: _ours_apart,
    _LIGHTNING: _lightning,
    _ACCELERATE: _accelerate,
}
"""Side → what trains."""
