"""Every route of the app, whoever wrote it, keeps out everybody whom it does not name."""

import re

import pytest
from api_parts import bearer, cookie
from api_planted_routes import good  # noqa: F401  (its routes are walked too)

from ziggurat.api.app import every_router
from ziggurat.errors import PluginError
from ziggurat.server.middleware import SAFE_METHODS
from ziggurat.server.permissions import requirements
from ziggurat.web.pages import ROUTERS as PAGE_ROUTERS

ALL = (*every_router(), *PAGE_ROUTERS, "api_planted_routes:good")


def every_route(app):
    for route, requirement in requirements(app.router.routes):
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        for method in sorted(route.methods):
            yield method, path, requirement


async def answers(site, app, chosen, *, base="http://localhost:5000", address="127.0.0.1", **headers):
    """Return {(method, path): status} of the routes that ``chosen`` picks, asked with a body too large for any."""
    found = {}
    async with site.client(app, base=base, address=address) as client:
        for method, path, requirement in every_route(app):
            if chosen(method, requirement):
                # Whoever is kept out must be so before a byte is read: else the answer would be 413.
                sent = {"Content-Length": "9" * 17, "Content-Type": "application/json", **headers}
                answer = await client.request(method, path, headers=sent)
                assert method == "HEAD" or answer.json()["error"], path
                found[method, path] = answer.status_code
    return found


def is_closed(method, requirement):
    return requirement.role != ""


def check_all(found, status):
    assert found
    assert {place: got for place, got in found.items() if got != status} == {}


def test_nobody_comes_in_without_logging_in(site, run):
    site.add("ann")
    check_all(run(answers(site, site.app(routers=ALL), is_closed)), 401)


def test_people_are_led_to_the_login_from_every_page(site, run):
    site.add("ann")
    app = site.app(routers=PAGE_ROUTERS)
    closed = [path for method, path, needed in every_route(app) if method == "GET" and needed.role]

    async def ask():
        async with site.client(app) as client:
            return {path: await client.get(path, headers={"Accept": "text/html"}) for path in closed}

    answers = run(ask())
    assert len(answers) >= 50
    assert {path for path, answer in answers.items() if answer.status_code != 303} == set()
    assert all(answer.headers["location"].startswith("/login?next=") for answer in answers.values())


def test_nobody_else_comes_in_where_there_are_no_accounts(site, run):
    app = site.app(routers=ALL, hosts=["studio.example.org"])
    check_all(run(answers(site, app, is_closed, address="192.0.2.7")), 401)
    check_all(run(answers(site, app, is_closed, base="http://studio.example.org")), 401)
    for name, value in (("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https")):
        check_all(run(answers(site, app, is_closed, **{name: value})), 401)
    check_all(run(answers(site, site.app(routers=ALL, public_bind=True), is_closed)), 401)


def test_a_name_that_is_not_the_studios_own_is_refused(site, run):
    check_all(run(answers(site, site.app(routers=ALL), lambda *_: True, base="http://rebound.example.com")), 400)


@pytest.mark.parametrize(("role", "more"), [("viewer", ("trainer", "admin")), ("trainer", ("admin",))])
def test_a_smaller_role_is_refused(site, run, role, more):
    secret = site.add("bob", role)
    found = run(answers(site, site.app(routers=ALL), lambda _, needed: needed.role in more, **cookie(secret)))
    check_all(found, 403)


@pytest.mark.parametrize(("scope", "more"), [("read", ("write", "admin")), ("write", ("admin",))])
def test_a_token_of_a_smaller_scope_is_refused(site, run, scope, more):
    secret = site.add("ann", scope=scope)
    found = run(answers(site, site.app(routers=ALL), lambda _, needed: needed.scope in more, **bearer(secret)))
    check_all(found, 403)


@pytest.mark.parametrize("site_header", ["cross-site", "same-site"])
def test_another_site_changes_nothing_with_ones_cookie(site, run, site_header):
    secret, app = site.add("ann"), site.app(routers=ALL)
    headers = {**cookie(secret), "Sec-Fetch-Site": site_header, "Sec-Fetch-Mode": "navigate"}
    check_all(run(answers(site, app, lambda method, _: method not in SAFE_METHODS, **headers)), 403)


