"""The studio below a prefix, behind both kinds of proxies."""

import pytest
from api_parts import PASSWORD

from ziggurat.errors import UsageError


@pytest.mark.parametrize("path", ["/ziggurat/api/v1/me", "/api/v1/me"], ids=["kept", "taken away"])
def test_a_proxy_may_keep_the_prefix_or_take_it_away(site, run, path):
    async def ask():
        async with site.client(site.app(prefix="ziggurat/")) as client:
            return (await client.get(path)).json()["name"]

    assert run(ask()) == "local"


def test_links_lead_below_the_prefix(site, run):
    routers = ["ziggurat.api.documents:router", "ziggurat.web.pages.rest_api.routes:router"]
    app = site.app(prefix="/ziggurat", routers=routers)

    async def ask(path, **headers):
        async with site.client(app) as client:
            return await client.get(path, headers=headers)

    assert run(ask("/ziggurat/api/v1/openapi.json")).json()["servers"] == [{"url": "/ziggurat"}]
    site.add("ann")
    for path in ("/ziggurat/api/v1/docs", "/api/v1/docs"):
        answer = run(ask(path, Accept="text/html"))
        assert answer.headers["location"] == "/ziggurat/login?next=%2Fziggurat%2Fapi%2Fv1%2Fdocs"


def test_a_longer_word_is_not_the_prefix(site, run):
    async def ask(path):
        async with site.client(site.app(prefix="/zig")) as client:
            return (await client.get(path)).status_code

    assert [run(ask(path)) for path in ("/ziggurat/api/v1/me", "/zig", "/zig/", "/zig/zig/api/v1/me")] == [404] * 4


def test_login_through_a_proxy_with_https(site, run):
    site.add("ann")

    async def ask():
        app = site.app(prefix="/zig", hosts=["studio.example.org"])
        async with site.client(app, base="https://studio.example.org/zig/") as client:
            sent = {"Origin": "https://studio.example.org"}
            answer = await client.post("api/v1/login", json={"name": "ann", "password": PASSWORD}, headers=sent)
            assert answer.status_code == 200
            return (await client.get("api/v1/me")).json()["name"]

    assert run(ask()) == "ann"


@pytest.mark.parametrize("prefix", ["/a b", "/a/../b", "/a//b", "/a?b", "/ä"])
def test_a_prefix_is_a_plain_path(site, prefix):
    with pytest.raises(UsageError, match="is not a plain path"):
        site.app(prefix=prefix)
