"""A flow on one machine, its consumer on another: every value arrives as it was, and nothing waits for ever."""

import itertools
import os
import threading
from collections import Counter
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from parallel_samples import first_line, numbers, plain, start_script

from tests.waiting import PROCESS_S, stays, wait_until
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.remote import RemoteDataZMQ, decode, encode, send_dataflow_zmq
from ziggurat.dataflow.sources import DataFromList
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.errors import DataError, DataWorkerError, UsageError

ANYWHERE = "tcp://127.0.0.1:*"


class Sender(threading.Thread):
    """Sends in a thread, and keeps what came of it."""

    def __init__(self, flow, address, **options):
        super().__init__(daemon=True)
        self.flow, self.address = flow, address
        self.options = {"passes": 1, "timeout_s": 20, **options}
        self.sent = None
        self.error = None
        self.start()

    def run(self):
        try:
            self.sent = send_dataflow_zmq(self.flow, self.address, **self.options)
        except Exception as error:
            self.error = error


def test_every_value_arrives_as_it_was():
    points = [
        [1, 2.5, True, None, "text", b"bytes", 2**70, -3],
        (np.float32(1.5), np.int16(-2), np.bool_(True), np.str_("s"), np.datetime64("2026-11-21")),
        {"image": np.arange(30_000, dtype=np.uint8).reshape(100, 100, 3), 7: [(1, (2,)), []], "nested": {"a": ()}},
        [np.zeros((0, 4)), np.float64(3) * np.ones(()), np.arange(40_000)[::2], np.asfortranarray(np.ones((90, 70)))],
        [np.array([(1, 2.0)], dtype=[("id", "<i4"), ("value", "<f8")]), np.array(["ab", "c"]), "\x00"],
    ]
    with RemoteDataZMQ(ANYWHERE) as flow:
        sender = Sender(DataFromList(points, shuffle=False), flow.open()[0])
        got = list(flow)
        sender.join()
    assert plain(got) == plain(points)
    assert [type(value) for value in got[1]] == [type(value) for value in points[1]]
    assert got[4][0]["value"].tolist() == [2.0]
    assert got[2]["image"].flags.writeable
    assert (sender.sent, sender.error) == (5, None)


def test_a_pass_ends_with_its_sender_and_another_may_follow():
    with RemoteDataZMQ(ANYWHERE) as flow:
        (address,) = flow.open()
        for _ in range(2):
            Sender(BatchData(numbers(6), 2), address, passes=2)
            assert [dp[0].tolist() for dp in flow] == [[0, 1], [2, 3], [4, 5]] * 2
        with pytest.raises(TypeError, match="RemoteDataZMQ has none"):
            len(flow)


def test_two_addresses_and_several_senders_make_one_pass():
    with RemoteDataZMQ(ANYWHERE, ANYWHERE, senders=3) as flow:
        first, second = flow.open()
        for address in (first, second, second):
            Sender(numbers(40), address)
        assert Counter(dp[0] for dp in flow) == dict.fromkeys(range(40), 3)


def test_the_receiver_may_go_to_the_sender():
    with zmq.Context() as context, context.socket(zmq.PUSH) as probe:
        port = probe.bind_to_random_port("tcp://127.0.0.1")
    address = f"tcp://127.0.0.1:{port}"
    Sender(numbers(30), address, bind=True)
    with RemoteDataZMQ(address, bind=False) as flow:
        assert list(flow) == [[number] for number in range(30)]


def test_a_slow_receiver_holds_the_sender_back_and_loses_nothing():
    sent = []

    class Watched(DataFlow):
        def __iter__(self):
            for number in range(300):
                sent.append(number)
                yield [number, np.zeros(100_000, np.uint8)]

    with RemoteDataZMQ(ANYWHERE, hwm=2) as flow:
        Sender(Watched(), flow.open()[0], hwm=2)
        iterator = iter(flow)
        next(iterator)
        stays(lambda: len(sent) < 300, 0.5)  # a sender that stands still does nothing that could be awaited
        assert [dp[0] for dp in iterator] == list(range(1, 300))