def test_another_site_changes_nothing_known_by_origin_only(site, run):
    secret, app = site.add("ann"), site.app(routers=ALL)
    for origin in ("http://evil.example.com", "null", "http://localhost:3000", "http://localhost:5000.evil.example"):
        headers = {**cookie(secret), "Origin": origin}
        check_all(run(answers(site, app, lambda method, _: method not in SAFE_METHODS, **headers)), 403)


def test_another_site_embeds_and_fetches_nothing(site, run):
    secret, app = site.add("ann"), site.app(routers=ALL)
    for mode, kind in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": kind, **cookie(secret)}
        check_all(run(answers(site, app, is_closed, **headers)), 403)


def test_another_site_does_nothing_as_the_person_at_this_machine(site, run):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    check_all(run(answers(site, site.app(routers=ALL), is_closed, **headers)), 403)


def test_a_session_that_is_over_is_nobodys(site, run):
    secret, app = site.add("ann"), site.app(routers=ALL)
    site.clock.advance(7 * 86400 + 1)
    check_all(run(answers(site, app, is_closed, **cookie(secret))), 401)


def test_who_is_disabled_is_nobody(site, run):
    session, token, app = site.add("bob", "admin"), site.add("bob", scope="admin"), site.app(routers=ALL)
    site.add("ann")
    site.people.set_disabled("bob", True, by=site.people.identity_of_session(site.add("ann")))
    check_all(run(answers(site, app, is_closed, **cookie(session))), 401)
    check_all(run(answers(site, app, is_closed, **bearer(token))), 401)


def test_a_wrong_token_is_not_helped_by_a_good_cookie(site, run):
    secret, app = site.add("ann"), site.app(routers=ALL)
    headers = {**cookie(secret), **bearer("zig_" + "x" * 43)}
    check_all(run(answers(site, app, is_closed, **headers)), 401)


def test_planted_cookies_are_nobodys(site, run):
    mine, theirs = site.add("ann"), site.add("eve", "viewer")
    app = site.app(routers=ALL)
    tossed = {"Cookie": f"ziggurat_session_5000={theirs}; ziggurat_session_5000={mine}"}
    check_all(run(answers(site, app, is_closed, **tossed)), 401)


def test_whoever_is_let_in_still_has_a_limit(site, run):
    secret, app = site.add("ann"), site.app(routers=ALL)
    check_all(run(answers(site, app, lambda method, _: method not in SAFE_METHODS, **cookie(secret))), 413)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("silent", "/planted/silent: it names 0 needs)."),
        ("plain", "/planted/plain: it does not come from `new_router`)."),
        ("twice", "/planted/twice: it names 2 needs)."),
        ("other_files", "/planted/files: it does not come from `new_router`)."),
        ("socket", "/planted/socket: it does not come from `new_router`)."),
    ],
)
def test_a_route_that_says_too_little_or_much_is_refused(site, name, complaint):
    with pytest.raises(PluginError, match="Every route must say once who may use it") as caught:
        site.app(routers=[f"api_planted_routes:{name}"])
    assert complaint in str(caught.value)


def test_only_files_that_are_meant_to_be_open_may_be_mounted(site, run):
    site.add("ann")

    async def ask():
        async with site.client(site.app(routers=["api_planted_routes:files"])) as client:
            return await client.get("/planted/files/conftest.py"), await client.get("/planted/files/%2e%2e/x")

    found, outside = run(ask())
    assert found.text.startswith('"""Fixtures of the server tests')
    assert outside.status_code == 404


def test_the_document_says_of_every_route_who_may_use_it(site, run):
    async def ask():
        async with site.client(site.app()) as client:
            return (await client.get("/api/v1/openapi.json")).json()

    document = run(ask())
    for methods in document["paths"].values():
        for operation in methods.values():
            assert set(operation["x-needs"]) == {"role", "scope"}
            assert "default" in operation["responses"]
    assert document["paths"]["/api/v1/users"]["post"]["x-needs"] == {"role": "admin", "scope": "admin"}
    assert document["paths"]["/api/v1/login"]["post"]["security"] == []
