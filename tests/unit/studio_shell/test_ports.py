"""A port is taken before anything else is done; one that is not free says who has it."""

import os

import pytest

from ziggurat.errors import UsageError
from ziggurat.workspace.server_process import address_of, free_port_after, take_port


def test_a_port_that_is_taken_is_refused_and_a_free_one_named():
    with take_port("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError) as caught:
            take_port("127.0.0.1", port)
    text = str(caught.value)
    assert text.startswith(f"Port {port} is not free: it is taken by process {os.getpid()} (")
    assert "Use a free one: --port " in text


def test_the_named_port_is_free():
    with take_port("127.0.0.1", 0) as listener:
        free = free_port_after("127.0.0.1", listener.getsockname()[1])
    take_port("127.0.0.1", free).close()


@pytest.mark.parametrize(
    ("host", "port", "rule"),
    [
        ("127.0.0.1", 65536, "65536 is not a port: these are from 0 to 65535."),
        ("127.0.0.1", -1, "-1 is not a port: these are from 0 to 65535."),
        ("192.0.2.1", 0, "'192.0.2.1' is not a name or address of this machine: "),
        ("no such host", 0, "'no such host' is not a name or address of this machine: "),
    ],
)
def test_a_place_that_is_none_is_refused(host, port, rule):
    with pytest.raises(UsageError) as caught:
        take_port(host, port)
    assert str(caught.value).startswith(rule)


@pytest.mark.parametrize(
    ("host", "prefix", "start", "end"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:", "/"),
        ("0.0.0.0", "/studio", "http://127.0.0.1:", "/studio/"),
        ("localhost", "", "http://localhost:", "/"),
    ],
)
def test_the_address_is_one_for_a_browser_here(host, prefix, start, end):
    with take_port(host, 0) as listener:
        address = address_of(listener, host, prefix)
        assert address == f"{start}{listener.getsockname()[1]}{end}"