class Fails(DataFlow):
    def __iter__(self):
        yield [1]
        raise ValueError("the camera is off")


def test_an_error_of_the_flow_reaches_both_sides():
    with RemoteDataZMQ(ANYWHERE) as flow:
        sender = Sender(Fails(), flow.open()[0])
        got = []
        with pytest.raises(DataWorkerError, match=r"ended with ValueError \(received: the camera is off") as caught:
            got.extend(iter(flow))
        sender.join()
    assert "in __iter__" in caught.value.worker_traceback
    assert isinstance(sender.error, ValueError)


def test_a_value_that_cannot_be_sent_is_named():
    with RemoteDataZMQ(ANYWHERE) as flow:
        sender = Sender(DataFromList([[{1, 2}]]), flow.open()[0])
        with pytest.raises(DataWorkerError, match="ended with DataError"):
            list(flow)
        sender.join()
    assert "received: set)." in str(sender.error)
    with pytest.raises(DataError, match=r"received: an array of objects, shape \(1,\)"):
        encode([np.array([None])])


def test_a_killed_sender_ends_the_pass_after_the_set_time(tmp_path):
    with RemoteDataZMQ(ANYWHERE, timeout_s=60) as flow:
        script = f"""
import threading
from ziggurat.dataflow.remote import send_dataflow_zmq
from ziggurat.dataflow.base import DataFlow

class Slow(DataFlow):
    def __iter__(self):
        yield [1]
        print("sent", flush=True)
        threading.Event().wait(60)

send_dataflow_zmq(Slow(), {flow.open()[0]!r})
"""
        with start_script(tmp_path, script) as process:
            iterator = iter(flow)
            assert next(iterator) == [1]
            assert first_line(process) == "sent\n"
            process.kill()
            flow.timeout_s = 0.5
            with pytest.raises(DataWorkerError, match=r"connected for 0\.5 s \(received: nothing more from") as caught:
                next(iterator)
    assert f":{process.pid}:" in caught.value.details["missing"][0]


def test_a_sender_that_computes_for_long_is_not_taken_for_dead():
    release = threading.Event()

    class Thinks(DataFlow):
        def __iter__(self):
            yield [1]
            release.wait(1)
            yield [2]

    with RemoteDataZMQ(ANYWHERE, timeout_s=0.2) as flow:
        flow.timeout_s = 60.0
        iterator = iter(flow)
        Sender(Thinks(), flow.open()[0])
        assert next(iterator) == [1]
        flow.timeout_s = 0.2
        assert list(iterator) == [[2]]


def test_nobody_there_is_an_error_on_both_sides_in_set_time():
    with RemoteDataZMQ(ANYWHERE, timeout_s=0.3) as flow:
        (address,) = flow.open()
        with pytest.raises(DataWorkerError, match=r"no connection\)\. See whether the senders run and reach tcp"):
            list(flow)
    with pytest.raises(DataWorkerError, match=r"took a datapoint for 0\.3 s; .* sent or waiting"):
        send_dataflow_zmq(numbers(1000), address, timeout_s=0.3)


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        ("one", "other", r"a message that is signed with another key\). Give both sides the same `key`"),
        (None, "other", r"a message that is not signed\). Give the sender the same `key`"),
        ("one", None, r"a signed message, and the receiver has no key\). Give the receiver the same `key`"),
    ],
)
def test_another_key_is_refused(theirs, ours, words):
    with RemoteDataZMQ(ANYWHERE, key=ours) as flow:
        Sender(numbers(3), flow.open()[0], key=theirs)
        with pytest.raises(DataError, match=words):
            list(flow)


