"""Datasets become one: classes by name, keys told apart, duplicates found, and nothing that does not fit together."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from small_datasets_for_versions import (
    ANIMALS,
    PNG,
    animals,
    box,
    catalogued,
    content,
    datasets_are_closed,  # noqa: F401
    one_of_each_kind,
    opened,
    picture,
    png,
    write_dataset,
)

from ziggurat.datasets.samples import Problem
from ziggurat.datasets.versions import Exclude, Relabel, make_version, merge_datasets
from ziggurat.errors import DataError, UsageError
from ziggurat.records.schema import Column, Schema


def joined(datasets, folder, **options):
    """Join datasets; records and catalog agree."""
    merge_datasets(datasets, folder, **options)
    made = opened(folder)
    assert catalogued(made) == content(made)
    return made


def test_splits_are_joined_one_after_the_other(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(3), "val": animals(1, first=3)}, mean=True)
    b = write_dataset(tmp_path / "b", {"train": animals(2, first=4), "test": animals(1, first=6)}, mean=True)
    made = joined([a, b], tmp_path / "c", name="both")
    keys = {split: [key[:2] for key, _ in samples] for split, samples in content(made).items()}
    assert keys == {"train": ["00", "01", "02", "04", "05"], "val": ["03"], "test": ["06"]}
    assert [note.path for note in made.manifest.splits["train"].stores] == ["train.lmdb", "train-2.lmdb"]
    assert made.manifest.splits["train"].rows == ""
    assert [(parent.id, parent.name) for parent in made.manifest.parents] == [
        (a.manifest.id, "a"),
        (b.manifest.id, "b"),
    ]
    assert made.manifest.parents[0].changes == ("Joined a and b.",)
    np.testing.assert_allclose(made.mean(), np.mean([picture(n) for n in (0, 1, 2, 4, 5)], axis=0), atol=1e-4)
    shutil.rmtree(tmp_path / "b")
    np.testing.assert_array_equal(made.picture("test", 0), picture(6))


def test_classes_are_the_same_where_their_names_are(tmp_path):
    a = write_dataset(
        tmp_path / "a", {"train": animals(3)}, replace(ANIMALS, details={"class_folders": ["c", "d", "o"]})
    )
    other = Schema(
        kind="image-classification", class_names=("owl", "ant", "cat"), details={"class_folders": ["o", "a", "c"]}
    )
    b = write_dataset(tmp_path / "b", {"train": animals(3, first=3)}, other)
    made = joined([a, b], tmp_path / "c")
    assert made.schema.class_names == ("cat", "dog", "owl", "ant")
    assert made.schema.details == {"class_folders": ["c", "d", "o", "a"]}
    assert [label for _, label in content(made)["train"]] == [0, 1, 2, 2, 3, 0]
    assert made.manifest.splits["train"].class_counts == (2, 1, 2, 1)
    lines = (tmp_path / "c" / "train.labels.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [[3, 2], [4, 3], [5, 0]]  # only what differs from the records


def test_objects_get_the_numbers_of_the_joined_classes(tmp_path):
    def streets(name, classes, label, number):
        schema = Schema(kind="detection", class_names=classes, details={"coco": {"categories": [{"id": 1}, {"id": 2}]}})
        return write_dataset(tmp_path / name, {"train": [(f"{name}.png", (png(picture(number)),), label)]}, schema)

    a = streets("a", ("car", "bus"), [box(0), box(1)], 1)
    b = streets("b", ("bus", "tram"), [box(0), box(1), box(-1)], 2)
    made = joined([a, b], tmp_path / "c")
    assert made.schema.class_names == ("car", "bus", "tram")
    assert [label for _, label in content(made)["train"]] == [[box(0), box(1)], [box(1), box(2), box(-1)]]
    assert made.schema.details == {"coco": {}}  # two classes would have the id 2
    assert made.catalogue.class_counts() == {-1: 1, 0: 1, 1: 2, 2: 1}


def test_keys_that_are_in_both_get_a_prefix(tmp_path):
    listed = [Problem(key="01.png", kind="odd", reason="It is odd.")]
    a = write_dataset(tmp_path / "a", {"train": animals(2), "val": animals(1, first=2)})
    samples = [(key, (png(picture(number + 50)),), label) for number, (key, _, label) in enumerate(animals(3))]
    b = write_dataset(tmp_path / "b", {"train": samples}, problems=listed, store="tfrecord")
    made = joined([a, b], tmp_path / "c")
    keys = [key for key, _ in content(made)["train"]]
    assert keys == ["00.png", "01.png", "b/00.png", "b/01.png", "b/02.png"]
    assert made.catalogue.problems_of(["b/01.png"])["b/01.png"][0].kind == "odd"
    assert made.manifest.parents[1].changes == ("Joined a and b.", "Put b/ before the keys of b.")
    assert made.manifest.splits["train"].stores[1].record_format == "tfrecord"
    np.testing.assert_array_equal(made.picture("train", 4), picture(52))
    thrice = joined([a, made, b], tmp_path / "d")
    keys = [key for key, _ in content(thrice)["train"]]
    assert len(set(keys)) == len(keys) == 10
    assert keys[:3] == ["00.png", "01.png", "a/00.png"]


def test_duplicates_are_listed_or_left_out(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(3)})
    again = [("copy.png", (png(picture(1)),), 0), ("new.png", (png(picture(9)),), 0), ("00.png", (png(picture(0)),), 0)]
    b = write_dataset(tmp_path / "b", {"train": again})
    kept = joined([a, b], tmp_path / "c")
    assert len(kept) == 6
    assert [(each.key, each.reason, each.left_out) for each in kept.catalogue.problems("duplicate")] == [
        ("b/copy.png", "It has the content of 01.png.", False),
        ("b/00.png", "It has the content of 00.png.", False),
    ]
    without = joined([a, b], tmp_path / "d", duplicates="leave-out")
    assert [key for key, _ in content(without)["train"]] == ["00.png", "01.png", "02.png", "new.png"]
    assert without.manifest.problems == {"duplicate": 2}
    assert without.manifest.parents[0].changes == ("Joined a and b.", "Left out 2 samples that came twice.")
    with pytest.raises(UsageError, match="keep or leave-out"):
        merge_datasets([a, b], tmp_path / "e", duplicates="drop")


def test_a_data_set_joined_with_its_version_shares_its_files(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(4)})
    make_version(a, [Exclude("train", [0]), Relabel("train", [1], 2)], tmp_path / "b", name="b")
    made = joined([a, opened(tmp_path / "b")], tmp_path / "c", duplicates="leave-out")
    assert content(made) == content(a)
    assert [path.name for path in (tmp_path / "c").glob("*.lmdb")] == ["train.lmdb"]


def test_changes_go_on_with_what_was_joined(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(2)})
    b = write_dataset(tmp_path / "b", {"train": [("00.png", (png(picture(8)),), 0)]})
    made = opened(tmp_path / "c") if make_version([a, b], Relabel("train", [2], "owl"), tmp_path / "c") else None
    assert content(made)["train"] == [("00.png", 0), ("01.png", 1), ("b/00.png", 2)]
    make_version([a, b], Exclude("train", ["b/00.png"]), tmp_path / "d")
    assert content(opened(tmp_path / "d")) == content(a)


@pytest.mark.parametrize("kind", one_of_each_kind())
def test_every_kind_can_be_joined(kind, tmp_path):
    schema, form, samples = one_of_each_kind()[kind]
    others = [(f"other {key}", *rest) for key, *rest in samples]
    parents = [
        write_dataset(tmp_path / name, {"train": some}, schema, image=form)
        for name, some in (("a", samples), ("b", others))
    ]
    made = joined(parents, tmp_path / "c")
    assert content(made)["train"] == content(parents[0])["train"] + content(parents[1])["train"]


def test_tables_are_joined_with_all_categories(tmp_path):
    def table(name, categories, column="size"):
        columns = (
            Column(name=column, type="number", missing=1),
            Column(name="k", type="category", categories=categories),
        )
        schema = Schema(kind="table", columns=columns, target="size")
        rows = [
            (f"{name}-{number}", (json.dumps([number, categories[0]]).encode(),), float(number)) for number in range(2)
        ]
        return write_dataset(tmp_path / name, {"train": rows}, schema, image=None)

    made = joined([table("a", ("x", "y")), table("b", ("z", "x"))], tmp_path / "c")
    assert made.schema.columns[1].categories == ("x", "y", "z")
    assert made.schema.columns[0].missing == 2
    with pytest.raises(DataError, match=r"a and d, with columns \(length: number, size: number\)"):
        merge_datasets([opened(tmp_path / "a"), table("d", ("x",), "length")], tmp_path / "e")


def test_what_does_not_fit_is_said_with_advice(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(1)})

    def refused(schema=ANIMALS, image=PNG, samples=None):
        other = write_dataset(tmp_path / "b", {"train": samples or animals(1, first=5)}, schema, image=image)
        other.close()
        with pytest.raises(DataError) as caught:
            merge_datasets([a, other], tmp_path / "c")
        shutil.rmtree(tmp_path / "b")
        assert not (tmp_path / "c").exists()
        return str(caught.value)

    said = refused(Schema(kind="image-regression"), samples=[("x", (b"",), [1.0])])
    assert "a and b, with image-classification (image) and image-regression (image)" in said
    assert "with height 6 and 12" in refused(image=replace(PNG, height_px=12))
    assert "with channels 3 and 1" in refused(image=replace(PNG, channels=1))
    assert "with labels with and without classes" in refused(Schema(kind="image-classification"))
    with pytest.raises(UsageError, match="at least one dataset"):
        merge_datasets([], tmp_path / "c")


def test_masks_are_joined_where_their_numbers_mean_the_same(tmp_path):
    schema, form, samples = one_of_each_kind()["segmentation"]
    a = write_dataset(tmp_path / "a", {"train": samples}, schema, image=form)
    b = write_dataset(
        tmp_path / "b", {"train": samples}, replace(schema, class_names=("dog", "cat", "owl")), image=form
    )
    with pytest.raises(DataError, match="the classes cat, dog, owl and dog, cat, owl"):
        merge_datasets([a, b], tmp_path / "c")
    c = write_dataset(tmp_path / "c", {"train": samples}, replace(schema, ignore_class=None), image=form)
    with pytest.raises(DataError, match="the numbers 255 and None for pixels that do not count"):
        merge_datasets([a, c], tmp_path / "d")


def test_pictures_of_different_forms_stay_as_they_are(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(1)}, image=replace(PNG, height_px=None, width_px=None))
    b = write_dataset(tmp_path / "b", {"train": animals(1, first=1)}, image=replace(PNG, encoding="jpeg", quality=80))
    image = joined([a, b], tmp_path / "c").manifest.image
    assert image == replace(PNG, encoding="original", height_px=None, width_px=None, quality=80)
