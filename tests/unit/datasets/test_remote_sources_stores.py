"""Object stores are listed and copied, and their errors say what to do without saying secrets."""

import pytest

from tests.unit.datasets.folder_sets import Scanned, picture
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.sources import SourceLimits, is_remote, open_source, public_uri
from ziggurat.datasets.sources.secrets import without_secrets
from ziggurat.errors import DataError, MissingDependencyError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def store():
    files = fsspec.filesystem("memory")
    yield files
    files.rm("/", recursive=True)


def copied(tmp_path, uri, **limits):
    return open_source(uri, tmp_path / "cache", limits=SourceLimits(wait_s=0, **limits))


def test_38_a_bucket_is_listed_and_copied(tmp_path, store):
    for number, name in enumerate(("a/1.png", "a/2.png", "b c/1.png", "b c/deep/2.png")):
        store.pipe(f"/bucket/set/{name}", picture(number))
    source = copied(tmp_path, "memory://bucket/set")
    found = Scanned(ClassFolders(), source)
    assert found.schema.class_names == ("a", "b c")
    assert list(found.labels) == ["a/1.png", "a/2.png", "b c/1.png", "b c/deep/2.png"]
    assert source.joinpath("b c/deep/2.png").read_bytes() == picture(3)
    assert copied(tmp_path, "memory://bucket/set") == source


def test_38_a_single_file(tmp_path, store):
    store.pipe("/bucket/list.txt", b"a.png 0\n")
    path = copied(tmp_path, "memory://bucket/list.txt")
    assert (path.name, path.read_bytes()) == ("list.txt", b"a.png 0\n")


def test_38_a_wrong_bucket(tmp_path, store):
    with pytest.raises(DataError, match=r"A source is there \(received: `memory://gone/set`: .* Check the names"):
        copied(tmp_path, "memory://gone/set")


def test_38_an_empty_bucket(tmp_path, store):
    store.mkdir("/bucket")
    with pytest.raises(DataError, match="`memory://bucket`, which is there and is empty"):
        copied(tmp_path, "memory://bucket")


def test_names_that_lead_elsewhere(tmp_path, store):
    store.pipe("/bucket/a/../../x.png", b"1")
    store.store["/bucket/set/../../x.png"] = store.store.pop(next(iter(store.store)))
    with pytest.raises(DataError):
        copied(tmp_path, "memory://bucket/set")
    assert not tmp_path.joinpath("x.png").exists()


def test_limits_hold_before_anything_is_copied(tmp_path, store):
    for number in range(5):
        store.pipe(f"/bucket/{number}.png", bytes(100))
    with pytest.raises(DataError, match="has more than 400 bytes"):
        copied(tmp_path, "memory://bucket", total_bytes=400)
    assert not list(tmp_path.glob("cache/*"))


def test_a_name_of_a_file_and_of_a_folder(tmp_path, store):
    store.pipe("/bucket/a/b.png", b"1")
    store.store["/bucket/a"] = store.store["/bucket/a/b.png"]
    with pytest.raises(DataError):
        copied(tmp_path, "memory://bucket")


@pytest.mark.parametrize(
    ("uri", "package", "install"),
    [
        ("s3://bucket/x", "s3fs", r"'ziggurat\[s3\]'"),
        ("gs://bucket/x", "gcsfs", r"'ziggurat\[gcs\]'"),
        ("az://bucket/x", "adlfs", "adlfs"),
    ],
)
def test_the_package_for_a_store_is_named(tmp_path, uri, package, install):
    if __import__("importlib.util").util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(MissingDependencyError, match=rf"`{package}` is needed for sources at .* pip install {install}"):
        copied(tmp_path, uri)


# ---- secrets


@pytest.mark.parametrize(
    ("uri", "public"),
    [
        ("/data/my set", "/data/my set"),
        ("user@host", "user@host"),
        ("http://ann:secret@host:81/a%20b/?x=1&Token=abc#part", "http://host:81/a%20b/?x=1&Token=***"),
        ("s3://AKIA123:se/cret@bucket/x", "s3://bucket/x"),
        ("s3://AKIA123:secret@bucket/x", "s3://bucket/x"),
        (
            "https://h/x?X-Amz-Signature=f&X-Amz-Credential=g&versionId=1",
            "https://h/x?X-Amz-Signature=***&X-Amz-Credential=***&versionId=1",
        ),
        ("http://host:81/ann@home", "http://host:81/ann@home"),
        ("http://ann@host/a:b@c", "http://host/a:b@c"),
        ("http://ann:123@host/", "http://host/"),
        ("http://[bad", "http://***"),
    ],
)
def test_a_public_address_has_no_secrets(uri, public):
    assert public_uri(uri) == public


def test_errors_are_told_without_secrets():
    storage = {"key": "AKIA123456", "client_kwargs": {"aws_session_token": "tok/en+1"}, "endpoint_url": "http://h:9000"}
    text = "AKIA123456 hunter22 hunter%2022 http://bob:hunter22@h/x tok/en+1 tok%2Fen%2B1 at http://h:9000"
    hidden = without_secrets(text, "s3://bob:hunter22@bucket", storage)
    assert hidden == "*** *** hunter%2022 http://h/x *** *** at http://h:9000"


def test_what_is_somewhere_else():
    assert all(map(is_remote, ("s3://b", "HTTP://h")))
    assert not any(map(is_remote, ("file:///x", "/x", "C:/x", "x.zip")))
