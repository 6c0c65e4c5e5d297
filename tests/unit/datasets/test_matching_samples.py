"""Samples of two datasets that are the same: by hand, and against a join that looks at every pair."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.datasets.small_datasets_for_versions import (
    ANIMALS,
    animals,
    datasets_are_closed,
    one_of_each_kind,
    opened,
    picture,
    png,
    write_dataset,
)
from ziggurat.datasets.versions import (
    Exclude,
    Relabel,
    RenameClass,
    SplitSamples,
    make_version,
    match_samples,
    split_samples,
)
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema

__all__ = ["datasets_are_closed"]


def samples(*pairs: tuple[int, int]) -> SplitSamples:
    """Return samples of a content and a key each, with the content as label."""
    contents = np.array([content for content, _ in pairs], np.uint64)
    keys = np.array([content * 1000 + key for content, key in pairs], np.uint64)
    return SplitSamples(contents=contents, keys=keys, labels=contents)


def brute_force(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> dict[int, int]:
    """Return place in the first list → place in the second, found one by one."""
    found: dict[int, int] = {}
    for is_same in (lambda one, other: one == other, lambda one, other: one[0] == other[0]):
        for place, one in enumerate(first):
            if place in found:
                continue
            free = [at for at, other in enumerate(second) if at not in found.values() and is_same(one, other)]
            if free:
                found[place] = free[0]
    return found


def test_matching_finds_samples_in_another_order():
    found = match_samples(samples((5, 1), (7, 2), (9, 3)), samples((9, 3), (4, 9), (5, 1)))

    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(0, 2), (2, 0)]
    assert (found.only_first.tolist(), found.only_second.tolist(), found.unmatched) == ([1], [1], 0)


def test_matching_takes_duplicates_by_key_then_in_order():
    first = samples((5, 1), (5, 2), (5, 3), (6, 4))
    second = samples((5, 8), (5, 3), (6, 7), (6, 9))

    found = match_samples(first, second)

    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(0, 0), (2, 1), (3, 2)]
    assert (found.only_first.tolist(), found.only_second.tolist()) == ([1], [3])
    assert found.unmatched == 2


def test_matching_of_nothing_is_empty():
    found = match_samples(samples(), samples((1, 1)))

    assert (len(found.first), found.only_first.tolist(), found.only_second.tolist()) == (0, [], [0])


@given(*[st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12)] * 2)
def test_matching_agrees_with_a_look_at_every_pair(first, second):
    found = match_samples(samples(*first), samples(*second))
    wanted = brute_force(first, second)

    assert dict(zip(found.first.tolist(), found.second.tolist(), strict=True)) == wanted
    assert found.only_first.tolist() == [place for place in range(len(first)) if place not in wanted]
    assert found.only_second.tolist() == [at for at in range(len(second)) if at not in wanted.values()]
    both = {content for content, _ in first} & {content for content, _ in second}
    left = [first[place] for place in found.only_first] + [second[place] for place in found.only_second]
    assert found.unmatched == sum(content in both for content, _ in left)


def test_a_version_matches_its_parent_but_for_its_changes(tmp_path):
    old = write_dataset(tmp_path / "old", {"train": animals(6), "val": animals(5, first=10)})
    make_version(old, [Relabel("val", [1, 3], 2), RenameClass("cat", "tom"), Exclude("val", [0])], tmp_path / "new")
    new = opened(tmp_path / "new")

    before, after = split_samples(old, "val"), split_samples(new, "val")
    found = match_samples(before, after)

    assert (found.first.tolist(), found.second.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 3])
    assert found.only_first.tolist() == [0]
    changed = before.labels[found.first] != after.labels[found.second]
    # Labels of the rows 10 to 14 are dog, owl, cat, dog, owl; 11 was an owl already, and 12 is renamed.
    old_names = [old.schema.class_names[entry.label] for entry in old.catalogue.walk() if entry.split == "val"][1:]
    new_names = [new.schema.class_names[entry.label] for entry in new.catalogue.walk() if entry.split == "val"]
    assert changed.tolist() == [one != other for one, other in zip(old_names, new_names, strict=True)]
    assert changed.any()
    assert not changed.all()


def test_classes_are_compared_by_name_not_number(tmp_path):
    content = [(f"{number}.png", (png(picture(number)),), number % 2) for number in range(4)]
    turned = [(key, parts, 1 - label) for key, parts, label in content]
    one = write_dataset(
        tmp_path / "one", {"train": content}, Schema(kind="image-classification", class_names=("a", "b"))
    )
    two = write_dataset(
        tmp_path / "two", {"train": turned}, Schema(kind="image-classification", class_names=("b", "a"))
    )

    assert (split_samples(one, "train").labels == split_samples(two, "train").labels).all()


def test_pairs_with_the_same_first_image_are_told_apart(tmp_path):
    first, second, third = (png(picture(seed)) for seed in range(3))
    pairs = [("a|b", (first, second), 1), ("a|c", (first, third), 0)]
    one = write_dataset(tmp_path / "one", {"train": pairs}, Schema(kind="image-pairs"))
    two = write_dataset(tmp_path / "two", {"train": pairs[1:]}, Schema(kind="image-pairs"))

    found = match_samples(split_samples(one, "train"), split_samples(two, "train"))

    assert (found.first.tolist(), found.second.tolist(), found.only_first.tolist()) == ([1], [0], [0])


@pytest.mark.parametrize("kind", sorted(one_of_each_kind()))
def test_samples_of_every_kind_match_themselves(tmp_path, kind):
    schema, image, content = one_of_each_kind()[kind]
    dataset = write_dataset(tmp_path / "one", {"train": content}, schema, image=image)

    found = split_samples(dataset, "train")

    assert match_samples(found, found).first.tolist() == list(range(len(content)))
    assert found.has_labels == (kind not in ("segmentation", "image-to-image"))
    labels = [json.dumps(label) for _, _, label in content]
    assert len(np.unique(found.labels)) == len(set(labels))


def test_rows_that_a_split_lacks_are_refused(tmp_path):
    dataset = write_dataset(tmp_path / "one", {"train": animals(3)}, ANIMALS)

    with pytest.raises(DataError, match=r"the row 3 of a split of 3.*Evaluate again"):
        split_samples(dataset, "train").of_rows(np.array([0, 3]))