def test_the_same_key_signs_datapoints_with_arrays():
    points = [[number, np.full((300, 300), number)] for number in range(5)]
    with RemoteDataZMQ(ANYWHERE, key=b"secret") as flow:
        Sender(DataFromList(points, shuffle=False), flow.open()[0], key="secret")
        assert plain(flow) == plain(points)
    with pytest.raises(UsageError, match="A key has at least one character"):
        RemoteDataZMQ(ANYWHERE, key="")


def packed(value: Any) -> bytes:
    return msgpack.Packer().pack(value)


def array_of(dtype, length):
    return packed(msgpack.ExtType(2, packed([dtype, [length], 0])))


@pytest.mark.parametrize(
    "frames",
    [
        [b"", b"hello"],
        [b"", packed([9, "data", "x"]), b"\xc0"],
        [b"", packed([1, "data", "x"]), b"\xc1"],
        [
            b"",
            packed([1, "data", "x"]),
            msgpack.packb(msgpack.ExtType(2, packed(["|O", [1], 0]))),
            b"12345678",
        ],
        [
            b"",
            packed([1, "data", "x"]),
            msgpack.packb(msgpack.ExtType(2, packed(["<f8", [9], 0]))),
            b"1234",
        ],
    ],
)
def test_messages_of_strangers_are_refused_and_run_nothing(frames: list[bytes]):
    with RemoteDataZMQ(ANYWHERE, timeout_s=60) as flow, zmq.Context() as context, context.socket(zmq.PUSH) as stranger:
        stranger.connect(flow.open()[0])
        stranger.send_multipart(frames)
        with pytest.raises(DataError):
            list(flow)


def test_lost_messages_are_noticed():
    with RemoteDataZMQ(ANYWHERE, timeout_s=60) as flow, zmq.Context() as context, context.socket(zmq.PUSH) as sender:
        sender.connect(flow.open()[0])
        for number in (0, 1, 4):
            sender.send_multipart([b"", packed([1, "data", "x", number]), *encode([number])])
        iterator = iter(flow)
        assert list(itertools.islice(iterator, 2)) == [[0], [1]]
        with pytest.raises(DataWorkerError, match="2 messages of the sender x were lost on the way"):
            next(iterator)


def test_what_was_encoded_is_decoded_from_any_memory():
    value = {"a": np.arange(2000.0), "b": (1, [np.float16(2)])}
    frames = [bytes(frame) for frame in encode(value)]
    got = decode([bytearray(frame) for frame in frames])
    assert np.array_equal(got["a"], value["a"])
    assert got["b"] == (1, [2.0])


def test_the_sender_runs_for_ever_and_refuses_an_empty_flow():
    with RemoteDataZMQ(ANYWHERE) as flow:
        Sender(numbers(2), flow.open()[0], passes=None, timeout_s=1)
        assert list(itertools.islice(flow, 7)) == [[0], [1], [0], [1], [0], [1], [0]]
    with pytest.raises(DataError, match="The DataFromList that is sent had no datapoints in a pass"):
        send_dataflow_zmq(DataFromList([]), ANYWHERE, bind=True)
    with pytest.raises(UsageError, match="Messages have one format"):
        send_dataflow_zmq(numbers(2), ANYWHERE, format="pickle")


def test_addresses_that_cannot_be_used_are_named():
    with RemoteDataZMQ(ANYWHERE) as flow:
        (address,) = flow.open()
        with pytest.raises(UsageError, match="A socket cannot be bound to 'tcp://127"):
            next(iter(RemoteDataZMQ(address)))
    with pytest.raises(UsageError, match="A socket cannot connect to 'nonsense'"):
        send_dataflow_zmq(numbers(2), "nonsense")


def test_closing_frees_the_sockets():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    with RemoteDataZMQ(ANYWHERE) as flow:
        flow.open()
    before = descriptors()
    for _ in range(3):
        with RemoteDataZMQ(ANYWHERE) as flow:
            flow.open()
        dropped = RemoteDataZMQ(ANYWHERE)
        dropped.open()
        del dropped
    assert wait_until(lambda: descriptors() == before, PROCESS_S)
