"""Which images a job predicts for, and what their lines say of labels."""

from __future__ import annotations

import pytest

from ziggurat.errors import DataError
from ziggurat.worker.commands.prediction import list_images

NAMES = ["cat", "golden retriever", "10"]


def listed(tmp_path, text, **options):
    path = tmp_path / "list.txt"
    path.write_text(text, encoding="utf-8")
    given = {"image_folder": "", "limit": 0} | options
    return list_images(str(path), given["image_folder"], NAMES, given["limit"])


@pytest.mark.parametrize(
    ("line", "key", "label"),
    [
        ("a.png", "a.png", -1),
        ("a b.png 1", "a b.png", 1),
        ("a.png\tgolden retriever", "a.png", 1),
        ("a.PNG, cat", "a.PNG", 0),
        ("a.png golden retriever", "a.png", 1),
        ("a.png cat.png", "a.png cat.png", -1),
        ("a, b.jpeg", "a, b.jpeg", -1),
        ("no_ending 2", "no_ending", 2),
        ("no_ending", "no_ending", -1),
        ("/all/of/it.jpg 0", "/all/of/it.jpg", 0),
    ],
)
def test_a_line(tmp_path, line, key, label):
    found = listed(tmp_path, f"\ufeff\n{line}\n\n")

    assert (found.keys, found.labels) == ([key], [label])
    assert found.files == [key if key.startswith("/") else str(tmp_path / key)]


def test_relative_paths_begin_at_the_image_folder(tmp_path):
    found = listed(tmp_path, "a.png 0\nsub/b.png 1\nc.png\n", image_folder="/pictures", limit=2)

    assert found.files == ["/pictures/a.png", "/pictures/sub/b.png"]


@pytest.mark.parametrize("label", ["3", "dog", "-1"])
def test_a_label_that_is_none_names_its_line(tmp_path, label):
    with pytest.raises(DataError, match=rf"`{label}` in .*list\.txt, line 2 is no class of the model.*from 0 to 2"):
        listed(tmp_path, f"a.png 0\nb.png {label}\n")


def test_a_folder_is_read_to_its_depths_but_not_what_is_hidden(tmp_path):
    for name in ("b.png", "a/2.jpg", "a/1.JPG", ".hidden/x.png", "a/.x.png", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    found = list_images(str(tmp_path), "", NAMES, 0)

    assert found.keys == ["b.png", "a/1.JPG", "a/2.jpg"]
    assert found.files[1] == str(tmp_path / "a" / "1.JPG")
    assert found.labels == [-1, -1, -1]
    assert list_images(str(tmp_path / "b.png"), "", NAMES, 0).keys == ["b.png"]


def test_sources_that_are_none_are_said(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "pets.tar.gz").touch()

    with pytest.raises(DataError, match="has no image to predict for"):
        list_images(str(tmp_path / "empty"), "", NAMES, 0)
    for name, said in (("pets.tar.gz", "is an archive"), ("gone", "gone` does not exist")):
        with pytest.raises(DataError, match=said):
            list_images(str(tmp_path / name), "", NAMES, 0)
