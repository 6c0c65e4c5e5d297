"""Sides of the benchmark of data loading in a PyTorch training: one function each, which trains until it is ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bench.parts.photo_sides import torch_files, ziggurat
from bench.parts.turns import Turns
from ziggurat.torch import Callback, ModuleProgram, Trainer, default_callbacks

__all__ = ["LIMIT", "OPENCV", "OURS", "PIL", "SIDES", "STEPS"]

OURS = "ziggurat.torch with a DataFlow"
OPENCV, PIL = "loop by hand with DataLoader, OpenCV", "loop by hand with DataLoader, PIL"
LIMIT = "loop by hand, the batch in memory"
STEPS = 24
"""In a turn: three passes over the 512 photographs, so that what loaders made ahead before it counts little."""

_FOREVER = 1_000_000


def _ours(folder: str, turns: Turns) -> None:
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what a terminal shows is not measured
    module = _module()

    class First(Callback):
        def _after_epoch(self) -> None:
            turns.end()

    class Last(Callback):
        def _before_epoch(self) -> None:
            turns.begin()

    Trainer(
        ModuleProgram(module, _optimizer(module), functional.cross_entropy),
        (_tensors(batch) for batch in ziggurat(folder)),
        callbacks=[First()],
        extra_callbacks=[*default_callbacks(), Last()],
        steps_per_epoch=STEPS,
    ).train(_FOREVER)


def _opencv(folder: str, turns: Turns) -> None:
    _train(turns, (_tensors(batch) for batch in torch_files(folder, "opencv")))


def _pil(folder: str, turns: Turns) -> None:
    _train(turns, (_tensors(batch) for batch in torch_files(folder, "pil")))


def _in_memory(folder: str, turns: Turns) -> None:
    first = _tensors(next(ziggurat(folder)))

    def again() -> Iterator[list[torch.Tensor]]:
        while True:
            yield first

    _train(turns, again())


def _train(turns: Turns, batches: Iterator[list[torch.Tensor]]) -> None:
    module = _module()
    optimizer = _optimizer(module)
    while True:
        turns.begin()
        for _ in range(STEPS):
            x, y = next(batches)
            optimizer.zero_grad()
            functional.cross_entropy(module(x), y).backward()
            optimizer.step()
        turns.end()


def _tensors(batch: Any) -> list[torch.Tensor]:
    """Return images (N, 3, H, W) float32 from 0 to 1, their channels last in memory, and labels (N) int64."""
    images, labels = (torch.as_tensor(np.asarray(each)) for each in batch)
    return [images.permute(0, 3, 1, 2).float().div_(255), labels.long()]


def _module() -> nn.Module:
    """Return a small network with weights of seed 0; one thread computes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs, stride in ((3, 16, 4), (16, 32, 2), (32, 64, 2), (64, 64, 2)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 8))
    return network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _optimizer(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)


SIDES: dict[str, Callable[[str, Turns], None]] = {OURS: _ours, OPENCV: _opencv, PIL: _pil, LIMIT: _in_memory}
"""Side → what trains. Every loader has two workers, and makes the same crops."""
