"""Serial stages: values, order, length, and what they refuse."""

import functools
import itertools
import logging
import operator
from collections import Counter

import numpy as np
import pytest

from ziggurat.dataflow import (
    CacheData,
    ConcatData,
    DataFromGenerator,
    DataFromList,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    MapData,
    MapDataComponent,
    ProcessOnce,
    RandomChooseData,
    RandomMixData,
    RepeatedData,
    RepeatedDataPoint,
    SelectComponent,
    UnknownLengthError,
)
from ziggurat.errors import DataError, UsageError


def numbers(count, start=0):
    return DataFromList([[n] for n in range(start, start + count)], shuffle=False)


def unsized(count):
    return DataFromGenerator(lambda: ([n] for n in range(count)))


def values(flow, at_most=None):
    return [dp[0] for dp in itertools.islice(flow, at_most)]


# ---- mapping


def test_map_gives_what_the_function_returns_and_drops_none():
    flow = MapData(numbers(6), lambda dp: [dp[0] * 10] if dp[0] % 2 else None)
    assert values(flow) == [10, 30, 50]
    assert len(flow) == 6


@pytest.mark.parametrize("point", [[1, 2], {"a": 1}])
def test_map_gives_the_function_a_copy_that_it_may_change(point):
    def clear(dp):
        dp.clear()
        return [0]

    assert list(MapData(DataFromList([point]), clear)) == [[0]]
    assert point


def test_map_component_changes_one_component_and_makes_lists():
    points = DataFromList([(1, "a"), [2, "b"]], shuffle=False)
    assert list(MapDataComponent(points, str.upper, 1)) == [[1, "A"], [2, "B"]]
    assert list(MapDataComponent(points, lambda n: None if n == 1 else n)) == [[2, "b"]]
    assert list(MapDataComponent(points, str.upper, -1)) == [[1, "A"], [2, "B"]]
    dicts = [{"x": 1, "y": 2}]
    assert list(MapDataComponent(DataFromList(dicts), lambda y: -y, "y")) == [{"x": 1, "y": -2}]
    assert dicts == [{"x": 1, "y": 2}]


def test_a_missing_component_is_a_wrong_call_by_every_policy():
    with pytest.raises(UsageError, match=r"no component 2 in the datapoints \(received: a list with 1 components"):
        list(MapDataComponent(numbers(2), abs, 2, on_error="skip"))


def test_select_reorders_and_repeats_components():
    flow = SelectComponent(DataFromList([("a", "b", "c")]), [2, 0, 0])
    assert list(flow) == [["c", "a", "a"]]
    assert list(SelectComponent(DataFromList([{"x": 1, "y": 2}]), ["y"])) == [[2]]
    with pytest.raises(UsageError, match=r"no component 'z'.*a dict with the keys 'x', 'y'"):
        list(SelectComponent(DataFromList([{"x": 1, "y": 2}]), ["z"]))


# ---- repeating


def test_repeated_data_has_that_many_passes_in_one():
    flow = RepeatedData(numbers(2), 3)
    assert values(flow) == [0, 1, 0, 1, 0, 1]
    assert len(flow) == 6


def test_repeated_data_without_end():
    flow = RepeatedData(numbers(2), -1)
    assert values(flow, 5) == [0, 1, 0, 1, 0]
    with pytest.raises(UnknownLengthError):
        len(flow)
    with pytest.raises(NotImplementedError):
        len(flow)


def test_an_empty_flow_cannot_be_repeated_without_end():
    with pytest.raises(DataError, match=r"The DataFromList that is repeated without end had no datapoints"):
        list(RepeatedData(numbers(0), -1))
    assert list(RepeatedData(numbers(0), 3)) == []


def test_repeated_points_come_in_a_row():
    flow = RepeatedDataPoint(numbers(2), 3)
    assert values(flow) == [0, 0, 0, 1, 1, 1]
    assert len(flow) == 6


def test_fixed_size_goes_on_over_the_ends_of_passes():
    flow = FixedSizeData(numbers(5, start=1), 3)
    assert [values(flow) for _ in range(4)] == [[1, 2, 3], [4, 5, 1], [2, 3, 4], [5, 1, 2]]
    assert len(flow) == 3
    anew = FixedSizeData(numbers(5, start=1), 3, keep_state=False)
    assert [values(anew) for _ in range(2)] == [[1, 2, 3], [1, 2, 3]]
    assert values(FixedSizeData(numbers(2), 5)) == [0, 1, 0, 1, 0]


