"""Statistics of non-image data: table columns, texts, and numeric regression targets."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from ziggurat.datasets.catalogue import Entry
from ziggurat.datasets.statistics.choice import Source, chosen_entries
from ziggurat.datasets.statistics.model import Bar, ColumnStatistics, NumberStatistics, TextStatistics
from ziggurat.datasets.statistics.numbers import bars_of, describe
from ziggurat.records.schema import Column, Schema

__all__ = ["column_statistics", "label_statistics", "text_statistics"]

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORDS_SHOWN: Final = 20
_LONGEST_TEXT: Final = 100_000
_MOST_LABELS: Final = 20


def column_statistics(
    source: Source, schema: Schema, samples: int, seed: int
) -> tuple[tuple[ColumnStatistics, ...], int]:
    """Return the statistics of a table's columns and the rows that they rest on, at most ``samples``."""
    values: list[list[Any]] = [[] for _ in schema.columns]
    rows = 0
    for entry in chosen_entries(source.catalogue, samples, seed):
        cells = _cells(source, entry)
        if cells is None or len(cells) != len(values):
            continue
        rows += 1
        for column, cell in zip(values, cells, strict=True):
            column.append(cell)
    found = tuple(
        _column(column, cells, is_target=column.name == schema.target)
        for column, cells in zip(schema.columns, values, strict=True)
    )
    return found, rows


def label_statistics(source: Source, samples: int, seed: int) -> tuple[NumberStatistics, ...]:
    """Return the statistics of each number of the labels, where they are numbers."""
    values: list[list[float]] = []
    for entry in chosen_entries(source.catalogue, samples, seed):
        label = entry.label if isinstance(entry.label, list) else [entry.label]
        numbers = [number for number in label if isinstance(number, int | float)]
        if len(numbers) != len(label) or len(numbers) > _MOST_LABELS:
            continue
        values += [[] for _ in range(len(numbers) - len(values))]
        for column, number in zip(values, numbers, strict=False):
            column.append(number)
    return tuple(found for found in map(describe, values) if found is not None)


def text_statistics(source: Source, schema: Schema, samples: int, seed: int) -> TextStatistics:
    """Return lengths of texts and the words of each class, from at most ``samples`` texts."""
    characters: list[int] = []
    lengths: list[int] = []
    by_class: dict[int, Counter[str]] = {}
    texts: Counter[int] = Counter()
    for number, text in _texts(source, samples, seed):
        characters.append(len(text))
        words = _WORD.findall(text[:_LONGEST_TEXT].lower())
        lengths.append(len(words) if len(text) <= _LONGEST_TEXT else len(text.split()))
        by_class.setdefault(number, Counter()).update(set(words))
        texts[number] += 1
    names = {number: _class_name(schema, number) for number in sorted(by_class)}
    return TextStatistics(
        characters=describe(characters),
        words=describe(lengths),
        frequent_words={names[number]: _most_frequent(by_class[number]) for number in names},
        telling_words={names[number]: _most_telling(number, by_class, texts) for number in names},
        looked_at=len(characters),
    )


# ---- tables


def _cells(source: Source, entry: Entry) -> list[Any] | None:
    parts = source.parts(entry)
    if parts is None:
        return None
    cells = json.loads(parts[0])
    return cells if isinstance(cells, list) else None


def _column(column: Column, cells: list[Any], *, is_target: bool) -> ColumnStatistics:
    values = [cell for cell in cells if cell is not None]
    missing = len(cells) - len(values)
    numbers, bars, others = None, (), 0
    if column.type == "number":
        numbers = describe(values, missing=missing)
    elif column.type == "time":
        numbers = describe([_seconds(value) for value in values], missing=missing)
    elif column.type == "text":
        numbers = describe([len(str(value)) for value in values], missing=missing)
    elif column.type in ("category", "boolean"):
        bars, others = bars_of(str(value).lower() if isinstance(value, bool) else value for value in values)
    return ColumnStatistics(
        name=column.name,
        type=column.type,
        is_target=is_target,
        count=len(values),
        missing=missing,
        different=len(set(values)),
        numbers=numbers,
        bars=bars,
        others=others,
    )


def _seconds(value: Any) -> float:
    try:
        when = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


# ---- texts


def _texts(source: Source, samples: int, seed: int) -> Iterator[tuple[int, str]]:
    for entry in chosen_entries(source.catalogue, samples, seed):
        parts = source.parts(entry)
        if parts:
            text = parts[0] if isinstance(parts[0], str) else bytes(parts[0]).decode("utf-8", "replace")
            yield -1 if entry.class_number is None else entry.class_number, text


def _class_name(schema: Schema, number: int) -> str:
    return schema.class_names[number] if 0 <= number < len(schema.class_names) else f"class {number}"


def _most_frequent(words: Counter[str]) -> tuple[Bar, ...]:
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Bar(name=word, count=count) for word, count in ordered[:_WORDS_SHOWN])


def _most_telling(number: int, by_class: dict[int, Counter[str]], texts: Counter[int]) -> tuple[Bar, ...]:
    """Return the words with the largest difference between the shares of texts that have them, in this class and not.

    The difference is divided by its standard error, as in the test of two proportions with a pooled share, so that a
    word that came by chance does not win.
    """
    inside, outside = texts[number], sum(texts.values()) - texts[number]
    if not inside or not outside:
        return ()
    scores = []
    for word, count in by_class[number].items():
        elsewhere = sum(words[word] for other, words in by_class.items() if other != number)
        pooled = (count + elsewhere) / (inside + outside)
        error = math.sqrt(pooled * (1 - pooled) * (1 / inside + 1 / outside))
        score = (count / inside - elsewhere / outside) / error if error else 0.0
        if score > 2:
            scores.append((-score, word, count))
    return tuple(Bar(name=word, count=count) for _, word, count in sorted(scores)[:_WORDS_SHOWN])
