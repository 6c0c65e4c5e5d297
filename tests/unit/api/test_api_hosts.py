"""Names in requests: which the studio answers to, and which tell of another site."""

import pytest
from starlette.datastructures import Headers

from ziggurat.server.middleware import HostRule, host_of, is_cross_site


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:5000", "localhost"),
        ("localhost.", "localhost"),
        ("127.0.0.1:5000", "127.0.0.1"),
        ("[::1]:5000", "[::1]"),
        ("studio.example.org", "studio.example.org"),
        ("", None),
        ("a b", None),
        ("user@localhost", None),
        ("localhost:port", None),
        ("localhost/evil", None),
        ("localhost\\evil", None),
        ("..", None),
    ],
)
def test_the_name_of_the_host(given, name):
    assert host_of(Headers({"host": given})) == name


def test_two_names_are_none():
    assert host_of(Headers(raw=[(b"host", b"localhost"), (b"host", b"evil.example.com")])) is None
    assert host_of(Headers({})) is None


@pytest.mark.parametrize(
    ("hosts", "public", "allowed", "refused"),
    [
        (
            (),
            False,
            ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"],
            ["evil.example.com", "192.0.2.1", "localhost.evil"],
        ),
        (("studio.example.org",), False, ["localhost", "studio.example.org"], ["example.org", "x.studio.example.org"]),
        (("*.example.org",), False, ["a.example.org", "a.b.example.org"], ["example.org", "evilexample.org"]),
        ((), True, ["192.0.2.1", "anything"], []),
        (("studio",), True, ["studio", "localhost"], ["192.0.2.1"]),
        (("*",), False, ["anything"], []),
    ],
)
def test_which_names_the_studio_answers_to(hosts, public, allowed, refused):
    rule = HostRule(hosts, public_bind=public)
    assert [name for name in allowed if not rule.allows(name)] == []
    assert [name for name in refused if rule.allows(name)] == []


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({"host": "a:5000"}, False),
        ({"host": "a:5000", "origin": "http://a:5000"}, False),
        ({"host": "a", "origin": "https://a:443"}, False),
        ({"host": "A:5000", "origin": "http://a:5000"}, False),
        ({"host": "a:5000", "origin": "http://a:5001"}, True),
        ({"host": "a:5000", "origin": "http://b"}, True),
        ({"host": "a:5000", "origin": "null"}, True),
        ({"host": "a:5000", "origin": ""}, True),
        ({"host": "a:5000", "origin": "file://a:5000"}, True),
        ({"host": "a:5000", "origin": "http://[::1"}, True),
        ({"host": "a:5000", "origin": "http://b", "sec-fetch-site": "same-origin"}, False),
        ({"host": "a:5000", "sec-fetch-site": "none"}, False),
        ({"host": "a:5000", "origin": "http://a:5000", "sec-fetch-site": "cross-site"}, True),
        ({"host": "a:5000", "sec-fetch-site": "same-site"}, True),
        ({"host": "a:5000", "sec-fetch-site": ""}, True),
    ],
)
def test_whether_another_site_asks(headers, is_foreign):
    assert is_cross_site(Headers(headers)) is is_foreign
