"""The filter for jobs as people write it, defined once: shell options, REST queries and page addresses take it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from ziggurat.entities import JobFilter
from ziggurat.errors import UsageError

__all__ = ["MOST_CONDITIONS", "PAGE_SIZE", "Condition", "JobQuery", "TypedFilter", "parse_conditions", "parse_filter"]

PAGE_SIZE: Final = 50
"""Entries of a list that one request returns, where it does not say how many."""

MOST_CONDITIONS: Final = 20
"""Conditions of one filter: the database needs time for each, and with some hundreds minutes."""

_CONDITION: Final = re.compile(r"\s*([A-Za-z_][\w./:\- ]*?)\s*(<=|>=|!=|==|=|<|>|~)\s*((?![<>=~]).*\S)\s*")
_OPERATOR: Final = re.compile(r"<=|>=|!=|==|=|<|>|~")
_AND: Final = re.compile(r"\"[^\"]*\"|'[^']*'|(?:^|(?<=\s))(and)(?=\s|$)", re.IGNORECASE)
_OR: Final = re.compile(r"\"[^\"]*\"|'[^']*'|(\|)")
"""A quoted text, or an ``and`` outside of one; likewise a ``|``."""
_TAKES_SEVERAL: Final = ("=", "!=", "~")
_PERCENT: Final = re.compile(r"(-?\d+(?:\.\d+)?)\s*%")
_TEXTS: Final = ("name", "id", "project", "owner", "dataset", "model", "parent", "group", "tag", "tags", "notes")
_WORDS: Final = {"true": True, "false": False}
_EXAMPLE: Final = "As in `learning_rate > 0.01 and accuracy > 0.98`, or `name ~ lenet and state = finished | diverged`."

Condition = tuple[str, str, Any]
"""Name, operator and value; of several values that are separated by ``|``, a tuple."""


_Name = Annotated[str, Field(max_length=200)]
_Kind = Literal["dataset", "train", "evaluate", "infer", "export", "program", "embed"]
_State = Literal["queued", "running", "stopping", "done", "failed", "stopped"]


class JobQuery(BaseModel):
    """Which jobs, in which order."""

    model_config = ConfigDict(extra="forbid")

    offset: int = Field(0, ge=0, lt=2**31, description="How many to leave out first.")
    limit: int = Field(PAGE_SIZE, ge=1, le=1000, description="How many to return at most.")
    kind: list[_Kind] = Field([], description="Of these kinds; none for all.")
    state: list[_State] = Field([], description="In these states; none for all.")
    project: _Name | None = Field(None, description="Of this project; empty for jobs without one.")
    text: _Name = Field("", description="With this in name, id, notes, network or tags.")
    tag: _Name = Field("", description="With this tag.")
    group: _Name = Field("", description="Of this sweep.")
    owner: _Name = Field("", description="Of this user.")
    where: list[_Name] = Field(
        [], description="Conditions such as `learning_rate>0.01` or `val/accuracy>0.98`; at most 20."
    )
    sort: _Name = Field("-created", description="Field of a job, of a spec, or a curve; with `-`, large values first.")

    @field_validator("where")
    @classmethod
    def _check_count(cls, where: list[str]) -> list[str]:
        count = sum(map(_count, where))
        if count > MOST_CONDITIONS:
            raise PydanticCustomError("too_many_conditions", _too_many(count))  # type: ignore[arg-type]
        return where

    def of_kind(self, kind: _Kind) -> JobQuery:
        """Return it for jobs of one kind, which the address names.

        Raises:
            UsageError: if it names kinds itself.
        """
        if self.kind:
            raise UsageError(
                f"`kind` is given, and this address lists jobs of kind {kind} alone.",
                advice="Leave `kind` out, or ask for `/jobs`.",
            )
        return self.model_copy(update={"kind": [kind]})

    def chosen(self, *, group_by: str = "") -> JobFilter:
        """Return it as the store takes it.

        Args:
            group_by: ``project`` or ``group``: what stands together; empty for nothing.

        Raises:
            UsageError: where a condition is none.
        """
        return JobFilter(
            kinds=tuple(self.kind),
            states=tuple(self.state),
            project=self.project,
            text=self.text,
            tag=self.tag,
            group=self.group,
            owner=self.owner,
            conditions=tuple(each for text in self.where for each in parse_conditions(text)),
            group_by=group_by,
            sort=self.sort.removeprefix("-") or "created",
            descending=self.sort.startswith("-"),
            offset=self.offset,
            limit=self.limit,
        )


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a text, all of which must hold, as ``ziggurat.entities.JobFilter`` has them.

    Args:
        text: names of a spec's field or of a curve, an operator (``<``, ``<=``, ``=``, ``!=``, ``>=``, ``>``, or ``~``
            for a part of a text) and a value, or several for ``=``, ``!=`` and ``~`` that are separated by ``|``;
            several conditions are joined by ``and``.

    Raises:
        UsageError: where a part is no condition, or there are too many.
    """
    return tuple(_condition(part) for part in _parts(text))