def test_fixed_size_of_an_empty_flow_is_an_error():
    with pytest.raises(DataError, match=r"begun again to fill a pass had no datapoints"):
        list(FixedSizeData(numbers(0), 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: RepeatedData(numbers(1), -2),
        lambda: RepeatedDataPoint(numbers(1), 0),
        lambda: FixedSizeData(numbers(1), 0),
        lambda: LocallyShuffleData(numbers(1), 0),
        lambda: LocallyShuffleData(numbers(1), 5, num_reuse=0),
        lambda: LocallyShuffleData(numbers(1), 5, shuffle_interval=0),
    ],
)
def test_wrong_counts_are_refused(call):
    with pytest.raises(UsageError, match=r"` is (0|-2), not "):
        call()


# ---- joining and mixing


def test_concat_is_one_after_the_other():
    flow = ConcatData([numbers(2), numbers(0), numbers(2, start=5)])
    assert values(flow) == [0, 1, 5, 6]
    assert len(flow) == 4
    same = numbers(2)
    assert values(ConcatData([same, same])) == [0, 1, 0, 1]


def test_join_puts_components_side_by_side_up_to_the_shortest():
    flow = JoinData([numbers(2), RepeatedData(numbers(1, start=7), -1), DataFromList([("a",), ("b",)], shuffle=False)])
    assert list(flow) == [[0, 7, "a"], [1, 7, "b"]]
    assert len(flow) == 2


def test_join_merges_dicts():
    one, other = DataFromList([{"x": 1}]), DataFromList([{"y": 2}])
    assert list(JoinData([one, other])) == [{"x": 1, "y": 2}]
    with pytest.raises(DataError, match=r"no key in common \(received: x twice"):
        list(JoinData([one, DataFromList([{"x": 1}])]))
    with pytest.raises(DataError, match=r"all lists or tuples, or all dicts \(received: dict, list"):
        list(JoinData([one, numbers(1)]))


def test_join_says_that_a_part_is_never_seen(caplog):
    with caplog.at_level(logging.WARNING):
        flow = JoinData([numbers(2), numbers(3)])
    assert "JoinData ends with the shortest of its flows; their lengths are [2, 3]." in caplog.text
    assert len(list(flow)) == len(flow) == 2


def test_an_object_cannot_be_read_twice_at_the_same_time():
    same = numbers(2)
    with pytest.raises(UsageError, match=r"an object has one pass at a time \(received: the same object twice"):
        JoinData([same, same])


def test_choose_draws_in_proportion_to_weights_of_any_sum():
    flows = [RepeatedData(numbers(1, start=n), -1) for n in range(3)]
    drawn = Counter(values(RandomChooseData(list(zip(flows, (7, 2, 1), strict=True))).seed(0), 2000))
    assert [round(drawn[n] / 2000, 1) for n in range(3)] == [0.7, 0.2, 0.1]
    assert RandomChooseData(flows).probabilities.tolist() == pytest.approx([1 / 3] * 3)
    assert RandomChooseData(list(zip(flows, (0.7, 0.2, 0.1), strict=True))).probabilities.sum() == pytest.approx(1)


def test_choose_ends_with_the_first_flow_that_is_drawn_in_vain():
    flow = RandomChooseData([numbers(3), numbers(1000)]).seed(0)
    drawn = values(flow)
    assert drawn.count(0) == 2
    assert len(drawn) < 100


@pytest.mark.parametrize("weights", [(1, None), (1, -1), (0, 0), ("a", "b"), (float("nan"), 1)])
def test_choose_refuses_wrong_weights(weights):
    with pytest.raises(UsageError, match=r"a weight of 0 or more, with a positive sum"):
        RandomChooseData(list(zip([numbers(1), numbers(1)], weights, strict=True)))


def test_mix_yields_every_datapoint_once_in_a_new_order():
    flow = RandomMixData([numbers(30), numbers(10, start=100)]).seed(1)
    first, second = values(flow), values(flow)
    assert sorted(first) == sorted(second) == [*range(30), *range(100, 110)]
    assert [n for n in first if n < 100] == list(range(30))
    assert [n >= 100 for n in first] != [n >= 100 for n in second]
    assert len(flow) == 40


