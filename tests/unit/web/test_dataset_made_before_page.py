"""A dataset of an earlier release on the page of its check: what would be otherwise, and *Create again*."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.datasets.test_made_before import UNTURNED, as_before, boxes, made
from tests.unit.web.html_page import html_of
from tests.unit.web.test_dataset_page import settled
from ziggurat.entities import NewJob
from ziggurat.records.manifest import Manifest
from ziggurat.specs import DatasetSpec, save_spec


@pytest.fixture
def cats(studio: Any, tmp_path: Path) -> str:
    folder = studio.root / "datasets" / "20260101-000000-0009"
    as_before(made(folder, boxes(tmp_path / "source")), UNTURNED)
    spec = DatasetSpec(source=str(tmp_path / "source"), name="cats")
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=folder.name, kind="dataset", name="cats", folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


def test_the_check_offers_to_create_it_again(visit: Any, studio: Any, cats: str) -> None:
    page = html_of(settled(visit, f"/datasets/{cats}/check", "#dataset-findings progress"))
    assert "1 sample has another label" in page.one('[aria-labelledby="finding-made-before"]').text
    assert page.one("#create-again").text == "Create again"
    answer = visit.post(f"/datasets/{cats}/again", data={"name": "cats today"})
    assert answer.status_code == 303
    job = studio.jobs.get(answer.headers["location"].rsplit("/", 1)[1])
    parent = Manifest.load(Path(studio.jobs.get(cats).folder))
    assert (job.name, job.state, job.parent, job.spec["again_of"]) == (
        "cats today",
        "queued",
        cats,
        f"{parent.id} cats",
    )
    (entry,) = studio.people.audit(action="dataset.again").entries
    assert (entry.target, dict(entry.details)) == (job.id, {"parent": cats})


def test_without_its_source_nothing_is_offered(visit: Any, cats: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "source")
    page = html_of(settled(visit, f"/datasets/{cats}/check", "#dataset-findings progress"))
    assert "is not there any more" in page.one('[aria-labelledby="finding-made-before"]').text
    assert not page.has("#create-again")
    assert "is not there any more" in visit.post(f"/datasets/{cats}/again", data={"name": "x"}).text


def test_viewers_create_nothing_again(visit_as: Callable[[str], Any], cats: str) -> None:
    viewer = visit_as("viewer")
    page = html_of(settled(viewer, f"/datasets/{cats}/check", "#dataset-findings progress"))
    assert not page.has("#create-again")
    assert viewer.post(f"/datasets/{cats}/again", data={"name": "x"}).status_code == 403


def test_a_clone_of_what_was_created_again_has_no_parent(visit: Any, studio: Any, cats: str) -> None:
    made_again = visit.post(f"/datasets/{cats}/again", data={"name": ""}).headers["location"].rsplit("/", 1)[1]
    assert studio.jobs.get(made_again).spec["again_of"]
    assert "again_of" not in visit.get(f"/datasets/new?clone={made_again}").text


def test_the_rest_api_creates_it_again(visit: Any, studio: Any, cats: str, tmp_path: Path) -> None:
    headers = {"Accept": "application/json"}
    answer = visit.post(f"/api/v1/datasets/{cats}/again", json={}, headers=headers)
    assert (answer.status_code, answer.json()["name"], answer.json()["parent"]) == (201, "cats", cats)
    shutil.rmtree(tmp_path / "source")
    refused = visit.post(f"/api/v1/datasets/{cats}/again", json={}, headers=headers)
    assert (refused.status_code, "is not there any more" in refused.json()["message"]) == (422, True)
