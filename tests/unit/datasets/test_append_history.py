"""A dataset grows by appending, its history can be read, and two versions can be compared by key."""

import shutil
from dataclasses import replace

from small_datasets_for_versions import (
    ANIMALS,
    animals,
    box,
    content,
    datasets_are_closed,  # noqa: F401
    opened,
    picture,
    png,
    write_dataset,
)

from ziggurat.datasets.versions import (
    Exclude,
    Move,
    Relabel,
    RenameClass,
    Resplit,
    append,
    differences,
    history,
    make_version,
    merge_datasets,
)
from ziggurat.records.schema import Schema


def test_appended_samples_stand_behind_and_the_name_stays(tmp_path):
    a = write_dataset(tmp_path / "week 1", {"train": animals(2)})
    b = write_dataset(tmp_path / "week 2", {"train": animals(2, first=2), "val": animals(1, first=4)})
    append(a, b, tmp_path / "both")
    made = opened(tmp_path / "both")
    assert made.name == "week 1"
    assert [key[:2] for key, _ in content(made)["train"]] == ["00", "01", "02", "03"]
    assert [parent.name for parent in made.manifest.parents] == ["week 1", "week 2"]


def test_a_history_goes_back_to_the_source_newest_first(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(4)})
    extra = write_dataset(tmp_path / "extra", {"train": animals(2, first=4)})
    make_version(a, Exclude("train", [0], "blurred"), tmp_path / "b", name="b")
    append(opened(tmp_path / "b"), extra, tmp_path / "c", name="c")
    notes = history(tmp_path / "c")
    assert [(note.name, note.folder.name) for note in notes] == [("c", "c"), ("b", "b"), ("extra", "extra"), ("a", "a")]
    assert [note.changes for note in notes] == [
        ("Joined b and extra.",),
        ("Left out 1 sample of train: blurred.",),
        (),
        (),
    ]
    assert notes[1].parents == (a.manifest.id,)


def test_a_history_finds_versions_by_id_and_says_what_is_gone(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(4)})
    make_version(a, Exclude("train", [0]), tmp_path / "b", name="b")
    make_version(opened(tmp_path / "b"), Exclude("train", [0]), tmp_path / "c", name="c")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b").rename(tmp_path / "elsewhere" / "renamed")
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "manifest.json").write_text("{")
    shutil.rmtree(tmp_path / "a")
    assert [(note.name, note.folder) for note in history(tmp_path / "c")] == [("c", tmp_path / "c"), ("b", None)]
    found = history(tmp_path / "c", among=[tmp_path / "elsewhere"])
    assert [(note.name, note.folder) for note in found] == [
        ("c", tmp_path / "c"),
        ("b", tmp_path / "elsewhere" / "renamed"),
        ("a", None),
    ]


def test_versions_are_compared_by_key(tmp_path):
    a = write_dataset(tmp_path / "a", {"train": animals(6), "val": animals(2, first=6)})
    changes = [
        Exclude("train", [1]),
        Relabel("train", [0, 3], "owl"),
        Move("val", [1], "train"),
        Relabel("train", [2], 2),
    ]
    extra = write_dataset(tmp_path / "extra", {"train": animals(1, first=30)})
    make_version([a, extra], changes, tmp_path / "b")
    found = differences(a, opened(tmp_path / "b"))
    assert (found.added, found.removed, found.moved) == (("30.png",), ("01.png",), ("07.png",))
    assert found.relabelled == ("00.png", "03.png")
    assert (found.replaced, found.classes_added, found.classes_removed) == ((), (), ())
    assert found.counts == {"added": 1, "removed": 1, "moved": 1, "relabelled": 2, "replaced": 0}


def test_another_number_of_the_same_class_is_no_difference(tmp_path):
    schema = Schema(kind="detection", class_names=("car", "bus"))
    one = write_dataset(tmp_path / "a", {"train": [("x", (png(picture(0)),), [box(0)])]}, schema)
    turned = replace(schema, class_names=("bus", "car"))
    two = write_dataset(tmp_path / "b", {"train": [("x", (png(picture(0)),), [box(1)])]}, turned)
    assert sum(differences(one, two).counts.values()) == 0
    pets = write_dataset(tmp_path / "c", {"train": animals(3)})
    make_version(pets, RenameClass("owl", "bird"), tmp_path / "d")
    renamed = differences(pets, opened(tmp_path / "d"))
    assert (renamed.relabelled, renamed.classes_added, renamed.classes_removed) == (("02.png",), ("bird",), ("owl",))


def test_other_content_under_a_key_replaces_in_bounded_lists(tmp_path):
    one = write_dataset(tmp_path / "a", {"train": animals(20)})
    samples = [(key, (png(picture(90 + number)),), label) for number, (key, _, label) in enumerate(animals(20))]
    two = write_dataset(tmp_path / "b", {"train": samples}, ANIMALS)
    found = differences(one, two, at_most=3)
    assert found.replaced == ("00.png", "01.png", "02.png")
    assert found.counts["replaced"] == 20


def test_nothing_in_common(tmp_path):
    one = write_dataset(tmp_path / "a", {"train": animals(2)})
    two = write_dataset(tmp_path / "b", {"train": animals(3, first=40)})
    found = differences(one, two)
    assert (len(found.added), len(found.removed), found.moved) == (3, 2, ())


def test_a_division_by_the_splitting_rules_makes_a_version(tmp_path):
    from ziggurat.datasets.splitting import SplitRule, assign_splits

    parent = write_dataset(tmp_path / "a", {"train": animals(12)})
    assignment = assign_splits(parent.catalogue, SplitRule(method="share", val_share=0.25, test_share=0.25))
    make_version(parent, Resplit(assignment.splits), tmp_path / "b")
    counts = {split: len(samples) for split, samples in content(opened(tmp_path / "b")).items()}
    assert counts == {"train": 6, "val": 3, "test": 3}


def test_several_are_joined_at_once(tmp_path):
    parents = [write_dataset(tmp_path / f"{n}", {"train": animals(1, first=n)}) for n in range(4)]
    merge_datasets(parents, tmp_path / "all", name="all")
    assert [key for key, _ in content(opened(tmp_path / "all"))["train"]] == ["00.png", "01.png", "02.png", "03.png"]
    assert [note.name for note in history(tmp_path / "all")] == ["all", "0", "1", "2", "3"]