def test_mix_says_which_flow_is_shorter_than_its_length():
    half = MapData(numbers(10), lambda dp: dp if dp[0] < 5 else None)
    with pytest.raises(DataError, match=r"exact length \(received: 5 datapoints from MapData of length 10"):
        list(RandomMixData([half, numbers(10)]))


@pytest.mark.parametrize("stage", [ConcatData, JoinData, RandomChooseData, RandomMixData])
@pytest.mark.parametrize("flows", [[], [[1, 2]]])
def test_many_flows_must_be_flows(stage, flows):
    with pytest.raises(UsageError, match=r"takes one or more data flows"):
        stage(flows)


# ---- shuffling in a buffer


@pytest.mark.parametrize("buffer_size", [1, 2, 3, 10, 100, 1000])
def test_a_locally_shuffled_pass_is_a_pass(buffer_size):
    flow = LocallyShuffleData(numbers(100), buffer_size).seed(2)
    first, second = values(flow), values(flow)
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second) == (buffer_size > 1)
    assert len(flow) == 100


def test_local_shuffling_moves_about_as_far_as_the_buffer():
    order = np.array(values(LocallyShuffleData(numbers(5000), 100).seed(0)))
    distance = np.abs(order - np.arange(5000))
    assert 30 < distance.mean() < 150
    assert distance.max() < 1500


def test_reused_datapoints_come_that_often():
    flow = LocallyShuffleData(numbers(20), 7, num_reuse=3)
    assert Counter(values(flow)) == dict.fromkeys(range(20), 3)
    assert len(flow) == 60


def test_the_endless_form_mixes_passes_and_has_no_length():
    flow = LocallyShuffleData(numbers(10), 5, endless=True)
    drawn = Counter(values(flow, 95))
    assert all(7 <= drawn[n] <= 10 for n in range(10))
    with pytest.raises(UnknownLengthError):
        len(flow)
    with pytest.raises(DataError, match=r"begun again without end has datapoints"):
        list(LocallyShuffleData(numbers(0), 5, endless=True))


# ---- caching


class Counting:
    """A map function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, dp):
        self.calls += 1
        return dp


def test_a_complete_pass_is_cached():
    count = Counting()
    flow = CacheData(MapData(unsized(5), count))
    assert [values(flow) for _ in range(3)] == [[0, 1, 2, 3, 4]] * 3
    assert count.calls == 5


def test_a_pass_that_was_broken_off_is_not_taken_for_complete():
    flow = CacheData(unsized(5))
    assert values(flow, 2) == [0, 1]
    assert values(flow) == [0, 1, 2, 3, 4]
    assert values(flow) == [0, 1, 2, 3, 4]


def test_the_cache_is_complete_with_its_last_datapoint():
    count = Counting()
    flow = CacheData(MapData(unsized(3), count))
    items = iter(flow)
    assert [next(items)[0] for _ in range(3)] == [0, 1, 2]
    assert values(flow) == [0, 1, 2]
    assert count.calls == 3


def test_a_shuffled_cache_has_a_new_order_in_every_pass():
    flow = CacheData(numbers(30), shuffle=True).seed(0)
    first, second, third = values(flow), values(flow), values(flow)
    assert first == list(range(30))
    assert sorted(second) == sorted(third) == first
    assert len({tuple(order) for order in (first, second, third)}) == 3


def test_closing_frees_the_cache_and_a_pass_is_cached_again():
    noise = MapData(numbers(4), lambda dp, rng: [rng.rand()])
    flow = CacheData(noise).seed(0)
    first = values(flow)
    flow.close()
    assert values(flow) == first


# ---- functions before the data


def test_a_function_runs_once_in_a_process_or_once_a_pass():
    calls = []
    once = ProcessOnce(numbers(2), functools.partial(calls.append, "process"))
    every = ProcessOnce(once, functools.partial(calls.append, "pass"), every_pass=True)
    assert [values(every) for _ in range(2)] == [[0, 1]] * 2
    assert calls == ["process", "pass", "pass"]
    assert len(every) == 2


def test_sums_by_a_map_with_an_operator():
    assert list(MapData(DataFromList([[1, 2]]), operator.itemgetter(1))) == [2]
