"""The explorer finds what a walk over all samples finds, counts by indexes, and never reads an image."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.unit.datasets.small_sources import photo, request
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry, SampleFilter
from ziggurat.datasets.creation import create_dataset
from ziggurat.records.manifest import ImageForm
from ziggurat.workspace.datasets import Datasets

CLASSES = ("cat", "dog 100%", "ow_l")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 120 images of several sizes, some of them twice; the source is gone afterwards."""
    source = tmp_path_factory.mktemp("explored") / "source"
    for number in range(120):
        place = source / CLASSES[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        unlike = number - 3 if number % 10 == 9 else number
        Image.fromarray(photo(unlike, 10 + unlike % 4, 12 + unlike % 5)).save(place / f"{number:03d}.png")
    made = source.parent / "set"
    create_dataset(request(source, image=ImageForm(encoding="reference"), check="header"), made)
    source.rename(source.with_name("gone"))
    return made


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"split": "val"},
        {"class_name": "dog 100%"},
        {"class_number": 2, "split": "train"},
        {"text": "OW_L/"},
        {"text": "100%"},
        {"text": "_"},
        {"problem": "any"},
        {"problem": "duplicate", "split": "train"},
        {"min_width_px": 14, "max_height_px": 11},
        {"text": "7", "problem": "any", "min_width_px": 13},
        {"group": ""},
        {"group": "nobody"},
    ],
    ids=str,
)
def test_the_pages_of_a_filter_are_the_samples_that_it_leaves(folder: Path, chosen: dict) -> None:
    with Catalogue(folder / "index.sqlite") as catalogue:
        problems = {problem.key for problem in catalogue.problems()}
        expected = [entry for entry in catalogue.walk() if holds(chosen, entry, problems)]
    pages = [Datasets().explore(str(folder), chosen, offset=offset, limit=7)[0] for offset in range(0, 126, 7)]
    assert [entry for page in pages for entry in page.entries] == expected
    assert {page.total for page in pages} == {len(expected)}
    for page in pages:
        assert set(page.problems) == {entry.key for entry in page.entries} & problems


def holds(chosen: dict, entry: Entry, problems: set[str]) -> bool:
    """Say by hand whether a filter leaves a sample; all problems here are duplicates."""
    number = CLASSES.index(chosen["class_name"]) if "class_name" in chosen else chosen.get("class_number")
    assert entry.width_px is not None
    assert entry.height_px is not None
    return (
        chosen.get("split") in (None, entry.split)
        and number in (None, entry.class_number)
        and chosen.get("text", "").lower() in entry.key.lower()
        and ("problem" not in chosen or entry.key in problems)
        and entry.width_px >= chosen.get("min_width_px", 0)
        and entry.height_px <= chosen.get("max_height_px", 99)
        and chosen.get("group") in (None, entry.group)
    )


@pytest.fixture(scope="module", params=["classes", "objects"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of 20,000 samples in groups, with a class or with objects of several classes."""
    path = tmp_path_factory.mktemp("large") / "index.sqlite"
    with CatalogueWriter(path) as catalogue:
        for number in range(20_000):
            split, row = ("train", number) if number < 15_000 else ("val", number - 15_000)
            objects = [{"class": each % 50, "box": [0, 0, 1, 1]} for each in (number, number + 7)]
            facts: dict[str, Any] = {"label": number % 50, "class_number": number % 50}
            if request.param == "objects":
                facts = {"label": objects, "objects": 2}
            facts |= {"split": split, "row": row, "group": f"g{number // 20}"}
            catalogue.add(Entry(number=number, key=f"{number:05d}", parts=("x",), **facts))
    return path


def test_counts_of_classes_come_from_indexes_alone(large: Path) -> None:
    with Catalogue(large) as catalogue:
        all_of, train, val = (catalogue.class_counts(split) for split in (None, "train", "val"))
    assert all_of == {number: train[number] + val[number] for number in range(50)}
    assert sum(train.values()) == 3 * sum(val.values())
    for split in (None, "train"):
        for plan in plans_of(large, lambda catalogue, split=split: catalogue.class_counts(split)):
            assert "COVERING INDEX" in plan
            assert "TEMP B-TREE" not in plan


def test_a_group_is_found_by_its_index(large: Path) -> None:
    chosen = SampleFilter(group="g77")
    with Catalogue(large) as catalogue:
        assert [entry.number for entry in catalogue.page(chosen)] == list(range(1540, 1560))
    for plan in plans_of(large, lambda catalogue: (catalogue.page(chosen), catalogue.count(chosen))):
        assert "SCAN" not in plan


HANDLES = []


def listen(event: str, arguments: tuple) -> None:
    """Keep the newest connection to a database; Python announces each by an audit event."""
    if event == "sqlite3.connect/handle":
        HANDLES[:] = arguments


sys.addaudithook(listen)


def plans_of(path: Path, read) -> list[str]:
    """Return in SQLite's words how it goes about the queries that reading causes."""
    asked = []
    with Catalogue(path) as catalogue:
        HANDLES[0].set_trace_callback(asked.append)
        read(catalogue)
    assert asked
    connection = sqlite3.connect(path)
    try:
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in asked]
    finally:
        connection.close()
    return [" / ".join(step[3] for step in plan) for plan in plans]
