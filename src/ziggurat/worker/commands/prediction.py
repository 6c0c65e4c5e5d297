"""Predictions for image files with a trained network, preprocessed as in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.images import read_file
from ziggurat.engine.capabilities import TrainedNetwork
from ziggurat.errors import DataError
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job

__all__ = ["described", "predict", "predict_files"]

_AT_ONCE: Final = 32


def predict(request: Mapping[str, Any]) -> dict[str, Any]:
    """Predict for image files.

    Args:
        request: ``folder``; ``images`` (paths); ``top`` (default 5); ``checkpoint`` (as for ``evaluate``).

    Returns:
        ``folder``, ``checkpoint``, ``step``, ``epoch``; ``predictions``, in the order of the images: ``file`` and, of a
        classifier, ``classes`` (class, number, probability; best first), else ``outputs`` (name → shape and values);
        ``failures``: ``file`` and the error's JSON shape, for files that cannot be read.
    """
    job = open_trained_job(Path(request["folder"]), request.get("checkpoint"))
    predictions: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    with open_network(job) as network:
        for start in range(0, len(request["images"]), _AT_ONCE):
            files = request["images"][start : start + _AT_ONCE]
            places, outputs, bad = predict_files(job, network, files)
            failures += bad
            read = [files[place] for place in places]
            predictions += _rows(read, outputs, job.class_names, request.get("top") or 5)
    return {**job.summary(), "predictions": predictions, "failures": failures}


def predict_files(
    job: TrainedJob, network: TrainedNetwork, files: Sequence[str]
) -> tuple[list[int], dict[str, np.ndarray], list[dict[str, Any]]]:
    """Predict for one batch of image files.

    Args:
        job: what was trained.
        network: of it, open.
        files: paths.

    Returns:
        The places in ``files`` of those that could be read, the outputs for them, and the failures: ``file`` and the
        error's JSON shape.
    """
    fitted, failures = _read(job, files)
    if not fitted:
        return [], {}, failures
    outputs = network.predict(job.preprocessing.finish(np.stack([picture for _, picture in fitted])))
    return [place for place, _ in fitted], {name: np.asarray(each) for name, each in outputs.items()}, failures


def described(outputs: Mapping[str, np.ndarray], class_names: Sequence[str], top: int) -> dict[str, Any]:
    """Return what one sample's outputs say: its likely classes, or the numbers themselves."""
    if "probabilities" not in outputs:
        values = {name: np.asarray(each, np.float64) for name, each in outputs.items()}
        return {"outputs": {name: {"shape": each.shape, "values": each.tolist()} for name, each in values.items()}}
    row = outputs["probabilities"]
    best = np.argsort(-row, kind="stable")[:top]
    return {
        "classes": [
            {"class": class_names[number], "number": int(number), "probability": float(row[number])} for number in best
        ]
    }


def _read(job: TrainedJob, files: Sequence[str]) -> tuple[list[tuple[int, np.ndarray]], list[dict[str, Any]]]:
    """Return (place, fitted image) pairs, and what is to be said of the files that are none."""
    fitted, failures = [], []
    for place, file in enumerate(files):
        try:
            fitted.append((place, job.preprocessing.decode(read_file(file), file)))
        except DataError as error:
            failures.append({"file": file, **error.as_dict()})
    return fitted, failures


def _rows(
    files: Sequence[str], outputs: Mapping[str, np.ndarray], class_names: Sequence[str], top: int
) -> list[dict[str, Any]]:
    return [
        {"file": file, **described({name: each[row] for name, each in outputs.items()}, class_names, top)}
        for row, file in enumerate(files)
    ]
