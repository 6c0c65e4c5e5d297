"""Texts that were exported come back the same: keys, splits, classes and every letter."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_text_fakes import MemoryDataset, Scanned

from ziggurat.datasets.formats.text.exporter import export_text
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.datasets.samples import Sample
from ziggurat.records.schema import Schema

_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", " ", "\n", "\r", '"', '""', "\t", "a\tb", "#", "\ufeff", "\u2028", "null"]
)


@st.composite
def text_sets(draw: st.DrawFn) -> MemoryDataset:
    """Draw a set of labeled texts."""
    names = draw(st.lists(_TEXTS, min_size=1, max_size=4, unique=True))
    texts = draw(st.lists(st.tuples(_TEXTS, st.integers(0, len(names) - 1)), min_size=1, max_size=8))
    splits = draw(st.lists(st.sampled_from(["train", "val", "test"]), min_size=8, max_size=8))
    return MemoryDataset(
        Schema(kind="text-classification", class_names=tuple(names)),
        [
            Sample(key=f"{number}: {draw(_TEXTS)}", parts=(text.encode(),), label=label, split=splits[number])
            for number, (text, label) in enumerate(texts)
        ],
    )


@pytest.mark.parametrize("file_format", ["csv", "tsv", "jsonl"])
@settings(max_examples=25, deadline=None)
@given(dataset=text_sets())
def test_what_was_exported_comes_back(file_format: str, dataset: MemoryDataset) -> None:
    with tempfile.TemporaryDirectory() as place:
        report = export_text(dataset, Path(place) / "out", file_format=file_format)
        guess = TextImporter().guess(Path(place) / "out")
        again = Scanned(TextImporter(), Path(place) / "out")
    assert guess is not None
    assert guess.confidence == 1.0
    assert report.problems == again.problems == []
    before = list(dataset.samples())
    assert sum(report.counts.values()) == len(before)
    assert [(each.key, each.parts, each.split, each.label) for each in again.samples] == [
        (each.key, each.parts, each.split, each.label) for each in before
    ]
    assert again.schema == dataset.schema


def test_the_files_are_plain_and_named_after_splits(tmp_path: Path) -> None:
    schema = Schema(kind="text-classification", class_names=("no", "yes"))
    samples = [Sample(key="a", parts=(b'he said "x"',), label=1), Sample(key="b", parts=(b"y",), label=0, split="val")]
    export_text(MemoryDataset(schema, samples), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["columns.json", "train.csv", "val.csv"]
    assert (tmp_path / "out" / "train.csv").read_text() == 'key,label,text\na,yes,"he said ""x"""\n'


def test_a_zero_sign_is_for_json_lines_only(tmp_path: Path) -> None:
    schema = Schema(kind="text-classification", class_names=("no",))
    dataset = MemoryDataset(schema, [Sample(key="a", parts=(b"x\0y",), label=0)])
    report = export_text(dataset, tmp_path / "csv")
    assert [problem.reason for problem in report.problems] == [
        "It holds zero signs, which no CSV file can hold; JSON lines can."
    ]
    assert export_text(dataset, tmp_path / "jsonl", file_format="jsonl").counts == {"train": 1}
    assert Scanned(TextImporter(), tmp_path / "jsonl").texts == ["x\0y"]
