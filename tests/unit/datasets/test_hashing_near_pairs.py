"""The search for near hashes is exact, treats equal hashes once, and puts chains of near images into one cluster."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.datasets.hashing import NO_HASH, clusters, near_distinct, near_pairs
from ziggurat.errors import UsageError


def distances(hashes):
    numbers = [int(each) & (2**64 - 1) for each in hashes]
    return {
        (one, other): (numbers[one] ^ numbers[other]).bit_count()
        for one in range(len(numbers))
        for other in range(one + 1, len(numbers))
    }


@settings(max_examples=60, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 2**62), min_size=1, max_size=6),
    flips=st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 62), max_size=12)), max_size=25),
    max_distance=st.integers(0, 16),
)
def test_all_near_pairs_are_found_and_no_other(seeds, flips, max_distance):
    hashes = list(dict.fromkeys(seeds + [seeds[at % len(seeds)] ^ sum(1 << bit for bit in bits) for at, bits in flips]))
    wanted = sorted(pair for pair, bits in distances(hashes).items() if bits <= max_distance)
    assert near_pairs(np.array(hashes), max_distance).tolist() == [list(pair) for pair in wanted]


def test_equal_hashes_are_paired_with_the_first_of_them_only():
    hashes = np.array([5, 9_000, 5, 5, 4, NO_HASH, NO_HASH])
    assert near_pairs(hashes, 1).tolist() == [[0, 2], [0, 3], [0, 4]]


def test_a_hundred_thousand_white_pictures_are_one_cluster():
    hashes = np.full(100_000, 17)
    assert len(near_pairs(hashes)) == 99_999
    assert clusters(hashes).max() == 0
    assert len(near_pairs(hashes, at_most=10)) == 10


def test_a_chain_of_near_hashes_is_one_cluster():
    chain = [0, 0b111, 0b111111, 0b111111111]  # 3 bits each, 9 between the ends
    hashes = np.array([chain[2], 1 << 40 | 2**30 - 1, chain[0], NO_HASH, chain[3], chain[1], NO_HASH])
    assert clusters(hashes, 3).tolist() == [0, 1, 0, 2, 0, 0, 3]
    assert clusters(hashes, 2).tolist() == [0, 1, 2, 3, 4, 5, 6]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=30), st.integers(0, 2))
def test_clusters_are_what_pairs_join(hashes, max_distance):
    labels = clusters(np.array(hashes, np.int64), max_distance).tolist()
    joined = list(range(len(hashes)))
    for (one, other), bits in distances(hashes).items():
        if bits <= max_distance:
            old, new = joined[other], joined[one]
            joined = [new if each == old else each for each in joined]
    assert labels == [list(dict.fromkeys(joined)).index(each) for each in joined]


def test_nothing_has_no_pairs():
    assert near_pairs(np.zeros(0, np.int64)).shape == (0, 2)
    assert clusters(np.zeros(0, np.int64)).tolist() == []
    assert clusters(np.array([NO_HASH, NO_HASH])).tolist() == [0, 1]


def test_a_burst_of_many_different_hashes_comes_in_blocks():
    values = np.array(sorted({(one << 20) ^ (other << 9) for one in range(32) for other in range(32)}), np.uint64)
    blocks = list(near_distinct(values, 8))
    assert sum(len(one) for one, _ in blocks) == sum(bits <= 8 for bits in distances(values).values())
    pairs = {tuple(sorted(pair)) for one, other in blocks for pair in zip(one.tolist(), other.tolist(), strict=True)}
    assert len(pairs) == sum(len(one) for one, _ in blocks)


def test_a_distance_that_says_nothing_is_refused():
    with pytest.raises(UsageError, match=r"Near hashes differ in 0 to 16 bits of 64 \(received: 20"):
        near_pairs(np.zeros(3, np.int64), 20)
