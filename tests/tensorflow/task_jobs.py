"""Quick jobs of every task, for the tests of what is done with trained networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tensorflow_jobs import quick_job

from tests.unit.datasets.small_task_datasets import (
    COLUMNS,
    DATASETS,
    SIDE,
    picture,
    row,
    shapes,
    small_dataset,
    text,
)

__all__ = ["COLUMNS", "DATASETS", "JOBS", "SIDE", "picture", "row", "shapes", "task_job", "text"]

JOBS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "classification": ("digits", "lenet", {}),
    "classification of rows": ("rows with a class", "table_linear", {}),
    "classification of texts": ("texts", "text_cnn", {}),
    "multi-label": ("labels", "multilabel", {}),
    "segmentation": ("masks", "unet_small", {"preprocessing": {"mean": "pixel"}}),
    "regression": ("rows with a value", "table_linear", {"preprocessing": {"numbers": "whiten"}}),
    "image-to-image": ("digits", "autoencoder", {}),
    "pairs": ("digits", "siamese", {"preprocessing": {"mean": "pixel"}}),
    "free": ("digits", "gan", {}),
    "detection": ("shapes", "detector_nano", {"preprocessing": {"resize_mode": "fill"}}),
}
"""Name → data, network and fields of the spec."""


def task_job(name: str, folder: Path, steps: int = 5, network: str = "", **others: Any) -> str:
    """Return the folder of a job of ``JOBS`` that was trained for some steps.

    Args:
        name: of the job.
        folder: for the dataset and the job.
        steps: how many.
        network: in place of its own.
        others: further fields of its spec.
    """
    data, usual, changes = JOBS[name]
    if data != "digits":
        data = small_dataset(data, folder / "data")
    optimizer = {"name": "sgd"} if name == "pairs" else {"name": "adam"}
    fields = {"data": data, "optimizer": optimizer, "learning_rate": 0.003, "batch_size": 16, **changes, **others}
    return str(quick_job(folder / "job", network or usual, steps=steps, **fields))
