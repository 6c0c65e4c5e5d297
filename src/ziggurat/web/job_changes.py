"""Changes of a job from forms: name, notes, tags, project and priority, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ziggurat.entities import JobChange
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.web.forms import priority_of

__all__ = ["CHANGED_FIELDS", "change_from", "field_of", "named_tags"]

CHANGED_FIELDS: Final = ("name", "notes", "tags", "project", "priority")
_LONGEST_NAME: Final = 200
_LONGEST_NOTES: Final = 100_000


def change_from(form: Mapping[str, str]) -> JobChange:
    """Return the change of a form; fields that are missing in it stay unchanged.

    Raises:
        ConfigurationError: if a field is invalid; ``details["field"]`` names it.
    """
    name, notes, project = (form.get(field) for field in ("name", "notes", "project"))
    if name is not None and not 0 < len(name.strip()) <= _LONGEST_NAME:
        raise _wrong("name", f"A name has 1 to {_LONGEST_NAME} characters.", f"{len(name.strip())} characters")
    if notes is not None and len(notes) > _LONGEST_NOTES:
        raise _wrong("notes", f"Notes have at most {_LONGEST_NOTES} characters.", f"{len(notes)} characters")
    if project is not None and len(project.strip()) > _LONGEST_NAME:
        rule = f"A project has a name of at most {_LONGEST_NAME} characters."
        raise _wrong("project", rule, f"{len(project.strip())} characters")
    return JobChange(
        name=None if name is None else name.strip(),
        notes=notes,
        project=None if project is None else project.strip(),
        tags=_tags(form["tags"]) if "tags" in form else None,
        priority=_priority(form["priority"]) if "priority" in form else None,
    )


def field_of(error: Mapping[str, object]) -> str:
    """Return the field of an error; empty for the whole form."""
    details = error.get("details")
    return str(details.get("field", "")) if isinstance(details, Mapping) else ""


def named_tags(text: str) -> tuple[str, ...]:
    """Return the tags of a comma-separated text."""
    return tuple(dict.fromkeys(tag.strip() for tag in text.split(",") if tag.strip()))


def _tags(text: str) -> tuple[str, ...]:
    tags = named_tags(text)
    long = next((tag for tag in tags if len(tag) > _LONGEST_NAME), None)
    if long is not None:
        raise _wrong("tags", f"A tag has at most {_LONGEST_NAME} characters.", f"{len(long)} characters")
    return tags


def _priority(text: str) -> int:
    try:
        return priority_of(text)
    except UsageError as error:
        raise _wrong("priority", error.rule, str(error.received)) from error


def _wrong(field: str, rule: str, received: str) -> ConfigurationError:
    return ConfigurationError(rule, received=received, details={"field": field})
