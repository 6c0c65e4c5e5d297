"""Specs of jobs that use a trained model, version 1: evaluation of a split, and prediction for many images."""

from __future__ import annotations

from typing import Any, Literal

from ziggurat.specs.base import SpecModel, spec_field

__all__ = ["EvaluateSpec", "InferSpec", "checkpoint_field", "model_field"]

_JOB, _MODEL, _DATA = "Job", "Model", "Data"


def model_field(*default: str, group: str, **limits: Any) -> Any:
    """Return the field that names the job of a trained model.

    Args:
        default: its default value; required without one.
        group: under which it is listed.
        limits: of its length.
    """
    return spec_field(
        *default, title="Model", help="Folder of the training job whose network is used.", group=group, **limits
    )


def checkpoint_field(group: str) -> Any:
    """Return the field that names a checkpoint of that job.

    Args:
        group: under which it is listed.
    """
    return spec_field(
        "",
        title="Checkpoint",
        help="Its name, a given name, `best` or `latest`; left out, the best where one is marked, else the latest.",
        group=group,
        max_length=200,
    )


class _ModelUse(SpecModel):
    """What both kinds say: which model, how fast, how it shows that it lives."""

    name: str = spec_field("", title="Name", help="Name of the job; any text.", group=_JOB, max_length=200)
    heartbeat_s: float = spec_field(
        1.0, title="Heartbeat", help="Seconds between heartbeats; typical: 1 to 5.", unit="s", group=_JOB,
        gt=0, le=10,
    )  # fmt: skip
    hung_after_s: float = spec_field(
        600.0, title="Hung after", help="Longest time for one batch before it is reported.", unit="s", group=_JOB,
        gt=0,
    )  # fmt: skip
    model: str = model_field(group=_MODEL, min_length=1)
    checkpoint: str = checkpoint_field(_MODEL)
    batch_size: int = spec_field(
        64,
        title="Batch size",
        help="Images that the network gets at once; typical: 16 to 256.",
        unit="samples",
        group=_MODEL,
        ge=1,
    )


class EvaluateSpec(_ModelUse):
    """What an evaluation was asked for: what a model says of every sample of a split."""

    kind: Literal["evaluate"] = "evaluate"
    version: Literal[1] = 1

    split: Literal["train", "val", "test"] = spec_field(
        "val",
        title="Split",
        help="Split of the data that the model was trained on; that the test split is used is counted.",
        group=_DATA,
    )
    after_training: bool = spec_field(
        False,
        title="After the training",
        help="Wait until the training is done; default: use the checkpoint that is there already.",
        group=_MODEL,
    )


class InferSpec(_ModelUse):
    """What a job that predicts for many images was asked for."""

    kind: Literal["infer"] = "infer"
    version: Literal[1] = 1

    source: str = spec_field(
        title="Source",
        help="Folder of images, or a text file that names an image in each line, with or without its label.",
        group=_DATA,
        min_length=1,
    )
    image_folder: str = spec_field(
        "",
        title="Image folder",
        help="Where relative paths of a list begin; left out, the folder of the list.",
        group=_DATA,
    )
    top: int = spec_field(5, title="Top", help="Classes that are kept of each image; 1 to 5.", group=_DATA, ge=1, le=5)
    limit: int = spec_field(
        0, title="Limit", help="Predict for no more images than this; 0 for all.", unit="pictures", group=_DATA, ge=0
    )
