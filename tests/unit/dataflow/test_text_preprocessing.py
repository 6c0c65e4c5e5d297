"""Preprocessing of texts: tokens of many scripts, the vocabulary, lengths, and what is cut."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB
from table_rows import public_file

from ziggurat.dataflow.standalone_preprocessing import tokens_of
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.errors import ConfigurationError, DataError, DatapointError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't pay 1,000.50€!", ["don't", "pay", "1,000.50", "€", "!"]),
        ("'quoted' rock'n'roll", ["'", "quoted", "'", "rock'n'roll"]),
        ("snake_case x2", ["snake", "_", "case", "x", "2"]),
        ("Straße NAI\u0308VE", ["straße", "naïve"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("日本語 สวัสดี", ["日", "本", "語", "ส", "วั", "ส", "ดี"]),
        ("привет, שלום 안녕", ["привет", ",", "שלום", "안녕"]),
        (" \t\n\u3000", []),
    ],
)
def test_tokens_of_many_scripts(text: str, tokens: list[str]) -> None:
    assert tokens_of(text, lower=True) == tokens


@given(text=st.text())
def test_tokens_lose_nothing_but_spaces(text: str) -> None:
    whole = unicodedata.normalize("NFC", text)
    assert "".join(tokens_of(text, lower=False)) == "".join(whole.split())


def test_the_vocabulary_is_by_frequency_then_by_letter() -> None:
    texts = ["b a c", "c a b", "c d", "once"]
    assert TextPreprocessing.fit(texts).words == ("c", "a", "b")
    assert TextPreprocessing.fit(reversed(texts), min_count=1).words == ("c", "a", "b", "d", "once")
    small = TextPreprocessing.fit(texts, vocabulary_size=4)
    assert small.words == ("c", "a")
    assert small.vocabulary_size == 4
    assert TextPreprocessing.fit(["A a", "A"], lower=False).words == ("A",)


def test_a_text_is_cut_or_padded_and_counted() -> None:
    texts = TextPreprocessing.fit(["a b a b c"], length=3, min_count=2)
    assert (texts.shape, texts.dtype, texts.categories, texts.vocabulary_size) == ((3,), "int32", (), 4)
    np.testing.assert_array_equal(texts.decode("B x", 0), [3, 1, 0])
    np.testing.assert_array_equal(texts.decode("a a b b z", 0), [2, 2, 3])
    np.testing.assert_array_equal(texts.decode("", 0), [0, 0, 0])
    assert texts.counts == Counter(texts=3, cut=1, empty=1, tokens=5, unknown=1)
    batch = texts.finish(np.stack([texts.decode("a", 0)] * 2))
    assert (batch.dtype, batch.shape) == (np.int32, (2, 3))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [([1, 2], 8), ([9], 16), ([8] * 95 + [100] * 5, 8), ([8] * 94 + [100] * 6, 104), ([999], 256)],
)
def test_the_length_fits_most_texts(lengths: list[int], expected: int) -> None:
    assert TextPreprocessing.fit(["a " * length for length in lengths], min_count=1).length == expected


@pytest.mark.parametrize("options", [{"length": 0}, {"vocabulary_size": 2}, {"min_count": 0}])
def test_options_that_are_too_small_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=f"`{next(iter(options))}` must be at least"):
        TextPreprocessing.fit(["a a"], **options)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(DatapointError, match=r"Datapoint 1 .* it must be a text; received int\."):
        TextPreprocessing.fit(["a a", 5])  # type: ignore[list-item]
    with pytest.raises(DatapointError, match=r"Datapoint 'k' .* received bytes"):
        TextPreprocessing.fit(["a a"]).decode(b"a", "k")
    with pytest.raises(DataError, match=r"one token that is there 2 times.*2 texts with 3 different tokens"):
        TextPreprocessing.fit(["a b", "c"])


@given(texts=st.lists(st.text(max_size=30), min_size=1), other=st.text())
def test_any_texts_round_trip(texts: list[str], other: str) -> None:
    try:
        made = TextPreprocessing.fit(texts, min_count=1)
    except DataError:
        assert not any(text.split() for text in texts)
        return
    again = TextPreprocessing.from_json(json.loads(json.dumps(made.as_json())))
    assert again.as_json() == made.as_json()
    for text in (*texts, other):
        found = again.decode(text, 0)
        np.testing.assert_array_equal(found, made.decode(text, 0))
        assert found.max() < made.vocabulary_size
    assert all((made.decode(text, 0) != 1).all() for text in texts)


def test_what_is_saved_is_loaded_exactly(tmp_path: Path) -> None:
    made = TextPreprocessing.fit(["ä € \ud800 ä € \ud800"])
    made.save(tmp_path)
    assert json.loads((tmp_path / "preprocessing.json").read_text())["kind"] == "text"
    assert TextPreprocessing.load(tmp_path).as_json() == made.as_json()


@pytest.mark.parametrize(
    "change", [{"kind": "table"}, {"length": 0}, {"words": ["a", "a"]}, {"words": [1]}, {"lower": 1}]
)
def test_a_damaged_file_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    TextPreprocessing.fit(["a a"]).save(tmp_path)
    path = tmp_path / "preprocessing.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match="is read as it was written"):
        TextPreprocessing.load(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="must hold the preprocessing of its model"):
        TextPreprocessing.load(tmp_path)


def test_spam_is_found_by_its_tokens() -> None:
    lines = public_file("text-sms-spam/sms.tsv").read_text(encoding="utf-8").splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    cut = 4000
    made = TextPreprocessing.fit(texts[:cut])
    assert 2500 < made.vocabulary_size < 5000
    assert made.words[:3] == (".", "i", "to")
    assert made.length == 48
    numbers = np.stack([made.decode(text, place) for place, text in enumerate(texts)])
    assert made.counts["cut"] < 0.05 * len(texts)
    bags = np.stack([np.bincount(row, minlength=made.vocabulary_size)[2:] for row in numbers])
    model = MultinomialNB().fit(bags[:cut], labels[:cut])
    assert model.score(bags[cut:], labels[cut:]) > 0.95
