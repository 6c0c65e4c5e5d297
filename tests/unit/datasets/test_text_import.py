"""Labeled texts go in from tables, JSON lines, files of lines and folders of files, each with its class."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from table_text_fakes import SHARED, Scanned

from ziggurat.datasets.format_registry import guess_format
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError, UnknownNameError

GOOD, BAD = "what a fine day it was", "never do this again please"


def confidence(source: Path) -> float:
    guess = TextImporter().guess(source)
    return 0.0 if guess is None else guess.confidence


def test_a_table_with_a_header_names_text_and_class(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text(f'id,Review,Sentiment\n1,"{GOOD}, ""really""",good\n2,{BAD},bad\n', encoding="utf-8")
    assert confidence(path) == 0.85
    found = Scanned(TextImporter(), path)
    assert found.schema.class_names == ("bad", "good")
    assert (found.labels, found.texts) == ([1, 0], [f'{GOOD}, "really"', BAD])
    assert found.keys == ["row-000000", "row-000001"]


def test_quotes_between_tabs_are_letters_unless_around_cells(tmp_path: Path) -> None:
    plain = tmp_path / "plain.tsv"
    plain.write_text(f'spam\t"{GOOD}\nham\t{BAD} "\n' * 3)
    assert Scanned(TextImporter(), plain).texts[:2] == [f'"{GOOD}', f'{BAD} "']
    quoted = tmp_path / "quoted.tsv"
    quoted.write_text(f'spam\t"{GOOD}"\nham\t"{BAD} ""now"""\n' * 3)
    assert Scanned(TextImporter(), quoted).texts[:2] == [GOOD, f'{BAD} "now"']


def test_columns_may_be_named_and_classes_chosen(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + f"{GOOD},{BAD},x\n{BAD},{GOOD},y\n")
    found = Scanned(TextImporter(), path, text="b", label="c", classes=["y", "z"])
    assert (found.texts, found.labels, found.schema.class_names) == ([GOOD], [0], ("y", "z"))
    assert found.problems == [
        Problem(
            key="t.csv:2",
            kind="not-listed",
            reason="The class 'x' is none of those that were named.",
            left_out=True,
            class_name="x",
        )
    ]
    with pytest.raises(UnknownNameError, match="`d` is not a known column"):
        Scanned(TextImporter(), path, text="b", label="d")
    with pytest.raises(DataError, match="has a column with texts and one with their classes"):
        Scanned(TextImporter(), path)


