"""Folders that web servers list are copied, file by file, and secrets stay secret."""

import base64
import zipfile

import pytest

from tests.unit.datasets.folder_sets import Scanned, picture, put
from tests.unit.datasets.web_folders import fetched, serving
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.datasets.sources import SourceLimits, came_from_outside, open_source
from ziggurat.datasets.sources.web import parse_index
from ziggurat.errors import DataError, DatapointError


@pytest.fixture
def web(tmp_path):
    tmp_path.joinpath("web").mkdir()
    with serving(tmp_path / "web") as served:
        yield served


# ---- pages

APACHE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><head><title>Index of /set</title></head><body>
<h1>Index of /set</h1><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><a href="/">Parent Directory</a></td><td>&nbsp;</td></tr>
<tr><td><a href="red%20fox/">red fox/</a></td><td align="right">2026-01-02 10:00  </td><td>  - </td></tr>
<tr><td><a href="a%26b.png">a&amp;b.png</a></td><td align="right">2026-01-02 10:00  </td><td>1.2K</td></tr>
</table><address>Apache/2.4 Server at <a href="http://elsewhere/x">host</a> Port 80</address></body></html>"""

NGINX = """<html><head><title>Index of /set/</title></head><body><h1>Index of /set/</h1><hr><pre><a href="../">../</a>
<a href="caf%C3%A9/">caf\u00e9/</a>                 02-Jan-2026 10:00                   -
<a href="long-na%2Fme.png">x</a>                    02-Jan-2026 10:00                   5
<a href="long-name.png">long-na..&gt;</a>           02-Jan-2026 10:00                  17
</pre><hr></body></html>"""


def test_33_a_page_of_apache():
    entries = parse_index(APACHE, "http://host/set/")
    assert [(entry.name, entry.is_folder, entry.url) for entry in entries] == [
        ("a&b.png", False, "http://host/set/a%26b.png"),
        ("red fox", True, "http://host/set/red%20fox/"),
    ]
    assert entries[1].note == "2026-01-02 10:00 -"


def test_33_a_page_of_nginx():
    entries = parse_index(NGINX, "http://host/set/")
    assert [(entry.name, entry.is_folder) for entry in entries] == [("café", True), ("long-name.png", False)]
    assert entries[1].note == "02-Jan-2026 10:00 17"


@pytest.mark.parametrize(
    "reference",
    ["..%2f..%2fetc", "/other/x", "//evil/set/x", "a/b", "%2e%2e", "x\\y", "http://[", "", "./", "?x", "#x"],
)
def test_33_links_that_are_no_entries(reference):
    assert parse_index(f'<a href="{reference}">x</a>', "http://host/set/") == []


# ---- copying


def test_33_a_folder_of_a_server(tmp_path, web):
    put(tmp_path / "web", "set/red fox/ü 1.png", "set/red fox/deep/2.png", "set/cat/1.png", "set/cat/2.png")
    source = fetched(tmp_path, f"{web[1]}/set/")
    assert source.joinpath("red fox/ü 1.png").read_bytes() == picture(0)
    assert Scanned(ClassFolders(), source).schema.class_names == ("cat", "red fox")
    assert came_from_outside(source)


def test_32_blanks_in_an_address(tmp_path, web):
    put(tmp_path / "web", "my set/a.png")
    for path in ("my%20set/", "my set"):
        assert fetched(tmp_path, f"{web[1]}/{path}").joinpath("a.png").exists()


def test_a_copy_is_used_again_until_the_list_changes(tmp_path, web):
    put(tmp_path / "web", "set/a.png", "set/b.png")
    first = fetched(tmp_path, f"{web[1]}/set/")
    web[0].asked.clear()
    assert fetched(tmp_path, f"{web[1]}/set/") == first
    assert web[0].asked == ["/set/"]
    put(tmp_path / "web", "set/c.png")
    assert {path.name for path in fetched(tmp_path, f"{web[1]}/set/").iterdir()} == {"a.png", "b.png", "c.png"}
    assert {path.name for path in first.iterdir()} == {"a.png", "b.png"}


def test_a_file_that_breaks_off_is_asked_for_again(tmp_path, web):
    put(tmp_path / "web", "set/a.png")
    web[0].broken += ["/set/a.png", "/set/a.png"]
    assert fetched(tmp_path, f"{web[1]}/set/").joinpath("a.png").read_bytes() == picture(0)


def test_what_came_is_kept_and_the_next_try_goes_on(tmp_path, web):
    put(tmp_path / "web", *(f"set/{number}.png" for number in range(5)))
    web[0].broken += ["/set/3.png"] * 3
    with pytest.raises(
        DataError, match=r"`3.png` of `http://.*/set/` did not come whole in 3 tries: 4 of 1000 bytes came"
    ):
        fetched(tmp_path, f"{web[1]}/set/")
    came = {path.name for path in tmp_path.glob("cache/*/content/*")}
    assert "3.png" not in came
    assert [path.suffix for path in tmp_path.joinpath("cache").iterdir() if path.is_dir()] == [".partial"]
    web[0].asked.clear()
    source = fetched(tmp_path, f"{web[1]}/set/")
    assert {path.name for path in source.iterdir()} == {f"{number}.png" for number in range(5)}
    assert sorted(web[0].asked) == sorted(["/set/", *(f"/set/{n}.png" for n in range(5) if f"{n}.png" not in came)])
    assert [path.name for path in source.parent.iterdir() if path.is_dir()] == ["content"]


def test_single_files_and_archives(tmp_path, web):
    put(tmp_path / "web", "set/a.png")
    tmp_path.joinpath("web/my list.txt").write_text("a.png 0\n")
    with zipfile.ZipFile(tmp_path / "web/x.zip", "w") as archive:
        archive.writestr("a/1.png", b"1")
        archive.writestr("b/1.png", b"1")
    path = fetched(tmp_path, f"{web[1]}/my%20list.txt")
    assert (path.name, path.read_text()) == ("my list.txt", "a.png 0\n")
    assert {path.name for path in fetched(tmp_path, f"{web[1]}/x.zip").iterdir()} == {"a", "b"}


def test_limits_hold(tmp_path, web):
    put(tmp_path / "web", *(f"set/{number}.png" for number in range(5)))
    with pytest.raises(DataError, match="has more than 4 files"):
        fetched(tmp_path, f"{web[1]}/set/", SourceLimits(files=4))
    with pytest.raises(DataError, match="has more than 100 bytes"):
        fetched(tmp_path, f"{web[1]}/set/", SourceLimits(total_bytes=100, wait_s=0))
    put(tmp_path / "web", "deep/a/b/c/1.png", "deep/1.png")
    source = fetched(tmp_path, f"{web[1]}/deep/", SourceLimits(depth=2))
    assert not source.joinpath("a/b/c").exists()


# ---- errors


def test_38_a_server_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"server of a source answers \(received: `http://127.0.0.1:9/x/`: no answer"):
        fetched(tmp_path, "http://127.0.0.1:9/x/")
    with pytest.raises(DataError, match="Check the host's name and port"):
        fetched(tmp_path, "http://no-such-host.invalid/")


def test_38_a_folder_that_is_not_there_or_empty(tmp_path, web):
    with pytest.raises(DataError, match=r"`http://.*/gone/` cannot be read: the server answered 404 Not Found"):
        fetched(tmp_path, f"{web[1]}/gone/")
    tmp_path.joinpath("web/empty").mkdir()
    with pytest.raises(DataError, match=r"holds files \(received: `http://.*/empty/`, which is there and is empty"):
        fetched(tmp_path, f"{web[1]}/empty/")


def test_addresses_that_nobody_knows(tmp_path):
    for uri in ("ftp://host/x", "reference://x", "simplecache://b", "s3://b::file:///etc", "github://a:b@c"):
        with pytest.raises(DataError, match="The address of a source starts in a way that is known"):
            open_source(uri, tmp_path / "cache")


# ---- secrets


def test_a_password_is_used_and_never_written_down(tmp_path, web):
    put(tmp_path / "web", "set/a.png", "set/deep/b.png")
    web[0].password = f"Basic {base64.b64encode(b'ann:pass word').decode()}"
    url = f"{web[1]}/set/".replace("http://", "http://ann:pass%20word@")
    source = fetched(tmp_path, url)
    assert source.joinpath("deep/b.png").exists()
    for path in tmp_path.joinpath("cache").rglob("*"):
        assert "pass" not in path.name
        assert not path.is_file() or b"pass" not in path.read_bytes()
    with pytest.raises(DataError, match="the server answered 401 Unauthorized") as caught:
        fetched(tmp_path, url.replace("pass%20word", "wrong-secret"))
    assert "secret" not in str(caught.value)


def test_a_password_does_not_go_on_to_another_host(tmp_path, web):
    put(tmp_path / "other", "a.png")
    with serving(tmp_path / "other") as (other, address):
        other.password = "Basic x"
        web[0].away = f"{address}/"
        with pytest.raises(DataError, match="answered 401 Unauthorized"):
            fetched(tmp_path, f"{web[1]}/away/".replace("http://", "http://ann:secret@"))
        other.password = ""
        assert fetched(tmp_path, f"{web[1]}/away/a.png").read_bytes() == picture(0)
        web[0].away = "file:///etc/"
        with pytest.raises(DataError):
            fetched(tmp_path, f"{web[1]}/away/passwd")


# ---- images by their address


def test_34_pictures_of_the_web_in_a_list(tmp_path, web):
    put(tmp_path / "web", "a b.png", "c.png")
    lines = f"{web[1]}/a%20b.png 0\n{web[1]}/c.png?token=abc 1\n{web[1]}/gone.png 1\n"
    tmp_path.joinpath("list.txt").write_text(lines + "http://ann:secret@host/x.png 0\n")
    found = Scanned(TextList(), tmp_path / "list.txt", urls=True)
    assert list(found.labels) == [f"{web[1]}/a%20b.png", f"{web[1]}/c.png?token=***", f"{web[1]}/gone.png"]
    assert found.problems[0].reason == "An address in a list has no user and password."
    reader = TextList().reader(tmp_path / "list.txt", {"urls": True})
    assert [reader.read(str(sample.parts[0])) for sample in found.samples[:2]] == [picture(0), picture(1)]
    assert reader.file(str(found.samples[0].parts[0])) is None
    with pytest.raises(DatapointError, match="it cannot be fetched"):
        reader.read(str(found.samples[2].parts[0]))
    web[0].broken.append("/c.png")
    with pytest.raises(DatapointError, match="it cannot be fetched"):
        reader.read(f"{web[1]}/c.png")


def test_pictures_of_the_web_must_be_allowed(tmp_path, web):
    put(tmp_path, "a.png")
    tmp_path.joinpath("list.txt").write_text(f"a.png 0\n{web[1]}/a.png 1\n")
    found = Scanned(TextList(), tmp_path / "list.txt")
    assert found.problems[0].reason == "It is an address of the web, which the option `urls` allows."
