"""Masks of objects in run lengths are drawn: where a new dataset is looked at, in the explorer, and large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.studio_samples import add_masks
from tests.unit.web.html_page import html_of
from tests.waiting import wait_until
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.records.run_lengths import run_lengths
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.web.pages.dataset.samples import shape_of

PATH = '<path d="M6,4 20,4 20,12 6,12ZM9,6 13,6 13,9 9,9Z"/>'


@pytest.fixture
def things(tmp_path: Path) -> Path:
    """Return a COCO source of one image with a crowd, whose mask has a hole."""
    root = tmp_path / "things"
    root.mkdir()
    mask = np.zeros((20, 40), np.uint8)
    mask[4:12, 6:20] = 1
    mask[6:9, 9:13] = 0
    (root / "one.png").write_bytes(cv2.imencode(".png", np.full((20, 40, 3), 90, np.uint8))[1].tobytes())
    crowd = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [6, 4, 14, 8], "iscrowd": 1}
    content = {
        "images": [{"id": 1, "file_name": "one.png", "width": 40, "height": 20}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [{**crowd, "segmentation": run_lengths(mask)}],
    }
    (root / "annotations.json").write_text(json.dumps(content))
    return root


def taken_in(studio: Any, source: Path) -> str:
    folder = studio.root / "datasets" / "20260101-000000-0002"
    spec = DatasetSpec(source=str(source), name="things")
    rule = SplitRule(val_share=0)
    create_dataset(CreationRequest(source=str(source), name="things", rule=rule, workers=0), folder)
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=folder.name, kind="dataset", name="things", folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


def test_the_preview_draws_masks_of_objects(visit: Any, things: Path) -> None:
    htmx = {"HX-Request": "true", "HX-Target": "div#preview"}
    html = visit.post("/datasets/new/preview", data={"source": str(things)}, headers=htmx).text
    assert '<svg class="marks" viewBox="0 0 40 20" aria-hidden="true">' in html
    assert PATH in html


def test_the_explorer_and_the_page_of_a_sample_draw_them(visit: Any, studio: Any, things: Path) -> None:
    dataset = taken_in(studio, things)
    assert PATH in visit.get(f"/datasets/{dataset}/explore").text
    html = visit.get(f"/datasets/{dataset}/samples/train/0").text
    assert PATH in html
    assert "crowd, mask" in html


def test_a_mask_that_is_none_is_not_drawn() -> None:
    content = {"class": 0, "box": [0, 0, 4, 4], "mask": {"size": [4, 4], "counts": "nonsense"}}
    assert (shape_of(1, content, "x").region, shape_of(1, {**content, "mask": {}}, "x").region) == ("", "")


def test_a_wide_border_is_drawn_with_few_points() -> None:
    disc = cv2.circle(np.zeros((400, 400), np.uint8), (200, 200), 150, 1, -1)
    content = {"class": 0, "box": [50, 50, 350, 350], "mask": run_lengths(disc)}
    path = shape_of(1, content, "x").region
    points = np.array([each.split(",") for each in path.strip("MZ").split()], int)
    again = cv2.fillPoly(np.zeros((400, 400), np.uint8), [points], (1,))
    assert len(points) < 80
    assert np.count_nonzero(again != disc) < 0.02 * disc.sum()


def test_samples_are_chosen_by_the_classes_in_their_masks(visit: Any, studio: Any, tmp_path: Path) -> None:
    explore = f"/datasets/{add_masks(studio, tmp_path / 'masks', rare=2)}/explore"

    def counts(query: str) -> dict[str, str]:
        rows = html_of(visit.get(explore + query)).all(".facet-row")
        return {row["title"]: " ".join(row.one(".facet-count").text.split()) for row in rows}

    all_counts = counts("")
    assert (all_counts["class 1"], all_counts["class 2"]) == ("8", "2")
    chosen = visit.get(explore + "?class_name=2")
    assert len(html_of(chosen).all("#found .tile")) == 2
    within = counts("?class_name=2")
    of_splits = (int(within[split].split()[0]) for split in ("Training", "Validation"))
    assert sum(of_splits) == 2, "other facets count what is left"
    assert within["class 1"] == "8", "a facet does not narrow itself"


def test_rest_finds_masks_with_a_class(visit: Any, studio: Any, tmp_path: Path) -> None:
    dataset = add_masks(studio, tmp_path / "masks", rare=2)
    found = visit.get(f"/api/v1/datasets/{dataset}/samples?class_name=2").json()
    assert found["total"] == 2


def test_the_overview_lists_the_shares_of_pixels(visit: Any, studio: Any, tmp_path: Path) -> None:
    dataset = add_masks(studio, tmp_path / "masks", rare=2)
    studio.datasets.statistics(dataset)  # of which the page shows what is counted
    page = wait_for_overview(visit, dataset)
    rows = [row.text.split() for row in page.all("#pixel-bars tbody tr")]
    shares = [float(row[2].rstrip("%\u202f")) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert [row[:2] for row in rows if row[1] == "2"] == [["class", "2"]]


def wait_for_overview(visit: Any, dataset: str) -> Any:
    """Return the page of a dataset once its samples are counted."""
    found: list[Any] = []

    def is_counted() -> bool:
        found.append(html_of(visit.get(f"/datasets/{dataset}")))
        return not found[-1].has('#dataset-charts [role="status"]')

    wait_until(is_counted, 30)
    return found[-1]
