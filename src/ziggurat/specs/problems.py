"""Messages for spec values that do not validate, commas in numbers among them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ziggurat.errors import SpecError, nearest_names
from ziggurat.formatting import as_count
from ziggurat.specs.describe import FieldDescription

__all__ = [
    "comma_question",
    "spec_error",
]


_RULES: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda bounds: f"must be at least {_number(bounds['ge'])}",
    "greater_than": lambda bounds: f"must be more than {_number(bounds['gt'])}",
    "less_than_equal": lambda bounds: f"must be at most {_number(bounds['le'])}",
    "less_than": lambda bounds: f"must be less than {_number(bounds['lt'])}",
    "finite_number": lambda _: "must be a finite number",
    "int_type": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "string_type": lambda _: "must be text",
    "bool_type": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be an object of names and values",
    "model_type": lambda _: "must be an object of names and values",
    "model_attributes_type": lambda _: "must be an object of names and values",
    "string_too_short": lambda _: "must not be empty",
    "string_too_long": lambda bounds: f"must have at most {bounds['max_length']} characters",
    "too_long": lambda bounds: f"must have at most {bounds['max_length']} entries",
    "too_short": lambda bounds: f"must have at least {bounds['min_length']} entries",
    "literal_error": lambda bounds: f"must be {bounds['expected']}".replace("'", "`"),
    "union_tag_invalid": lambda bounds: f"must be one of {bounds['expected_tags']}".replace("'", "`"),
}
"""Rule of each of pydantic's error types; others show pydantic's own words."""

_KINDS: Final = {"int_type": "integer", "float_type": "number", "list_type": "list"}
"""Error type of a value that is of no such kind → kind of its field, where commas may have been meant otherwise."""


def spec_error(error: ValidationError, content: Any, source: str, fields: Sequence[FieldDescription]) -> SpecError:
    """Return the error to raise.

    Args:
        error: what pydantic found.
        content: the decoded spec that was validated.
        source: where it came from: a file, or ``flags``.
        fields: what is known of each field; its help is shown as advice.
    """
    problems = [_problem(detail, content, fields) for detail in error.errors(include_url=False)]
    first = problems[0]
    advice = first["advice"]
    if len(problems) > 1:
        advice += f" Also wrong: {', '.join('`' + problem['field'] + '`' for problem in problems[1:])}."
    # Without anything that came, as for a missing field, the sentence says it all.
    received = {"received": first["received"]} if "received" in first else {}
    return SpecError(
        f"{first['rule']}.",
        advice=advice.strip(),
        details={"source": source, "field": first["field"], "problems": problems},
        **received,
    )


def _problem(detail: ErrorDetails, content: Any, fields: Sequence[FieldDescription]) -> dict[str, str]:
    kind, bounds = detail["type"], detail.get("ctx", {})
    path = _path(detail, content)
    known_help = _help(path, detail["loc"], fields)
    if kind == "rule":
        field = bounds["field"]
        return _entry(field, f"`{field}` {bounds['rule']}", bounds["advice"], bounds["received"])
    if kind == "unknown_field":
        return _unknown(path, bounds)
    if kind == "missing":
        return {"field": path, "rule": f"`{path}` must be given", "advice": known_help}
    if kind == "union_tag_not_found":
        tag = str(bounds["discriminator"]).strip("'")
        return {"field": path, "rule": f"`{path}` must say its `{tag}`", "advice": known_help}
    if kind == "union_tag_invalid":
        path = f"{path}.{str(bounds['discriminator']).strip(chr(39))}"
        return _entry(path, f"`{path}` {_RULES[kind](bounds)}", _nearest(bounds["tag"], bounds), bounds["tag"])
    rule = _RULES[kind](bounds) if kind in _RULES else detail["msg"]
    advice = _nearest(detail["input"], bounds) if kind == "literal_error" else known_help
    if kind in _KINDS and isinstance(detail["input"], str):
        advice = comma_question(detail["input"], _KINDS[kind]) or advice
    return _entry(path, f"`{path}` {rule}" if path else f"A spec {rule}", advice, detail["input"])


def _entry(field: str, rule: str, advice: str, received: Any) -> dict[str, str]:
    return {"field": field, "rule": rule, "advice": advice, "received": _shown(received)}


def _unknown(path: str, bounds: Mapping[str, Any]) -> dict[str, str]:
    whole = f"{path}.{bounds['name']}" if path else bounds["name"]
    nearest = " or ".join(f"`{name}`" for name in bounds["nearest"])
    advice = f"Did you mean {nearest}?" if nearest else "Leave it out; `ziggurat spec schema` lists the fields."
    return {"field": whole, "rule": f"`{whole}` is not a field of this spec", "advice": advice}


def _nearest(received: Any, bounds: Mapping[str, Any]) -> str:
    expected = str(bounds.get("expected_tags") or bounds.get("expected") or "")
    names = [part.strip().strip("'") for part in expected.replace(" or ", ", ").split(",")]
    nearest = nearest_names(str(received), names)
    return f"Did you mean {' or '.join(f'`{name}`' for name in nearest)}?" if nearest else ""


def _path(detail: ErrorDetails, content: Any) -> str:
    """Return the field's path as a person writes it: pydantic puts tags of unions in between, which are no fields."""
    found = _found(detail["loc"], content)
    if detail["type"] == "unknown_field" and found and not isinstance(found[-1][1], Mapping):
        found.pop()  # the location of an object ended in a tag that is also the name of a number in it
    parts = [part for part, _ in found]
    return ".".join([*parts, str(detail["loc"][-1])] if detail["type"] == "missing" else parts)


