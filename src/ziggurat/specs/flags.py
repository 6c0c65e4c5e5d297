"""Conversion of command-line text to a spec: one flag per field, ``PATH=VALUE`` for parts of a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ziggurat.errors import SpecError
from ziggurat.specs.dataset import DatasetSpec
from ziggurat.specs.describe import FieldDescription, assign, describe_fields
from ziggurat.specs.files import SPEC_KINDS, Spec, check_named_once, parse_spec, present_path, upgrade
from ziggurat.specs.problems import comma_question
from ziggurat.specs.train import TrainSpec

__all__ = ["dataset_spec_from_flags", "json_or_text", "spec_from_flags"]


_LEADING_POINT: Final = re.compile(r"^\s*(?P<sign>-?)\.(?=\d)")


def spec_from_flags(
    flags: Mapping[str, str],
    *,
    assignments: Iterable[str] = (),
    base: Mapping[str, Any] | None = None,
) -> TrainSpec:
    """Return the spec that flags ask for.

    Args:
        flags: field name → text, such as ``{"learning_rate": "0.05", "monitors": "events,stats"}``.
        assignments: ``PATH=VALUE`` texts for fields or parts of them, such as ``schedule.gamma=0.5``; they come last.
        base: decoded spec of any version that they change; today's defaults where there is none.

    Raises:
        SpecError: where a text is no ``PATH=VALUE``, or the result is not valid.
    """
    spec = _from_flags("train", flags, assignments, base)
    assert isinstance(spec, TrainSpec)
    return spec


def dataset_spec_from_flags(
    flags: Mapping[str, str],
    *,
    assignments: Iterable[str] = (),
    base: Mapping[str, Any] | None = None,
) -> DatasetSpec:
    """Return the spec of a dataset that flags ask for; arguments and errors as those of ``spec_from_flags``."""
    spec = _from_flags("dataset", flags, assignments, base)
    assert isinstance(spec, DatasetSpec)
    return spec


def _from_flags(
    kind: str, flags: Mapping[str, str], assignments: Iterable[str], base: Mapping[str, Any] | None
) -> Spec:
    content = upgrade(base or {"kind": kind, "version": 1})
    if content["kind"] != kind:
        raise SpecError(f"The spec is of kind {content['kind']}; this command takes one of kind {kind}.")
    fields = {field.path: field for field in describe_fields(SPEC_KINDS[kind])}
    assigned = [(path.strip(), equals, text) for path, equals, text in (each.partition("=") for each in assignments)]
    check_named_once({*flags, *(path for path, _, _ in assigned)}, kind)
    for name, text in flags.items():
        name = present_path(name, kind)
        content[name] = _value(text, fields.get(name))
    for path, equals, text in assigned:
        if not equals or not path:
            received, advice = f"{path}{equals}{text}", "Write it as in: --set schedule.gamma=0.5."
            raise SpecError(f"`--set` got {received}, not PATH=VALUE.", advice=advice)
        path = present_path(path, kind)
        assign(content, path, _value(text.strip(), fields.get(path)), fields)
    return parse_spec(content, source="flags")


def _value(text: str, field: FieldDescription | None) -> Any:
    """Return the value that a text means for a field: JSON where it is JSON, else the text."""
    if field is not None and field.kind in ("text", "choice"):
        # A field that may be left out has no value by default, and `null` says so; elsewhere it is a name like others.
        may_be_empty = not field.required and field.default is None
        if field.choices and all(choice.isdigit() for choice in field.choices):
            return json_or_text(text)
        return None if text == "null" and may_be_empty else text
    if field is not None and comma_question(text, field.kind):
        return text  # which is no number, so the error asks
    if field is not None and field.kind == "list" and not text.startswith("["):
        return [json_or_text(part.strip()) for part in text.split(",") if part.strip()]
    return json_or_text(text)


def json_or_text(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is not JSON: the spec then reports the error.

    Unlike in JSON, a number may begin with its point.
    """
    try:
        return json.loads(_LEADING_POINT.sub(r"\g<sign>0.", text))
    except (ValueError, RecursionError):  # deeply nested brackets
        return text
