"""The small detector finds shapes after a short training."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.shapes import write_shapes
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

SIDE = 96


@pytest.mark.slow
def test_the_small_detector_finds_shapes(tmp_path: Path) -> None:
    write_shapes(tmp_path / "shapes", train=480, val=60, size=SIDE)
    asked = CreationRequest(
        source=str(tmp_path / "shapes"),
        name="shapes",
        format="coco",
        rule=SplitRule(),
        near_duplicates=False,
        workers=0,
    )
    create_dataset(asked, tmp_path / "set")
    spec = {
        "kind": "train",
        "version": 1,
        "backend": "torch",
        "network": "detector_nano",
        "data": str(tmp_path / "set"),
        "batch_size": 16,
        "epochs": 12,
        "learning_rate": 0.004,
        "optimizer": {"name": "adamw"},
        "schedule": {"policy": "cosine"},
        "validation": {"every_epochs": 6},
        "augmentation": {"flip": "fliplr"},
        "monitors": ["events"],
    }
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    job.spec.write_text(json.dumps(spec))

    assert main([str(job.path)], request=StopRequest()) == EXIT_DONE

    found = evaluate({"folder": str(job.path)})
    assert found["ap50"] > 0.8
    assert found["map"] > 0.5
    image = tmp_path / "shapes" / "val" / "00000.png"
    boxes = predict({"folder": str(job.path), "images": [str(image)]})["predictions"][0]["boxes"]
    actual = json.loads((tmp_path / "shapes" / "instances_val.json").read_text())["annotations"][0]
    left, top, width, height = actual["bbox"]
    nearest = min(boxes, key=lambda each: abs(each["box"][0] - left) + abs(each["box"][1] - top))
    assert nearest["box"] == pytest.approx([left, top, left + width, top + height], abs=6)
