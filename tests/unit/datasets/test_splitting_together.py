"""What belongs together stays together: groups, stems, times, near duplicates, and lists of files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_datasets_for_checks import catalogue_of, sample

from ziggurat.datasets.splitting import SplitRule, assign_splits
from ziggurat.datasets.splitting.assign import class_targets, share_out_units
from ziggurat.datasets.splitting.rule import stem_of
from ziggurat.errors import DataError


def assigned(folder, samples, hashes=None, **options):
    with catalogue_of(folder / "scan.sqlite", samples) as catalogue:
        return assign_splits(catalogue, SplitRule(**options), hashes)


def splits_of(names, splits):
    """Return name → the splits that it is in."""
    found = {}
    for name, split in zip(names, splits.tolist(), strict=True):
        found.setdefault(name, set()).add(split)
    return found


# ---- groups


def test_a_group_is_in_one_split_and_shares_and_classes_are_near(tmp_path):
    patients = [f"patient {n % 40}" for n in range(400)]
    classes = [n % 40 // 20 for n in range(400)]
    samples = [sample(f"{n}.png", c, group=g) for n, (g, c) in enumerate(zip(patients, classes, strict=True))]
    assignment = assigned(tmp_path, samples, method="group", val_share=0.2, test_share=0.1)
    assert all(len(splits) == 1 for splits in splits_of(patients, assignment.splits).values())
    assert assignment.counts() == {"train": 280, "val": 80, "test": 40}
    for split, wanted in ((0, 140), (1, 40), (2, 20)):
        assert int((np.array(classes)[assignment.splits == split] == 0).sum()) == wanted
    assert not assignment.warnings


def test_samples_without_a_group_fill_the_shares_exactly(tmp_path):
    samples = [sample(f"{n}.png", group="big" if n < 35 else "") for n in range(100)]
    assignment = assigned(tmp_path, samples, method="group", val_share=0.25)
    assert assignment.counts() == {"train": 75, "val": 25}
    assert set(assignment.splits[:35]) == {0}


def test_a_group_that_is_too_large_is_said(tmp_path):
    samples = [sample(f"{n}.png", group="a" if n < 80 else "b") for n in range(100)]
    assignment = assigned(tmp_path, samples, method="group", val_share=0.4)
    assert assignment.counts() == {"train": 80, "val": 20}
    (warning,) = assignment.warnings
    assert warning.startswith("The split train has 80.0% of the samples where 60.0% were asked for: the largest group")


def test_one_group_cannot_be_divided_and_no_group_is_none(tmp_path):
    with pytest.raises(DataError, match=r"The samples have 1 group\(s\), too few for 2 splits by the method `group`\."):
        assigned(tmp_path, [sample(f"{n}.png", group="a") for n in range(9)], method="group")
    (tmp_path / "scan.sqlite").unlink()
    with pytest.raises(DataError, match=r"The method `group` needs samples with a group \(received: no group"):
        assigned(tmp_path, [sample("1.png")], method="group")


def test_a_share_that_tears_groups_apart_is_warned_of(tmp_path):
    samples = [sample(f"{n}.png", group=f"g{n // 10}") for n in range(100)]
    assignment = assigned(tmp_path, samples, method="share")
    (warning,) = assignment.warnings
    assert "This split leaks: 100.0% of the validation samples have a sample of the same group in training" in warning
    assert warning.endswith("split by group (`group`).")


@settings(max_examples=200, deadline=None)
@given(
    units=st.lists(st.integers(0, 12), min_size=1, max_size=80),
    classes=st.integers(1, 3),
    percents=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    seed=st.integers(0, 5),
)
def test_units_are_never_torn_apart_and_no_split_is_far_off(units, classes, percents, seed):
    units = np.unique(units, return_inverse=True)[1]
    strata = (np.arange(len(units)) * 7 % classes).astype(np.int32)
    shares = (1 - sum(percents) / 100, percents[0] / 100, percents[1] / 100)
    targets = class_targets(np.bincount(strata, minlength=classes), shares)
    splits = share_out_units(units, strata, targets, np.random.default_rng(seed))
    assert all(len(found) == 1 for found in splits_of(units.tolist(), splits).values())
    if len(set(units.tolist())) >= 3:
        wanted = np.flatnonzero(targets.sum(axis=1) > 0)
        assert set(wanted.tolist()) >= set(splits.tolist())
        assert len(set(splits.tolist())) == len(wanted)


# ---- stems


@pytest.mark.parametrize(
    ("key", "stem"),
    [
        ("clips/dog_0001.jpg", "clips/dog"),
        ("clips/dog_0002.png", "clips/dog"),
        ("clips/dog (12).jpg", "clips/dog (12)"),
        ("cats/dog-3.jpg", "cats/dog"),
        ("0001.jpg", ""),
        ("straße 07.jpg", "./straße"),
    ],
)
def test_a_stem_is_folder_and_name_without_its_number(key, stem):
    assert stem_of(key) == stem


def test_a_pattern_says_what_belongs_together():
    assert stem_of("2020/cam7/frame12.jpg", r"(cam\d+)/") == "cam7"
    assert stem_of("2020/cam7/frame12.jpg", r"cam\d+") == "cam7"
    assert stem_of("else.jpg", r"(cam\d+)/") == ""


def test_frames_of_a_clip_stay_together(tmp_path):
    keys = [f"clip{letter}_{frame:03}.jpg" for letter in "abcdefgh" for frame in range(10)]
    assignment = assigned(tmp_path, [sample(key) for key in keys], method="stem", val_share=0.25)
    assert assignment.counts() == {"train": 60, "val": 20}
    assert all(len(splits) == 1 for splits in splits_of([key[:5] for key in keys], assignment.splits).values())


def test_names_that_are_only_numbers_say_nothing(tmp_path):
    assignment = assigned(tmp_path, [sample(f"{n:05}.jpg") for n in range(40)], method="stem")
    assert assignment.counts() == {"train": 30, "val": 10}


# ---- time


def test_the_oldest_are_for_training_and_the_newest_for_test(tmp_path):
    days = np.random.default_rng(0).permutation(100)
    samples = [sample(f"{n}.jpg", n % 3, time=float(day) * 86400) for n, day in enumerate(days)]
    splits = assigned(tmp_path, samples, method="time", val_share=0.2, test_share=0.1).splits
    assert days[splits == 0].max() == 69
    assert sorted(days[splits == 1]) == list(range(70, 90))
    assert days[splits == 2].min() == 90


def test_samples_without_a_time_are_for_training(tmp_path):
    samples = [sample(f"{n}.jpg", time=float(n) if n < 8 else None) for n in range(10)]
    assignment = assigned(tmp_path, samples, method="time")
    assert assignment.splits.tolist() == [0] * 6 + [1] * 2 + [0] * 2
    assert assignment.warnings == ["2 samples without a time are in training."]
    (tmp_path / "scan.sqlite").unlink()
    with pytest.raises(DataError, match=r"The method `time` needs samples with a time \(received: no time"):
        assigned(tmp_path, [sample("1.jpg")], method="time")


# ---- clusters


def test_near_duplicates_stay_together(tmp_path):
    hashes = np.repeat(np.random.default_rng(0).integers(0, 2**62, 20), 5) ^ (1 << np.arange(100) % 5)
    assignment = assigned(tmp_path, [sample(f"{n}.jpg") for n in range(100)], hashes, method="cluster")
    assert assignment.counts() == {"train": 75, "val": 25}
    assert all(len(set(assignment.splits[start : start + 5])) == 1 for start in range(0, 100, 5))


def test_a_cluster_of_much_of_the_set_is_warned_of(tmp_path):
    hashes = np.concatenate([np.full(20, 77), np.random.default_rng(0).integers(0, 2**62, 80)])
    assignment = assigned(tmp_path, [sample(f"{n}.jpg") for n in range(100)], hashes, method="cluster")
    (warning,) = assignment.warnings
    assert warning.startswith("One cluster has 20.0% of the samples: the hashes hardly tell such images apart.")


def test_clusters_need_hashes_and_more_than_one_cluster(tmp_path):
    samples = [sample(f"{n}.jpg") for n in range(6)]
    with pytest.raises(DataError, match=r"need the perceptual hashes of images \(received: no hash"):
        assigned(tmp_path, samples, method="cluster")
    (tmp_path / "scan.sqlite").unlink()
    with pytest.raises(DataError, match=r"The samples have 1 cluster\(s\), too few for 2 splits"):
        assigned(tmp_path, samples, np.full(6, 3), method="cluster")


# ---- lists


def test_lists_name_samples_by_key_or_stem_in_any_line_ends(tmp_path):
    keys = ["a/eins.jpg", "a/zwei drei.jpg", "b/vier.jpg", "b/fünf.jpg", "b/sechs.jpg"]
    (tmp_path / "train.txt").write_bytes("\ufeffa/eins.jpg\r\nzwei drei\r\n\r\n".encode())
    (tmp_path / "val.txt").write_text("./b/vier\nfünf.jpg\nnobody.jpg\n", "utf-8")
    lists = {"train": str(tmp_path / "train.txt"), "val": str(tmp_path / "val.txt")}
    assignment = assigned(tmp_path, [sample(key) for key in keys], method="list", lists=lists)
    assert assignment.splits.tolist() == [0, 0, 1, 1, -1]
    (problem,) = assignment.problems
    assert (problem.key, problem.kind, problem.left_out) == ("b/sechs.jpg", "not-listed", True)
    assert assignment.warnings == [
        f"1 name in `{tmp_path / 'val.txt'}` without a sample, such as `nobody.jpg`.",
        "1 sample is in no list and left out.",
    ]


def test_without_a_list_training_gets_the_rest(tmp_path):
    (tmp_path / "val.txt").write_text("1.jpg\n3\n")
    lists = {"val": str(tmp_path / "val.txt")}
    assignment = assigned(tmp_path, [sample(f"{n}.jpg") for n in range(5)], method="list", lists=lists)
    assert assignment.splits.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2.jpg\n", r"A sample is in one split only \(received: 1 sample .* for val and .* such as `2\.jpg`"),
        (b"", r"The list .* for val names no sample of the source"),
        (b"\xff\xfe1\x00\n\x00", r"text file in UTF-8 with a name a line"),
        (None, r"text file in UTF-8 with a name a line \(received: .*No such file"),
    ],
)
def test_lists_that_are_no_use_are_refused(tmp_path, content, message):
    (tmp_path / "train.txt").write_text("2\n")
    if content is not None:
        (tmp_path / "val.txt").write_bytes(content)
    lists = {"train": str(tmp_path / "train.txt"), "val": str(tmp_path / "val.txt")}
    with pytest.raises(DataError, match=message):
        assigned(tmp_path, [sample(f"{n}.jpg") for n in range(5)], method="list", lists=lists)
