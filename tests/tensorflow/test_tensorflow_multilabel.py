"""A network that learns several labels at once: mean average precision, equal to that of scikit-learn."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.metrics import average_precision_score

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

SIDE, SAMPLES = 24, 600
NAMES = ("disk", "bar", "cross", "frame")


def drawing(random: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Return an image (H, W, 3) with each shape that has a label, at a random place in a random color."""
    image = random.integers(0, 60, (SIDE, SIDE, 3), np.uint8)
    for name in np.array(NAMES)[labels == 1]:
        color = tuple(int(value) for value in random.integers(150, 256, 3))
        x, y = (int(value) for value in random.integers(5, SIDE - 5, 2))
        if name == "disk":
            cv2.circle(image, (x, y), 4, color, -1)
        elif name == "bar":
            cv2.line(image, (0, y), (SIDE, y), color, 1)
        elif name == "cross":
            cv2.line(image, (x - 4, y - 4), (x + 4, y + 4), color, 1)
            cv2.line(image, (x - 4, y + 4), (x + 4, y - 4), color, 1)
        else:
            cv2.rectangle(image, (x - 4, y - 4), (x + 4, y + 4), color, 1)
    return image


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of 600 drawings with up to four labels each."""
    source, random = tmp_path_factory.mktemp("drawings"), np.random.default_rng(3)
    with tarfile.open(source / "shard-000000.tar", "w") as shard:
        for number in range(SAMPLES):
            labels = (random.random(len(NAMES)) < 0.4).astype(int)
            own = {"kind": "image-regression", "label": labels.tolist()}
            png = cv2.imencode(".png", drawing(random, labels)[:, :, ::-1])[1].tobytes()
            for ending, content in (("png", png), ("json", json.dumps(own).encode())):
                entry = tarfile.TarInfo(f"{number:06}.{ending}")
                entry.size = len(content)
                shard.addfile(entry, io.BytesIO(content))
    (source / "classes.txt").write_text("\n".join(NAMES) + "\n")
    rule = SplitRule(method="share", val_share=0.2, test_share=0, seed=1, stratify=False)
    request = CreationRequest(
        source=str(source), name="drawings", format="webdataset", rule=rule, near_duplicates=False, workers=0
    )
    create_dataset(request, source / "dataset")
    return source / "dataset"


@pytest.mark.nightly
def test_a_set_of_several_labels_reaches_a_mean_ap_of_095(dataset: Path, tmp_path: Path) -> None:
    spec = {
        "kind": "train", "version": 1, "backend": "tensorflow", "network": "multilabel", "data": str(dataset),
        "batch_size": 24, "epochs": 12, "seed": 3, "optimizer": {"name": "adam"}, "learning_rate": 0.003,
        "schedule": "fixed", "monitors": ["events"], "machine_load_s": 0, "sample_predictions": False,
    }  # fmt: skip
    run(tmp_path / "job", spec)
    run(tmp_path / "results", {"kind": "evaluate", "version": 1, "model": str(tmp_path / "job"), "split": "val"})
    results = ResultFiles(JobFolder(tmp_path / "results").results).summary.parent
    labels, predicted = np.load(results / "targets.npy"), np.load(results / "predicted.npy")
    with Dataset(dataset) as opened:
        known = np.array([opened.sample("val", row).label for row in np.load(results / "rows.npy")])
    np.testing.assert_array_equal(labels, known)
    assert labels.shape == predicted.shape == (SAMPLES // 5, len(NAMES))
    expected = [average_precision_score(known[:, number], predicted[:, number]) for number in range(len(NAMES))]
    found = evaluate({"folder": str(tmp_path / "job")})
    assert found["mean_ap"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert [each["ap"] for each in found["classes"]] == pytest.approx(expected, abs=1e-6)
    assert found["mean_ap"] >= 0.95


def run(folder: Path, spec: dict[str, object]) -> None:
    """Do a job in this process."""
    folder.mkdir()
    JobFolder(folder).spec.write_text(json.dumps(spec))
    assert main([str(folder)], request=StopRequest()) == EXIT_DONE
