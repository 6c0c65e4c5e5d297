"""A training over several nodes: its numbers are those of as many devices of one machine.

Rank 1 is a thread here, so networks draw nothing at random; processes are in the tests of the worker.
"""

import socket
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from test_torch_devices import NORMS, PIXELS, PLAIN, TWO_LOSSES, request
from torch_networks import TOWER, batches

from tests.waiting import PROCESS_S
from ziggurat.backends.torch import batch_sums
from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.device_group import DeviceGroup, LostProcessError
from ziggurat.backends.torch.node_line import NodeLine
from ziggurat.backends.torch.node_replicas import NodeReplicas
from ziggurat.engine.backend import ProcessPlace
from ziggurat.engine.feed import BatchCycle
from ziggurat.errors import ConfigurationError, DataError, TrainingError


class PerThread:
    """A stack of each thread in the place of one of the process."""

    def __init__(self, *first):
        self._first, self._local = first, threading.local()

    @property
    def _stack(self):
        if not hasattr(self._local, "stack"):
            self._local.stack = list(self._first)
        return self._local.stack

    def append(self, each):
        self._stack.append(each)

    def pop(self):
        return self._stack.pop()

    def __getitem__(self, place):
        return self._stack[place]

    def __len__(self):
        return len(self._stack)


@pytest.fixture(autouse=True)
def each_rank_sums_alone(monkeypatch):
    """Keep apart what the losses of rank 0 and 1 are divided by, as in two processes."""
    monkeypatch.setattr(batch_sums, "_add_up", PerThread(None))
    monkeypatch.setattr(batch_sums, "_noted", PerThread([]))
    monkeypatch.setattr(batch_sums, "_leaves", PerThread())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Rank1:
    """The process of rank 1, in a thread."""

    def __init__(self, asked, data):
        self.outcome, self.steps = None, 0
        self._thread = threading.Thread(target=self._run, args=(asked, data), daemon=True)
        self._thread.start()

    def _run(self, asked, data):
        def count():
            self.steps += 1

        try:
            self.outcome = TorchBackend().follow(asked, BatchCycle(data), count)
        except Exception as error:
            self.outcome = error

    def end(self):
        self._thread.join(PROCESS_S)
        return self.outcome


@contextmanager
def two_nodes(data, others=None, text=PLAIN, **fields):
    """Yield the program and the feed of rank 0, and rank 1, which has other data where that is given."""
    port = free_port()
    asked = [
        replace(request(text, 1, **fields), devices=("cpu",), place=ProcessPlace(rank, 2, "127.0.0.1", port))
        for rank in range(2)
    ]
    program = TorchBackend().build(asked[0])
    other = Rank1(asked[1], data if others is None else others)
    try:
        yield program, program.connect(BatchCycle(data)), other
    finally:
        program.close()
        other.end()


CASES = {
    "accumulated and mixed": (PLAIN, {"gradient_accumulation_steps": 2, "mixes_labels": True, "gradient_clip": 0.5}),
    "averaged": (PLAIN, {"optimizer": "adam", "learning_rate": 0.001, "ema_decay": 0.9}),
    "two losses": (TWO_LOSSES, {}),
    "weighted pixels": (PIXELS, {"class_weights": tuple(1.0 + number for number in range(10))}),
    "norms": (NORMS, {}),
    "synchronized norms": (NORMS, {"options": {"sync_batch_norm": True}}),
}


@pytest.mark.parametrize("case", CASES)
def test_two_nodes_equal_two_devices_bit_for_bit(case):
    text, fields = CASES[case]
    data = batches(5, 31)
    if fields.get("mixes_labels"):
        data = [[x, y, y[::-1].copy(), np.full(len(y), 0.7, np.float32)] for x, y in data]
    names = ("cost", "gradient_norm", "output")
    alone = TorchBackend().build(request(text, 2, **fields))
    expected = [dict(alone.step(batch, names)) for batch in data]
    with two_nodes(data, text=text, **fields) as (program, feed, other):
        for number, values in enumerate(expected):
            found = program.step(feed.next(), names)
            for name, value in values.items():
                assert np.array_equal(np.asarray(value), np.asarray(found[name])), (number, name)
        state, there = alone.state(), program.state()
        assert state.keys() == there.keys()
        assert all(np.array_equal(values, there[name]) for name, values in state.items())
    alone.close()
    assert (other.end(), other.steps) == (True, 5)


