"""``ziggurat job threshold``: what cannot be asked is said before a studio is reached."""

from __future__ import annotations

from typing import Any

import pytest

from ziggurat.cli.models import prediction_text

JOB = "20260101-000000-abcd"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["0.7", "--clear"], "chosen or cleared"),
        (["--evaluation", JOB], "No threshold is given"),
        (["--class", "cat"], "NAME=X"),
        (["--class", "cat=2"], "NAME=X"),
        (["7"], "0<=x<=1"),
    ],
)
def test_what_cannot_be_chosen_is_said(ziggurat: Any, given: list[str], words: str) -> None:
    answer = ziggurat("job", "threshold", JOB, *given)
    assert answer.code != 0
    assert words in answer.err


def test_a_prediction_says_what_was_decided() -> None:
    classes = [{"class": "cat", "number": 0, "probability": 0.6}, {"class": "dog", "number": 1, "probability": 0.4}]
    decided = {"class": "dog", "number": 1, "threshold": 0.35}
    undecided = {"class": None, "number": None, "threshold": 0.9}

    assert prediction_text({"file": "x.png", "classes": classes, "decision": decided}) == (
        "x.png: dog (threshold 0.35):  cat 60.00%  dog 40.00%"
    )
    assert prediction_text({"file": "x", "classes": classes, "decision": undecided}).startswith("x: undecided (")
