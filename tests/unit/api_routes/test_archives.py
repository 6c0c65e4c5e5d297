"""Archives stay whole while the files that go into them change."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from ziggurat.errors import UnknownNameError
from ziggurat.workspace.studio.archives import archive, sent_folder

_LARGE = 3_000_000


def _read(content, kind):
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            return {name: packed.read(name) for name in packed.namelist() if name != "info.json"}
    with tarfile.open(fileobj=io.BytesIO(content)) as packed:
        return {each.name: packed.extractfile(each).read() for each in packed if each.name != "info.json"}  # pyright: ignore


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_files_that_grow_shrink_or_go_leave_the_archive_whole(tmp_path, kind):
    names = ("gone", "grows", "shrinks")
    files = [(name, tmp_path / name) for name in names]
    for _, path in files:
        path.write_bytes(b"x" * _LARGE)

    parts = archive(kind, files, {"a": 1}, now=1.7e9)
    content = next(parts)
    (tmp_path / "gone").unlink()
    for name, part in enumerate(parts):
        content += part
        if name == 1:
            with (tmp_path / "grows").open("ab") as file:
                file.write(b"more")

    found = _read(content, kind)
    assert len(found["shrinks"]) == _LARGE
    assert set(found["grows"]) <= set(b"xmore")


def test_no_more_than_a_part_is_in_memory(tmp_path):
    (tmp_path / "large").write_bytes(bytes(_LARGE))

    parts = list(archive("tar", [("large", tmp_path / "large")], {}, now=0.0))

    assert max(len(part) for part in parts) <= 256 * 1024


def test_an_archive_that_nobody_takes_leaves_no_folder(tmp_path):
    def make(folder):
        folder.mkdir()
        (folder / "a").write_bytes(b"1")
        return {}

    parts = sent_folder(make, tmp_path, "zip", now=0.0)
    assert len(list(tmp_path.iterdir())) == 1
    del parts

    assert list(tmp_path.iterdir()) == []


def test_unknown_kinds_are_refused_at_once(tmp_path):
    with pytest.raises(UnknownNameError, match="rar"):
        archive("rar", [], {}, now=0.0)