@dataclass(frozen=True)
class TypedFilter:
    """Content of the filter box.

    Args:
        words: that must be in name, id, notes, network or tags.
        conditions: that must hold.
    """

    words: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


def parse_filter(text: str) -> TypedFilter:
    """Parse a text for the filter box: words, conditions, or both, joined by ``and``.

    Raises:
        UsageError: if a part with an operator is not a condition, or a part is missing.
    """
    if not _OPERATOR.search(text):
        return TypedFilter(words=(text.strip(),) if text.strip() else ())
    parts = _parts(text)
    words = tuple(part for part in parts if not _OPERATOR.search(part))
    return TypedFilter(words, tuple(_condition(part) for part in parts if _OPERATOR.search(part)))


def _parts(text: str) -> list[str]:
    """Split a text at each ``and``.

    Raises:
        UsageError: if a part is empty, or there are too many.
    """
    if not text.strip():
        return []
    if _count(text) > MOST_CONDITIONS:
        raise UsageError(
            _too_many(_count(text)),
            advice="Leave some out, or filter by project, tag or state.",
            details={"text": text},
        )
    parts = _split(text, _AND)
    for place, part in enumerate(parts):
        if not part:
            side = "before" if place == 0 else "after"
            raise UsageError(f"A condition is missing {side} `and`.", advice=_EXAMPLE, details={"text": text})
    return parts


def _count(text: str) -> int:
    """Return the number of parts that are joined by ``and``."""
    return 1 + sum(1 for match in _AND.finditer(text) if match.group(1))


def _too_many(count: int) -> str:
    return f"The filter has {count} conditions; at most {MOST_CONDITIONS} are allowed."


def _condition(text: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise _no_condition(text)
    name, operator, value = found.groups()
    if _OPERATOR.search(value) and re.search(r"\sor\s", value, re.IGNORECASE):
        raise UsageError(
            "Conditions are joined by `and`; several values of one name by `|`.", received=f"`{text}`", advice=_EXAMPLE
        )
    operator = "=" if operator == "==" else operator
    # A name of digits is no number, and keeps its zeros.
    parse = _plain if operator == "~" or name.lower() in _TEXTS else _value
    values = _split(value, _OR) if operator in _TAKES_SEVERAL else [value]
    if not all(values):
        raise UsageError(f"A value is missing beside `|` in `{text.strip()}`.", advice=_EXAMPLE)
    return name, operator, parse(values[0]) if len(values) == 1 else tuple(map(parse, values))


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split a text where the separator's group matches."""
    places = [found.span() for found in separator.finditer(text) if found.group(1)]
    starts, ends = [0, *(end for _, end in places)], [*(start for start, _ in places), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _no_condition(text: str) -> UsageError:
    operator = _OPERATOR.search(text)
    if operator is not None and not text[operator.end() :].strip():
        rule = f"A value is missing after `{operator.group()}`."
    elif operator is not None and not text[: operator.start()].strip():
        rule = f"A name is missing before `{operator.group()}`."
    else:
        rule = "A condition is a name, an operator and a value."
    return UsageError(rule, received=f"`{text.strip()}`", advice=_EXAMPLE)


def _plain(text: str) -> str:
    """Return a text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _value(text: str) -> Any:
    if _plain(text) != text:
        return _plain(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        return float(percent.group(1)) / 100
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
