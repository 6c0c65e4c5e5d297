"""The statistics of a scan say of each kind of dataset what is in it, in a form for charts, terminals and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from table_text_fakes import Scanned, catalogue_of

from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.datasets.statistics import Statistics, statistics_lines, statistics_of
from ziggurat.errors import DataError
from ziggurat.records.schema import Column, Schema

CATS = Schema(kind="image-classification", class_names=("cat", "dog", "eel"))


def pictures(path: Path, count: int = 100) -> Catalogue:
    """Write a catalog of images: three of four are cats, one of five is in val."""
    with CatalogueWriter(path) as writer:
        for number in range(count):
            sample = Sample(
                key=f"{number}.jpg",
                parts=(f"{number}.jpg",),
                label=int(number % 4 == 3),
                split="val" if number % 5 == 4 else "train",
                size_bytes=1000 + number,
                group=f"patient {number // 10}",
                time=1.6e9 + number,
            )
            width = 640 if number % 2 else 320
            writer.add(replace(Entry.of_sample(number, sample), width_px=width, height_px=240, stored_bytes=500))
        writer.add_problem(Problem(key="x.jpg", kind="unreadable", reason="It is empty.", left_out=True))
        writer.note("schema", CATS.as_json())
    return Catalogue(path)


def read(catalogue: Catalogue, schema: Schema | None = None) -> Statistics:
    """Return the statistics of a catalog that nothing else reads."""
    with catalogue:
        return statistics_of(catalogue, schema)


def test_counts_of_splits_and_classes(tmp_path: Path) -> None:
    found = read(pictures(tmp_path / "c.sqlite"))
    assert (found.kind, found.total, found.samples) == ("image-classification", 100, {"train": 80, "val": 20})
    assert [(each.name, each.counts) for each in found.classes] == [
        ("cat", {"train": 60, "val": 15}),
        ("dog", {"train": 20, "val": 5}),
        ("eel", {"train": 0, "val": 0}),
    ]
    assert (found.groups, found.times, found.problems) == (10, (1.6e9, 1.6e9 + 99), {"unreadable": 1})
    assert found.notes == ()


def test_sizes_of_pictures(tmp_path: Path) -> None:
    found = read(pictures(tmp_path / "c.sqlite")).pictures
    assert found is not None
    assert (found.width_px.minimum, found.width_px.maximum, found.height_px.mean) == (320, 640, 240)
    assert found.aspect.mean == pytest.approx(2.0)
    assert [(bar.name, bar.count) for bar in found.sizes] == [("320 x 240", 50), ("640 x 240", 50)]


def test_statistics_are_json(tmp_path: Path) -> None:
    found = read(pictures(tmp_path / "c.sqlite"))
    content = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert content["classes"][0] == {"number": 0, "name": "cat", "counts": {"train": 60, "val": 15}}
    assert content["source_bytes"]["count"] == 100


def test_objects_of_a_detection_set(tmp_path: Path) -> None:
    labels = [
        [{"class": 0, "box": [0, 0, 10, 20]}, {"class": 1, "box": [5, 5, 15, 15], "crowd": True}],
        [],
        [{"class": 1, "box": [0, 0, 30, 20], "difficult": True}, {"class": -1, "box": [0, 0, 1, 1]}],
    ]
    schema = Schema(kind="detection", class_names=("car", "van"))
    with CatalogueWriter(tmp_path / "c.sqlite") as writer:
        for number, label in enumerate(labels):
            entry = Entry.of_sample(number, Sample(key=str(number), parts=(str(number),), label=label, split="train"))
            writer.add(replace(entry, width_px=100, height_px=40))
    found = read(Catalogue(tmp_path / "c.sqlite"), schema)
    objects = found.objects
    assert objects is not None
    assert (objects.total, objects.pictures_without, objects.crowds, objects.difficult) == (4, 1, 1, 1)
    assert objects.width_px is not None
    assert (objects.width_px.count, objects.width_px.minimum, objects.width_px.maximum) == (3, 10, 30)
    assert objects.relative_area is not None
    assert objects.relative_area.maximum == pytest.approx(0.15)
    assert [each.total for each in found.classes] == [1, 2]


def test_columns_of_a_table(tmp_path: Path) -> None:
    rows = "".join(f"{number},{'red' if number % 3 else 'blue'},2020-01-01,{number}.5\n" for number in range(60))
    (tmp_path / "t.csv").write_text("a,colour,day,y\n,red,,1.25\n" + rows)
    scanned = Scanned(TableImporter(), tmp_path / "t.csv")
    found = read(scanned.catalogue(tmp_path / "c.sqlite"))
    number, colour, day, target = found.columns
    assert number.numbers is not None
    assert (number.count, number.missing, number.numbers.maximum, number.different) == (60, 1, 59, 60)
    assert [(bar.name, bar.count) for bar in colour.bars] == [("red", 41), ("blue", 20)]
    assert day.numbers is not None
    assert day.numbers.minimum == 1577836800.0
    assert target.is_target
    assert found.labels[0].minimum == 0.5
    assert found.classes == ()


def test_words_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.neg").write_text("the film was bad\nthe plot was bad\nit was so bad\nthe end\n" * 5)
    (tmp_path / "a.pos").write_text("the film was good\na good plot it was\nthe actors were good\n" * 5)
    scanned = Scanned(TextImporter(), tmp_path)
    found = read(scanned.catalogue(tmp_path / "c.sqlite")).texts
    assert found is not None
    assert found.words is not None
    assert (found.looked_at, found.words.minimum, found.words.maximum) == (35, 2, 5)
    assert found.frequent_words["neg"][0].name == "bad"
    assert (found.telling_words["neg"][0].name, found.telling_words["neg"][0].count) == ("bad", 15)
    assert found.telling_words["pos"][0].name == "good"


def test_numbers_that_are_to_be_predicted(tmp_path: Path) -> None:
    samples = [Sample(key=str(number), parts=("x",), label=[number, 0.5]) for number in range(5)]
    found = read(catalogue_of(tmp_path / "c.sqlite", Schema(kind="image-regression"), samples))
    assert [label.mean for label in found.labels] == [2.0, 0.5]
    assert found.samples == {"": 5}


def test_a_choice_is_random_repeatable_and_said(tmp_path: Path) -> None:
    schema = Schema(kind="table", columns=(Column(name="x", type="number"),))
    samples = [Sample(key=str(number), parts=(f"[{number}]".encode(),)) for number in range(500)]
    with catalogue_of(tmp_path / "c.sqlite", schema, samples) as catalogue:

        def mean(seed: int) -> float:
            numbers = statistics_of(catalogue, samples=50, seed=seed).columns[0].numbers
            assert numbers is not None
            assert numbers.count == 50
            return numbers.mean

        assert mean(1) == mean(1) != mean(2)
        notes = statistics_of(catalogue, samples=50).notes
    assert notes == ("Numbers of columns are those of 50 random samples of 500.",)


def test_a_catalogue_without_a_schema_needs_one(tmp_path: Path) -> None:
    with CatalogueWriter(tmp_path / "c.sqlite"):
        pass
    with pytest.raises(DataError, match="Statistics need the schema of the samples"):
        read(Catalogue(tmp_path / "c.sqlite"))
    empty = read(Catalogue(tmp_path / "c.sqlite"), CATS)
    assert (empty.total, empty.pictures) == (0, None)
    assert statistics_lines(empty)[0] == "0 samples of kind image-classification"


def test_lines_for_a_terminal(tmp_path: Path) -> None:
    lines = statistics_lines(read(pictures(tmp_path / "c.sqlite")))
    assert lines[:7] == [
        "100 samples of kind image-classification: train 80, val 20",
        "10 groups",
        "taken from 2020-09-13 12:26 to 2020-09-13 12:28",
        "",
        "class  train  val",
        "cat       60   15  ████████████████████",
        "dog       20    5  ███████",
    ]
    assert any(line.startswith("width, px") and "320" in line and "640" in line for line in lines)
    assert "problems: unreadable 1" in lines


def test_statistics_of_nothing_are_lines_too() -> None:
    assert statistics_lines(Statistics(kind="table", samples={})) == ["0 samples of kind table"]
