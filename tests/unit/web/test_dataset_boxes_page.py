"""Shows that boxes of an image are corrected by a form, and that corrected images become a version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.studio_samples import add_objects, add_pets
from tests.unit.web.html_page import errors_of, html_of
from ziggurat.workspace.studio import Studio


@pytest.fixture
def objects(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a dataset of one image of 40 x 20 px with one box in it."""
    return add_objects(studio, tmp_path / "one")


def row(number: int, *sides: Any, source: str = "", **more: str) -> dict[str, str]:
    """Return the fields of a row of the table."""
    names = ("left", "top", "right", "bottom")
    values = {name: str(side) for name, side in zip(names, sides, strict=True)}
    fields = {"class": "0", "source": source, **values, **more}
    return {f"{name}-{number}": value for name, value in fields.items()}


def typed(page: Any, name: str) -> str:
    """Return the value of a field of the table."""
    return page.one(f'#boxes-table input[name="{name}"]')["value"]


def test_boxes_are_a_table_with_a_form(visit: Any, objects: str) -> None:
    page = html_of(visit.get(f"/datasets/{objects}/boxes/train/0"))

    assert typed(page, "left-0") == "6"
    assert typed(page, "source-0") == "0"
    assert typed(page, "version") == "0"
    assert typed(page, "left-1") == ""  # for a new box


def test_the_form_saves_adds_and_deletes(visit: Any, studio: Studio, objects: str) -> None:
    place = f"/datasets/{objects}/boxes/train/0"
    fields = {"version": "0", "what": "save", **row(0, 6, 4, 21, 12, source="0"), **row(1, 1, 2, 3.5, 4)}

    assert visit.post(place, data={**fields, **row(2, "", "", "", "")}).status_code == 303
    found = studio.datasets.boxes.get(objects, "train/0")
    assert [each.as_list() for each in found.boxes] == [[0, 0, 6, 4, 21, 12], [None, 0, 1, 2, 3.5, 4]]

    visit.post(place, data={"version": "1", "what": "save", **row(0, 6, 4, 20, 12, source="0", delete="true")})
    assert studio.datasets.boxes.get(objects, "train/0").boxes == ()
    visit.post(place, data={"version": "2", "what": "undo"})
    assert len(studio.datasets.boxes.get(objects, "train/0").boxes) == 2
    visit.post(place, data={"version": "3", "what": "discard"})
    assert studio.datasets.boxes.places(objects) == []


def test_a_refused_form_keeps_what_was_typed(visit: Any, objects: str) -> None:
    place = f"/datasets/{objects}/boxes/train/0"

    answer = visit.post(place, data={"version": "0", **row(0, 6, 4, 99, 12, source="0")})

    assert answer.status_code == 422
    assert "A box lies within its image (" in errors_of(answer)[0]
    assert typed(html_of(answer), "right-0") == "99"
    assert visit.post(place, data={"version": "x"}).status_code == 400
    assert visit.post(place, data={"version": "0", **row(0, "a", 4, 9, 12)}).status_code == 422


def test_an_outdated_form_is_shown_on_the_newer_state(visit: Any, studio: Studio, objects: str) -> None:
    studio.datasets.boxes.save(objects, "train/0", [], version=0, user="ada")

    answer = visit.post(f"/datasets/{objects}/boxes/train/0", data={"version": "0", **row(0, 1, 1, 5, 5)})

    page = html_of(answer)
    assert (answer.status_code, "saved by ada meanwhile" in errors_of(answer)[0]) == (409, True)
    assert (typed(page, "version"), typed(page, "right-0")) == ("1", "5")


def test_corrected_images_are_listed_and_applied(visit: Any, studio: Studio, objects: str) -> None:
    studio.datasets.boxes.save(objects, "train/0", [{"class": 0, "box": [0, 0, 4, 4]}], version=0)
    explorer = html_of(visit.get(f"/datasets/{objects}/explore"))
    assert "1 image has corrected boxes" in explorer.one("#corrected-boxes").text
    assert explorer.has(".corrected-mark")
    assert html_of(visit.get(f"/datasets/{objects}/delete")).has("#corrected-boxes")
    listed = visit.get(f"/datasets/{objects}/boxes")
    assert "1 added, 1 deleted" in listed.text

    assert visit.post(f"/datasets/{objects}/boxes", data={"name": " "}).status_code == 400
    made = visit.post(f"/datasets/{objects}/boxes", data={"name": "better"})
    assert studio.jobs.get(made.headers["location"].rpartition("/")[2]).parent == objects
    assert html_of(visit.get(f"/datasets/{objects}/boxes")).has(".empty")
    applied = html_of(visit.get(f"/datasets/{objects}/boxes/train/0"))
    assert "better" in applied.one("#boxes-applied").text


def test_viewers_see_boxes_and_no_form(visit_as: Callable[[str], Any], objects: str) -> None:
    viewer = visit_as("viewer")

    page = html_of(viewer.get(f"/datasets/{objects}/boxes/train/0"))

    assert not page.has("#boxes-save")
    assert viewer.post(f"/datasets/{objects}/boxes/train/0", data={"version": "0"}).status_code == 403


def test_other_kinds_have_no_editor(visit: Any, studio: Studio, tmp_path: Path) -> None:
    pets = add_pets(studio, tmp_path / "pets")

    assert visit.get(f"/datasets/{pets}/boxes/train/0").status_code == 422
    assert "drawer-boxes" not in visit.get(f"/datasets/{pets}/explore").text
