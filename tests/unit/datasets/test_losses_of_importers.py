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
    assert lost(found) == {"train/loose.txt": "no-label"}
    assert [problem.kind for problem in found.problems] == ["other-files", "no-label"]


def test_a_folder_whose_files_are_mostly_no_texts_is_a_loss(tmp_path):
    folders(tmp_path, "good/1.txt", "bad/1.txt", "odd/1.txt", "odd/2.html", "odd/3.html")
    (problem,) = Scanned(TextImporter(), tmp_path, layout="folders").problems
    assert (problem.key, problem.names) == ("odd", 1)


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
