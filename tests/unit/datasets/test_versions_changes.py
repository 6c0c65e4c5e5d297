"""A dataset never changes: every change makes a new one, which shares its records and can do without it."""

import shutil

import numpy as np
import pytest
from small_datasets_for_versions import (
    ANIMALS,
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

from ziggurat.datasets.catalog import SampleFilter
from ziggurat.datasets.versions import (
    DropClass,
    Exclude,
    KeepClasses,
    MergeClasses,
    Move,
    Relabel,
    RenameClass,
    Resplit,
    make_version,
)  # fmt: skip
from ziggurat.errors import DataError, StorageError, UnknownNameError, UsageError
from ziggurat.records.base import RecordIndexError
from ziggurat.records.schema import Schema


@pytest.fixture
def pets(tmp_path):
    """Six samples to train with (cat, dog, owl, cat, dog, owl), two for validation (cat, dog), one for the test."""
    splits = {"train": animals(6), "val": animals(2, first=6), "test": animals(1, first=8)}
    return write_dataset(tmp_path / "pets", splits, mean=True)


def version(parent, folder, *changes, **options):
    """Make a version; records and catalog of it agree."""
    make_version(parent, changes, folder, **options)
    made = opened(folder)
    assert catalogued(made) == content(made)
    return made


def test_samples_get_another_label(pets, tmp_path):
    made = version(pets, tmp_path / "b", Relabel("train", [0, 2], "dog"), Relabel("val", ["06.png"], 2))
    assert [label for _, label in content(made)["train"]] == [1, 1, 1, 0, 1, 2]
    assert content(made)["val"] == [("06.png", 2), ("07.png", 1)]
    assert made.manifest.splits["train"].class_counts == (1, 4, 1)
    assert made.catalogue.page(SampleFilter(class_number=2, split="val"))[0].key == "06.png"
    assert made.manifest.parents[0].changes == (
        "Gave 2 samples of train the label dog.",
        "Gave 1 sample of val the label owl.",
    )


def test_the_parent_stays_as_it_was_and_may_be_deleted(pets, tmp_path):
    before = content(pets)
    made = version(pets, tmp_path / "b", Relabel("train", [0], 1), Exclude("train", [1], "blurred"))
    assert content(pets) == before
    expected = content(made)
    pets.close()
    shutil.rmtree(tmp_path / "pets")
    again = opened(tmp_path / "b")
    assert content(again) == expected
    np.testing.assert_array_equal(again.picture("train", 0), picture(0))


def test_records_are_shared_and_not_copied(pets, tmp_path):
    version(pets, tmp_path / "b", Exclude("train", [1]))
    for name in ("train.lmdb", "val.lmdb", "test.lmdb"):
        assert (tmp_path / "b" / name).samefile(tmp_path / "pets" / name)


def test_samples_are_left_out_with_a_reason(pets, tmp_path):
    made = version(pets, tmp_path / "b", Exclude("train", np.array([4, 1]), "They are blurred."))
    assert [key for key, _ in content(made)["train"]] == ["00.png", "02.png", "03.png", "05.png"]
    problems = made.catalogue.problems("excluded")
    assert [(each.key, each.reason, each.left_out) for each in problems] == [
        ("01.png", "They are blurred.", True),
        ("04.png", "They are blurred.", True),
    ]
    assert made.manifest.problems == {"excluded": 2}
    assert made.manifest.parents[0].changes == ("Left out 2 samples of train: They are blurred.",)


def test_samples_move_to_another_split(pets, tmp_path):
    made = version(pets, tmp_path / "b", Move("train", ["05.png", "00.png"], "test"))
    assert [key for key, _ in content(made)["test"]] == ["00.png", "05.png", "08.png"]
    assert [store.path for store in made.manifest.splits["test"].stores] == ["train.lmdb", "test.lmdb"]
    assert made.manifest.splits["test"].rows == "test.rows.npy"
    np.testing.assert_array_equal(made.picture("test", 1), picture(5))


def test_a_split_may_come_and_go(pets, tmp_path):
    made = version(pets, tmp_path / "b", Move("test", [0], "val"))
    assert made.splits == ("train", "val")
    again = version(made, tmp_path / "c", Move("val", ["08.png"], "test"))
    assert content(again) == content(pets)


def test_samples_are_divided_anew(pets, tmp_path):
    made = version(pets, tmp_path / "b", Resplit(np.array([2, 0, 0, 0, 1, 1, -1, 0, 0], np.int8)))
    keys = {split: [key[:2] for key, _ in samples] for split, samples in content(made).items()}
    assert keys == {"train": ["01", "02", "03", "07", "08"], "val": ["04", "05"], "test": ["00"]}
    assert made.manifest.parents[0].changes == ("Divided the samples anew: train 5, val 2, test 1.",)
    with pytest.raises(DataError, match=r"the split of each of the 9 samples \(received: an array \(3,\)"):
        make_version(pets, Resplit(np.zeros(3, int)), tmp_path / "c")
    with pytest.raises(DataError, match="received: 0 to 3"):
        make_version(pets, Resplit(np.arange(9) % 4), tmp_path / "c")


def test_rows_mean_those_of_the_parent_whatever_came_before(pets, tmp_path):
    made = version(pets, tmp_path / "b", Exclude("train", [0]), Exclude("train", [1]), Relabel("train", [2], "cat"))
    assert content(made)["train"] == [("02.png", 0), ("03.png", 0), ("04.png", 1), ("05.png", 2)]


def test_a_class_gets_another_name(pets, tmp_path):
    made = version(pets, tmp_path / "b", RenameClass("owl", "eagle owl"))
    assert made.schema.class_names == ("cat", "dog", "eagle owl")
    assert content(made) == content(pets)
    assert made.manifest.splits["train"].labels == ""
    with pytest.raises(UsageError, match="a name that no other class has"):
        make_version(pets, RenameClass("owl", "cat"), tmp_path / "c")
    with pytest.raises(UnknownNameError, match="Did you mean `owl`"):
        make_version(pets, RenameClass("owls", "bird"), tmp_path / "c")


def test_classes_become_one(pets, tmp_path):
    made = version(pets, tmp_path / "b", MergeClasses(["owl", "cat"], "hunter"), Relabel("val", [1], "hunter"))
    assert made.schema.class_names == ("hunter", "dog")
    assert [label for _, label in content(made)["train"]] == [0, 1, 0, 0, 1, 0]
    assert [label for _, label in content(made)["val"]] == [0, 0]
    into = version(pets, tmp_path / "c", MergeClasses(["cat"], "owl"))
    assert into.schema.class_names == ("dog", "owl")
    assert [label for _, label in content(into)["train"]] == [1, 0, 1, 1, 0, 1]


def test_a_class_is_left_out_with_its_samples(pets, tmp_path):
    made = version(pets, tmp_path / "b", Relabel("train", ["00.png"], "owl"), DropClass("cat"))
    assert made.schema.class_names == ("dog", "owl")
    assert content(made)["train"] == [("00.png", 1), ("01.png", 0), ("02.png", 1), ("04.png", 0), ("05.png", 1)]
    assert made.manifest.problems == {"excluded": 2}
    relabelled_and_dropped = version(pets, tmp_path / "c", Relabel("train", [1], "cat"), DropClass("cat"))
    assert [key for key, _ in content(relabelled_and_dropped)["train"]] == ["02.png", "04.png", "05.png"]


def test_only_some_classes_stay(pets, tmp_path):
    made = version(pets, tmp_path / "b", KeepClasses(["owl"]))
    assert content(made) == {"train": [("02.png", 0), ("05.png", 0)], "test": [("08.png", 0)]}
    with pytest.raises(UsageError, match="keeps at least one class"):
        make_version(pets, KeepClasses([]), tmp_path / "c")


def test_objects_follow_their_classes(tmp_path):
    samples = [
        (f"{n}.png", (png(picture(n)),), label) for n, label in enumerate([[box(0), box(2)], [box(1)], [box(-1)]])
    ]
    schema = Schema(kind="detection", class_names=("car", "bus", "tram"), details={"ids": [3, 7, 9], "note": "x"})
    parent = write_dataset(tmp_path / "streets", {"train": samples}, schema)
    dropped = version(parent, tmp_path / "b", DropClass("car"))
    assert [label for _, label in content(dropped)["train"]] == [[box(1)], [box(0)], [box(-1)]]
    assert dropped.schema.details == {"ids": [7, 9], "note": "x"}
    assert dropped.manifest.splits["train"].class_counts == (1, 1)
    assert [entry.objects for entry in dropped.catalogue.walk()] == [1, 1, 1]
    merged = version(parent, tmp_path / "c", MergeClasses(["bus", "tram"], "public"))
    assert [label for _, label in content(merged)["train"]] == [[box(0), box(1)], [box(1)], [box(-1)]]
    changed = version(parent, tmp_path / "d", Relabel("train", [1], []))
    assert [label for _, label in content(changed)["train"]] == [[box(0), box(2)], [], [box(-1)]]
    with pytest.raises(DataError, match="the box of object 0 is four finite numbers"):
        make_version(parent, Relabel("train", [1], [{"class": 0, "box": [1, 2, float("nan"), 3]}]), tmp_path / "e")


def test_classes_in_masks_are_not_renumbered(tmp_path):
    schema, form, samples = one_of_each_kind()["segmentation"]
    parent = write_dataset(tmp_path / "masks", {"train": samples}, schema, image=form)
    with pytest.raises(DataError, match=r"received: kind segmentation\)\. Change them in the source"):
        make_version(parent, DropClass("dog"), tmp_path / "b")
    assert version(parent, tmp_path / "b", RenameClass("dog", "wolf")).schema.class_names == ("cat", "wolf", "owl")


@pytest.mark.parametrize("kind", one_of_each_kind())
def test_every_kind_has_versions(kind, tmp_path):
    schema, form, samples = one_of_each_kind()[kind]
    parent = write_dataset(tmp_path / "a", {"train": samples}, schema, image=form)
    made = version(parent, tmp_path / "b", Exclude("train", [0]), Move("train", [2], "val"))
    assert content(made) == {"train": [("sample 1", samples[1][2])], "val": [("sample 2", samples[2][2])]}
    for name, row in (("train", 1), ("val", 2)):
        np.testing.assert_equal(made.sample(name, 0).parts, samples[row][1])


def test_a_version_of_a_version_of_a_version(pets, tmp_path):
    """Rows and labels that were changed before are changed again, always against the records."""
    one = version(pets, tmp_path / "1", Relabel("train", [1], "owl"), Exclude("train", [0]))
    two = version(one, tmp_path / "2", Relabel("train", ["01.png"], "dog"), Move("val", [0], "train"))
    three = version(two, tmp_path / "3", MergeClasses(["cat", "dog"], "furry"), Exclude("train", ["03.png"]))
    assert content(three)["train"] == [("01.png", 0), ("02.png", 1), ("04.png", 0), ("05.png", 1), ("06.png", 0)]
    assert content(two)["train"][0] == ("01.png", 1)
    assert three.manifest.problems == {"excluded": 2}


def test_records_in_several_files_and_every_format(tmp_path):
    for store in ("lmdb", "hdf5", "tfrecord"):
        parent = write_dataset(
            tmp_path / store, {"train": animals(7), "val": animals(1, first=7)}, store=store, per_store=2
        )
        made = version(parent, tmp_path / f"{store}-b", Exclude("train", [2, 3, 6]), Move("val", [0], "train"))
        assert [key[:2] for key, _ in content(made)["train"]] == ["00", "01", "04", "05", "07"]
        paths = [note.path for note in made.manifest.splits["train"].stores]
        assert paths == [f"train-0.{store}", f"train-2.{store}", f"val-0.{store}"]  # files nobody needs are left away
        assert made.manifest.splits["train"].rows == ""


def test_numbers_in_a_catalogue_may_have_gaps(tmp_path):
    """Creation leaves the numbers of samples unused that could not be read."""
    parent = write_dataset(tmp_path / "a", {"train": animals(4), "val": animals(2, first=4)}, number_step=3)
    made = version(parent, tmp_path / "b", Exclude("val", [0]), Relabel("train", ["02.png"], 0))
    assert content(made)["train"][2] == ("02.png", 0)
    assert [key for key, _ in content(made)["val"]] == ["05.png"]


def test_the_mean_follows_the_training_split(pets, tmp_path):
    made = version(pets, tmp_path / "b", Exclude("train", [0, 1]), Move("val", [1], "train"))
    expected = np.mean([picture(number) for number in (2, 3, 4, 5, 7)], axis=0)
    np.testing.assert_allclose(made.mean(), expected, atol=1e-4)
    np.testing.assert_allclose(made.manifest.pixel_mean, expected.mean(axis=(0, 1)), atol=1e-4)
    same = version(pets, tmp_path / "c", Exclude("val", [0]))
    np.testing.assert_array_equal(same.mean(), pets.mean())
    assert same.manifest.pixel_mean == pets.manifest.pixel_mean


def test_without_a_mean_there_is_none_for_other_samples(tmp_path):
    parent = write_dataset(tmp_path / "a", {"train": animals(3)})
    made = version(parent, tmp_path / "b", Exclude("train", [0]))
    assert (made.mean(), made.manifest.pixel_mean) == (None, ())


def test_who_opened_the_test_split_is_not_forgotten(pets, tmp_path):
    pets.count_opening("Ada, model 7", now=5.0)
    assert version(pets, tmp_path / "b", Exclude("train", [0])).openings() == pets.openings()
    assert version(pets, tmp_path / "c", Move("test", [0], "train")).openings() == []


def test_what_is_not_there_is_an_error_that_helps(pets, tmp_path):
    folder = tmp_path / "b"
    with pytest.raises(RecordIndexError, match="no row 6 in the split train of 6 samples"):
        make_version(pets, Exclude("train", [0, 6]), folder)
    with pytest.raises(DataError, match=r"The key '00.png', which is in split train, is not in the split val"):
        make_version(pets, Exclude("val", ["00.png"]), folder)
    with pytest.raises(UnknownNameError, match="`valid` is not a known split"):
        make_version(pets, Exclude("valid", [0]), folder)
    with pytest.raises(UnknownNameError, match="`validation` is not a known split"):
        make_version(pets, Move("val", [0], "validation"), folder)
    with pytest.raises(UnknownNameError, match="`cow` is not a known class"):
        make_version(pets, Relabel("train", [0], "cow"), folder)
    with pytest.raises(DataError, match="it is the number of a class, from 0 to 2"):
        make_version(pets, Relabel("train", [0], 3), folder)
    with pytest.raises(DataError, match="chosen by rows or by keys"):
        make_version(pets, Exclude("train", [0.5]), folder)
    with pytest.raises(UsageError, match="There are: Relabel, CorrectObjects, Exclude, Move"):
        make_version(pets, ["drop"], folder)
    with pytest.raises(UsageError, match="leave all samples out"):
        make_version(pets, Resplit(np.full(9, -1)), folder)
    assert [path.name for path in tmp_path.iterdir()] == ["pets"]


def test_a_folder_that_is_taken_stays_as_it_is(pets, tmp_path):
    (tmp_path / "b").mkdir()
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        make_version(pets, [], tmp_path / "b")
    assert list((tmp_path / "b").iterdir()) == []


def test_a_version_without_changes_is_the_same_samples(pets, tmp_path):
    made = version(pets, tmp_path / "deep" / "down" / "b", name="Pets, again")
    assert content(made) == content(pets)
    assert (made.name, made.schema) == ("Pets, again", ANIMALS)
    assert [note.stores for note in made.manifest.splits.values()] == [
        note.stores for note in pets.manifest.splits.values()
    ]
    assert [(note.rows, note.labels) for note in made.manifest.splits.values()] == [("", "")] * 3


def test_the_same_changes_give_the_same_bytes(pets, tmp_path):
    made = [version(pets, tmp_path / name, Relabel("train", [1], 0), Exclude("val", [0])) for name in "bc"]
    assert made[0].manifest == made[1].manifest
    assert (tmp_path / "b" / "index.sqlite").read_bytes() == (tmp_path / "c" / "index.sqlite").read_bytes()


def test_lists_with_a_value_for_each_class_follow(tmp_path):
    details = {
        "class_folders": ["a", "b", "c"],
        "coco": {"categories": [{"id": 1, "name": "a"}, {"id": 4, "name": "b"}, {"id": 9, "name": "c"}]},
        "k": 1,
    }
    schema = Schema(kind="image-classification", class_names=("a", "b", "c"), details=details, colours=((1, 1, 1),) * 3)
    parent = write_dataset(tmp_path / "p", {"train": animals(3)}, schema)
    made = version(parent, tmp_path / "b", RenameClass("b", "bee"), DropClass("a"))
    assert made.schema.details == {
        "class_folders": ["bee", "c"],
        "coco": {"categories": [{"id": 4, "name": "bee"}, {"id": 9, "name": "c"}]},
        "k": 1,
    }
    assert made.schema.colours == ((1, 1, 1),) * 2
