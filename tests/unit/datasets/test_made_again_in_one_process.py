"""Datasets that are made again in one process: nothing of the one before is read, and nothing of it stays open."""

import json

import numpy as np
import psutil
import pytest
from folder_sets import put
from PIL import Image

from ziggurat.datasets import CreationRequest, Dataset, create_dataset
from ziggurat.datasets.importer import FilePartReader
from ziggurat.datasets.splitting import SplitRule


def test_create_dataset_reads_new_labels_at_old_path(tmp_path):
    found = []
    for number, left in enumerate((5, 60)):
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        Image.fromarray(np.zeros((80, 100, 3), np.uint8)).save(source / "0.png")
        images = [{"id": 0, "file_name": "0.png", "width": 100, "height": 80}]
        boxes = [{"id": 0, "image_id": 0, "category_id": 1, "bbox": [left, left, 10, 10], "iscrowd": 0}]
        content = {"images": images, "categories": [{"id": 1, "name": "c"}], "annotations": boxes}
        (source / "_annotations.coco.json").write_text(json.dumps(content))
        target = tmp_path / "set"
        if target.exists():
            target.rename(tmp_path / f"old{number}")
        request = CreationRequest(name="x", source=str(source), near_duplicates=False, workers=0)
        create_dataset(request, target)
        with Dataset(target) as data:
            found.append(data.sample("train", 0).label[0]["box"][0])
    assert found == [5, 60]


@pytest.mark.parametrize("method", ["share", "cluster"])
def test_a_creation_closes_what_it_opened(tmp_path, monkeypatch, method):
    closed = []
    monkeypatch.setattr(FilePartReader, "close", lambda reader: closed.append(reader))
    source = put(tmp_path / "source", *(f"{name}/{number}.png" for name in ("cat", "dog") for number in range(4)))
    request = CreationRequest(name="x", source=str(source), rule=SplitRule(method=method), workers=0)
    files = []
    for number in range(2):
        create_dataset(request, tmp_path / f"set{number}")
        files.append(psutil.Process().num_fds())
    assert files[0] == files[1]
    assert closed