def test_rank_1_follows_to_a_state_and_its_place_in_the_data():
    data = batches(6, 32)
    with two_nodes(data) as (program, feed, _):
        for _ in range(3):
            program.step(feed.next(), ())
        state, place = program.state(), feed.position()
        program.set_hyperparameter("learning_rate", 0.02)
        costs = [float(program.step(feed.next(), ("cost",))["cost"]) for _ in range(3)]
    with two_nodes(data) as (program, _, other):
        cycle = BatchCycle(data)
        cycle.load_state(place)
        program.load_state(state)
        feed = program.connect(cycle)
        program.set_hyperparameter("learning_rate", 0.02)
        assert [float(program.step(feed.next(), ("cost",))["cost"]) for _ in range(3)] == costs
    assert (other.end(), other.steps) == (True, 3)


def test_other_samples_on_a_node_end_the_training():
    data = batches(2, 32)
    refused = pytest.raises(TrainingError, match=r"^Rank 1 failed: The samples of this process are not those of rank 0")
    with two_nodes(data, others=data[::-1]) as (program, feed, other), refused:
        program.step(feed.next(), ())
    assert isinstance(other.end(), DataError)


def test_rank_1_ends_in_order_when_rank_0_is_lost():
    places = [ProcessPlace(rank, 2, "127.0.0.1", port) for port in (free_port(),) for rank in range(2)]
    line = NodeLine(places[0])
    group = DeviceGroup(0, 2, torch.device("cpu"), 60.0, line.interface)
    other = Rank1(replace(request(PLAIN, 1), place=places[1]), batches(2, 32))
    group.meet(line.meet())
    group.close()
    line.close()
    assert other.end() is False


def test_rank_0_waits_to_be_ended_when_another_is_lost():
    place = ProcessPlace(0, 2, "127.0.0.1", free_port())
    others = NodeReplicas(NodeLine(place), 2, verdict_s=0.2)
    cause = others.cause(LostProcessError("connection closed by peer"))
    assert str(cause).startswith("A process of the training cannot be reached: connection closed by peer.")


def test_a_network_for_one_device_is_refused_on_nodes():
    text = TOWER.replace("class UserModel(Tower):", "class UserModel(Tower):\n    disableAutoDataParallelism = True\n")
    asked = replace(request(text, 1), place=ProcessPlace(0, 2, "127.0.0.1", 1))
    with pytest.raises(ConfigurationError, match="`disableAutoDataParallelism`: it is trained on one device"):
        TorchBackend().build(asked)


def test_messages_of_any_size_arrive_as_they_were():
    port, heard = free_port(), []
    lines = [NodeLine(ProcessPlace(rank, 2, "127.0.0.1", port)) for rank in range(2)]
    arrays = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "none": np.zeros((0, 2), np.float16), "b": np.float32(3)}

    def listen():
        lines[1].meet()
        heard.extend(lines[1].hear() for _ in range(3))
        lines[1].answer({"of": 1}, {"a": arrays["a"]})

    other = threading.Thread(target=listen, daemon=True)
    other.start()
    lines[0].meet()
    for sent in ({}, arrays, {**arrays, "large": np.arange(5000)}):
        lines[0].tell({"kind": "x", "text": "ä"}, sent)
        heard.append(None)
    message, answer = lines[0].answer_of(1)
    other.join(PROCESS_S)
    found = [each for each in heard if each is not None]
    assert [message for message, _ in found] == [{"kind": "x", "text": "ä"}] * 3
    for (_, there), sent in zip(found, ({}, arrays, {**arrays, "large": np.arange(5000)}), strict=True):
        assert there.keys() == sent.keys()
        assert all(there[name].dtype == np.asarray(each).dtype and np.array_equal(there[name], each)
                   for name, each in sent.items())  # fmt: skip
    assert (message, answer["a"].tolist()) == ({"of": 1}, arrays["a"].tolist())
