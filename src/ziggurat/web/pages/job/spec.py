"""Configuration on a job page: the differences from the defaults, and the whole spec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.specs.describe import describe_fields
from ziggurat.specs.versions import SPEC_KINDS

__all__ = ["SpecDifference", "spec_differences", "spec_text"]

_SHOWN_ELSEWHERE: Final = ("kind", "version", "name", "network.text", "network.source")
_UNSET: Final = object()
_EMPTY: Final = (None, "", {}, [])


@dataclass(frozen=True)
class SpecDifference:
    """A field of a spec that is not as usual.

    Args:
        path: names from the top, joined by dots.
        value: that was asked for.
        usual: its value where nobody asks for another; empty where it has none.
    """

    path: str
    value: str
    usual: str


def spec_differences(job: Job) -> list[SpecDifference]:
    """Return the fields that somebody set to something else than usual, in the order of the spec."""
    model = SPEC_KINDS.get(job.kind)
    if model is None:
        return []
    fields = {each.path: each for each in describe_fields(model) if each.is_top and not each.required}
    usual = dict(_leaves({path: each.default for path, each in fields.items()}))
    return [
        SpecDifference(path, _shown(value), _shown(usual[path]) if path in usual else "")
        for path, value in _leaves(job.spec)
        if path not in _SHOWN_ELSEWHERE and usual.get(path, _UNSET) != value and (path in usual or value not in _EMPTY)
    ]


def spec_text(job: Job) -> str:
    """Return the whole spec as JSON for people."""
    return json.dumps(job.spec, indent=2, ensure_ascii=False)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield path, value
        return
    for name, inner in value.items():
        yield from _leaves(inner, f"{path}.{name}" if path else str(name))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
