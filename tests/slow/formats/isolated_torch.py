"""Flows and ``torch.utils.data``; run by ``test_adapters_torch.py`` in a process of its own."""

import json
import multiprocessing
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from ziggurat.dataflow.adapters import from_torch, to_torch
from ziggurat.dataflow.sources import DataFromArrays, DataFromList
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DatapointError, UsageError


def numbers(count=20):
    return DataFromArrays(np.arange(count), shuffle=True).seed(3)


def as_list(loader):
    return [int(item[0]) for item in loader]


pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
multiprocessing.set_forkserver_preload(["torch", "ziggurat.dataflow.adapters"])


def with_workers(dataset, number, **options):
    return DataLoader(dataset, batch_size=None, num_workers=number, multiprocessing_context="forkserver", **options)


def times_ten(point):
    return [point[0] * 10]


def failing(point):
    if point[0] == 7:
        raise DatapointError("seven.jpg", "it is broken.")
    return point


# ---- to torch


def test_without_workers_each_iteration_is_the_next_pass():
    flow = numbers()
    expected = [as_list(flow), as_list(flow)]
    loader = DataLoader(to_torch(numbers()), batch_size=None)
    assert isinstance(loader.dataset, IterableDataset)
    assert [as_list(loader), as_list(loader)] == expected


def test_torch_makes_batches():
    points = [[np.full((2, 3), number, np.float32), number, f"n{number}"] for number in range(5)]
    batches = list(DataLoader(to_torch(DataFromList(points, shuffle=False)), batch_size=2))
    assert [tuple(batch[0].shape) for batch in batches] == [(2, 2, 3), (2, 2, 3), (1, 2, 3)]
    assert batches[1][1].tolist() == [2, 3]
    assert batches[1][2] in (["n2", "n3"], ("n2", "n3"))


def test_the_flow_may_make_batches():
    loader = DataLoader(to_torch(BatchData(numbers(), 8, remainder=True)), batch_size=None)
    assert [batch[0].shape[0] for batch in loader] == [8, 8, 4]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_workers_yield_each_datapoint_once_in_flow_order(number):
    flow = numbers()
    first, second = as_list(flow), as_list(flow)
    loader = with_workers(to_torch(numbers(), map_func=times_ten), number, persistent_workers=True)
    assert as_list(loader) == [10 * item for item in first]
    assert as_list(loader) == [10 * item for item in second]


def test_new_workers_begin_a_new_order_every_epoch():
    first = as_list(numbers())
    dataset = to_torch(numbers())
    loader = with_workers(dataset, 2)
    epochs = [as_list(loader) for _ in range(3)]
    assert epochs[0] == first
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    again = with_workers(to_torch(numbers()), 2)
    assert [as_list(again) for _ in range(3)] == epochs
    with pytest.raises(UsageError, match="The position of a dataset is known where it is iterated"):
        dataset.state()


def test_a_flow_without_a_seed_is_split_as_well():
    loader = with_workers(to_torch(DataFromArrays(np.arange(9))), 2)
    assert sorted(as_list(loader)) == list(range(9))


@pytest.mark.parametrize("position", [0, 1, 9, 20])
def test_a_data_set_goes_on_where_it_was(position):
    expected = as_list(numbers())
    dataset = to_torch(numbers())
    items = iter(DataLoader(dataset, batch_size=None))
    for _ in range(position):
        next(items)
    state = json.loads(json.dumps(dataset.state()))
    resumed = to_torch(numbers().seed(99))
    resumed.load_state(state)
    assert as_list(DataLoader(resumed, batch_size=None)) == (expected[position:] if position < 20 else [])


class OfWorker:
    """What torch tells a dataset in a worker."""

    def __init__(self, number, seed):
        self.id, self.num_workers, self.seed = number, 2, seed + number


def test_a_worker_goes_on_where_it_was():
    # What torchdata's StatefulDataLoader does: it calls these methods in the workers.
    dataset = to_torch(numbers())
    torch.utils.data._utils.worker._worker_info = OfWorker(0, 5)
    try:
        items = iter(dataset)
        begun = [int(next(items)[0]) for _ in range(3)]
        state = dataset.state_dict()
        rest = [int(item[0]) for item in items]
        resumed = to_torch(numbers())
        resumed.load_state_dict(state)
        assert [int(item[0]) for item in resumed] == rest
        assert begun + rest == as_list(numbers())[0::2]
    finally:
        torch.utils.data._utils.worker._worker_info = None
    with pytest.raises(UsageError, match="The state is of 2 workers, and there are 1"):
        resumed.load_state(state)
        iter(resumed)


def test_errors_reach_the_consumer_with_type_and_message():
    flow = MapData(DataFromList([[n] for n in range(10)], shuffle=False), failing)
    with pytest.raises(DatapointError, match=r"Datapoint 'seven.jpg' cannot be used: it is broken"):
        list(DataLoader(to_torch(flow), batch_size=None))
    with pytest.raises(DatapointError, match=r"(?s)worker process 0.*Datapoint 'seven.jpg' cannot be used") as caught:
        list(with_workers(to_torch(flow), 1))
    assert caught.value.key is None


def test_a_data_set_crosses_process_borders():
    moved = pickle.loads(pickle.dumps(to_torch(numbers())))
    assert as_list(moved) == as_list(numbers())


# ---- from torch


class Squares(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((2,), index), index**2, {"name": [torch.tensor(index)]}


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.tensor([n, n + 1]), n) for n in range(4)])


def test_a_map_data_set_becomes_a_flow():
    flow = from_torch(Squares())
    points = list(flow)
    assert len(flow) == 6
    assert all(type(dp) is list and isinstance(dp[0], np.ndarray) for dp in points)
    assert [dp[1] for dp in points] == [0, 1, 4, 9, 16, 25]
    assert points[3][2] == {"name": [3]}
    shuffled = from_torch(Squares(), shuffle=True).seed(1)
    first = [dp[1] for dp in shuffled]
    assert sorted(first) == [0, 1, 4, 9, 16, 25]
    assert first == [dp[1] for dp in from_torch(Squares(), shuffle=True).seed(1)]


def test_an_iterable_data_set_and_a_loader_become_flows():
    flow = from_torch(Stream())
    assert [dp[0].tolist() for dp in flow] == [[n, n + 1] for n in range(4)]
    assert [dp[1] for dp in flow] == [0, 1, 2, 3]
    batches = list(from_torch(DataLoader(Squares(), batch_size=4)))
    assert [batch[1].tolist() for batch in batches] == [[0, 1, 4, 9], [16, 25]]
    with pytest.raises(UsageError, match="The Stream cannot be shuffled"):
        from_torch(Stream(), shuffle=True)


@pytest.mark.parametrize("source", [Squares, Stream])
def test_flows_from_torch_resume_exactly(source):
    expected = [dp[1] for dp in from_torch(source())]
    flow = from_torch(source())
    items = iter(flow)
    next(items)
    next(items)
    resumed = from_torch(source())
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert [dp[1] for dp in resumed] == expected[2:]
