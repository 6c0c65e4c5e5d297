"""Handwritten digits to try the studio with: their images as class folders, a dataset, and a training."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import backend_info, backend_infos
from ziggurat.errors import MissingDependencyError, ZigguratError
from ziggurat.workspace.frameworks import Frameworks
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.datasets import StudioDatasets
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.training import Training
from ziggurat.zoo.backends import AUTO, backend_for, why_not_usable

__all__ = ["DATASET_NAME", "MODEL_NAME", "Demo", "DemoRun", "demo_images", "demo_picture"]

DATASET_NAME: Final = "Handwritten digits"
MODEL_NAME: Final = "LeNet on handwritten digits"
TAG: Final = "demo"
EPOCHS: Final = 10
"""Epochs of the first training of a new user: it has its last point within half a minute."""

_NETWORK: Final = "lenet"
_QUICKEST: Final = "torch"
"""To import PyTorch takes a third of the time that TensorFlow takes: the first curve begins seconds sooner."""

_SIDE_PX: Final = 28
_COLUMNS, _ROWS, _MARGIN_PX = 6, 4, 3


@dataclass(frozen=True)
class DemoRun:
    """Training of the demo.

    Args:
        training: its job.
        is_new: whether it was started now.
    """

    training: Job
    is_new: bool


class Demo:
    """Handwritten digits to try a studio with. Any thread may call any method.

    Args:
        jobs: all jobs.
        datasets: makes the dataset.
        training: starts the training.
        frameworks: of this machine.
        folder: of the images of the digits.
    """

    def __init__(
        self, jobs: Jobs, datasets: StudioDatasets, training: Training, frameworks: Frameworks, folder: Path
    ) -> None:
        self._jobs = jobs
        self._datasets = datasets
        self._training = training
        self._frameworks = frameworks
        self._folder = folder
        self._lock = threading.Lock()

    def start(self, *, epochs: int = EPOCHS, owner: str = "") -> Job:
        """Make the dataset and put the training into the queue, as a person does; the training waits for its data.

        A dataset that an earlier demo made is taken again. If no framework with LeNet works, a small network of the
        NumPy backend is trained instead, on the same digits.

        Args:
            epochs: of the training.
            owner: of both jobs; empty for none.

        Raises:
            MissingDependencyError: if scikit-learn is not installed.
        """
        backend = self._backend()
        if backend:
            spec = {"backend": backend, "network": _NETWORK, "batch_size": 32, "learning_rate": 0.01}
            dataset = self._dataset(owner).id
            request = JobRequest(spec=_spec(MODEL_NAME, epochs, spec), dataset=dataset, tags=(TAG,))
        else:
            spec = {"backend": AUTO, "network": "mlp", "data": "digits", "batch_size": 32, "learning_rate": 0.1}
            request = JobRequest(spec=_spec("Small network on handwritten digits", epochs, spec), tags=(TAG,))
        (job,) = self._training.create(request, owner)
        return job

    def start_once(self, owner: str = "") -> DemoRun:
        """Start the demo, or return the one that is waiting or running.

        Raises:
            MissingDependencyError: if a package that it needs is not installed.
        """
        with self._lock:
            chosen = JobFilter(kinds=("train",), states=("queued", "running", "stopping"), tag=TAG)
            known = self._jobs.page(chosen).jobs
            if known:
                return DemoRun(known[0], is_new=False)
            self._check()
            return DemoRun(self.start(owner=owner), is_new=True)

    def why_not(self) -> str:
        """Return what must be installed before it can start, one or two sentences; empty if nothing is missing."""
        try:
            self._check()
        except ZigguratError as error:
            return " ".join(filter(None, (error.rule, error.advice)))
        return ""

    def _check(self) -> None:
        if find_spec("sklearn") is None:
            raise MissingDependencyError("scikit-learn", extra="samples", purpose="the handwritten digits")
        backend_for(_NETWORK)

    def _dataset(self, owner: str) -> Job:
        chosen = JobFilter(kinds=("dataset",), states=("done", "running", "queued"), text=DATASET_NAME)
        known = [job for job in self._jobs.page(chosen).jobs if job.name == DATASET_NAME]
        if known:
            return known[0]
        spec = {
            "name": DATASET_NAME,
            "source": str(demo_images(self._folder)),
            "splits": {"val_share": 0.15, "test_share": 0.15},
        }
        return self._datasets.create(JobRequest(spec=spec, tags=(TAG,)), owner)

    def _backend(self) -> str:
        """Return the backend with LeNet that works here and starts soonest; empty if none does.

        To import a framework takes seconds: until all have been checked, those count that are installed.
        """
        known = self._frameworks.known
        if known is None:
            working = [name for name in backend_infos() if why_not_usable(name) is None]
        else:
            working = [each.backend for each in known if each.works]
        fitting = [name for name in working if backend_info(name).network(_NETWORK) is not None]
        return min(fitting, key=lambda name: name != _QUICKEST, default="")


def demo_images(folder: Path) -> Path:
    """Write scikit-learn's handwritten digits as PNG files in class folders, and return the folder.

    Raises:
        MissingDependencyError: if scikit-learn is not installed.
        StorageError: if the disk is full.
    """
    with storage_errors(folder):
        for split in ("train", "val", "test"):
            for number, (image, label) in enumerate(SklearnDigits(split, shuffle=False, size=_SIDE_PX)):
                place = folder / str(label)
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{split}-{number:04d}.png").write_bytes(encode_image(image, "png"))
    return folder


def demo_picture() -> bytes:
    """Return a PNG with 24 of the digits, 4 rows of 6.

    Raises:
        MissingDependencyError: if scikit-learn is not installed.
    """
    digits = SklearnDigits("test", shuffle=False, size=_SIDE_PX)
    margins = ((_MARGIN_PX, _MARGIN_PX), (_MARGIN_PX, _MARGIN_PX), (0, 0))
    images = [np.pad(image, margins) for image, _ in list(digits)[: _COLUMNS * _ROWS]]
    rows = [np.concatenate(images[first : first + _COLUMNS], axis=1) for first in range(0, len(images), _COLUMNS)]
    return encode_image(np.concatenate(rows, axis=0), "png")


def _spec(name: str, epochs: int, further: dict[str, object]) -> dict[str, object]:
    return {"kind": "train", "version": 1, "name": name, "epochs": epochs, "schedule": "cosine", **further}
