"""Files that labels name are found by rules that are counted; what could be two files, or lies outside, is none."""

import os
import unicodedata

import pytest

from ziggurat.datasets.formats.shared.file_finder import FileFinder, match_names

NFC, NFD = unicodedata.normalize("NFC", "é.jpg"), unicodedata.normalize("NFD", "é.jpg")


def save(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"abc")


@pytest.mark.parametrize(
    ("there", "name", "rule"),
    [
        ("images/a b.jpg", "a b.jpg", ""),
        ("images/sub/a.jpg", "sub\\a.jpg", ""),
        ("images/a.jpg", "./a.jpg", ""),
        (f"images/{NFD}", NFC, "unicode"),
        (f"images/{NFC}", NFD, "unicode"),
        ("images/IMG_0.jpg", "IMG_0.JPG", "case"),
        ("images/Sub/a.jpg", "sub/a.jpg", "case"),
        ("images/a b.jpg", "a%20b.jpg", "percent"),
        (f"images/{NFD}", "%C3%A9.jpg", "unicode"),
        ("images/a.jpg", "/data/upload/1/a.jpg", "ending"),
        ("images/a.jpg", "..\\..\\label-studio\\media\\upload\\4\\a.jpg", "ending"),
        ("images/a.jpg", "/data/local-files/?d=elsewhere/a.jpg", "ending"),
        ("images/a.jpg", "https://example.com/x/a.jpg?token=1", "ending"),
        ("images/a.jpg", "C:\\Users\\x\\a.jpg", "ending"),
        ("deep/er/images/a.jpg", "images/a.jpg", "ending"),
    ],
)
def test_a_file_is_found_by_the_first_rule_that_holds(tmp_path, there, name, rule):
    save(tmp_path, there, "other/b.jpg")
    finder = FileFinder(tmp_path, ["images", ""])
    assert finder.find(name) == (there, 3, rule)
    notices = list(finder.counts.problems("x.json"))
    assert len(notices) == bool(rule)
    assert all(each.kind == "other-name" and f"`{there}`" in each.reason for each in notices)


@pytest.mark.parametrize(
    ("there", "name"),
    [
        (["a/x.jpg", "b/x.jpg"], "/elsewhere/x.jpg"),
        (["images/x.jpg", "images/X.JPG"], "x.JPG"),
        ([f"images/{NFC}", f"images/{NFD}"], "É.jpg"),
        (["images/x.jpg"], "y.jpg"),
        (["images/x.jpg"], ""),
        (["images/x.jpg"], None),
        (["images/x.jpg"], "x\0.jpg"),
        (["images/x.jpg"], ".."),
        (["images/x.jpg"], "\ud800" * 10),
        (["val/x.jpg"], "x.jpg"),
    ],
)
def test_what_is_not_there_or_could_be_two_is_none(tmp_path, there, name):
    save(tmp_path, *there)
    assert FileFinder(tmp_path, ["images"], without=["val"]).find(name) is None


def test_the_longest_end_of_a_path_decides_and_several_are_named(tmp_path):
    save(tmp_path, "one/train/x.jpg", "one/val/x.jpg")
    finder = FileFinder(tmp_path)
    assert finder.find("/home/me/val/x.jpg") == ("one/val/x.jpg", 3, "ending")
    assert finder.find("/home/me/test/x.jpg") is None
    assert finder.several("/home/me/test/x.jpg") == "`one/train/x.jpg`, `one/val/x.jpg`"


def test_nothing_outside_of_the_source_is_found(tmp_path):
    save(tmp_path, "outside.jpg", "source/images/a.jpg")
    finder = FileFinder(tmp_path / "source", ["images", ""])
    for name in ("../outside.jpg", "../../outside.jpg", str(tmp_path / "outside.jpg"), "..%2Foutside.jpg"):
        assert finder.find(name) is None
    assert finder.find(str(tmp_path / "source/images/a.jpg")) == ("images/a.jpg", 3, "")


def test_links_to_themselves_and_hidden_files_do_no_harm(tmp_path):
    save(tmp_path, "images/a.jpg", ".hidden/a.jpg", "__MACOSX/images/._a.jpg", "images/._a.jpg")
    os.symlink(tmp_path, tmp_path / "images/loop")
    assert FileFinder(tmp_path).find("/x/a.jpg") == ("images/a.jpg", 3, "ending")


def test_names_are_matched_one_to_one():
    found = match_names(["A", "b%20c", NFC, "x", "X"], ["a", "b c", NFD, "y", "xX"])
    assert found == {"A": ("a", "case"), "b%20c": ("b c", "percent"), NFC: (NFD, "unicode")}
    assert match_names(["A", "a%20"], ["a", "A "]) == {"A": ("a", "case"), "a%20": ("A ", "percent")}
    assert match_names(["X", "x"], ["ẍ"]) == {}
