"""Archives are unpacked whole or not at all, and nothing in them can write elsewhere or fill the disk."""

import gzip
import io
import multiprocessing
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.unit.datasets.folder_sets import Scanned, picture
from tests.waiting import PROCESS_S, wait_until
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.datasets.sources import SourceLimits, came_from_outside, open_source
from ziggurat.errors import DataError

CONTENT = {f"set/{name}/{number}.png": picture(number) for name in ("a", "b c") for number in range(3)}


def make_zip(path, content, *, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def make_tar(path, content, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            else:
                entry.type, entry.linkname = data
                archive.addfile(entry)
    return path


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def opened(path, **limits):
    return open_source(str(path), path.parent / "cache", limits=SourceLimits(**limits))


# ---- what is right


@pytest.mark.parametrize(
    ("name", "mode"),
    [("x.tar", "w"), ("x.tar.gz", "w:gz"), ("x.TGZ", "w:gz"), ("x.tar.bz2", "w:bz2"), ("x.txz", "w:xz")],
)
def test_tar_archives(tmp_path, name, mode):
    source = opened(make_tar(tmp_path / name, {"set": (tarfile.DIRTYPE, ""), **CONTENT}, mode))
    assert source.name == "set"
    assert source.joinpath("b c/2.png").read_bytes() == picture(2)
    assert list(Scanned(ClassFolders(), source).labels) == sorted(name.removeprefix("set/") for name in CONTENT)


def test_zip_archives_also_of_windows(tmp_path):
    names = {name.replace("/", "\\"): data for name, data in CONTENT.items()}
    source = opened(make_zip(tmp_path / "x.zip", {**names, "__MACOSX/._x": b"", "set/empty/": b""}))
    assert files_in(source) == {name.removeprefix("set/") for name in CONTENT}
    assert came_from_outside(source / "a")
    assert not came_from_outside(tmp_path)


def test_a_folder_of_a_split_is_no_wrapping(tmp_path):
    source = opened(make_zip(tmp_path / "x.zip", {"train/a/1.png": b"1", "train/b/1.png": b"1"}))
    assert files_in(source) == {"train/a/1.png", "train/b/1.png"}


def test_what_is_unpacked_once_is_used_again_until_it_changes(tmp_path):
    archive = make_zip(tmp_path / "x.zip", CONTENT)
    first = opened(archive)
    written = first.joinpath("a/0.png").stat().st_mtime_ns
    assert opened(archive) == first
    assert first.joinpath("a/0.png").stat().st_mtime_ns == written
    make_zip(archive, {**CONTENT, "set/a/new.png": b"1"})
    assert opened(archive) != first
    assert opened(archive).joinpath("a/new.png").exists()


def test_archives_may_be_left_as_they_are(tmp_path):
    archive = make_tar(tmp_path / "shard.tar", CONTENT)
    assert open_source(str(archive), tmp_path / "cache", is_unpacked=lambda _path: False) == archive
    assert not (tmp_path / "cache").exists()


def test_folders_and_files_of_this_machine_stay_where_they_are(tmp_path):
    tmp_path.joinpath("a b").mkdir()
    assert open_source(str(tmp_path / "a b"), tmp_path / "cache") == tmp_path / "a b"
    assert open_source(f"file://{tmp_path}/a%20b", tmp_path / "cache") == tmp_path / "a b"
    with pytest.raises(DataError, match=r"`.*/gone` does not exist"):
        open_source(str(tmp_path / "gone"), tmp_path / "cache")


def test_links_inside_and_files_that_are_the_same(tmp_path):
    content = {
        "to-a": (tarfile.SYMTYPE, "deep/a"),  # before what it leads to
        "deep/a/1.png": b"1",
        "deep/b/2.png": (tarfile.LNKTYPE, "deep/a/1.png"),
        "deep/b/back": (tarfile.SYMTYPE, "../a/1.png"),
        "deep/b/dangling": (tarfile.SYMTYPE, "nowhere"),
    }
    source = opened(make_tar(tmp_path / "x.tar", content))
    assert source.joinpath("to-a/1.png").read_bytes() == b"1"
    assert source.joinpath("deep/b/2.png").read_bytes() == b"1"
    assert source.joinpath("deep/b/back").read_bytes() == b"1"


def test_the_last_of_several_members_with_one_name_counts(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for data in (b"old", b"new"):
            entry = tarfile.TarInfo("a.txt")
            entry.size = 3
            archive.addfile(entry, io.BytesIO(data))
    assert opened(tmp_path / "x.tar").joinpath("a.txt").read_text() == "new"


# ---- what is hostile


def refuses(path, rule, **limits):
    before = files_in(path.parent)
    with pytest.raises(DataError, match=rule):
        opened(path, **limits)
    left = {name for name in files_in(path.parent) - before if not name.endswith(".lock")}
    assert left == set()


@pytest.mark.parametrize(
    "name", ["../out.png", "a/../../out.png", "/out.png", "..\\out.png", "C:\\out.png", "C:out.png", "a/..", ".."]
)
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_names_that_lead_elsewhere(tmp_path, make, name):
    path = make(tmp_path / f"x.{make.__name__[5:]}", {"good.png": b"1", name: b"1"})
    refuses(path, "Every file of a source lies in its folder")


@pytest.mark.parametrize(
    "content",
    [
        {"link": (tarfile.SYMTYPE, "/etc")},
        {"link": (tarfile.SYMTYPE, "../..")},
        {"a/link": (tarfile.SYMTYPE, "../../x")},
        {"d1/d2/up": (tarfile.SYMTYPE, "../.."), "d1/d2/out": (tarfile.SYMTYPE, "up/../../x")},
        {"one": (tarfile.SYMTYPE, "two/../.."), "two": (tarfile.SYMTYPE, "."), "x": b"1"},
    ],
    ids=["absolute", "up", "up from a folder", "up by another link", "up by a later link"],
)
def test_links_that_lead_elsewhere(tmp_path, content):
    refuses(make_tar(tmp_path / "x.tar", content), "A link in an archive leads to somewhere in the archive")


def test_nothing_is_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    content = {"link": (tarfile.SYMTYPE, str(outside)), "link/evil.png": b"1"}
    refuses(make_tar(tmp_path / "x.tar", content), "is a folder and a link|leads to somewhere in the archive")
    assert list(outside.iterdir()) == []


def test_a_hard_link_to_a_file_of_this_machine(tmp_path):
    tmp_path.joinpath("secret").write_text("x")
    for target in ("../../../secret", str(tmp_path / "secret")):
        path = make_tar(tmp_path / "x.tar", {"a.png": (tarfile.LNKTYPE, target)})
        refuses(path, "Every file of a source lies in its folder")
    refuses(make_tar(tmp_path / "y.tar", {"a.png": (tarfile.LNKTYPE, "gone.png")}), "An archive is whole and readable")


def test_links_in_zip_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    refuses(tmp_path / "x.zip", "A link in an archive leads to somewhere in the archive")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices(tmp_path, kind):
    refuses(make_tar(tmp_path / "x.tar", {"null": (kind, "")}), "An archive holds files, folders and links")


def test_bombs(tmp_path):
    zeros = {"a.bin": bytes(3_000_000)}
    small = {"ratio": 20, "free_bytes": 1000}
    for path in (
        make_zip(tmp_path / "x.zip", zeros),
        make_tar(tmp_path / "x.tar.gz", zeros, "w:gz"),
        make_tar(tmp_path / "x.tar.xz", zeros, "w:xz"),
    ):
        refuses(path, "A source stays below the limits for files, bytes, and growth", **small)
        assert opened(path).joinpath("a.bin").stat().st_size == 3_000_000
    path = make_tar(tmp_path / "many.tar", {f"{number}": b"" for number in range(11)})
    refuses(path, "has more than 10 files", files=10)
    refuses(make_tar(tmp_path / "large.tar", {"a": bytes(2000)}), "has more than 1000 bytes", total_bytes=1000)


def test_a_header_that_would_fill_the_memory(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 50_000_000
    with gzip.open(tmp_path / "x.tar.gz", "wb") as file:
        file.write(header.tobuf() + bytes(50_000_000))
    refuses(tmp_path / "x.tar.gz", "The header of a member is short")


def test_damaged_archives(tmp_path):
    whole = make_zip(tmp_path / "x.zip", CONTENT).read_bytes()
    for number, data in enumerate((b"", b"no archive at all", whole[:200], whole[:60] + b"\0\0\0\0" + whole[64:])):
        tmp_path.joinpath(f"{number}.zip").write_bytes(data)
        refuses(tmp_path / f"{number}.zip", "An archive is whole and readable")
    for suffix, mode in ((".tar.gz", "w:gz"), (".tar.bz2", "w:bz2"), (".tar.xz", "w:xz"), (".tar", "w")):
        path = make_tar(tmp_path / f"y{suffix}", {"a.bin": os.urandom(5000)}, mode)
        path.write_bytes(path.read_bytes()[:3000])
        refuses(path, "An archive is whole and readable")
        path.write_bytes(b"x" * 2000)
        refuses(path, "An archive is whole and readable")


def test_names_that_no_disk_can_hold(tmp_path):
    for number, names in enumerate((["a", "a/b"], ["a/b", "a"])):
        path = make_tar(tmp_path / f"{number}.tar", dict.fromkeys(names, b"1"))
        refuses(path, "An archive is whole and readable")
    refuses(make_tar(tmp_path / "long.tar", {"x" * 300: b"1"}), "has 300 bytes; 255 is the most")


def test_encrypted_archives(tmp_path):
    path = make_zip(tmp_path / "x.zip", {"a.png": b"1"})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    refuses(path, "An archive is not encrypted")


def test_a_list_in_an_archive_may_not_name_files_of_this_machine(tmp_path):
    outside = tmp_path / "private.png"
    outside.write_bytes(picture())
    lines = f"a.png 0\n{outside} 1\n../../../private.png 1\n"
    found = Scanned(TextList(), opened(make_zip(tmp_path / "x.zip", {"a.png": picture(), "train.txt": lines})))
    assert found.labels == {"a.png": 0}
    assert found.listed == {"train.txt:2": "bad-line", "train.txt:3": "bad-line"}
    assert found.problems[0].reason == "The path leads out of the source, which came from somewhere else."


# ---- a process that is killed


def unpack(path):
    open_source(path, Path(path).parent / "cache")


def test_a_kill_leaves_nothing_that_looks_whole(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {f"set/{number}.png": b"1" for number in range(4000)})
    process = multiprocessing.get_context("spawn").Process(target=unpack, args=(str(archive),))
    process.start()
    unpacked = lambda: list(tmp_path.glob("cache/*.partial/content/set"))  # noqa: E731 - it is asked again
    wait_until(lambda: unpacked() or not process.is_alive(), PROCESS_S, every_s=0.005)
    process.kill()
    process.join()
    [left] = [path for path in tmp_path.joinpath("cache").iterdir() if path.is_dir()]
    assert left.suffix == ".partial"
    assert len(files_in(left)) < 4000
    left.joinpath("content/set/half.png").touch()
    assert len(files_in(opened(archive))) == 4000
    assert not list(tmp_path.glob("cache/*.partial"))
