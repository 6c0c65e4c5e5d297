"""Packed values: what goes in comes out, and what is damaged is named."""

import enum
import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ziggurat.records.codec import DecodingError, EncodingError, pack, pack_parts, unpack

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
Point = namedtuple("Point", "x y")


class Color(enum.IntEnum):
    RED = 3


def same(a, b):
    """Whether two values are equal in type, dtype, shape and content, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return a == b or (a != a and b != b)


VALUES = [
    None, True, False, 0, -1, 2**63, -(2**63), 2**64, -(2**64), 3**500, -(3**500), 1.5, float("inf"), float("nan"),
    "", "žluťoučký", b"", b"\x00\xff", b"z" * 5000, [], (), {}, [[]], ((),),
    (1, (2, [3, (4,)])), [2**70, np.ones(3), (2**80, np.zeros(2), "x"), {2**66: np.ones(1)}],
    {"a": 1, 2: "b", (3, 4): b"c", b"d": None, 1.5: True},
    np.float32(3), np.float64(2), np.int8(-1), np.bool_(True), np.str_("hé"), np.bytes_(b"q"), np.complex64(1j),
    np.datetime64("2020-01-01"), np.array(5), np.array(True), np.zeros((0, 3)), np.zeros((2, 0), np.uint8),
    np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
    np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(["a", "bb"]), np.array([b"x"]), np.array([1], ">f4"),
    np.array(["2020-01-01"], "M8[D]"), np.zeros(3, [("a", "<i4"), ("b", "<f8", (2,)), ("c", [("d", "u1")])]),
    np.zeros(2, np.float16), np.zeros(2, np.longdouble), np.array([], "U"),
    [np.arange(1000, dtype=np.int64), 3, {"mask": np.eye(3, dtype=bool), "jpeg": b"j" * 9000}],
]  # fmt: skip


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_a_value_comes_back_with_its_types(value, copy):
    assert same(unpack(pack(value), copy=copy), value)


@unhurried
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=6000)
        | hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
        lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_nesting_comes_back(value):
    assert same(unpack(pack(value)), value)


def test_subclasses_come_back_as_their_plain_base():
    value = [Point(1, 2), OrderedDict(a=2**70), Color.RED, bytearray(b"ab"), memoryview(b"cd")]
    assert same(unpack(pack(value)), [(1, 2), {"a": 2**70}, 3, b"ab", b"cd"])


def test_arrays_are_views_of_the_message_unless_copied():
    message = bytearray(pack([np.arange(4, dtype=np.uint8)]))
    view, copied = unpack(message)[0], unpack(message, copy=True)[0]
    message[-4:] = b"\x09\x09\x09\x09"
    assert view.tolist() == [9, 9, 9, 9]
    assert copied.tolist() == [0, 1, 2, 3]
    assert copied.flags.writeable
    assert copied.flags.owndata
    assert not unpack(bytes(message))[0].flags.writeable


def test_arrays_start_at_multiples_of_64_bytes():
    message = np.frombuffer(pack([np.full(3, 7, np.uint8), np.full(5, 8, np.uint8)]), np.uint8)
    assert np.flatnonzero(message == 7)[-3] % 64 == 0
    assert np.flatnonzero(message == 8)[-5] % 64 == 0


def test_the_pieces_show_the_arrays_themselves():
    array = np.zeros(1000, np.uint8)
    parts = pack_parts([array, b"x" * 5000])
    array[:] = 5
    value = unpack(b"".join(parts))
    assert value[0].tolist() == [5] * 1000
    assert value[1] == b"x" * 5000
    assert max(len(part) for part in parts if isinstance(part, bytes)) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, {"a": {2, 3}}], "received: an object of type `builtins.set`, at `value[1]['a']`)."),
        (object(), "received: an object of type `builtins.object`, at `value`)."),
        ([np.array([object()])], "received: an array of dtype `object`, at `value[0]`)."),
        ([(1j,)], "received: an object of type `builtins.complex`, at `value[0][0]`)."),
        (np.ma.masked_array([1, 2], [0, 1]), "received: a masked array, at `value`)."),
    ],
)
def test_what_is_no_plain_data_is_refused_by_type_and_place(value, text):
    with pytest.raises(EncodingError) as caught:
        pack(value)
    assert text in str(caught.value)


def test_a_container_that_holds_itself_is_refused():
    endless: list = [1]
    endless.append(endless)
    with pytest.raises(EncodingError, match="no container holds itself"):
        pack(endless)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "received: 0 bytes; the shortest message has 25)."),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), r"48 bytes that start with b'\x89PNG\r\n\x1a\n'"),
        (pickle.dumps([1] * 40), "bytes that start with b'\\x80"),
    ],
)
def test_garbage_is_named(data, text):
    with pytest.raises(DecodingError) as caught:
        unpack(data)
    assert text in str(caught.value)
    assert "`ziggurat.records.codec.pack`" in str(caught.value)


def test_every_cut_and_every_changed_header_byte_is_noticed():
    message = pack([np.arange(20, dtype=np.uint8), "label", (1, 2.5), 2**80])
    for length in range(len(message)):
        with pytest.raises(DecodingError):
            unpack(message[:length])
    with pytest.raises(DecodingError, match="bytes of a message of"):
        unpack(message + b"\x00")
    header_end = message.index(bytes(range(20))) // 64 * 64 - 64
    for place in range(max(header_end, 60)):
        changed = bytearray(message)
        changed[place] ^= 0x40
        with pytest.raises(DecodingError):
            unpack(changed)


@unhurried
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data):
    with pytest.raises(DecodingError):
        unpack(data)
