"""``ziggurat dataset map`` and ``similar`` ask a studio, here a stand-in that remembers what it was asked."""

from __future__ import annotations

import pytest
from studio_stand_in import studio_stand_in

JOB = {"id": "20260101-000000-abcd", "name": "pets by own features", "state": "queued"}
SIMILAR = {
    "map": JOB["id"],
    "features": "own pixels",
    "sample": "train/0",
    "samples": [{"similarity": 0.98765, "split": "val", "row": 3, "key": "cat/3.png", "label": "cat"}],
}
MISSING = {
    "error": "job",
    "rule": "There is no such job.",
    "received": "dogs",
    "advice": "",
    "details": {"status": 404},
}


@pytest.fixture
def studio():
    """Give the address of the stand-in, and what it was asked."""

    def answer(method, path):
        if "/dogs/" in path:
            return 404, MISSING
        if method == "POST":
            return 201, JOB
        return 200, SIMILAR if "/similar" in path else {"jobs": [], "total": 0}

    with studio_stand_in(answer) as stand_in:
        yield stand_in


def test_a_map_is_asked_for_by_the_name_of_the_dataset(ziggurat, studio):
    address, asked = studio
    words = (
        "--features",
        "model",
        "--model",
        "lenet on pets",
        "--no-tsne",
        "--folds",
        "3",
        "--limit",
        "0",
        "--seed",
        "7",
    )
    answer = ziggurat("dataset", "map", "my pets", *words, "--server", address)
    assert (answer.code, answer.out) == (0, "20260101-000000-abcd: pets by own features, queued\n"), answer.err
    method, path, body = asked[-1]
    assert (method, path) == ("POST", "/datasets/my%20pets/maps")
    chosen = {"features": "model", "model": "lenet on pets", "tsne": False, "folds": 3, "limit": 0, "seed": 7}
    assert {name: body[name] for name in chosen} == chosen
    assert ziggurat("dataset", "map", "my pets", "--server", address, "--json").content == JOB
    assert asked[-1][2].get("features") is None


def test_similar_samples_are_a_table(ziggurat, studio):
    address, asked = studio
    answer = ziggurat("dataset", "similar", "my pets", "train/0", "--limit", "4", "--server", address)
    assert answer.code == 0, answer.err
    assert asked[-1][:2] == ("GET", "/datasets/my%20pets/similar?sample=train%2F0&limit=4&map=")
    heading, names, row = answer.out.splitlines()
    assert heading == "Similar to train/0, by own pixels"
    assert names.split() == ["cosine", "sample", "label", "key"]
    assert row.split() == ["0.988", "val/3", "cat", "cat/3.png"]
    assert ziggurat("dataset", "similar", "pets", "train/0", "--server", address, "--json").content == SIMILAR


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("map", "dogs"), "There is no such job"),  # what the studio says
        (("similar", "dogs", "train/0"), "There is no such job"),
        (("map", "no/name"), "`no/name` is not the id or name of a job"),
    ],
)
def test_a_map_of_no_dataset_is_an_error(ziggurat, studio, words, said):
    answer = ziggurat("dataset", *words, "--server", studio[0])
    assert answer.code != 0
    assert said in answer.err.replace("'", "`")
