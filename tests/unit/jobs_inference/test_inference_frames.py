"""Messages of warm processes: the two sides understand each other, and nothing else."""

import io
import os
import threading
import time

import numpy as np
import pytest

from ziggurat.errors import (
    CheckpointError,
    DataError,
    DatapointError,
    NetworkCodeError,
    UnknownNameError,
    ZigguratError,
    error_of_family,
)
from ziggurat.records.codec import DecodingError, EncodingError, read_frame, write_frame
from ziggurat.services.inference_process import send_frame

VALUE = {"id": 7, "pictures": [["a.png", bytes(range(256))]], "row": np.arange(3.0), "none": None}


def test_what_the_studio_sends_the_worker_reads() -> None:
    into, out = os.pipe()
    send_frame(out, VALUE, time.monotonic() + 60)
    os.close(out)
    with os.fdopen(into, "rb") as source:
        found = read_frame(source)
        assert found.pop("row").tolist() == [0, 1, 2]
        assert found == {name: value for name, value in VALUE.items() if name != "row"}
        assert read_frame(source) is None


def test_what_the_worker_sends_the_studio_reads() -> None:
    target = io.BytesIO()
    for number in range(3):
        write_frame(target, {"id": number})
    target.seek(0)
    assert [read_frame(target) for _ in range(4)] == [{"id": 0}, {"id": 1}, {"id": 2}, None]


def test_cut_off_anywhere_it_is_the_end() -> None:
    target = io.BytesIO()
    write_frame(target, VALUE)
    whole = target.getvalue()
    assert all(read_frame(io.BytesIO(whole[:length])) is None for length in range(len(whole)))


def test_garbage_is_no_message() -> None:
    with pytest.raises(DecodingError, match=r"A message has 18446744073709551615 bytes; 1073741824 is the most"):
        read_frame(io.BytesIO(b"\xff" * 100))
    with pytest.raises(DecodingError, match="A packed value is read as it was written"):
        read_frame(io.BytesIO((30).to_bytes(8, "little") + b"cos\nsystem\n(S'true'\ntR." + bytes(30)))


def test_a_pipe_that_is_full_is_waited_for_and_given_up() -> None:
    into, out = os.pipe()
    os.set_blocking(out, False)
    large = {"content": bytes(1 << 20)}
    with pytest.raises(TimeoutError):
        send_frame(out, large, time.monotonic() + 0.05)
    os.close(into)
    with pytest.raises(BrokenPipeError):
        send_frame(out, large, time.monotonic() + 60)
    os.close(out)


def test_a_slow_reader_gets_all_of_it() -> None:
    into, out = os.pipe()
    os.set_blocking(out, False)
    found = []

    def read() -> None:
        with os.fdopen(into, "rb") as source:
            found.append(read_frame(source))

    reader = threading.Thread(target=read)
    reader.start()
    send_frame(out, {"content": bytes(1 << 22)}, time.monotonic() + 30)
    reader.join()
    os.close(out)
    assert found == [{"content": bytes(1 << 22)}]


def test_objects_are_not_sent() -> None:
    target = io.BytesIO()
    with pytest.raises(EncodingError):
        write_frame(target, {"id": object()})
    assert target.getvalue() == b""


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (UnknownNameError("request", "dance", ["ping"]), ZigguratError),
        (DatapointError("a.png", "it is empty."), DataError),
        (NetworkCodeError("It failed.", received="line 7", details={"line": 7}), NetworkCodeError),
        (CheckpointError("There is none."), CheckpointError),
        (ZigguratError("Something."), ZigguratError),
    ],
)
def test_an_error_comes_back_in_its_family(error: ZigguratError, family: type[ZigguratError]) -> None:
    found = error_of_family(error.as_dict(), error.exit_code)
    assert isinstance(found, family)
    assert (found.as_dict(), found.exit_code, str(found)) == (error.as_dict(), error.exit_code, str(error))
