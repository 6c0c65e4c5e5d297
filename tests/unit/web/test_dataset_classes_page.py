"""Names and colors of the classes of masks on a page: a version with a parent, an audit entry, and roles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.web.html_page import html_of
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.specs import DatasetSpec, save_spec


def taken_in(studio: Any, root: Path, values: list[int]) -> str:
    """Take in a dataset whose masks have these values."""
    for name, content in (
        ("images", np.full((len(values), 4, 3), 90, np.uint8)),
        ("masks", np.repeat(np.array(values, np.uint8)[:, None], 4, axis=1)),
    ):
        (root / name).mkdir(parents=True)
        cv2.imwrite(str(root / name / "1.png"), content)
    folder = studio.root / "datasets" / "20260101-000000-0007"
    spec = DatasetSpec(source=str(root), name="streets")
    create_dataset(CreationRequest(source=str(root), name="streets", rule=SplitRule(val_share=0), workers=0), folder)
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=folder.name, kind="dataset", name="streets", folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


@pytest.fixture
def streets(studio: Any, tmp_path: Path) -> str:
    return taken_in(studio, tmp_path / "streets", [0, 50, 100])


def test_classes_get_names_and_colors(visit: Any, studio: Any, streets: str) -> None:
    place = f"/datasets/{streets}/classes"
    assert html_of(visit.get(f"/datasets/{streets}")).one("#dataset-classes")["href"] == place
    shown = html_of(visit.get(place))
    assert [each["value"] for each in shown.all(".class-names input")][1::2] == ["0", "50", "100"]
    assert [each.text for each in shown.all(".class-names td.number")] == ["0", "0", "1", "50", "2", "100"]
    typed = {"class-0": "sky", "class-1": "road", "class-2": "car", "name": "named"}
    typed |= {"color-0": "#000000", "color-1": "#ff0000", "color-2": "#0080ff"}
    answer = visit.post(place, data=typed, follow_redirects=False)
    assert answer.status_code == 303
    version = answer.headers["location"].rsplit("/", 1)[1]
    with studio.datasets.opened(version) as dataset:
        assert dataset.schema.class_names == ("sky", "road", "car")
        assert dataset.schema.colours == ((0, 0, 0), (255, 0, 0), (0, 128, 255))
        assert dataset.schema.details["mask_values"] == [0, 50, 100]
    now, before = studio.datasets.versions(version)
    assert list(now.changes) == ["Renamed 0 to sky, 50 to road, 100 to car."]
    assert before.folder.name == streets
    (entry,) = studio.people.audit(action="dataset.classes").entries
    assert (entry.target, dict(entry.details)) == (version, {"parent": streets})


def test_viewers_see_the_classes_and_change_nothing(visit_as: Callable[[str], Any], streets: str) -> None:
    viewer = visit_as("viewer")
    shown = html_of(viewer.get(f"/datasets/{streets}/classes"))
    assert not shown.has("#names-save")
    assert viewer.post(f"/datasets/{streets}/classes", data={"name": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"class-1": "sky"}, "Each class has a name of its own ("),
        ({"class-1": " "}, "Each class has a name of its own ("),
        ({"color-1": "red"}, "A color is written as #rrggbb ("),
        ({"name": ""}, "A version has a name ("),
    ],
)
def test_what_is_wrong_is_said_and_stays_typed(visit: Any, streets: str, change: dict[str, str], said: str) -> None:
    typed = {"class-0": "sky", "class-1": "road", "class-2": "car", "name": "named"} | change
    answer = visit.post(f"/datasets/{streets}/classes", data=typed)
    assert answer.status_code in (400, 422)
    assert said in answer.text
    assert 'name="class-2" value="car"' in answer.text


def test_masks_without_names_take_a_list(visit: Any, studio: Any, tmp_path: Path) -> None:
    job_id = taken_in(studio, tmp_path / "plain", [0, 1, 2])
    assert html_of(visit.get(f"/datasets/{job_id}/classes")).one("#names").text.strip() == ""
    sent = {"names": "sky\nroad\n\ncar\n", "name": "named"}
    answer = visit.post(f"/datasets/{job_id}/classes", data=sent, follow_redirects=False)
    with studio.datasets.opened(answer.headers["location"].rsplit("/", 1)[1]) as dataset:
        assert dataset.schema.class_names == ("sky", "road", "car")
        assert dataset.picture("train", 0, 1).max() == 2
