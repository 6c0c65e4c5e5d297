"""Sides of the benchmark of PyTorch jobs on a GPU: one function each, which trains until its process is ended."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from bench.parts.photographs import photographs
from bench.parts.turns import Turns
from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.network import Network, make_network
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.engine.callback import Callback
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec, save_spec
from ziggurat.worker.build import build_job

__all__ = ["CLASSES", "JOB", "RAW", "TRAINING", "Case", "detection_set", "predict_ours", "predict_raw"]

RAW, JOB = "loop by hand, one batch on the device", "job from JPEG files"
CLASSES = 8
OBJECTS = 6
"""In an image of a detector, at most."""

_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
_RATE = 0.001
_FOREVER = 1_000_000


@dataclass(frozen=True)
class Case:
    """What is trained.

    Args:
        network: name of a standard network.
        px: height and width of an image.
        batch_size: images in a step.
        steps: steps in a turn.
        precision: ``float32``, ``bf16`` or ``fp16``.
        source: of the images: JPEG files in class folders, or a dataset with boxes.
        device: ``gpu:0``, or ``cpu`` to try it out.
    """

    network: str
    px: int
    batch_size: int
    steps: int
    precision: str
    source: str
    device: str = "gpu:0"

    @property
    def is_detector(self) -> bool:
        """Whether it finds objects."""
        return self.network.startswith("detector")

    @property
    def torch_device(self) -> torch.device:
        """Where it computes."""
        return torch.device("cpu") if self.device == "cpu" else torch.device("cuda", 0)

    def request(self) -> ProgramRequest:
        """Return what a program is built of."""
        shape = (self.px, self.px, 3)
        target = ArraySpec((1, OBJECTS + 1, 16), classes=CLASSES, has_objects=True)
        arrays = {"inputs": {"x": ArraySpec(shape)}, "targets": {"y": target}}
        return ProgramRequest(
            network=self.network,
            **(arrays if self.is_detector else class_arrays(shape, CLASSES)),
            batch_size=self.batch_size,
            learning_rate=_RATE,
            precision=self.precision,
            devices=(self.device,),
        )

    def batch(self) -> list[np.ndarray]:
        """Return images (N, H, W, 3) uint8, and class numbers or objects."""
        random = np.random.default_rng(0)
        images = random.integers(0, 256, (self.batch_size, self.px, self.px, 3), np.uint8)
        if not self.is_detector:
            return [images, random.integers(0, CLASSES, self.batch_size)]
        y = np.zeros((self.batch_size, 1, OBJECTS + 1, 16), np.float32)
        y[:, 0, 0, :2] = OBJECTS, 16
        corners = random.uniform(0, self.px, (self.batch_size, OBJECTS, 2, 2))
        y[:, 0, 1:, :2], y[:, 0, 1:, 2:4] = corners.min(axis=2), np.ptp(corners, axis=2) + 2
        y[:, 0, 1:, 5] = random.integers(0, CLASSES, (self.batch_size, OBJECTS))
        return [images, y]


def detection_set(detail: str) -> Path:
    """Return a dataset of the 512 photographs with one to six boxes each; it is made once and kept."""
    source = photographs(detail)
    folder = source.parent / "boxes-1"
    if not folder.exists():
        random = np.random.default_rng(0)
        content: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
        content["categories"] = [{"id": each, "name": f"class{each}"} for each in range(CLASSES)]
        for number, file in enumerate(sorted(source.rglob("*.jpg"))):
            content["images"].append(
                {"id": number, "file_name": str(file.relative_to(source)), "width": 400, "height": 400}
            )
            for _ in range(random.integers(1, OBJECTS + 1)):
                left, top, width, height = random.uniform(10, 180, 4).round(1).tolist()
                box = {"bbox": [left, top, width, height], "area": width * height, "iscrowd": 0}
                place = {"id": len(content["annotations"]), "image_id": number}
                content["annotations"].append({**box, **place, "category_id": int(random.integers(CLASSES))})
        (source / "annotations.json").write_text(json.dumps(content))
        try:
            create_dataset(CreationRequest(name="boxes", source=str(source), format="coco"), folder)
        finally:
            (source / "annotations.json").unlink()
    return folder


def _raw(case: Case, turns: Turns) -> None:
    """Train as a program of a few lines does: nothing is loaded, nothing logged."""
    network = make_network(case.request())
    module = network.module.to(case.torch_device).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    module.train()
    x, y = network.samples(case.batch()[0]), network.labels(case.batch()[1])
    optimizer = torch.optim.SGD(module.parameters(), _RATE, momentum=0.9)
    scaler = torch.amp.GradScaler(case.torch_device.type, enabled=case.precision == "fp16")
    half = _HALF.get(case.precision)
    while True:
        turns.begin()
        for _ in range(case.steps):
            optimizer.zero_grad()
            with nullcontext() if half is None else torch.autocast(case.torch_device.type, half):
                loss = _loss(case, network, x, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        _wait(case)
        turns.end()


def _loss(case: Case, network: Network, x: torch.Tensor, y: Any) -> torch.Tensor:
    if case.is_detector:  # a tower: nobody calls it as a module
        return network.results(x, y, is_training=True).losses[0].value
    return functional.cross_entropy(network.module(x), y)


def _job(case: Case, turns: Turns) -> None:
    """Train as ``ziggurat train`` does, with the callbacks of a job."""
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what a terminal shows is not measured
    resized = case.px * 8 // 7
    crops = {} if case.is_detector else {"crop": case.px}
    side = case.px if case.is_detector else resized
    content = {
        "kind": "train",
        "version": 1,
        "backend": "torch",
        "network": case.network,
        "data": {"source": case.source, "options": {} if case.is_detector else {"validation_share": 0}},
        "epochs": _FOREVER,
        "steps_per_epoch": case.steps,
        "batch_size": case.batch_size,
        "learning_rate": _RATE,
        "precision": case.precision,
        "devices": [case.device],
        "preprocessing": {"size": [side, side], "channels": 3, **crops},
        "augmentation": {"flip": "fliplr"},
        "validation": {"every_epochs": 0},
        "checkpoints": {"every_epochs": 0},
    }

    class Clock(Callback):
        def _before_epoch(self) -> None:
            turns.begin()

        def _after_epoch(self) -> None:
            _wait(case)
            turns.end()

    with tempfile.TemporaryDirectory() as folder:
        job = JobFolder(Path(folder, "job"))
        job.path.mkdir()
        spec = parse_spec(content)
        save_spec(spec, job.spec)
        build_job(spec, job, Clock(), Settings()).trainer.train(_FOREVER)


def predict_raw(case: Case, turns: Turns) -> None:
    """Run the network on one batch that lies on the device."""
    network = make_network(case.request())
    network.module.to(case.torch_device).to(memory_format=torch.channels_last).eval()  # pyright: ignore[reportCallIssue]
    x, half = network.samples(case.batch()[0]), _HALF.get(case.precision)
    while True:
        turns.begin()
        with torch.no_grad(), nullcontext() if half is None else torch.autocast(case.torch_device.type, half):
            for _ in range(case.steps):
                network.predict(x) if case.is_detector else network.module(x)
        _wait(case)
        turns.end()


def predict_ours(case: Case, turns: Turns) -> None:
    """Predict a batch of the host's memory, as an evaluation does, and get the outputs back."""
    program, x = TorchBackend().build(case.request()), case.batch()[0]
    while True:
        turns.begin()
        for _ in range(case.steps):
            program.predict(x)
        turns.end()


def _wait(case: Case) -> None:
    if case.device != "cpu":
        torch.cuda.synchronize()


TRAINING: dict[str, Callable[[Case, Turns], None]] = {RAW: _raw, JOB: _job}
"""Side → what trains."""
