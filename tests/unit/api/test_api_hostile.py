"""What nobody sends by mistake: each gets a short answer in the one shape, and nothing breaks."""

import logging

import pytest
from api_parts import bearer

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def send(site, run):
    """Sends to the planted routes once: (method, path, body, headers) -> the answer."""
    app = site.app(routers=["api_planted_routes:good"])

    def once(method, path, content=None, **headers):
        async def request():
            async with site.client(app) as client:
                return await client.request(method, f"/planted{path}", content=content, headers=headers)

        return run(request())

    return once


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"value": NaN}',
        b'{"value": Infinity}',
        b'{"value": -Infinity}',
        b'{"value": 1e999}',
        b'{"value": ' + b"9" * 290 + b"e20}",
        b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000,
        b'{"value": "\xff\xfe"}',
        b'{"value": 1, "names": ["\\ud800"]}',
        b'{"value": ' + b"9" * 10_000 + b"}",
        b'{"value": [1]}',
        b'{"value": {}}',
        b'{"value": null}',
        b"[]",
        b"null",
        b'"text"',
        b"\x00" * 100,
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda body: repr(body[:14]),
)
def test_json_that_means_nothing_or_too_much(send, body):
    answer = send("POST", "/numbers", body, **JSON)
    assert answer.status_code == 422
    assert answer.json()["error"] == "validation"
    assert len(answer.content) < 2000
    assert answer.json()["details"]["fields"][0]["field"].startswith("body")


def test_json_under_another_name_is_not_read(send):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        # These are what a form of another site can send without being asked.
        assert send("POST", "/numbers", b'{"value": 1}', **{"Content-Type": kind}).status_code == 422


def test_a_body_has_a_limit_whether_or_not_it_says_its_size(send):
    async def parts():
        for _ in range(11):
            yield b" " * 1_000_000

    for body in (b" " * 10_000_001, parts()):
        answer = send("POST", "/numbers", body, **JSON)
        assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
        assert answer.json()["details"] == {"limit_bytes": 10_000_000}


def test_an_upload_has_its_own_limit(send):
    async def parts(count):
        for _ in range(count):
            yield b"x" * 100

    assert send("PUT", "/upload", parts(10)).json() == 1000
    assert send("PUT", "/upload", parts(11)).status_code == 413
    assert send("PUT", "/upload", b"x" * 1001).status_code == 413


def test_a_stranger_is_kept_out_before_anything_is_read(site, send):
    site.add("ann")
    read = []

    async def parts():
        read.append("asked")
        yield b"x"

    assert send("PUT", "/upload", parts()).status_code == 401
    assert read == []


def test_a_header_of_several_lines_never_leaves(send, caplog):
    with caplog.at_level(logging.CRITICAL):
        answer = send("GET", "/fail/header")
    assert answer.status_code == 500
    assert "b=c" not in str(answer.headers)


def test_what_nobody_foresaw_has_an_id_and_tells_nothing(send, caplog):
    answer = send("GET", "/fail/hunter2")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal")
    name = answer.json()["details"]["id"]
    assert "hunter2" not in answer.text.replace("/planted/fail/hunter2", "")
    (record,) = [record for record in caplog.records if record.name == "ziggurat.server.errors"]
    assert name in record.getMessage()
    assert "the secret is hunter2" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("how", "status"), [("job", 409), ("missing", 404), ("gone", 409), ("data", 422), ("disk", 507)]
)
def test_errors_of_the_tree_have_the_status_of_their_family(send, how, status):
    answer = send("GET", f"/fail/{how}")
    assert answer.status_code == status
    assert answer.json()["message"].startswith(answer.json()["rule"].removesuffix("."))


def test_paths_and_methods_that_are_not_there(send, site, run):
    answer = send("GET", "/%0d%0aSet-Cookie:x")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert send("DELETE", "/page").status_code == 405
    assert send("DELETE", "/page").headers["allow"] == "GET"
    assert send("GET", "/page/").status_code == 404  # no redirect to wherever the Host header says


def test_every_answer_has_the_headers_that_protect(send):
    for path in ("/page", "/nothing", "/fail/job"):
        headers = send("GET", path).headers
        assert headers["content-security-policy"] == (
            "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_people_programs_and_parts_each_find_the_login(site, send):
    site.add("ann")
    page = send("GET", "/page?a=1&b=%0d%0a2", Accept="text/html,*/*")
    assert (page.status_code, page.headers["location"]) == (
        303,
        "/login?next=%2Fplanted%2Fpage%3Fa%3D1%26b%3D%250d%250a2",
    )
    part = send("GET", "/page", **{"HX-Request": "true", "HX-Current-URL": "http://localhost:5000/jobs?page=2"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login?next=%2Fjobs%3Fpage%3D2")
    program = send("GET", "/page")
    assert (program.status_code, program.headers["www-authenticate"]) == (401, 'Bearer realm="ziggurat"')


def test_the_way_back_from_the_login_leads_nowhere_else(site, send):
    site.add("ann")
    for address in ("//evil.example.com/x", "http://localhost//evil.example.com", "javascript:alert(1)", "\\\\evil"):
        part = send("GET", "/page", **{"HX-Request": "true", "HX-Current-URL": address})
        assert part.headers["hx-redirect"] in ("/login", "/login?next=%2Fx")
    assert send("POST", "/numbers", b"{}", Accept="text/html", **JSON).headers["location"] == "/login"


def test_odd_authorizations_are_nobodys(site, send):
    site.add("ann")
    for value in ("", "Bearer", "Bearer ", "Basic YTpi", "bearer zig_", "Bearer " + "x" * 10_000, "Bearer zig_é"):
        headers = {"Authorization": value.encode()} if value else {}
        assert send("GET", "/page", **headers).status_code == 401
    assert send("GET", "/page", **bearer(site.add("ann", scope="read"))).text == "<p>ann"
