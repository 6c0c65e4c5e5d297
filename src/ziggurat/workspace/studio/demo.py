"""Content of ``ziggurat demo``: handwritten digits as class folders, a dataset, and a training."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import backend_info
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.studio import Studio
from ziggurat.zoo.backends import AUTO

__all__ = ["DATASET_NAME", "MODEL_NAME", "demo_images", "start_demo"]

DATASET_NAME: Final = "Handwritten digits"
MODEL_NAME: Final = "LeNet on handwritten digits"
_SIDE_PX: Final = 28


def start_demo(studio: Studio, *, epochs: int) -> Job:
    """Make the dataset and put the training into the queue, as a person does; the training waits for its data.

    A dataset that an earlier demo made is taken again. Where no framework with LeNet works, a small network of the
    NumPy backend is trained instead, on the same digits.

    Args:
        studio: it must bring jobs forward.
        epochs: of the training.

    Raises:
        MissingDependencyError: where scikit-learn is not installed.
    """
    backend = _backend_with(studio, "lenet")
    if backend:
        spec = {"backend": backend, "network": "lenet", "batch_size": 32, "learning_rate": 0.01}
        request = JobRequest(spec=_spec(MODEL_NAME, epochs, spec), dataset=_dataset(studio).id, tags=("demo",))
    else:
        spec = {"backend": AUTO, "network": "mlp", "data": "digits", "batch_size": 32, "learning_rate": 0.1}
        request = JobRequest(spec=_spec("Small network on handwritten digits", epochs, spec), tags=("demo",))
    (job,) = studio.training.create(request)
    return job


def demo_images(folder: Path) -> Path:
    """Write scikit-learn's handwritten digits as PNG files in class folders, and return the folder.

    Raises:
        MissingDependencyError: where scikit-learn is not installed.
        StorageError: where the disk is full.
    """
    with storage_errors(folder):
        for split in ("train", "val", "test"):
            for number, (image, label) in enumerate(SklearnDigits(split, shuffle=False, size=_SIDE_PX)):
                place = folder / str(label)
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{split}-{number:04d}.png").write_bytes(encode_image(image, "png"))
    return folder


def _dataset(studio: Studio) -> Job:
    chosen = JobFilter(kinds=("dataset",), states=("done", "running", "queued"), text=DATASET_NAME)
    known = [job for job in studio.jobs.page(chosen).jobs if job.name == DATASET_NAME]
    if known:
        return known[0]
    spec = {
        "name": DATASET_NAME,
        "source": str(demo_images(studio.root / "uploads" / "demo-digits")),
        "splits": {"val_share": 0.15, "test_share": 0.15},
    }
    return studio.datasets.create(JobRequest(spec=spec, tags=("demo",)))


def _spec(name: str, epochs: int, further: dict[str, object]) -> dict[str, object]:
    return {"kind": "train", "version": 1, "name": name, "epochs": epochs, "schedule": "cosine", **further}


def _backend_with(studio: Studio, network: str) -> str:
    """Return the first backend that has a network and works here; empty where none does."""
    working = [each.backend for each in studio.machine.frameworks.find() if each.works]
    return next((name for name in working if backend_info(name).network(network) is not None), "")
