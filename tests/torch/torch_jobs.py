"""Quick jobs on PyTorch of every task, made in this process, for the tests of what is done with trained networks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from tests.unit.datasets.small_task_datasets import small_dataset
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.worker.context import save_context
from ziggurat.worker.job_network import keep_network

PLAIN: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.fc1 = nn.Linear(8 * (input_shape[1] // 4) * (input_shape[2] // 4), nclasses)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x * 0.0125))), 4)
        return self.fc1(x.flatten(1))
"""

TOWER: Final = """
from model import Tower
from utils import model_property
import utils as digits


class UserModel(Tower):
    task = "image-to-image"

    def build(self):
        self.encode = nn.Linear(self.input_shape[1] * self.input_shape[2], 16)
        self.decode = nn.Linear(16, self.input_shape[1] * self.input_shape[2])

    @model_property
    def inference(self):
        net = F.relu(self.encode(self.x.flatten(1) / 255))
        return torch.sigmoid(self.decode(net)).reshape(-1, 1, *self.input_shape[1:])

    @model_property
    def loss(self):
        self.summaries.append(digits.scalar("largest", self.inference.max()))
        return digits.mse_loss(self.inference, self.x / 255)
"""

MASKS: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, nclasses, 3, padding=1)

    def forward(self, x):
        maps = F.max_pool2d(F.relu(self.conv1(x / 50)), 2)
        return self.conv2(F.interpolate(maps, size=x.shape[2:], mode="bilinear", align_corners=False))
"""

ROWS: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, categories, target_mean, target_std):
        super().__init__()
        self.register_buffer("mean", target_mean.clone())
        self.register_buffer("std", target_std.clone())
        self.columns = [n for n, count in enumerate(categories) if count]
        self.numbers = [n for n, count in enumerate(categories) if not count]
        self.embeddings = nn.ModuleList(nn.Embedding(categories[n], 3) for n in self.columns)
        self.fc1 = nn.Linear(len(self.numbers) + 3 * len(self.columns), 8)
        self.fc2 = nn.Linear(8, nclasses or 1)

    def forward(self, x):
        embedded = [table(x[:, n].long()) for n, table in zip(self.columns, self.embeddings)]
        net = F.relu(self.fc1(torch.cat([x[:, self.numbers], *embedded], dim=1)))
        return self.fc2(net) * self.std + self.mean
"""

TEXTS: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.fc1 = nn.Linear(8, nclasses)

    def forward(self, x):
        return self.fc1(self.lstm(self.embedding(x))[0].mean(1))
"""

PAIRS: Final = """
class UserModel(Tower):
    task = "pairs"

    def build(self):
        channels, height, width = self.input_shape
        self.conv1 = nn.Conv2d(channels // 2, 4, 5, stride=2)
        self.fc1 = nn.Linear(4 * ((height - 3) // 2) * ((width - 3) // 2), 6)

    def embedding(self, images):
        return self.fc1(F.relu(self.conv1(images / 255)).flatten(1))

    @model_property
    def inference(self):
        return [self.embedding(each) for each in self.x.chunk(2, dim=1)]

    @model_property
    def loss(self):
        return digits.contrastive_loss(*self.inference, self.y)
"""

JOBS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "classification": ("digits", PLAIN, {"preprocessing": {"crop": 24, "mean": "image"}}),
    "image-to-image": ("digits", TOWER, {}),
    "segmentation": ("masks", MASKS, {"preprocessing": {"crop": 8, "mean": "pixel", "whitening": True}}),
    "regression": ("rows with a value", ROWS, {"preprocessing": {"numbers": "whiten"}}),
    "classification of rows": ("rows with a class", ROWS.replace(" * self.std + self.mean", ""), {}),
    "classification of texts": ("texts", TEXTS, {}),
    "multi-label": ("labels", "multilabel", {}),
    "free": ("digits", "gan", {}),
    "pairs": ("digits", PAIRS, {"preprocessing": {"mean": "pixel"}}),
    "detection": ("shapes", "detector_nano", {"preprocessing": {"resize_mode": "fill"}}),
}
"""Name → data, network and fields of the spec."""


def task_job(name: str, folder: Path, steps: int = 4, network: str = "") -> str:
    """Return the folder of a job of ``JOBS`` that was trained for some steps."""
    data, usual, changes = JOBS[name]
    network = network or usual
    if data != "digits":
        data = small_dataset(data, folder / "data")
    optimizer = {"name": "sgd"} if name == "pairs" else {"name": "adam"}
    fields = {"data": data, "optimizer": optimizer, "learning_rate": 0.003, "batch_size": 16, **changes}
    return str(quick_job(folder / "job", network, steps=steps, **fields))


def quick_job(folder: Path, network: str, *, steps: int = 0, **changes: Any) -> Path:
    """Return a job with one checkpoint, made in this process.

    Args:
        folder: where it goes.
        network: text of a network file, or name of a standard network.
        steps: how many it is trained for.
        changes: fields of its spec.
    """
    named = {"path": "net.py", "source": "file", "text": network} if "\n" in network else network
    content = {"kind": "train", "version": 1, "data": "digits", "batch_size": 32, "seed": 3, "backend": "torch"}
    spec = parse_spec({**content, "network": named, **changes}, source="a test")
    data = data_of(spec)
    program = load_backend(spec.backend).build(program_request(spec, data))
    epochs = itertools.chain.from_iterable(itertools.repeat(data.train))
    for batch in itertools.islice(epochs, steps):
        program.step(batch, ())
    job = JobFolder(folder)
    folder.mkdir(parents=True)
    save_spec(spec, job.spec)
    save_context(data.context, job)
    keep_network(spec, job)
    meta = {"global_step": steps, "epoch_num": 0, "latest": {}}
    CheckpointStore(job.checkpoints).save(RunState(meta, program.state()))
    program.close()
    return folder


def digit_pictures(split: str = "val") -> tuple[np.ndarray, np.ndarray]:
    """Return the images of a split as a job reads them: (N, 28, 28, 1) uint8 and (N) int."""
    points = list(SklearnDigits(split, shuffle=False, size=28))
    return np.stack([point[0] for point in points]), np.array([int(point[1]) for point in points])


def save_pictures(folder: Path, pictures: np.ndarray) -> list[str]:
    """Write (N, H, W, C) images as PNG files; return their paths."""
    paths = [str(folder / f"{number:04}.png") for number in range(len(pictures))]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture).save(path)
    return paths
