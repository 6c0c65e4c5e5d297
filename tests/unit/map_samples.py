"""Map of a small dataset in a studio whose jobs nobody starts: its worker runs in the process of the test."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from tests.unit.datasets.small_datasets_for_versions import write_dataset
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.entities import Job, NewJob
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema
from ziggurat.specs import EmbedSpec
from ziggurat.worker.commands.embedding import embed_dataset
from ziggurat.worker.event_watch import EventWatch
from ziggurat.workspace.studio import Studio

__all__ = ["add_map", "check_map_by_model"]


class _Quiet:
    def progress(self, _stage: str, _done: int, _total: int) -> None:
        pass

    def stop_requested(self) -> bool:
        return False


def add_map(studio: Studio, dataset: str, number: int = 1, **options: Any) -> Job:
    """Return the job of a map by the samples' own features, which is done.

    Args:
        studio: gets it.
        dataset: id.
        number: of the map, from 1; a later one is newer.
        options: further fields of its spec.
    """
    folder = studio.root / "jobs" / f"20260103-000000-{number:04d}"
    folder.mkdir(parents=True)
    asked = {"features": "own", "tsne": False, **options}
    spec = EmbedSpec(dataset=str(studio.datasets.folder(dataset)), name=f"map {number}", **asked)
    embed_dataset(spec, JobFolder(folder), cast(EventWatch, _Quiet()))
    new = NewJob(
        id=folder.name,
        kind="embed",
        name=spec.name,
        folder=str(folder),
        spec=spec.model_dump(mode="json"),
        depends_on=(dataset,),
        created=float(number),
    )
    return studio.datasets.take_in(new, {})


def check_map_by_model(job: Path, folder: Path, framework: str) -> None:
    """Check a map of handwritten digits by the features of a LeNet that was trained on others of them.

    Args:
        job: of the LeNet.
        folder: for the dataset and the map.
        framework: of the job.
    """
    digits = [point for point, _ in zip(SklearnDigits("val", shuffle=False, size=28), range(120), strict=False)]
    samples = []
    for number, (image, label) in enumerate(digits):
        content = io.BytesIO()
        Image.fromarray(np.asarray(image, np.uint8).reshape(28, 28)).save(content, "PNG")
        samples.append((f"{number}.png", (content.getvalue(),), int(label)))
    schema = Schema(kind="image-classification", class_names=tuple("0123456789"))
    image_form = ImageForm(encoding="png", height_px=28, width_px=28, channels=1)
    write_dataset(folder / "data", {"val": samples}, schema, image=image_form).close()
    spec = EmbedSpec(dataset=str(folder / "data"), features="model", model=str(job), tsne=False, folds=0)
    embed_dataset(spec, JobFolder(folder / "map"), cast(EventWatch, _Quiet()))
    files = ResultFiles(JobFolder(folder / "map").results)
    summary = json.loads(files.summary.read_text())
    about = summary["features"]
    assert (about["source"], about["model"], about["framework"]) == ("model", str(job), framework)
    assert (summary["count"], about["dimension"]) == (120, 500)  # the inputs of its last layer
    labels = np.array([sample[2] for sample in samples])
    is_alike = labels[np.load(files.array("neighbor"))] == labels
    assert is_alike.mean() > 0.85
