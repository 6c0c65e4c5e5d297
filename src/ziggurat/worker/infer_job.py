"""Execution of a batch prediction job for many images: batch by batch, its results, and stop requests in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError
from ziggurat.layout import JobFolder
from ziggurat.records.offered_folders import watched_source
from ziggurat.specs import InferSpec
from ziggurat.worker.commands.prediction import predict_files
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.picture_list import PictureList, list_pictures
from ziggurat.worker.results import SampleResults

__all__ = ["predict_many"]

_NAMED_FILES: Final = 1000
"""How many of the files that cannot be read are named; all are counted."""


def predict_many(spec: InferSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Predict for many images, from the beginning in each attempt; return what is to be said.

    None stands for an end that was requested.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        watch: is told of progress, and asked whether to stop.

    Raises:
        ZigguratError: where model or images cannot be used.
    """
    with watched_source(_root(spec)):
        return _predict(spec, folder, watch)


def _root(spec: InferSpec) -> Path:
    """Return the folder that the paths of the images begin in."""
    source = Path(spec.source)
    return Path(spec.image_folder) if spec.image_folder else source if source.is_dir() else source.parent


def _predict(spec: InferSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    watch.progress("load", 0, 0)
    job = open_trained_job(Path(spec.model), spec.checkpoint or None)
    pictures = list_pictures(spec.source, spec.image_folder, job.class_names, spec.limit)
    results = SampleResults(len(pictures.files), len(job.class_names), spec.top)
    failures: list[dict[str, Any]] = []
    if watch.stop_requested():
        return None
    with open_network(job) as network:
        for start in range(0, len(pictures.files), spec.batch_size):
            part = slice(start, start + spec.batch_size)
            places, outputs, bad = predict_files(job, network, pictures.files[part])
            failures += bad
            if places:
                _take(results, pictures, [start + place for place in places], outputs)
            watch.progress("predict", min(part.stop, len(pictures.files)), len(pictures.files))
            if watch.stop_requested():
                return None
    results.write(folder.results, _summary(spec, job, pictures, failures, results.count))
    return f"{results.count} images" + (f"; {len(failures)} could not be read" if failures else "")


def _take(results: SampleResults, pictures: PictureList, rows: list[int], outputs: dict[str, np.ndarray]) -> None:
    if "probabilities" not in outputs:
        raise DataError(
            "Predicting for many images needs a network that classifies.",
            received=f"outputs {', '.join(outputs)}",
            advice="Ask it for single images: ziggurat predict.",
        )
    labels = np.array([pictures.labels[row] for row in rows], np.int64)
    results.add(rows, [pictures.keys[row] for row in rows], labels, outputs["probabilities"])


def _summary(
    spec: InferSpec, job: TrainedJob, pictures: PictureList, failures: list[dict[str, Any]], count: int
) -> dict[str, Any]:
    keys = dict(zip(pictures.files, pictures.keys, strict=True))
    named = [{"key": keys[each["file"]], "reason": each["message"]} for each in failures[:_NAMED_FILES]]
    return {
        "kind": spec.kind,
        "model": str(job.folder),
        "checkpoint": job.checkpoint,
        "step": job.summary()["step"],
        "epoch": job.summary()["epoch"],
        "split": "",
        "data": spec.source,
        "root": str(_root(spec)),
        "count": count,
        "skipped": len(failures),
        "failures": named,
        "scalars": {},
        "classifier": True,
        "classes": list(job.class_names),
        "openings": None,
    }