def test_rows_without_text_or_class_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"text,label\n{GOOD},1\n,2\n{BAD},\n{BAD},10\n{GOOD},2\nx\n")
    found = Scanned(TextImporter(), path)
    assert found.schema.class_names == ("1", "2", "10")
    assert found.keys == ["row-000000", "row-000003", "row-000004"]
    assert [(problem.key, problem.kind) for problem in found.problems] == [
        ("t.csv:3", "empty-text"),
        ("t.csv:4", "no-label"),
        ("t.csv:7", "bad-line"),
    ]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "a\\nb", "label": 1, "split": "test"}\n\n{"text": 5}\n[\n{"text": "c", "label": 0}\n')
    assert confidence(path) == 0.8
    found = Scanned(TextImporter(), path)
    assert (found.texts, found.labels) == (["a\nb", "c"], [1, 0])
    assert [sample.split for sample in found.samples] == ["test", ""]
    assert [problem.key for problem in found.problems] == ["train.jsonl:3", "train.jsonl:4"]


def test_a_file_for_each_class(tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("All about these texts and more\n" * 9)
    (tmp_path / "reviews.neg").write_bytes(f"{BAD} \r\n\r\n{BAD} été\u2028!\r\n\n".encode())
    (tmp_path / "reviews.pos").write_bytes(f"{GOOD}\n{GOOD} \xe9t\xe9".encode("latin-1"))
    found = Scanned(TextImporter(), tmp_path)
    assert confidence(tmp_path) == 0.75
    assert found.texts == [f"{BAD} ", f"{BAD} été\u2028!", GOOD, f"{GOOD} été"]
    assert found.labels == [0, 0, 1, 1]
    assert found.keys[:2] == ["reviews.neg/line-000000", "reviews.neg/line-000002"]
    assert [(problem.key, problem.kind) for problem in found.problems] == [
        ("reviews.neg:2", "empty-text"),
        ("reviews.pos", "encoding"),
    ]


def test_a_folder_for_each_class_below_folders_of_splits(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name, text in (("neg", BAD), ("pös", GOOD)):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            for number in range(2):
                (folder / f"{number} x.txt").write_bytes(text.encode("utf-16" if number else "utf-8"))
    (tmp_path / "train" / "neg" / "empty.txt").touch()
    (tmp_path / "train" / "neg" / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    assert confidence(tmp_path) == 0.8
    found = Scanned(TextImporter(), tmp_path)
    assert found.keys[0] == "train/neg/0 x.txt" or found.keys[0] == "test/neg/0 x.txt"
    assert Counter((sample.split, sample.label) for sample in found.samples) == {
        ("train", 0): 2, ("train", 1): 2, ("test", 0): 2, ("test", 1): 2,
    }  # fmt: skip
    assert set(found.texts) == {GOOD, BAD}
    assert [(problem.key, problem.kind) for problem in found.problems] == [
        ("train/neg/empty.txt", "empty-text"),
        ("train/neg/gone.txt", "unreadable"),
    ]


def test_folders_of_other_formats_are_left_alone(tmp_path: Path) -> None:
    yolo = tmp_path / "yolo"
    for split in ("train", "val"):
        (yolo / "labels" / split).mkdir(parents=True)
        for number in range(3):
            (yolo / "labels" / split / f"{number}.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    lists = tmp_path / "lists"
    lists.mkdir()
    for name in ("train", "val", "labels"):
        (lists / f"{name}.txt").write_text("a/picture of a cat.png 0\n" * 5)
    words = tmp_path / "words"
    words.mkdir()
    for name in ("wnids", "synsets"):
        (words / f"{name}.txt").write_text("n01440764\nn01443537\n")
    assert [confidence(yolo), confidence(yolo / "labels"), confidence(lists), confidence(words)] == [0, 0, 0, 0]


def test_layouts_that_are_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not have a folder for each class"):
        Scanned(TextImporter(), tmp_path, layout="folders")
    with pytest.raises(DataError, match="does not have two files"):
        Scanned(TextImporter(), tmp_path, layout="lines")
    (tmp_path / "t.csv").write_bytes(b"")
    with pytest.raises(DataError, match="A table has rows"):
        Scanned(TextImporter(), tmp_path / "t.csv")


@pytest.mark.skipif(not (SHARED / "text-sms-spam").is_dir(), reason="the shared datasets are not here")
def test_the_shared_texts_go_in_whole() -> None:
    sms = Scanned(TextImporter(), SHARED / "text-sms-spam" / "sms.tsv")
    assert (sms.schema.class_names, Counter(sms.labels)) == (("ham", "spam"), {0: 4827, 1: 747})
    assert sms.problems == []
    movies = Scanned(TextImporter(), SHARED / "text-rt-polarity")
    assert (movies.schema.class_names, Counter(movies.labels)) == (("neg", "pos"), {0: 5331, 1: 5331})
    assert movies.problems == []
    assert confidence(SHARED / "text-sms-spam") == confidence(SHARED / "text-sms-spam" / "sms.tsv") == 0.85
    assert confidence(SHARED / "text-rt-polarity") == 0.75


@pytest.mark.skipif(not (SHARED / "tabular").is_dir(), reason="the shared datasets are not here")
def test_nothing_else_among_the_shared_data_is_taken_for_texts() -> None:
    others = [path for path in SHARED.iterdir() if not path.name.startswith("text-")]
    assert [path.name for path in [*others, *(SHARED / "tabular").iterdir()] if confidence(path)] == []


def test_files_of_other_splits_are_written_like_the_first(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(f"spam\t{GOOD}\nham\t{BAD}\n" * 3)
    (tmp_path / "test.tsv").write_text(f"ham\t{BAD}\n")
    found = Scanned(TextImporter(), tmp_path)
    assert [(sample.key, sample.split) for sample in found.samples][-1] == ("test/row-000000", "test")
    assert found.texts[-1] == BAD


def test_texts_without_a_suffix_are_known_by_their_content(tmp_path):
    rows = "ham\tSee you at the station then.\nspam\tWIN a prize now, just call this number.\n" * 10
    (tmp_path / "SMSSpamCollection").write_text(rows)
    (tmp_path / "readme").write_text("The collection is a set of messages.\n")
    for source in (tmp_path / "SMSSpamCollection", tmp_path):
        assert guess_format(source).format == "text"
