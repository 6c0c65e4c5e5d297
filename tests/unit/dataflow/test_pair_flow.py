"""Pairs drawn from classes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ziggurat.dataflow import BatchData, DataFromArrays, DataFromGenerator, DataFromList, IndexedFlow
from ziggurat.dataflow.pair_flow import PairsOfClasses
from ziggurat.errors import DataError, DatapointError, UsageError

LABELS = [0, 1, 0, 2, 1, 0, 0, 2, 1, 2]


def samples(labels=LABELS):
    """Return a flow whose image is its number."""
    return DataFromList([[number, label] for number, label in enumerate(labels)], shuffle=False)


def images(labels=LABELS):
    return DataFromArrays(np.arange(len(labels) * 12, dtype=np.uint8).reshape(-1, 2, 2, 3), np.array(labels))


def pairs(labels=LABELS, **options):
    return PairsOfClasses(samples(labels), labels, **{"seed": 3, **options})


class Broken(IndexedFlow):
    """A source of which one file cannot be read, and one says so itself."""

    def __len__(self):
        return 10

    def key(self, index):
        return f"{index}.png"

    def datapoint(self, index):
        if index == 4:
            raise DatapointError("4.png", "it is empty.")
        return [index, LABELS[index]]


def test_half_of_the_pairs_are_of_the_same_class():
    for shuffle in (False, True):
        flow = pairs(pairs_per_sample=3, shuffle=shuffle).seed(1)
        for _ in range(3):
            points = list(flow)
            assert len(points) == len(flow) == 30
            assert sum(same for _, _, same in points) == 15
            assert all(first != second for first, second, _ in points)
            assert all((LABELS[first] == LABELS[second]) == bool(same) for first, second, same in points)
            assert sorted(first for first, _, _ in points) == sorted(list(range(10)) * 3)


def test_pairs_for_evaluation_are_a_fixed_list():
    flow = pairs()
    fixed = list(flow)
    assert list(flow) == fixed
    assert list(pairs().seed(99)) == fixed, "the seed of the pipeline does not matter"
    assert [first for first, _, _ in fixed] == list(range(10))
    assert list(pairs(seed=4)) != fixed


def test_pairs_for_training_are_new_in_every_pass():
    flow = pairs(shuffle=True).seed(1)
    first, second = list(flow), list(flow)
    assert sorted(first) != sorted(second)
    again = pairs(shuffle=True).seed(1)
    assert [list(again), list(again)] == [first, second]
    assert sorted(pairs(shuffle=True).seed(2)) == sorted(first), "the other seed changes the order only"
    assert sorted(first) == sorted(pairs()), "those of the first pass are the fixed ones"


def test_an_index_of_a_pass_gives_its_pair_anywhere():
    flow = pairs(shuffle=True).seed(1)
    for number in range(3):
        points = list(flow)
        order = flow.order()
        assert order.min() == number * 10
        other = pickle.loads(pickle.dumps(pairs(shuffle=True)))
        assert [other.datapoint(index) for index in order.tolist()] == points
    with pytest.raises(IndexError, match="0 or more"):
        other.datapoint(-1)


@given(st.lists(st.integers(-1, 4), min_size=2, max_size=12), st.integers(1, 3), st.integers(0, 3))
def test_pairs_of_any_labels_keep_the_rules(labels, times, seed):
    known = [label for label in labels if label >= 0]
    counts = [known.count(label) for label in set(known)]
    if len(counts) < 2 or max(counts) < 2:
        with pytest.raises(DataError, match="two classes or more"):
            pairs(labels)
        return
    flow = pairs(labels, pairs_per_sample=times, seed=seed)
    points = list(flow)
    able = times * sum(count for count in counts if count > 1)
    assert flow.unlabeled == len(labels) - len(known)
    assert len(points) == times * len(known)
    assert sum(same for _, _, same in points) == min(len(points) // 2, able)
    for first, second, same in points:
        assert first != second
        assert min(labels[first], labels[second]) >= 0
        assert (labels[first] == labels[second]) == bool(same)


def test_a_state_carries_the_seed_of_the_pairs():
    flow = pairs(shuffle=True).seed(1)
    items = iter(flow)
    seen = [next(items) for _ in range(4)]
    resumed = pairs(seed=77, shuffle=True)
    resumed.load_state(flow.state())
    assert [*seen, *resumed] == list(pairs(shuffle=True).seed(1))
    assert list(resumed) == list(flow)


def test_partners_are_drawn_evenly():
    labels = [0, 0, 0, 0, 1, 1, 2]
    counts = np.zeros((7, 7), int)
    flow = pairs(labels, pairs_per_sample=4000)
    for first, second, _ in flow:
        counts[first, second] += 1
    same = np.equal.outer(labels, labels) & ~np.eye(7, dtype=bool)
    for chosen in (same, np.not_equal.outer(labels, labels)):
        for row in range(7):
            found = counts[row, chosen[row]]
            assert np.all(np.abs(found - found.mean()) < 0.12 * found.mean()) if found.size else True
    assert (counts[~same & np.eye(7, dtype=bool)] == 0).all()


def test_gathered_pairs_are_those_of_one_by_one():
    flow = PairsOfClasses(images(), LABELS, seed=3, shuffle=True).seed(1)
    for _ in range(2):
        points = list(flow)
        one_by_one = [np.stack([point[part] for point in points]) for part in range(3)]
        order = flow.order()
        for gathered, stacked in zip(flow.gather(order), one_by_one, strict=True):
            assert gathered.dtype == stacked.dtype
            assert np.array_equal(gathered, stacked)
    batches = list(BatchData(PairsOfClasses(images(), LABELS, seed=3), 5))
    assert [batch[0].shape for batch in batches] == [(5, 2, 2, 3)] * 2


def test_a_pair_with_an_unreadable_image_is_dropped():
    source = Broken()
    source.policy = type(source.policy)("skip")
    flow = PairsOfClasses(source, LABELS, seed=3)
    points = list(flow)
    lost = sum(4 in flow.pair(index)[:2] for index in range(10))
    assert 1 <= lost == 10 - len(points)
    assert [row.counts.total for row in flow.error_counts()] == [lost]
    assert flow.error_counts()[0].counts.first[0][0] == "4.png"
    assert flow.key(0) == f"0.png + {flow.pair(0)[1]}.png"


def test_pairs_refuse_what_they_cannot_read():
    with pytest.raises(UsageError, match=r"one class number for each .*shape \(3,\) for 10 samples"):
        PairsOfClasses(samples(), [0, 1, 2], seed=0)
    with pytest.raises(UsageError, match=r"at least 1 \(received: 0"):
        pairs(pairs_per_sample=0)
    flow = DataFromGenerator(lambda: iter([[0, 0]]))
    with pytest.raises(UsageError, match=r"reads a flow by index \(received: DataFromGenerator"):
        PairsOfClasses(flow, LABELS, seed=0)
    with pytest.raises(DataError, match="0 classes with 0 samples"):
        pairs([])


def test_closing_pairs_closes_the_flow_that_they_read():
    closed = []

    class Closing(Broken):
        def close(self):
            closed.append(True)

    with PairsOfClasses(Closing(), LABELS, seed=0):
        pass
    assert closed == [True]
