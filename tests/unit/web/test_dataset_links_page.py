"""The pages of a dataset show no file that a link leads to outside the folders that the studio offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.entities import NewJob
from ziggurat.records.manifest import ImageForm
from ziggurat.workspace.studio import Studio


@pytest.fixture
def pets(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a dataset that refers to its files, of which one is a link out since it was made."""
    source, outside = tmp_path / "offered", tmp_path / "outside.png"
    for number in range(4):
        file = source / ("cat", "dog")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(cv2.imencode(".png", np.full((8, 8, 3), 40 * number, np.uint8))[1].tobytes())
    folder = studio.root / "datasets" / "20260101-000000-0001"
    form = ImageForm(encoding="reference")
    create_dataset(CreationRequest(source=str(source), name="pets", workers=0, image=form), folder)
    for file in source.rglob("*.png"):
        outside.with_name(file.name).write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(outside.with_name(file.name))
    new = NewJob(id=folder.name, kind="dataset", name="pets", folder=str(folder), spec={}, created=1.0)
    return studio.datasets.take_in(new, {}).id


def test_explorer_shows_nothing_behind_a_link_out(visit: Any, studio: Studio, pets: str, tmp_path: Path) -> None:
    studio.paths.choose([str(tmp_path / "offered")])
    answer = visit.get(f"/datasets/{pets}/pictures/train/0")
    assert answer.status_code >= 400
    assert b"PNG" not in answer.content
    report = studio.datasets.check(pets, verify=True)
    assert report["changed-file"].count == 4
    studio.paths.choose([str(tmp_path)])
    assert visit.get(f"/datasets/{pets}/pictures/train/0").status_code == 200


def test_preview_of_the_studio_reads_no_links_out(studio: Studio, pets: str, tmp_path: Path) -> None:
    spec = {"source": str(tmp_path / "offered")}
    studio.paths.choose([str(tmp_path / "offered")])
    found = studio.datasets.preview(spec, time_limit_s=60.0)
    assert found["samples"] == []
    assert "leads out" in str(found["problems"])
    studio.paths.choose([str(tmp_path)])
    assert len(studio.datasets.preview(spec, time_limit_s=60.0)["samples"]) == 4
