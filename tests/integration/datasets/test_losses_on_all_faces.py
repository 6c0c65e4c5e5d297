"""What a damaged source loses is the same in the preview, in the shell, by REST and on the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from dataset_shell import Shell, photo

from tests.nightly import some_nightly
from tests.unit.studio_samples import make_empty_workspace, studio_in_copy
from tests.unit.web.conftest import Visitor
from tests.unit.web.html_page import html_of
from ziggurat.app import create_studio
from ziggurat.entities import NewJob
from ziggurat.worker.commands.dataset_previews import preview_dataset
from ziggurat.workspace.studio import Studio

HTMX = {"HX-Request": "true", "HX-Target": "div#preview"}


def put(folder: Path, *names: str) -> None:
    """Write an image of 24 x 20 pixels under each name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cv2.imencode(".png", photo(len(str(path)) + ord(path.stem[-1])))[1].tobytes())


def coco(folder: Path) -> dict[str, tuple[int, int]]:
    """Write 10 boxes: 2 of no category, 1 without area, 1 in an image that is not there."""
    put(folder, *(f"{number}.png" for number in range(4)))
    box = {"category_id": 1, "bbox": [2, 2, 5, 5]}
    boxes = [{**box, "image_id": number % 4, "category_id": 1 + number % 2} for number in range(6)]
    boxes += [{**box, "image_id": 0, "category_id": 9}] * 2
    boxes += [{**box, "image_id": 1, "bbox": [2, 2, 0, 5]}, {**box, "image_id": 7}]
    content = {
        "images": [
            {"id": number, "file_name": f"{number}.png", "width": 24, "height": 20} for number in (0, 1, 2, 3, 7)
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [{"id": number, **each} for number, each in enumerate(boxes)],
    }
    (folder / "boxes.json").write_text(json.dumps(content))
    return {"objects": (4, 10), "samples": (1, 5)}


def yolo(folder: Path) -> dict[str, tuple[int, int]]:
    """Write 9 boxes: 1 of no class, 1 that is no number, 2 beside an image that is not there."""
    put(folder, *(f"images/{number}.png" for number in range(5)))
    (folder / "labels").mkdir()
    (folder / "data.yaml").write_text("path: .\ntrain: images\nnames: [cat, dog]\n")
    lines = {0: "0 0.5 0.5 0.2 0.2\n1 0.5 0.5 0.2 0.2\n7 0.5 0.5 0.2 0.2\n", 1: "0 0.5 0.5 0.2 0.2\n0 x 0.5 0.2 0.2\n"}
    lines |= {2: "1 0.5 0.5 0.2 0.2\n", 3: "1 0.5 0.5 0.2 0.2\n", 9: "0 0.5 0.5 0.2 0.2\n1 0.5 0.5 0.2 0.2\n"}
    for number, text in lines.items():
        (folder / f"labels/{number}.txt").write_text(text)
    return {"objects": (4, 9), "samples": (1, 6)}


def table(folder: Path) -> dict[str, tuple[int, int]]:
    """Write 40 rows: 3 without the target."""
    folder.mkdir()
    rows = [
        f"{number / 7:.3f},{'abc'[number % 3]},{'' if number in (5, 6, 30) else 'xy'[number % 2]}"
        for number in range(40)
    ]
    (folder / "rows.csv").write_text("\n".join(["size,kind,result", *rows]) + "\n")
    return {"samples": (3, 40)}


def text_list(folder: Path) -> dict[str, tuple[int, int]]:
    """Write 12 lines: 1 of no class, 1 that is none, 1 that says otherwise of an image than a line before."""
    put(folder, *(f"{number}.png" for number in range(9)))
    lines = [f"{number}.png {number % 2}" for number in range(9)]
    (folder / "train.txt").write_text("\n".join([*lines, "0.png 1", "1.png 5", "2.png"]) + "\n")
    (folder / "labels.txt").write_text("cat\ndog\n")
    return {"samples": (3, 12)}


def masks(folder: Path) -> dict[str, tuple[int, int]]:
    """Write 6 images and 5 masks: 2 images have no mask, 1 mask has no image."""
    put(folder, *(f"images/{number}.png" for number in range(6)))
    (folder / "masks").mkdir()
    for number in (0, 1, 2, 3, 9):
        cv2.imwrite(str(folder / f"masks/{number}.png"), np.tile(np.arange(2, dtype=np.uint8), (20, 12)))
    return {"samples": (3, 7)}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """Return a studio for all tests here, in which every temporary folder is allowed."""
    place = tmp_path_factory.mktemp("studio")
    with studio_in_copy(make_empty_workspace(place), place / "copy") as opened:
        opened.paths.choose([str(tmp_path_factory.getbasetemp())])
        yield opened


WRITERS = [coco, yolo, table, text_list, masks]


@pytest.mark.parametrize("write", some_nightly(WRITERS, but=[coco, table]), ids=lambda each: each.__name__)
def test_losses_are_the_same_on_all_faces(
    ziggurat: Shell, studio: Studio, tmp_path: Path, write: Callable[[Path], dict[str, tuple[int, int]]]
) -> None:
    lost = write(tmp_path / "source")
    spec = {"kind": "dataset", "version": 1, "source": str(tmp_path / "source"), "near_duplicates": False}
    (tmp_path / "kept").mkdir()
    look = {"spec": spec, "samples": 2, "time_limit_s": 60, "at_most": 10_000, "folder": str(tmp_path / "kept")}
    losses = preview_dataset(look)["losses"]
    found: dict[str, tuple[int, int]] = {}
    for each in losses:
        found[each["unit"]] = (found.get(each["unit"], (0, 0))[0] + each["lost"], each["total"])
    assert found == lost
    texts = [each["text"] for each in losses]

    job_id = f"20260101-000000-{WRITERS.index(write):04d}"
    folder = studio.root / "datasets" / job_id
    words = ("--out", folder, "--workers", 0, "--near-duplicates", "false")
    said = ziggurat.json("dataset", "create", tmp_path / "source", *words)
    assert all(text.rstrip(".") in json.dumps(said) for text in texts)
    assert ziggurat.json("dataset", "show", folder)["losses"] == losses

    new = NewJob(id=job_id, kind="dataset", name="source", folder=str(folder), spec=spec, created=1.0)
    studio.datasets.take_in(new, {})
    visit = Visitor(create_studio(studio))
    as_json = {"Accept": "application/json"}
    preview = visit.post("/api/v1/datasets/preview", json={"spec": spec}, headers=as_json)
    assert preview.json()["losses"] == losses
    assert visit.get(f"/api/v1/datasets/{job_id}", headers=as_json).json()["losses"] == losses

    shown = html_of(visit.post("/datasets/new/preview", data={"source": str(tmp_path / "source")}, headers=HTMX))
    warnings = [words_of(each.text) for each in shown.all(".note.warning li") or shown.all(".note.warning p")]
    assert warnings[: len(texts)] == [words_of(text) for text in texts]
    told = [words_of(each.text) for each in html_of(visit.get(f"/datasets/{job_id}")).all("#dataset-health p.faint")]
    assert [each for each in told if each in warnings] == [words_of(text) for text in texts]


def words_of(text: str) -> list[str]:
    """Return the words of a sentence, without the marks of code, for which a page has an element."""
    return re.findall(r"\w+", text)
