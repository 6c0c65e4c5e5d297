"""What importers of folders, pairs, arrays and texts do not take is counted: images in, images out and reported."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.datasets.folder_sets import Scanned, put
from tests.unit.datasets.small_sources import request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.formats.arrays.importer import ArraysImporter
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.image_pairs.importer import ImagePairsImporter
from ziggurat.datasets.formats.siamese_pairs.importer import SiamesePairsImporter
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.errors import ConfigurationError, DataError

PROPERTY: Mapping[str, Any] = {
    "max_examples": 25,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
    "derandomize": True,
    "deadline": None,
}


def lost(found: Scanned) -> dict[str, str]:
    return {problem.key: problem.kind for problem in found.problems if problem.left_out}


def test_a_class_that_only_val_has_is_counted_by_image(tmp_path):
    put(tmp_path, *(f"train/{name}/{number}.png" for name in "ab" for number in range(2)))
    put(tmp_path, "val/a/5.png", *(f"val/c/{number}.png" for number in range(3)))
    (loss,) = create_dataset(request(tmp_path, format="class_folders"), tmp_path / "set").losses
    assert loss["text"] == "3 of 8 images were dropped: the first split lacks their class."


def test_a_class_of_one_image_is_a_loss_unless_asked_for(tmp_path):
    put(tmp_path, "rare/1.png", *(f"{name}/{number}.png" for name in "ab" for number in range(3)))
    said = [problem.names for problem in Scanned(ClassFolders(), tmp_path).problems]
    assert said == [1]
    (loss,) = create_dataset(request(tmp_path), tmp_path / "set").losses
    assert loss["text"] == "1 name was dropped: they have fewer images than `min_per_class`."
    shutil.rmtree(tmp_path / "set")
    assert [problem.names for problem in Scanned(ClassFolders(), tmp_path, min_per_class=3).problems] == [0]


@settings(**PROPERTY)
@given(
    st.sets(
        st.tuples(st.sampled_from(["train", "val"]), st.sampled_from(["", "a", "b", "c"]), st.integers(0, 2)),
        max_size=18,
    )
)
def test_images_of_class_folders_come_or_are_reported(tmp_path_factory, places):
    root = tmp_path_factory.mktemp("set")
    fixed = [f"train/{name}/x{number}.png" for name in "ab" for number in range(2)] + ["val/a/y.png"]
    put(root, *fixed, *(f"{split}/{name}/{number}.png" for split, name, number in places))
    found = Scanned(ClassFolders(), root, splits="yes", min_per_class=1)
    assert len(found.samples) + len(lost(found)) == len(list(root.rglob("*.png")))


def test_a_second_partner_of_one_name_is_reported(tmp_path):
    put(tmp_path, "input/a.png", "target/a.png", "target/a.jpg")
    assert lost(Scanned(ImagePairsImporter(), tmp_path)) == {"target/a.png": "no-partner"}


def test_images_beside_the_splits_of_an_auto_encoder_come(tmp_path):
    put(tmp_path, "train/a.png", "val/b.png", "more/c.png", "d.png")
    found = Scanned(ImagePairsImporter(), tmp_path, auto_encoder=True)
    assert found.splits == {"train/a.png": "train", "val/b.png": "val", "more/c.png": "", "d.png": ""}


def test_targets_without_inputs_are_refused(tmp_path):
    put(tmp_path, "x/a.png")
    with pytest.raises(ConfigurationError, match="`inputs` is missing") as caught:
        Scanned(ImagePairsImporter(), tmp_path, val_inputs="x")
    assert caught.value.details["field"] == "options.inputs"


@settings(**PROPERTY)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_images_of_pairs_come_or_are_reported(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("set")
    put(root, "input/x.png", "target/x.png")
    for name, first, second in rows:
        put(root, *([f"input/{name}.png"] * first), *([f"target/{name}.png"] * second))
    found = Scanned(ImagePairsImporter(), root)
    assert 2 * len(found.samples) + len(lost(found)) == len(list(root.rglob("*.png")))


def test_loose_images_beside_classes_of_pairs_are_reported(tmp_path):
    put(tmp_path, "loose.png", *(f"{name}/{number}.png" for name in "ab" for number in range(2)))
    assert lost(Scanned(SiamesePairsImporter(), tmp_path)) == {"loose.png": "no-label"}
    put(
        tmp_path / "splits", "d.png", "other/e.png", *(f"train/{name}/{number}.png" for name in "ab" for number in "12")
    )
    found = lost(Scanned(SiamesePairsImporter(), tmp_path / "splits"))
    assert found == {"d.png": "no-label", "other/e.png": "no-label"}


def test_two_lines_that_contradict_each_other_are_a_loss(tmp_path):
    (tmp_path / "train.txt").write_text("a.png b.png 1\na.png b.png 0\na.png b.png 1\n")
    found = Scanned(SiamesePairsImporter(), tmp_path)
    assert [problem.kind for problem in found.problems] == ["other-label", "duplicate-key"]


def test_labels_without_an_array_are_reported(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.zeros(3))
    (tmp_path / "labels.csv").write_text("a.npy,1\ngone.npy,2\n")
    found = Scanned(ArraysImporter(), tmp_path)
    assert lost(found) == {"gone.npy": "no-picture"}
    assert {problem.key: problem.kind for problem in found.problems} == {"b.npy": "no-label", "gone.npy": "no-picture"}


@settings(**PROPERTY)
@given(st.lists(st.sampled_from(["good", "other", "broken"]), max_size=8))
def test_arrays_come_or_are_reported(tmp_path_factory, forms):
    root = tmp_path_factory.mktemp("set")
    np.save(root / "0.npy", np.zeros(3))
    for number, form in enumerate(forms, 1):
        if form == "broken":
            (root / f"{number}.npy").write_bytes(b"nothing")
        else:
            np.save(root / f"{number}.npy", np.zeros(3 if form == "good" else 4))
    found = Scanned(ArraysImporter(), root)
    assert len(found.samples) + len(lost(found)) == len(forms) + 1


# ---- texts


TEXT = "a text of some words"


def folders(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(TEXT)
    return root


def test_texts_beside_the_folders_of_classes_are_reported(tmp_path):
    folders(tmp_path, "train/good/1.txt", "train/bad/1.txt", "train/loose.txt", "train/good/page.html")
    found = Scanned(TextImporter(), tmp_path, layout="folders")
    assert lost(found) == {"train/good/1.txt": "no-label", "train/loose.txt": "no-label"}
    assert [problem.kind for problem in found.problems] == ["other-files", "no-label", "no-label"]


def test_a_folder_whose_files_are_mostly_no_texts_is_a_loss(tmp_path):
    folders(tmp_path, "good/1.txt", "bad/1.txt", "odd/1.txt", "odd/2.html", "odd/3.html")
    folder, text = Scanned(TextImporter(), tmp_path, layout="folders").problems
    assert (folder.key, folder.names) == ("odd", 1)
    assert (text.key, text.left_out) == ("odd/1.txt", True)


def test_classes_that_are_not_chosen_are_no_loss(tmp_path):
    folders(tmp_path, "good/1.txt", "bad/1.txt", "odd/1.txt", "odd/2.txt")
    manifest = create_dataset(request(tmp_path, format="text", options={"classes": ["good", "bad"]}), tmp_path / "set")
    assert (manifest.problems["not-listed"], manifest.losses) == (2, ())


def test_whole_floats_are_classes_of_texts_too(tmp_path):
    lines = [f"{TEXT} {number},{('1.0', '0.0', '10.0')[number % 3]}" for number in range(9)]
    (tmp_path / "t.csv").write_text("text,label\n" + "\n".join(lines))
    assert Scanned(TextImporter(), tmp_path / "t.csv").schema.class_names == ("0", "1", "10")


def test_lists_of_classes_in_json_lines_are_a_loss(tmp_path):
    rows = '{"text": "a b c", "label": "x"}\n{"text": "a b c", "label": ["x", "y"]}\n'
    (tmp_path / "t.jsonl").write_text(rows)
    found = Scanned(TextImporter(), tmp_path / "t.jsonl")
    assert (found.schema.class_names, lost(found)) == (("x",), {"t.jsonl:2": "no-label"})


@settings(**PROPERTY)
@given(
    st.lists(
        st.tuples(st.sampled_from([TEXT, "", " ", "text"]), st.sampled_from(["x", "y", "", "label"]), st.booleans()),
        max_size=12,
    )
)
def test_texts_of_rows_come_or_are_reported(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("set")
    lines = [f"{text},{label}" + ",more" * is_long for text, label, is_long in rows]
    (root / "t.csv").write_text("\n".join(["text,label", *lines, f"{TEXT},x"]) + "\n")
    try:
        found = Scanned(TextImporter(), root / "t.csv", text="text", label="label", header="yes")
    except DataError:
        pytest.fail("it has a text with a class")
    assert len(found.samples) + len(lost(found)) == len(rows) + 1


def test_texts_beside_the_folders_of_splits_are_reported(tmp_path):
    folders(tmp_path, "train/good/1.txt", "train/bad/1.txt", "unsup/odd/1.txt", "unsup/2.txt", "loose.txt")
    found = Scanned(TextImporter(), tmp_path, layout="folders")
    assert lost(found) == {"unsup/odd/1.txt": "no-label", "unsup/2.txt": "no-label", "loose.txt": "no-label"}


def test_files_of_lines_of_another_name_are_reported(tmp_path):
    for name in ("film.pos", "film.neg", "book.pos"):
        (tmp_path / name).write_text(f"{TEXT}\n" * 2)
    found = Scanned(TextImporter(), tmp_path, layout="lines")
    assert len(found.samples) == 4
    assert lost(found) == {"book.pos/line-000000": "no-label", "book.pos/line-000001": "no-label"}


@settings(**PROPERTY)
@given(
    st.sets(
        st.tuples(
            st.sampled_from(["train/", "val/", "", "more/"]),
            st.sampled_from(["", "good/", "bad/", "good/deep/", "mixed/"]),
            st.integers(0, 2),
            st.sampled_from([TEXT, "", "\0"]),
        ),
        max_size=10,
    ),
    st.booleans(),
)
def test_texts_of_folders_come_or_are_reported(tmp_path_factory, files, has_splits):
    root = tmp_path_factory.mktemp("set")
    place = "train/" if has_splits else ""
    folders(root, f"{place}good/x.txt", f"{place}bad/x.txt")
    for split, folder, number, text in files:
        if split in ("train/", "val/") and not has_splits:
            continue
        path = folders(root, f"{split}{folder}{number}.txt") / f"{split}{folder}{number}.txt"
        path.write_text(text)
    found = Scanned(TextImporter(), root, layout="folders")
    assert len(found.samples) + len(lost(found)) == len(list(root.rglob("*.txt")))


@settings(**PROPERTY)
@given(
    st.lists(
        st.tuples(st.sampled_from(["film", "book", "zine"]), st.sampled_from(["pos", "neg"]), st.booleans()),
        max_size=12,
    )
)
def test_lines_of_texts_come_or_are_reported(tmp_path_factory, lines):
    root = tmp_path_factory.mktemp("set")
    rows = [("film", "pos", True), ("film", "neg", True), *lines, *(("book", name, True) for name in ("pos", "neg"))]
    for stem, name, has_text in [*rows, *((stem, name, True) for stem, name, _ in rows)]:
        with (root / f"{stem}.{name}").open("a") as file:
            file.write(f"{TEXT if has_text else ' '}\n")
    found = Scanned(TextImporter(), root, layout="lines")
    assert len(found.samples) + len(lost(found)) == 2 * len(rows)


JSON_LINES = [
    '{"text": "a b", "label": "x"}',
    '{"text": "a b"}',
    '{"label": "x"}',
    '{"text": 3, "label": "y"}',
    "{",
    "[1]",
]


@settings(**PROPERTY)
@given(
    st.lists(
        st.sampled_from([*JSON_LINES, '{"text": "", "label": "x"}', '{"text": "a", "label": null}', "7"]), max_size=9
    )
)
def test_json_lines_come_or_are_reported(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("set") / "t.jsonl"
    path.write_text("\n".join([JSON_LINES[0], *lines]) + "\n")
    found = Scanned(TextImporter(), path)
    assert len(found.samples) + len(lost(found)) == len(lines) + 1


# ---- pairs of images


def test_a_list_named_validation_is_read_too(tmp_path):
    (tmp_path / "train.txt").write_text("a.png b.png 1\n")
    (tmp_path / "validation.txt").write_text("c.png d.png 0\n")
    assert list(Scanned(SiamesePairsImporter(), tmp_path).splits.values()) == ["train", "val"]


@settings(**PROPERTY)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["train", "val", "validation", "test", "pairs"]),
            st.sampled_from("ab"),
            st.sampled_from(["c.png 1", "c.png 0", "c.png 2", "c.png", "../c.png 1", "c.png d.png 1"]),
        ),
        max_size=10,
    )
)
def test_lines_of_pairs_come_or_are_reported(tmp_path_factory, lines):
    root = tmp_path_factory.mktemp("set")
    (root / "train.txt").write_text("x.png y.png 1\n")
    for name, first, rest in lines:
        with (root / f"{name}.txt").open("a") as file:
            file.write(f"{first}.png {rest}\n")
    found = Scanned(SiamesePairsImporter(), root)
    assert len(found.samples) + sum(problem.left_out for problem in found.problems) == len(lines) + 1


@settings(**PROPERTY)
@given(
    st.sets(
        st.tuples(
            st.sampled_from(["train/", "val/", ""]), st.sampled_from(["", "a/", "b/", "c/in/"]), st.integers(0, 2)
        ),
        max_size=10,
    )
)
def test_images_of_classes_become_pairs_or_are_reported(tmp_path_factory, places):
    root = tmp_path_factory.mktemp("set")
    put(root, "train/a/x.png", "train/b/x.png", *(f"{split}{folder}{number}.png" for split, folder, number in places))
    found = Scanned(SiamesePairsImporter(), root)
    assert {sample.parts[0] for sample in found.samples} | set(lost(found)) == {
        path.relative_to(root).as_posix() for path in root.rglob("*.png")
    }
