"""Images that are named by their address, from a real server: what is fetched, and all that is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.unit.studio_shell.picture_server import PICTURE, PictureServer, serving_pictures
from ziggurat.errors import DataError, UsageError
from ziggurat.settings import load_settings
from ziggurat.workspace.studio.images import WebPictures, has_secret

PRIVATE = "An image is fetched from a public address, or from a host that the setting `picture_hosts` names."


@pytest.fixture
def server() -> Iterator[PictureServer]:
    with serving_pictures() as running:
        yield running


@pytest.fixture
def pictures(server: PictureServer) -> WebPictures:
    """Return what may fetch from the server by its number alone, not by its name."""
    return WebPictures(f"pictures.example.org, 127.0.0.1:{server.port}")


def test_a_picture_comes_as_it_is_without_what_may_be_secret(server: PictureServer, pictures: WebPictures) -> None:
    assert pictures.fetch(f" {server.url('/cat.png?key=secret#part')}\n") == (server.url("/cat.png"), PICTURE)
    assert server.asked == [("/cat.png?key=secret", f"127.0.0.1:{server.port}")]


@pytest.mark.parametrize("hosts", ["localhost", "LOCALHOST.", "localhost:{port}", "a.example.org,localhost"])
def test_a_named_host_may_be_local_and_is_asked_by_its_name(server: PictureServer, hosts: str) -> None:
    fetched = WebPictures(hosts.format(port=server.port)).fetch(server.url("/cat.png", "localhost"))

    assert fetched == (server.url("/cat.png", "localhost"), PICTURE)
    assert server.asked == [("/cat.png", f"localhost:{server.port}")]


@pytest.mark.parametrize("hosts", ["", "localhost:1", "example.org", "ocalhost", ".localhost"])
def test_a_name_that_stands_for_this_machine_is_refused(server: PictureServer, hosts: str) -> None:
    with pytest.raises(UsageError) as refused:
        WebPictures(hosts).fetch(server.url("/cat.png?key=secret", "localhost"))

    assert refused.value.rule == PRIVATE
    assert refused.value.received == f"`{server.url('/cat.png', 'localhost')}`, which is in a network of this machine"
    assert "`picture_hosts`" in refused.value.advice
    assert server.asked == []


LOCAL = [
    "127.0.0.1", "127.1", "0x7f000001", "2130706433", "0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "224.0.0.1", "255.255.255.255", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
    "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]",
]  # fmt: skip


@pytest.mark.parametrize("host", LOCAL)
def test_addresses_not_public_are_refused_however_written(host: str) -> None:
    with pytest.raises(UsageError, match="is fetched from a public address"):
        WebPictures().fetch(f"http://{host}:9/cat.png")


WRONG = {
    "file:///etc/passwd": "begins with http:// or https:// (received: `file:",
    "ftp://example.org/cat.png": "begins with http:// or https:// (received: `ftp://example.org/cat.png`",
    "cat.png": "begins with http:// or https:// (received: `cat.png`",
    "http:///cat.png": "begins with http:// or https:// (received: `http:/cat.png`).",
    "http://a:b/": "received: something that is no address",
    "http://\udc80/": "received: something that is no address",
    "http://example.org:0/": "is not a port, a number from 1 to 65535",
    "http://example.org:99999/": "is not a port, a number from 1 to 65535",
}


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_address_of_the_web_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        WebPictures().fetch(url)
    assert WRONG[url] in str(refused.value)
    assert refused.value.advice


@pytest.mark.parametrize(
    "url", ["http://anna:hunter2@example.org/", "https://anna@example.org/", "http://anna:hun/ter2@a/"]
)
def test_credentials_are_refused_and_never_said_again(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        WebPictures().fetch(url)
    assert not any(secret in str(refused.value) for secret in ("anna", "hun", "ter2"))
    assert has_secret(url)


def test_an_at_sign_in_a_path_is_no_secret() -> None:
    assert not has_secret("https://example.org/@anna/cat.png")


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(DataError, match=r"`nobody\.invalid` is an unknown host"):
        WebPictures().fetch("http://nobody.invalid/cat.png")


def test_nobody_at_the_address_is_said(server: PictureServer) -> None:
    with pytest.raises(DataError, match=r"`http://127.*does not answer: ConnectError"):
        WebPictures("127.0.0.1").fetch("http://127.0.0.1:1/cat.png")


def test_redirects_are_followed_and_each_is_checked(server: PictureServer, pictures: WebPictures) -> None:
    server.redirects = {
        "/a": "/b",
        "/b": server.url("/c"),
        "/c": "cat.png",
        "/out": server.url("/cat.png", "localhost"),
    }

    assert pictures.fetch(server.url("/a")) == (server.url("/cat.png"), PICTURE)
    server.asked.clear()
    with pytest.raises(UsageError, match="is fetched from a public address") as refused:
        pictures.fetch(server.url("/out"))
    assert f"`{server.url('/cat.png', 'localhost')}`" in str(refused.value.received)
    assert [path for path, _host in server.asked] == ["/out"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://169.254.169.254/latest", "http://a:b@127.0.0.1/"])
def test_a_redirect_leads_nowhere_else(server: PictureServer, pictures: WebPictures, target: str) -> None:
    server.redirects = {"/out": target}
    with pytest.raises(UsageError):
        pictures.fetch(server.url("/out"))


def test_a_circle_of_redirects_ends(server: PictureServer, pictures: WebPictures) -> None:
    server.redirects = {"/a": "/b", "/b": "/a"}
    with pytest.raises(DataError, match="by at most 3 redirects"):
        pictures.fetch(server.url("/a"))
    assert [path for path, _host in server.asked] == ["/a", "/b", "/a", "/b"]


@pytest.mark.parametrize("path", ["/large.png", "/endless.png"])
def test_what_is_too_large_is_not_read_to_its_end(server: PictureServer, pictures: WebPictures, path: str) -> None:
    with pytest.raises(DataError, match=r"The image at `http://127.* is too large: more than 20 MiB"):
        pictures.fetch(server.url(path))


def test_what_takes_too_long_is_given_up(server: PictureServer) -> None:
    with pytest.raises(DataError, match=r"sent no whole image in 0\.5 seconds"):
        WebPictures("127.0.0.1", limit_s=0.5).fetch(server.url("/slow.png"))


def test_what_is_not_there_or_no_picture_is_said(server: PictureServer, pictures: WebPictures) -> None:
    with pytest.raises(DataError, match=rf"`{server.url('/gone.png')}` gives no image: 404 Not Found"):
        pictures.fetch(server.url("/gone.png"))
    with pytest.raises(DataError, match="is no image that can be read") as refused:
        pictures.fetch(server.url("/page.html"))
    assert "not of a page that shows it" in refused.value.advice


def test_a_few_are_fetched_at_once(server: PictureServer) -> None:
    pictures = WebPictures("127.0.0.1", limit_s=30)
    failures: list[str] = []

    def fetch() -> None:
        with pytest.raises(DataError) as refused:
            pictures.fetch(server.url("/slow.png"))
        failures.append(refused.value.rule)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(server.asked) < len(threads):
        threads[0].join(0.01)
    with pytest.raises(UsageError, match="At most 4 images are fetched at once"):
        pictures.fetch(server.url("/cat.png"))
    server.ended.set()
    for thread in threads:
        thread.join()
    assert len(failures) == 4
    assert all("is no image that can be read" in each for each in failures)
    assert pictures.fetch(server.url("/cat.png"))[1] == PICTURE


def test_settings_name_hosts_and_forbid_all_of_it(server: PictureServer) -> None:
    settings = load_settings({"ZIGGURAT_PICTURE_URLS": "off", "ZIGGURAT_PICTURE_HOSTS": "127.0.0.1"})
    assert (settings.picture_urls, settings.picture_hosts) == (False, "127.0.0.1")
    assert (load_settings({}).picture_urls, load_settings({}).picture_hosts) == (True, "")

    with pytest.raises(UsageError, match="This studio fetches no images by their address"):
        WebPictures(settings.picture_hosts, is_on=settings.picture_urls).fetch(server.url("/cat.png"))
    assert server.asked == []
