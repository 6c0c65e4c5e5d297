"""Pairs of images that show the same or not."""

from collections import Counter

import pytest
from exported_datasets import guessed, kinds_of

from ziggurat.datasets.formats.siamese_pairs.importer import SiamesePairsImporter
from ziggurat.datasets.samples import Problem
from ziggurat.errors import ConfigurationError, DataError


def scan(source, **options):
    importer = SiamesePairsImporter()
    return list(importer.scan(source, importer.checked_options(options)))


def put(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"nobody opens it")
    return folder


def test_a_list_of_pairs(tmp_path):
    text = (
        "a/1.jpg a/2.jpg 1\r\na b/1.jpg b/ä.png   0\nc 1.jpg\td.jpg\t1\nx.jpg y.jpg\nx.jpg y.jpg 2\na/1.jpg a/2.jpg 0\n"
    )
    (tmp_path / "train.txt").write_bytes(text.encode())
    found = scan(tmp_path)
    samples = [each for each in found if not isinstance(each, Problem)]
    assert [(each.parts, each.label, each.split) for each in samples] == [
        (("a/1.jpg", "a/2.jpg"), 1, "train"),
        (("a b/1.jpg", "b/ä.png"), 0, "train"),
        (("c 1.jpg", "d.jpg"), 1, "train"),
    ]
    problems = [each for each in found if isinstance(each, Problem)]
    assert kinds_of(problems) == {
        "train.txt:4": "bad-line",
        "train.txt:5": "bad-line",
        "a/1.jpg|a/2.jpg": "other-label",
    }
    assert guessed(tmp_path) == ("siamese_pairs", "image-pairs")


def test_folders_of_classes_become_pairs_within_their_split(tmp_path):
    put(tmp_path, *(f"{split}/{name}/{n}.jpg" for split in ("train", "val") for name in "abc" for n in range(6)))
    found = scan(tmp_path, pairs_per_sample=4)
    assert Counter((each.split, each.label) for each in found) == {
        ("train", 1): 36,
        ("train", 0): 36,
        ("val", 1): 36,
        ("val", 0): 36,
    }
    for each in found:
        folders = [part.rpartition("/")[0] for part in each.parts]
        assert (folders[0] == folders[1]) == bool(each.label)
        assert each.parts[0] != each.parts[1]
        assert all(part.startswith(f"{each.split}/") for part in each.parts)
    assert len({each.key for each in found}) == len(found)


def test_the_seed_decides_and_nothing_else(tmp_path):
    put(tmp_path, *(f"{name}/{n}.jpg" for name in "ab" for n in range(20)))
    assert scan(tmp_path, seed=3) == scan(tmp_path, seed=3)
    assert scan(tmp_path, seed=3) != scan(tmp_path, seed=4)


def test_a_class_of_one_picture_has_only_others(tmp_path):
    put(tmp_path, "a/1.jpg", "b/1.jpg")
    assert [(each.parts, each.label) for each in scan(tmp_path)] == [
        (("a/1.jpg", "b/1.jpg"), 0),
        (("b/1.jpg", "a/1.jpg"), 0),
    ]


def test_no_pairs_at_all(tmp_path):
    with pytest.raises(DataError, match="has neither a valid line"):
        scan(tmp_path)
    with pytest.raises(ConfigurationError, match="`pairs_per_sample` is 1 or more"):
        scan(tmp_path, pairs_per_sample=0)
