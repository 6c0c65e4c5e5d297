"""Rows of a table and texts as a person types them, for the prediction page of a model that takes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.web.forms import FieldError
from ziggurat.web.pages.dataset.samples import label_in_words
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.model_inputs import ModelInputs

__all__ = ["ColumnField", "FilledRow", "column_fields", "filled_row", "typed_values"]

_SPLITS: Final = ("val", "test", "train")
_LONGEST_TEXT: Final = 100_000
_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class ColumnField:
    """The field of a column.

    Args:
        id: of the field; what a form sends.
        name: of the column.
        type: of the column, a name in ``ziggurat.records.schema.COLUMN_TYPES``.
        options: value and text of each choice; empty where it is typed.
    """

    id: str
    name: str
    type: str
    options: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class FilledRow:
    """A sample of the dataset that fills the form.

    Args:
        typed: field → value.
        words: where it comes from, such as ``validation row 3``.
        actual: what is known to be right, for people; empty where that is not known.
        next: number of the next row.
    """

    typed: Mapping[str, str]
    words: str
    actual: str
    next: int


def column_fields(inputs: ModelInputs) -> list[ColumnField]:
    """Return a field for each column that the model can learn from."""
    return [
        ColumnField(id=f"column-{number}", name=each.name, type=each.type, options=_options(each.type, each.categories))
        for number, each in enumerate(inputs.columns)
    ]


def _options(kind: str, categories: Sequence[str]) -> list[tuple[str, str]]:
    if kind == "category":
        return [("", "missing"), *((each, each or "(empty)") for each in categories)]
    return [("", "missing"), ("true", "yes"), ("false", "no")] if kind == "boolean" else []


def typed_values(inputs: ModelInputs, typed: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return what ``Models.predict_values`` takes, of what was typed: ``rows`` or ``texts``, one of them.

    Raises:
        FieldError: where a number is none, or nothing was typed.
    """
    if inputs.kind == "text":
        text = typed.get("text", "")
        if not text.strip():
            raise FieldError("text", UsageError("Enter a text.", received="nothing"))
        if len(text) > _LONGEST_TEXT:
            rule = f"A text has at most {_LONGEST_TEXT} characters."
            raise FieldError("text", UsageError(rule, received=str(len(text))))
        return {"texts": [text]}
    row = {field.name: _value(field, typed.get(field.id, "").strip()) for field in column_fields(inputs)}
    return {"rows": [row]}


def _value(field: ColumnField, text: str) -> Any:
    if not text:
        return None
    if field.type == "boolean":
        return _BOOLEANS.get(text.lower(), text)
    if field.type != "number":
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FieldError(field.id, UsageError(f"`{field.name}` is a number.", received=f"`{text[:50]}`"))
    return number


def filled_row(studio: Studio, dataset: Job | None, inputs: ModelInputs, number: int) -> FilledRow | None:
    """Return a sample of the dataset that fills the form: of validation, else of the test, else of training.

    Args:
        studio: where it is.
        dataset: that the model was trained on; None where it is none of the studio's.
        inputs: of the model.
        number: of the row; behind the last one they begin again.
    """
    if dataset is None or inputs.kind == "image":
        return None
    try:
        with studio.datasets.opened(dataset.id) as opened:
            split = next((each for each in _SPLITS if each in opened.splits and opened.size(each)), None)
            if split is None:
                return None
            row = number % opened.size(split)
            sample, schema = opened.sample(split, row), opened.schema
    except ZigguratError:  # it was deleted or damaged meanwhile: the form is filled by hand
        return None
    part = sample.part(0)
    text = part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)
    names = {"val": "validation", "test": "test", "train": "training"}
    words = f"{names[split]} {'row' if inputs.kind == 'row' else 'text'} {row}"
    actual = label_in_words(sample.label, schema)
    if inputs.kind == "text":
        return FilledRow(typed={"text": text}, words=words, actual=actual, next=row + 1)
    values = dict(zip((column.name for column in schema.columns), json.loads(text), strict=False))
    typed = {field.id: _typed(values.get(field.name)) for field in column_fields(inputs)}
    return FilledRow(typed=typed, words=words, actual=actual, next=row + 1)


def _typed(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
