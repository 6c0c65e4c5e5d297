"""Links to themselves in sources: importers look past them, and samples of them are problems."""

import numpy as np
import pytest

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.format_registry import importer, importers, recognize
from ziggurat.datasets.samples import Problem

ENDINGS = ("png", "jpg", "txt", "csv", "json", "jsonl", "xml", "yaml", "parquet", "tar", "tfrecord", "npz", "h5", "mat")


def add_loops(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*(f"self.{ending}" for ending in ENDINGS), "images", "labels", "Annotations", "train", "0self"):
        if not (folder / name).exists():
            (folder / name).symlink_to(folder / name)


@pytest.fixture
def images(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(3):
            content = encode_image(np.full((8, 8, 3), number, np.uint8), "png")
            (tmp_path / name / f"{number}.png").write_bytes(content)
        add_loops(tmp_path / name)
    add_loops(tmp_path)
    return tmp_path


@pytest.fixture
def texts(tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{number}.txt").write_text(f"text {number}")
        add_loops(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("kind", ["images", "texts"])
def test_importers_look_past_a_link_to_itself(kind, request):
    source = request.getfixturevalue(kind)
    for each in importers():
        each.guess(source)
    assert recognize(source).guesses


def test_text_importer_reports_a_link_to_itself(texts):
    found = list(importer("text").scan(texts, {"layout": "folders", "classes": [], "encoding": ""}))
    problems = [each for each in found if isinstance(each, Problem)]
    assert len(found) - len(problems) == 6
    assert {"bad/self.txt", "good/self.txt"} <= {each.key for each in problems}
    assert {each.reason for each in problems} == {"It cannot be read (Too many levels of symbolic links)."}
