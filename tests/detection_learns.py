"""What the small detector learns of drawn shapes, on both frameworks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.shapes import write_shapes
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

__all__ = ["check_that_it_finds_shapes"]

SIDE = 96


def check_that_it_finds_shapes(framework: str, folder: Path) -> None:
    """Train the small detector for twelve epochs on images of 96 px, and check what it finds.

    Args:
        framework: ``tensorflow`` or ``torch``, which this process may hold.
        folder: new files go there.
    """
    write_shapes(folder / "shapes", train=480, val=60, size=SIDE)
    asked = CreationRequest(
        source=str(folder / "shapes"),
        name="shapes",
        format="coco",
        rule=SplitRule(),
        near_duplicates=False,
        workers=0,
    )
    create_dataset(asked, folder / "set")
    spec = {
        "kind": "train",
        "version": 1,
        "backend": framework,
        "network": "detector_nano",
        "data": str(folder / "set"),
        "batch_size": 16,
        "epochs": 12,
        "learning_rate": 0.004,
        "optimizer": {"name": "adamw"},
        "schedule": {"policy": "cosine"},
        "validation": {"every_epochs": 6},
        "augmentation": {"flip": "fliplr"},
        "monitors": ["events"],
    }
    job = JobFolder(folder / "job")
    job.path.mkdir()
    job.spec.write_text(json.dumps(spec))

    assert main([str(job.path)], request=StopRequest()) == EXIT_DONE

    found = evaluate({"folder": str(job.path)})
    assert found["ap50"] > 0.8
    assert found["map"] > 0.5
    image = folder / "shapes" / "val" / "00000.png"
    boxes = predict({"folder": str(job.path), "images": [str(image)]})["predictions"][0]["boxes"]
    actual = json.loads((folder / "shapes" / "instances_val.json").read_text())["annotations"][0]
    left, top, width, height = actual["bbox"]
    nearest = min(boxes, key=lambda each: abs(each["box"][0] - left) + abs(each["box"][1] - top))
    assert nearest["box"] == pytest.approx([left, top, left + width, top + height], abs=6)
