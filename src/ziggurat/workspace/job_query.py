"""The filter for jobs as people write it, defined once: shell options, REST queries and page addresses take it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ziggurat.entities import JobFilter
from ziggurat.errors import UsageError

__all__ = ["PAGE_SIZE", "JobQuery", "parse_conditions"]

PAGE_SIZE: Final = 50
"""Entries of a list that one request returns, where it does not say how many."""

_CONDITION: Final = re.compile(r"\s*([A-Za-z_][\w./:\- ]*?)\s*(<=|>=|!=|==|=|<|>)\s*(.*\S)\s*")
_WORDS: Final = {"true": True, "false": False}


_Name = Annotated[str, Field(max_length=200)]
_Kind = Literal["dataset", "train", "evaluate", "infer", "export"]
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
    where: list[_Name] = Field([], description="Conditions such as `learning_rate>0.01` or `val/accuracy>0.98`.")
    sort: _Name = Field("-created", description="Field of a job, of a spec, or a curve; with `-`, large values first.")

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


def parse_conditions(text: str) -> tuple[tuple[str, str, Any], ...]:
    """Return the conditions of a text, all of which must hold, as ``ziggurat.entities.JobFilter`` has them.

    Args:
        text: names of a spec's field or of a curve, an operator (``<``, ``<=``, ``=``, ``!=``, ``>=``, ``>``) and a
            value; several are joined by ``and``.

    Raises:
        UsageError: where a part is no condition.
    """
    return tuple(_condition(part) for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE) if part.strip())


def _condition(text: str) -> tuple[str, str, Any]:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(
            "A condition is a name, an operator and a value.",
            received=f"`{text.strip()}`",
            advice="As in `learning_rate > 0.01 and val/accuracy > 0.98`.",
        )
    name, operator, value = found.groups()
    return name, "=" if operator == "==" else operator, _value(value)


def _value(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
