"""``ziggurat spec rate`` and ``ziggurat dataset preview``."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

from ziggurat.workspace.previews import rate_curve


@pytest.fixture
def pets(tmp_path):
    for number in range(8):
        path = tmp_path / "pets" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((9, 11, 3), 20 * number, np.uint8))
    (tmp_path / "pets" / "cat" / "bad.png").write_bytes(b"x")
    return tmp_path / "pets"


def test_the_rate_is_a_table_or_json(ziggurat, job):
    text = ziggurat("spec", "rate", job, "--points", 4)
    content = ziggurat("spec", "rate", job / "spec.json", "--points", 4, "--json").content

    assert text.code == 0
    assert text.out.splitlines() == [
        "epoch  rate",
        "0.000  0.01",
        "1.000  0.001",
        "2.000  0.0001",
        "3.000  1e-05",
        "",
        "With the policy `step` the rate begins at 0.01 and ends at 1e-05.",
    ]
    spec = json.loads((job / "spec.json").read_text())
    assert content == rate_curve(spec, points=4)
    steps = ziggurat("spec", "rate", job, "--steps-per-epoch", 2, "--json").content
    assert steps["epochs"] == [0, 0.5, 1, 1.5, 2, 2.5]


def test_a_spec_that_is_wrong_is_named(ziggurat, job):
    (job / "spec.json").write_text('{"kind": "train", "version": 1, "network": "x", "data": "y", "epochs": 0}')

    answer = ziggurat("spec", "rate", job)

    assert answer.code == 3
    assert "`epochs` must be at least 1" in answer.err


def test_a_source_is_shown(ziggurat, pets):
    text = ziggurat("dataset", "preview", pets, "--set", "size=5", "--samples", 9)
    content = ziggurat("dataset", "preview", pets, "--json", "--samples", 2).content

    assert text.code == 0, text.err
    assert "Class folders (class_folders, 60% sure), kind image-classification" in text.out
    assert "9 samples: train 7, val 2" in text.out
    assert "cat/0.png  cat    5 x 5 px" in text.out
    assert "Problems:\n  cat/bad.png: " in text.out
    assert (content["counts"]["total"], len(content["samples"])) == (9, 2)


def test_a_wrong_option_is_named(ziggurat, pets):
    answer = ziggurat("dataset", "preview", pets, "--format", "class_folders", "--option", "nothing=1", "--json")

    assert answer.code == 3
    assert answer.content["details"]["field"] == "options.nothing"
