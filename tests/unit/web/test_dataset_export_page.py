"""The page on which a dataset is exported: the options of a format, and the report inside the archive."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.entities import NewJob
from ziggurat.workspace.studio import Studio


@pytest.fixture
def mixed(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a detection dataset in which one object has an outline and one has none."""
    source = tmp_path / "cats"
    for split, line in (("train", "0 0.2 0.2 0.8 0.2 0.8 0.8\n"), ("val", "0 0.5 0.5 0.4 0.4\n")):
        for folder in ("images", "labels"):
            (source / folder / split).mkdir(parents=True)
        encoded = cv2.imencode(".png", np.zeros((40, 50, 3), np.uint8))[1]
        (source / f"images/{split}/1.png").write_bytes(encoded.tobytes())
        (source / f"labels/{split}/1.txt").write_text(line)
    (source / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [cat]\n")
    folder = studio.root / "datasets" / "20260101-000000-0001"
    create_dataset(CreationRequest(source=str(source), name="cats", workers=0), folder)
    new = NewJob(id=folder.name, kind="dataset", name="cats", folder=str(folder), spec={}, created=1.0)
    return studio.datasets.take_in(new, {}).id


@pytest.mark.parametrize(
    ("chosen", "columns", "note"),
    [
        ("", 5, "1 of 2 objects with an outline, and all are written as boxes"),
        ("false", 5, "1 of 2 objects with an outline, and all are written as boxes"),
        ("true", 9, "1 of 2 objects without an outline: written as the rectangle of the box."),
    ],
)
def test_yolo_export_page_chooses_boxes_or_outlines(
    visit: Any, mixed: str, chosen: str, columns: int, note: str
) -> None:
    html = visit.get(f"/datasets/{mixed}/export").text
    assert '<option value="" selected>Outlines if every object has one</option>' in html
    typed = {"format": "yolo", "archive": "zip", "outlines": chosen}
    answer = visit.post(f"/datasets/{mixed}/export", data=typed)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        info = next(name for name in archive.namelist() if name.endswith("info.json"))
        assert note in " ".join(json.loads(archive.read(info))["notes"])
        label = next(name for name in archive.namelist() if name.endswith("labels/val/1.txt"))
        assert len(archive.read(label).split()) == columns
