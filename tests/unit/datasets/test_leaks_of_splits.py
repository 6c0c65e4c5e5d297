"""A split that leaks is found out, measured and warned of; the split by clusters does not leak."""

import numpy as np
import pytest
from small_datasets_for_checks import catalogue_of, frames, sample

from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.splitting import LeakPair, SplitRule, assign_splits, find_leaks


@pytest.fixture(scope="module")
def video():
    """Hashes of 40 bursts of 5 frames that are nearly equal."""
    return np.array([picture_hash(frame) for clip in range(40) for frame in frames(clip, 5, (72, 96))])


@pytest.fixture
def catalogue(tmp_path):
    with catalogue_of(tmp_path / "scan.sqlite", [sample(f"{n:04}.jpg", n // 5 % 2) for n in range(200)]) as opened:
        yield opened


def test_a_video_that_is_split_at_random_leaks_and_says_how_much(catalogue, video):
    assignment = assign_splits(catalogue, SplitRule(method="share", val_share=0.25), video)
    report = find_leaks(video, assignment.splits)
    assert report.share_of_val > 0.9
    assert report.share_of_test == 0
    assert assignment.warnings == [report.text]
    assert report.text.startswith(
        f"This split leaks: {report.share_of_val:.1%} of the validation samples have a near duplicate in"
    )
    assert report.text.endswith("split by visual similarity (`cluster`).")


def test_the_split_by_clusters_does_not_leak(catalogue, video):
    assignment = assign_splits(catalogue, SplitRule(method="cluster", val_share=0.25, test_share=0.2), video)
    report = find_leaks(video, assignment.splits)
    assert assignment.counts() == {"train": 110, "val": 50, "test": 40}
    assert (report.share_of_val, report.share_of_test, report.pairs, report.text) == (0, 0, (), "")
    assert not assignment.warnings


def test_pairs_name_both_sides_and_are_bounded():
    hashes = np.array([8, 8, 9, 0xFFFF << 30, NO_HASH, NO_HASH, 11, 0xFFFF << 30])
    splits = np.array([0, 1, 2, 1, 0, 1, -1, -1])
    report = find_leaks(hashes, splits)
    assert report.leaking.tolist() == [1, 2]
    assert report.share_of_val == pytest.approx(1 / 3)
    assert report.share_of_test == 1
    assert report.pairs == (
        LeakPair(number=1, train_number=0, reason="near-duplicate"),
        LeakPair(number=2, train_number=0, reason="near-duplicate"),
    )
    assert len(find_leaks(hashes, splits, most_pairs=1).pairs) == 1
    assert find_leaks(hashes, splits, max_distance=0).leaking.tolist() == [1]
    assert set(report.as_json()) == {"share_of_val", "share_of_test", "pairs", "text"}


def test_mates_of_a_group_leak_too():
    hashes = np.full(5, NO_HASH)
    report = find_leaks(hashes, np.array([0, 1, 1, 2, 0]), np.array([3, 3, -1, 0, -1]))
    assert report.leaking.tolist() == [1]
    assert report.pairs == (LeakPair(number=1, train_number=0, reason="group"),)
    assert "50.0% of the validation samples have a sample of the same group in training" in report.text


def test_leaks_are_those_of_a_search_over_all_pairs():
    random = np.random.default_rng(1)
    hashes = np.repeat(random.integers(0, 2**62, 60), 4) ^ (1 << random.integers(0, 60, 240))
    splits = random.integers(-1, 3, 240)
    bits = [[(int(one) ^ int(other)).bit_count() for other in hashes] for one in hashes]
    near = np.array(bits) <= 2
    wanted = np.flatnonzero((splits > 0) & (near & (splits == 0)).any(axis=1))
    assert find_leaks(hashes, splits, max_distance=2).leaking.tolist() == wanted.tolist()


def test_nothing_leaks_in_nothing():
    report = find_leaks(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int32))
    assert report.text == ""