def _found(location: Sequence[int | str], content: Any) -> list[tuple[str, Any]]:
    """Return the parts of a location that are there, with their values; a tag may look like a field beside it."""
    if not location:
        return []
    skipped = _found(location[1:], content)
    value = _below(content, location[0])
    if value is _NOTHING:
        return skipped
    taken = [(str(location[0]), value), *_found(location[1:], value)]
    return taken if len(taken) > len(skipped) else skipped


def _help(path: str, location: Sequence[int | str], fields: Sequence[FieldDescription]) -> str:
    named = ".".join(part for part in path.split(".") if not part.isdigit())
    for field in fields:
        if field.path == named and (not field.variant or field.variant in location):
            return f"{field.title}: {field.help}"
    return ""


_NOTHING: Final = object()


def _below(content: Any, part: int | str) -> Any:
    if isinstance(content, Mapping) and part in content:
        return content[part]
    if isinstance(content, list) and isinstance(part, int) and part < len(content):
        return content[part]
    return _NOTHING


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _number(value: float) -> str:
    return as_count(value) if isinstance(value, int) else f"{value:g}"


_BETWEEN: Final = re.compile(r",\s+|\s+|;\s*")
"""What separates values without doubt; a comma with nothing behind it may stand inside of a number."""

_DECIMAL: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_GROUPS_BY_POINT: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_WHOLE: Final = re.compile(r"[+-]?\d+")


def comma_question(text: str, kind: str) -> str:
    """Return the question what a text with commas means; empty where its meaning is clear.

    Args:
        text: as it was typed, such as ``0,01``.
        kind: of the field, as in ``FieldDescription``.

    >>> comma_question("0,01", "number")
    'Did you mean 0.01? Write decimals with a point, and a blank after each comma of a list.'
    >>> comma_question("0.1,0.01", "number"), comma_question("0.1, 0.01", "number"), comma_question("8,16", "integer")
    ('', '', '')
    """
    if kind not in ("integer", "number", "list") or text.startswith("["):
        return ""
    parts = [part for part in _BETWEEN.split(text.strip()) if part]
    if kind == "list" and len(parts) < 2:
        return ""  # nothing but bare commas: the values of a list
    meant = [_meant(part, kind) for part in parts]
    if all(each == part for each, part in zip(meant, parts, strict=True)):
        return ""
    question = f"Did you mean {', '.join(meant)}? " if all(meant) else ""
    return f"{question}Write decimals with a point, and a blank after each comma of a list."


def _meant(part: str, kind: str) -> str:
    """Return the number that is probably meant; the part itself where it is clear, empty where nothing is probable."""
    if "," not in part:
        return part
    if kind != "list" and _GROUPS.fullmatch(part):
        whole = part.replace(",", "")
        is_decimal = kind == "number" and _DECIMAL.fullmatch(part)
        return f"{part.replace(',', '.')} or {whole}" if is_decimal else whole
    if kind == "integer":
        return part
    if _DECIMAL.fullmatch(part):
        return part.replace(",", ".")
    if kind != "list" and _GROUPS_BY_POINT.fullmatch(part):
        return part.replace(".", "").replace(",", ".")
    values = part.split(",")
    are_unclear = any(_WHOLE.fullmatch(one) and _WHOLE.fullmatch(other) for one, other in itertools.pairwise(values))
    return "" if kind == "number" and are_unclear else part
