"""Shows that the explorer has a map: its points, what is similar, what was found, and the form that makes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.map_samples import add_map
from tests.unit.web.html_page import html_of
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.workspace.studio import Studio


def places(visit: Any, dataset: str, query: str) -> list[str]:
    answer = visit.get(f"/datasets/{dataset}/explore?{query}")
    assert answer.status_code == 200, answer.text
    return [tile["data-place"] for tile in html_of(answer).all(".tile")]


def test_without_a_map_the_view_offers_to_make_one(visit: Any, studio: Studio, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?view=map"))
    assert page.has("#map-form")
    assert not page.has("#map-canvas")
    assert [option.text for option in page.all("#features option")][-1] == "own pixels"
    form = {"features": "own", "perplexity": "12", "seed": "5"}
    answer = visit.post(f"/datasets/{pets}/maps/new", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/datasets/{pets}/explore?view=map")
    (job,) = studio.maps.of_dataset(pets)
    assert [job.spec[name] for name in ("features", "perplexity", "seed", "tsne")] == ["own", 12, 5, False]
    waiting = html_of(visit.get(f"/datasets/{pets}/explore?view=map"))
    assert waiting.has("#map-making")
    assert not waiting.has("#map-form")


def test_a_map_says_why_it_suspects_no_label(visit: Any, studio: Studio, pets: str) -> None:
    for number, right in ((1, 4), (2, 9)):
        job = add_map(studio, pets, number)
        summary = ResultFiles(JobFolder(Path(job.folder)).results).summary
        found = json.loads(summary.read_text())
        found["labels"] = {"folds": 5, "labeled": 10, "right": right, "candidates": 0}
        summary.write_text(json.dumps(found))
        assert html_of(visit.get(f"/datasets/{pets}/explore?view=map")).has("#map-unsure") is (right == 4)


def test_a_number_that_is_none_is_refused_on_the_page(visit: Any, studio: Studio, pets: str) -> None:
    answer = visit.post(f"/datasets/{pets}/maps/new", data={"features": "own", "perplexity": "many"})
    assert answer.status_code == 422
    assert "perplexity" in html_of(answer).one(".note.error").text
    assert studio.maps.of_dataset(pets) == []


def test_the_points_are_numbers_in_one_block(visit: Any, studio: Studio, pets: str) -> None:
    job = add_map(studio, pets)
    page = html_of(visit.get(f"/datasets/{pets}/explore?view=map"))
    state = json.loads(page.one("#map")["data-map"])
    assert (state["count"], state["projections"], state["classes"]) == (10, ["pca"], ["cat", "dog"])
    answer = visit.get(page.one("#map")["data-points"])
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    block = answer.content
    assert len(block) == 10 * (4 + 4 + 2 + 1 + 1)
    rows = np.frombuffer(block, "<u4", 10)
    grid = np.frombuffer(block, "<u2", 20, 40).reshape(10, 2)
    classes, splits = np.frombuffer(block, "<u2", 10, 80), np.frombuffer(block, np.uint8, 10, 100)
    assert rows.tolist() == [*range(8), 0, 1]
    assert splits.tolist() == [0] * 8 + [1] * 2
    entries = studio.datasets.explore(pets, {})[0].entries
    assert classes.tolist() == [entry.class_number for entry in entries]
    found = studio.maps.get(pets, job.id)
    assert np.array_equal(grid, found.grid("pca"))
    # The images are gray: their brightness is the first component, and nothing else.
    bright = [int(entry.key.rpartition("/")[2].removesuffix(".png")) for entry in entries]
    order = np.argsort(grid[:, 0].astype(int)).tolist()
    assert [bright[each] for each in order] in (sorted(bright), sorted(bright, reverse=True))


def test_an_area_is_a_filter_of_the_explorer(visit: Any, studio: Studio, pets: str) -> None:
    add_map(studio, pets)
    grid = studio.maps.get(pets).grid("pca").astype(int)
    middle = int(np.median(grid[:, 0]))
    area = f"pca:0,0,{middle},0,{middle},65535,0,65535"
    inside = {number for number in range(10) if grid[number, 0] < middle}
    found = places(visit, pets, f"area={area}")
    assert len(found) == len(inside) > 0
    assert len(places(visit, pets, f"area={area}&class_name=cat&view=map")) < len(inside)
    typed = {"what": "exclude", "everything": "true", "area": area, "view": "map", "name": "v2"}
    version = visit.post(f"/datasets/{pets}/explore", data=typed).headers["location"].rpartition("/")[2]
    assert sum(visit.get(f"/api/v1/datasets/{version}").json()["splits"].values()) == 10 - len(inside)


@pytest.mark.parametrize("area", ["pca:1,2", "x:0,0,9,0,9,9", "pca:a,b,c,d,e,f", "pca:" + "1,2," * 600 + "3,4"])
def test_an_area_that_is_none_is_said(visit: Any, studio: Studio, pets: str, area: str) -> None:
    add_map(studio, pets)
    answer = visit.get(f"/datasets/{pets}/explore", params={"area": area})
    assert answer.status_code == 400
    assert "is no area of a map: a projection and its corners" in html_of(answer).one(".note.error").text


def test_similar_samples_are_listed_with_their_cosine(visit: Any, studio: Studio, pets: str) -> None:
    job = add_map(studio, pets)
    expected = [f"{each['split']}/{each['row']}" for each in studio.maps.similar(pets, "train/2")["samples"]]
    assert places(visit, pets, "similar=train/2") == expected
    page = html_of(visit.get(f"/datasets/{pets}/explore?similar=train/2"))
    assert page.one("#map-source").text == "by own pixels"
    assert all(tile.all(".pred") for tile in page.all(".tile"))
    assert html_of(visit.get(f"/datasets/{pets}/samples/train/2")).one("#sample-similar")["data-key"] == "s"
    strip = html_of(visit.part(f"/datasets/{pets}/maps/{job.id}/similar?to=train/2", "similar"))
    assert len(strip.all("li")) == 9
    plain = visit.get(f"/datasets/{pets}/maps/{job.id}/similar?to=train/2")
    assert plain.headers["location"] == f"/datasets/{pets}/explore?similar=train%2F2&map={job.id}"


def test_what_a_map_found_is_in_the_facets_with_its_source(visit: Any, studio: Studio, pets: str) -> None:
    add_map(studio, pets)
    page = html_of(visit.get(f"/datasets/{pets}/explore"))
    titles = [each.text for each in page.all("#facet-found")]
    assert titles == ["By own pixels", "Cross-validated, 5 folds"]
    found = studio.maps.get(pets)
    entries = studio.datasets.explore(pets, {})[0].entries
    names = [f"{entry.split}/{entry.row}" for entry in entries]
    for which in ("label-errors", "near-duplicates", "wrong", "right"):
        expected = [names[number] for number in found.chosen(which).tolist()]
        assert places(visit, pets, f"found={which}") == expected
    assert places(visit, pets, "found=wrong&order=row") == sorted(places(visit, pets, "found=wrong"))


def test_without_a_map_its_filters_say_so(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?found=label-errors"))
    assert "No map of this dataset" in page.one(".empty").text
    assert not html_of(visit.get(f"/datasets/{pets}/samples/train/2")).has("#sample-similar")


def test_points_outside_of_the_filter_are_told(visit: Any, studio: Studio, pets: str) -> None:
    job = add_map(studio, pets)
    answer = visit.get(f"/datasets/{pets}/maps/{job.id}/matching?split=val&view=map")
    assert list(answer.content) == [0] * 8 + [1] * 2
    outcomes = visit.get(f"/datasets/{pets}/maps/{job.id}/outcomes").content
    assert list(outcomes) == studio.maps.get(pets).outcomes.tolist()
    assert visit.get(f"/datasets/{pets}/maps/nothing/points").status_code == 404


def test_a_point_says_what_it_is(visit: Any, studio: Studio, pets: str) -> None:
    job = add_map(studio, pets)
    tip = html_of(visit.part(f"/datasets/{pets}/maps/{job.id}/tip?of=train/3", "map-tip"))
    assert tip.all("img")[0]["src"].startswith(f"/datasets/{pets}/pictures/train/3")
    assert visit.get(f"/datasets/{pets}/maps/{job.id}/tip?of=train/99").status_code == 404


def test_a_named_map_is_shown(visit: Any, studio: Studio, pets: str) -> None:
    first = add_map(studio, pets, 1)
    second = add_map(studio, pets, 2, limit=6)
    assert studio.maps.get(pets).id == second.id
    page = html_of(visit.get(f"/datasets/{pets}/explore?view=map&map={first.id}"))
    assert json.loads(page.one("#map")["data-map"])["count"] == 10
    assert len(page.all("#map-of option")) == 2
    assert "6 of 10 samples" not in page.text
