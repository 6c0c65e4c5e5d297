"""What is exported as folders or lists comes back the same: keys, splits, labels, class names, images."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.datasets.folder_sets import MemoryDataset, Scanned, picture, put
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.class_folders.exporter import export_class_folders
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.text_list.exporter import export_text_list
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.errors import DataError, StorageError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

CLASSES = Schema(kind="image-classification", class_names=("zebra", "ape", "none yet"))
SPLIT = {
    "train": [("b/1.png", picture(1), 0), ("a/1.png", picture(2), 1), ("b/0.png", picture(3), 0)],
    "val": [("train/ape/2.jpg", picture(4, ".jpg"), 1), ("c.jpg", picture(5), 0)],
    "test": [],
}


def contents(dataset):
    return {(sample.key, sample.split): (sample.label, sample.parts[0]) for sample in dataset.samples()}


def come_back(importer, folder):
    found = Scanned(importer, folder)
    assert found.problems == []
    reader = importer.reader(folder, {})
    return found, {(each.key, each.split): (each.label, reader.read(str(each.parts[0]))) for each in found.samples}


def test_class_folders(tmp_path):
    dataset = MemoryDataset(CLASSES, SPLIT)
    report = export_class_folders(dataset, tmp_path / "out")
    assert (report.counts, report.problems, report.notes) == ({"train": 3, "val": 2, "test": 0}, [], [])
    files = {str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*.[pj][np]g")}
    assert files == {
        "train/zebra/b/1.png",
        "train/zebra/b/0.png",
        "train/ape/a/1.png",
        "val/ape/train/ape/2.jpg",
        "val/zebra/c.jpg.png",  # its bytes are PNG
    }
    found, back = come_back(ClassFolders(), tmp_path / "out")
    assert back == contents(dataset)
    assert found.schema.class_names == CLASSES.class_names
    assert [key for key in found.labels if key.startswith("b/")] == ["b/1.png", "b/0.png"]
    guess = ClassFolders().guess(tmp_path / "out")
    assert guess is not None
    assert guess.confidence > 0.95


def test_class_folders_that_came_as_such_need_no_lists_of_keys(tmp_path):
    names = [f"train/{name}/{part}{number}.png" for name in ("a_b", "c") for part in ("", "x/") for number in range(3)]
    source = put(tmp_path / "in", *names)
    found, back = come_back(ClassFolders(), source)
    rows = [(each.key, back[each.key, "train"][1], each.label) for each in found.samples]
    export_class_folders(MemoryDataset(found.schema, {"train": rows}), tmp_path / "out")
    assert list(tmp_path.joinpath("out").rglob(".ziggurat-keys.jsonl")) == []
    assert come_back(ClassFolders(), tmp_path / "out")[1] == back
    assert Scanned(ClassFolders(), tmp_path / "out").schema == found.schema


def test_the_order_of_many_pictures_of_a_class(tmp_path):
    rows = [(f"{number * 37 % 131}.png", picture(number), 0) for number in range(131)]
    export_class_folders(MemoryDataset(CLASSES, {"train": rows}), tmp_path)
    assert list(Scanned(ClassFolders(), tmp_path).labels) == [key for key, _, _ in rows]


def test_an_export_may_be_edited_afterwards(tmp_path):
    export_class_folders(MemoryDataset(CLASSES, SPLIT), tmp_path)
    tmp_path.joinpath("train/zebra/b/1.png").unlink()
    put(tmp_path, "train/zebra/new.png", "val/none yet/new.png")
    found = Scanned(ClassFolders(), tmp_path)
    assert found.classes == {
        "a/1.png": "ape",
        "b/0.png": "zebra",
        "train/zebra/new.png": "zebra",
        "train/ape/2.jpg": "ape",
        "c.jpg": "zebra",
        "val/none yet/new.png": "none yet",
    }
    tmp_path.joinpath("ziggurat-classes.json").write_text("[]")
    with pytest.raises(DataError, match=r"ziggurat-classes.json` does not list the classes of an export"):
        Scanned(ClassFolders(), tmp_path)


def test_lists(tmp_path):
    dataset = MemoryDataset(CLASSES, SPLIT)
    report = export_text_list(dataset, tmp_path / "out")
    assert report.counts == {"train": 3, "val": 2, "test": 0}
    assert report.notes == ["The split test is empty, and has no list."]
    assert (tmp_path / "out/train.txt").read_text() == "b/1.png 0\na/1.png 1\nb/0.png 0\n"
    assert (tmp_path / "out/val.txt").read_text() == "train/ape/2.jpg 1\nc.jpg.png 0\n"
    assert (tmp_path / "out/labels.txt").read_text() == "zebra\nape\nnone yet\n"
    assert sorted(os.listdir(tmp_path / "out"))[-3:] == ["train.txt", "val.keys.jsonl", "val.txt"]
    found, back = come_back(TextList(), tmp_path / "out")
    assert back == contents(dataset)
    assert list(found.labels) == [sample.key for sample in dataset.samples()]
    assert found.schema.class_names == CLASSES.class_names


def test_lists_of_values(tmp_path):
    rows = [("a b.png", picture(), [1, 0.1]), ("c.png", picture(), [-1e-300, 1e22])]
    dataset = MemoryDataset(Schema(kind="image-regression"), {"train": rows})
    export_text_list(dataset, tmp_path)
    assert (tmp_path / "train.txt").read_text().splitlines()[0] == "a b.png\t1.0\t0.1"
    found, back = come_back(TextList(), tmp_path)
    assert back == contents(dataset)
    assert found.schema.kind == "image-regression"


def test_a_list_that_was_edited(tmp_path):
    rows = [(f"{number}.jpg", picture(number), number % 3) for number in range(6)]  # PNG under names of JPEG
    export_text_list(MemoryDataset(CLASSES, {"train": rows}), tmp_path)
    lines = (tmp_path / "train.txt").read_text().splitlines()
    put(tmp_path, "new.png")
    (tmp_path / "train.txt").write_text("\n".join(["new.png 2", *lines[3:], lines[0]]))
    assert list(Scanned(TextList(), tmp_path).labels) == ["new.png", "3.jpg", "4.jpg", "5.jpg", "0.jpg"]


PLACES = st.tuples(st.sampled_from(["train", "val", "test"]), st.integers(0, 2))
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@example({"/": ("train", 0), "..": ("train", 0), "train/a/": ("train", 1)}, ["a", ".", "A"], ".png")
@given(
    st.dictionaries(
        KEYS, st.tuples(st.sampled_from(["train", "val", "test"]), st.integers(0, 2)), min_size=1, max_size=8
    ),
    st.lists(KEYS, min_size=3, max_size=3, unique=True),
    st.sampled_from([".png", ".jpg", ".bmp"]),
)
def test_any_keys_and_class_names_come_back(content, names, suffix):
    splits = [split for split in ("train", "val", "test") if split in {split for split, _ in content.values()}]
    rows: dict[str, list[tuple[str, bytes, int]]] = {split: [] for split in splits}
    for number, (key, (split, label)) in enumerate(content.items()):
        rows[split].append((key, picture(number, suffix), label))
    dataset = MemoryDataset(Schema(kind="image-classification", class_names=tuple(names)), rows)
    with TemporaryDirectory() as folder:
        export_class_folders(dataset, Path(folder) / "folders")
        found, back = come_back(ClassFolders(), Path(folder) / "folders")
        assert back == contents(dataset)
        assert found.schema.class_names == tuple(names)
        report = export_text_list(dataset, Path(folder) / "lists")
        found, back = come_back(TextList(), Path(folder) / "lists")
        assert back == contents(dataset)
        assert found.schema.class_names == tuple(names) or report.notes


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    put(tmp_path, "mine.png")
    for export in (export_class_folders, export_text_list):
        with pytest.raises((DataError, StorageError)):
            export(MemoryDataset(CLASSES, SPLIT), tmp_path)
    assert os.listdir(tmp_path) == ["mine.png"]


def test_other_kinds_are_refused(tmp_path):
    dataset = MemoryDataset(Schema(kind="detection"), {"train": []})
    with pytest.raises(DataError, match="The format class_folders holds datasets of kind image-classification"):
        export_class_folders(dataset, tmp_path / "a")
    with pytest.raises(DataError, match="text_list holds datasets of kind image-classification or image-regression"):
        export_text_list(dataset, tmp_path / "b")


def test_from_folders_to_a_data_set_to_an_archive_to_a_data_set(tmp_path):
    """The whole way, with arrays in the records: what is exported then is PNG."""
    rng = np.random.default_rng(0)
    for number in range(12):
        path = tmp_path / "in" / ("train", "val")[number % 2] / ("t_shirt", "hat")[number // 6] / f"{number}.bmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_image(rng.integers(0, 256, (8, 8, 3), np.uint8), "bmp"))
    form = ImageForm(encoding="raw", resize_mode="squash", height_px=8, width_px=8)
    first = CreationRequest(name="x", source=str(tmp_path / "in"), format="class_folders", image=form, workers=0)
    create_dataset(first, tmp_path / "one")
    with Dataset(tmp_path / "one") as one:
        export_class_folders(one, tmp_path / "out")
        archive = shutil.make_archive(str(tmp_path / "x"), "zip", tmp_path / "out")
        second = CreationRequest(name="x", source=archive, format="class_folders", image=form, workers=0)
        create_dataset(second, tmp_path / "two")
        with Dataset(tmp_path / "two") as two:
            assert two.schema == one.schema
            pairs = list(zip(one.samples(), two.samples(), strict=True))
            assert len(pairs) == 12
            for here, there in pairs:
                assert (here.key, here.split, here.label) == (there.key, there.split, there.label)
                np.testing.assert_array_equal(here.parts[0], there.parts[0])
