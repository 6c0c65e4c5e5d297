"""Shares come out exactly, over all and in every class (behaviors 28 to 31 of DIGITS 6)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_datasets_for_checks import catalogue_of, sample

from ziggurat.datasets.splitting import SplitRule, assign_splits
from ziggurat.datasets.splitting.assign import class_targets, split_totals
from ziggurat.errors import ConfigurationError, UnknownNameError


@pytest.fixture
def flowers(tmp_path):
    """1000 samples of three classes: 600, 300 and 100."""
    classes = [0] * 600 + [1] * 300 + [2] * 100
    with catalogue_of(tmp_path / "scan.sqlite", [sample(f"{n:04}.jpg", c) for n, c in enumerate(classes)]) as catalogue:
        yield catalogue


def counts(assignment, classes):
    return [[int(((assignment.splits == s) & (classes == c)).sum()) for c in range(3)] for s in range(3)]


def test_29_two_shares_give_those_shares_of_every_class(flowers):
    assignment = assign_splits(flowers, SplitRule(method="share", val_share=0.2, test_share=0.1))
    assert assignment.counts() == {"train": 700, "val": 200, "test": 100}
    assert counts(assignment, flowers.column("class")) == [[420, 210, 70], [120, 60, 20], [60, 30, 10]]
    assert assignment.splits.dtype == np.int8
    assert not assignment.problems
    assert not assignment.warnings


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=20),
    percents=st.tuples(st.integers(0, 50), st.integers(0, 50)),
)
def test_30_every_share_is_right_to_one(sizes, percents):
    shares = (1 - sum(percents) / 100, percents[0] / 100, percents[1] / 100)
    targets = class_targets(np.array(sizes), shares)
    totals = targets.sum(axis=1)
    assert (targets.sum(axis=0) == sizes).all()
    assert targets.min() >= 0
    at_least_one = [share > 0 for share in shares] if sum(sizes) >= 3 else [shares[0] > 0, False, False]
    assert all(total > 0 for total, wanted in zip(totals, at_least_one, strict=True) if wanted)
    # Where a share is less than a sample of a class, a split that gets one has more than its share.
    if shares[0] > 0 and min(sizes) * min(filter(None, shares)) >= 1:
        assert np.abs(targets - np.outer(shares, sizes)).max() <= 1 + 1e-9
        assert np.abs(totals - np.array(shares) * sum(sizes)).max() <= 2


def test_totals_are_largest_remainders_and_no_share_gets_nothing():
    assert split_totals(10, (0.75, 0.25, 0.0)).tolist() == [8, 2, 0]
    assert split_totals(4, (0.98, 0.01, 0.01)).tolist() == [2, 1, 1]
    assert split_totals(2, (0.5, 0.25, 0.25)).tolist() == [1, 1, 0]
    assert split_totals(0, (0.5, 0.25, 0.25)).tolist() == [0, 0, 0]


def test_a_class_of_one_sample_is_for_training():
    targets = class_targets(np.array([1, 1, 40]), (0.75, 0.25, 0))
    assert targets[:, :2].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert targets[1, 2] == 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"val_share": 25}, r"`val_share` must be from 0 to 1 \(received: 25\)\. .*for 25 % write 0\.25\."),
        ({"test_share": -0.1}, r"`test_share` must be from 0 to 1 \(received: -0\.1\)\. .*for a quarter write 0\.25\."),
        ({"val_share": 700}, r"received: 700\)\. It is a part of 1: for a quarter write"),
        ({"val_share": float("nan")}, r"received: not a number"),
        ({"val_share": 0.7, "test_share": 0.4}, r"1 together at most \(received: val_share 0\.7, test_share 0\.4"),
        ({"min_per_class": -1}, r"`min_per_class` from 0 and `max_per_class` from 1 \(received: -1 and None"),
        ({"max_per_class": 0}, r"received: 0 and 0"),
        ({"pattern": "(a"}, r"`pattern` must be a regular expression \(received: `\(a`"),
        ({"method": "list"}, r"The method `list` needs a text file for a split at least"),
    ],
)
def test_30_shares_that_cannot_be_are_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        SplitRule(**given)


def test_unknown_methods_and_splits_name_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"`clusters` is not a known method of splitting\. Did you mean `cluster`"
    ):
        SplitRule(method="clusters")
    with pytest.raises(UnknownNameError, match=r"`trian` is not a known split\. Did you mean `train`"):
        SplitRule(method="list", lists={"trian": "a.txt"})


def test_same_seed_gives_the_same_split_and_other_another(flowers):
    first, again, other = (assign_splits(flowers, SplitRule(method="share", seed=seed)).splits for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_without_classes_the_shares_are_of_all(flowers):
    assignment = assign_splits(flowers, SplitRule(method="share", stratify=False, val_share=0.5))
    assert assignment.counts() == {"train": 500, "val": 500}
    assert counts(assignment, flowers.column("class"))[1] != [300, 150, 50]


def test_31_small_classes_are_left_out_and_large_ones_cut(flowers):
    rule = SplitRule(method="share", val_share=0.5, min_per_class=200, max_per_class=400)
    assignment = assign_splits(flowers, rule, class_names=("rose", "lily", "fern"))
    assert counts(assignment, flowers.column("class")) == [[200, 150, 0], [200, 150, 0], [0, 0, 0]]
    (problem,) = assignment.problems
    assert (problem.key, problem.kind, problem.left_out) == ("fern", "small-class", True)
    assert problem.reason == "Class fern has 100 samples of the at least 200, and is left out."
    assert assignment.warnings == ["200 of 600 samples of class rose are left out by `max_per_class`."]


def test_labels_that_are_all_different_are_no_classes(tmp_path):
    with catalogue_of(tmp_path / "scan.sqlite", [sample(f"{n}.jpg", n) for n in range(40)]) as catalogue:
        assignment = assign_splits(catalogue, SplitRule(method="share"))
    assert assignment.counts() == {"train": 30, "val": 10}
    assert "classes were not looked at" in assignment.warnings[0]


def test_no_sample_gives_no_split(tmp_path):
    with catalogue_of(tmp_path / "scan.sqlite", []) as catalogue:
        assert assign_splits(catalogue, SplitRule(method="share")).counts() == {}
        assert assign_splits(catalogue, SplitRule()).counts() == {}
