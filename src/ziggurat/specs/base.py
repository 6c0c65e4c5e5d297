"""Single declaration of a spec field: ``spec_field`` declares it, ``SpecModel`` holds the rules of all specs."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ziggurat.errors import nearest_names

__all__ = ["STORED", "Options", "SpecModel", "bare_text", "is_stored", "spec_field"]

STORED: Final = {"is_stored": True}
"""Validation context of a spec that is read back from a job."""


def spec_field(
    default: Any = ...,
    *,
    title: str,
    help: str,  # noqa: A002 - the word that every face shows
    group: str,
    unit: str = "",
    short_form: str = "",
    factory: Any = None,
    **bounds: Any,
) -> Any:
    """Declare one field for all faces: the REST body, the web form, the CLI option and the docs.

    Args:
        default: its value if not given; leave it out for a field that must be given.
        title: its label.
        help: one sentence on what it does, with the usual range.
        group: heading under which the faces show it.
        unit: unit of the number, such as ``s`` or ``%``; empty for counts.
        short_form: of a compound field, the part that a bare text stands for; its type has ``bare_text`` to that end.
        factory: called for the default, where that is a list or an object.
        bounds: ``ge``, ``gt``, ``le``, ``lt``, ``min_length``, ``discriminator``, … as in pydantic.
    """
    extra: dict[str, Any] = {"group": group, "unit": unit, "short_form": short_form}
    start = {"default_factory": factory} if factory is not None else {"default": default}
    return Field(title=title, description=help, json_schema_extra=extra, **start, **bounds)


def is_stored(info: ValidationInfo) -> bool:
    """Return whether a spec is read back from a job: rules that are newer than the job do not refuse it then."""
    return bool(info.context and info.context.get("is_stored"))


class SpecModel(BaseModel):
    """Base of all parts of a spec: immutable, strict about types, and helpful about names that it does not know."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
        use_attribute_docstrings=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, content: Any) -> Any:
        if isinstance(content, dict):
            for name in content:
                if name not in cls.model_fields:
                    raise _unknown_field(str(name), list(cls.model_fields))
        return content


def bare_text(name: str) -> BeforeValidator:
    """Let a bare text stand for the field ``name``: ``"cosine"`` for ``{"policy": "cosine"}``."""
    return BeforeValidator(lambda value: {name: value} if isinstance(value, str) else value)


def _unknown_field(name: str, known: list[str]) -> PydanticCustomError:
    return PydanticCustomError("unknown_field", "unknown", {"name": name, "nearest": nearest_names(name, known)})


def _sorted_json(value: JsonValue) -> JsonValue:
    """Return the value with its names in order, so that the same spec always gives the same bytes."""
    if isinstance(value, dict):
        return {name: _sorted_json(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("finite_number", "Input should be a finite number")
    return value


def _sorted_options(options: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _sorted_json(options[name]) for name in sorted(options)}


Options = Annotated[dict[str, JsonValue], AfterValidator(_sorted_options)]
"""A free mapping, checked by its consumer: name → any JSON value."""
