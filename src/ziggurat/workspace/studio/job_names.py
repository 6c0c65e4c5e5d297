"""Names in filters of jobs: whether a condition can hold, what was meant instead, and candidates while one types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Protocol

from ziggurat.entities import JOB_KINDS, JOB_STATES, JobFilter
from ziggurat.entities.jobs import DIVERGED, JOB_OUTCOMES
from ziggurat.errors import UsageError, nearest_names
from ziggurat.formatting import as_number
from ziggurat.specs import TrainSpec, describe_fields
from ziggurat.store import NameRange
from ziggurat.workspace.job_query import Condition

__all__ = ["JobNames", "NameCandidate"]

_NUMBERS: Final = {
    "priority": "priority in the queue",
    "created": "when it was created, in seconds since 1970",
    "started": "when it started, in seconds since 1970",
    "ended": "when it ended, in seconds since 1970",
    "elapsed": "duration in seconds",
    "attempt": "number of the newest attempt",
    "epoch": "epoch that it is in",
    "global_step": "steps done",
    "steps_per_s": "steps a second",
}
_TEXTS: Final = (
    *("name", "id", "kind", "state", "outcome", "project"),
    *("owner", "framework", "network", "group", "parent"),
)
_CHOICES: Final[dict[str, tuple[str, ...]]] = {"state": JOB_STATES, "outcome": JOB_OUTCOMES, "kind": JOB_KINDS}
_LISTED: Final = ("project", "owner", "framework", "network")
_STATES: Final = {
    "finished": "done",
    "complete": "done",
    "completed": "done",
    "succeeded": "done",
    "waiting": "queued",
    "pending": "queued",
    "crashed": "failed",
    "error": "failed",
    "paused": "stopped",
    "canceled": "stopped",
}
_SHORT: Final = {
    "lr": "learning_rate",
    "rate": "learning_rate",
    "bs": "batch_size",
    "batch": "batch_size",
    "wd": "weight_decay",
    "momentum": "optimizer.momentum",
    "acc": "accuracy",
    "val_acc": "validation_accuracy",
    "val_loss": "validation_loss",
    "epochs_done": "epoch",
    "duration": "elapsed",
    "time": "elapsed",
    "status": "state",
    "model": "network",
    "architecture": "network",
    "user": "owner",
    "sweep": "group",
    "step": "global_step",
    "steps": "global_step",
    "dataset": "data.source",
}
"""Name of a field in other programs, or short for it → its name here."""

_VALIDATION: Final = ("validation_", "validation/", "val_", "val/")
_METRICS: Final = ("accuracy", "loss")
_LOSSES: Final = {"loss": "cost"}
_YES: Final = {"yes": True, "no": False}
_MOST: Final = 8
_TYPED: Final = re.compile(r"(?:^|\band\s+)([A-Za-z_][\w./:\-]*)?$", re.IGNORECASE)
_OF_NAME: Final = re.compile(r"(?:^|\band\s+)([A-Za-z_][\w./:\-]*)\s*(?:!=|==|=)\s*([^\s=<>!]*)$", re.IGNORECASE)


class Names(Protocol):
    """The names that the store knows."""

    def known(self, names: Iterable[str], /) -> Mapping[str, bool]:
        """Return name → whether any value is a text, for those of these names that exist."""
        ...

    def all(self) -> Sequence[str]:
        """Return all names."""
        ...

    def ranges(self, names: Sequence[str], /) -> Mapping[str, NameRange]:
        """Return name → the range of its values."""
        ...

    def texts_of(self, column: str, /) -> Sequence[str]:
        """Return the values of a column of jobs."""
        ...


@dataclass(frozen=True, kw_only=True)
class NameCandidate:
    """A completion of the text in the filter box.

    Args:
        text: name or value.
        kind: ``number``, ``text``, ``setting``, ``metric`` or ``value``.
        note: range of its values, or description; empty if unknown.
        completed: the whole text of the box with the completion inserted.
    """

    text: str
    kind: str
    note: str = ""
    completed: str = ""


class JobNames:
    """Names that conditions may use.

    Args:
        names: that the store knows.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    def checked(self, chosen: JobFilter) -> JobFilter:
        """Return the filter with checked conditions; ``accuracy`` becomes that of the validation, if there is any.

        Raises:
            UsageError: if a name is unknown or a value is of the wrong type; ``details`` has ``name``, and
                ``suggestion`` if there is one.
        """
        if not chosen.conditions:
            return chosen
        return replace(chosen, conditions=tuple(map(self._checked, chosen.conditions)))

    def check(self, name: str) -> None:
        """Refuse a name that neither a field of a job, a setting nor a metric has, as the one to sort by.

        Raises:
            UsageError: as ``checked`` raises it.
        """
        if name not in (*_NUMBERS, *_TEXTS, *_declared()) and name not in self._names.known([name]):
            raise self._unknown(name)

    def candidates(self, text: str) -> list[NameCandidate]:
        """Return completions at the end of a text for the filter box, the most likely first."""
        of_name = _OF_NAME.search(text)
        if of_name is not None:
            return self._values(text, of_name)
        typed = _TYPED.search(text)
        if typed is None or (not typed.group(1) and not text.strip()):
            return []
        word, before = typed.group(1) or "", text[: typed.start(1)] if typed.group(1) else text
        found = self._matching(word.lower())
        ranges = self._names.ranges(found)
        return [_candidate(name, ranges.get(name), before) for name in found]

    def _checked(self, condition: Condition) -> Condition:
        name, operator, value = condition
        if name == "state" and str(value).lower() == DIVERGED:
            return "outcome", operator, DIVERGED  # pages show it as a state
        if name in _CHOICES:
            return name, operator, _choice(name, value)
        if name in _TEXTS:
            return condition
        if name in _NUMBERS:
            return name, operator, _number(name, value)
        meant = self._meant(name)
        found = self._names.known([meant])
        if meant not in found and meant not in _declared():
            raise self._unknown(name)
        if found.get(meant) is False:
            value = _number(name, _YES.get(value, value) if isinstance(value, str) else value)
        return meant, operator, value

    def _meant(self, name: str) -> str:
        """Return the name of the validation's curve for that of a metric, if only that curve exists."""
        if name not in _METRICS:
            return name
        bases = (name, _LOSSES.get(name, name))
        other = [f"{part}{base}" for base in bases for part in _VALIDATION]
        found = self._names.known([*bases, *other])
        return next((each for each in (*bases, *other) if each in found), name)

    def _unknown(self, name: str) -> UsageError:
        known = [*_NUMBERS, *_TEXTS, *_declared(), *self._names.all(), *_METRICS]
        nearest = [_SHORT[name.lower()]] if name.lower() in _SHORT else nearest_names(name, known, at_most=1)
        details = {"name": name, **({"suggestion": nearest[0]} if nearest else {})}
        meant = f"Did you mean `{nearest[0]}`?" if nearest else "Names are those of settings and metrics."
        return UsageError(f"Unknown name `{name}`.", advice=meant, details=details)

    def _matching(self, word: str) -> list[str]:
        known = dict.fromkeys((*_OFTEN, *_NUMBERS, *_TEXTS, *self._names.all(), *_declared()))
        short = [_SHORT[word]] if word in _SHORT else []
        begins = [name for name in known if name.lower().startswith(word)]
        parts = [name for name in known if any(part.startswith(word) for part in re.split(r"[._/]", name.lower()))]
        inside = [name for name in known if word in name.lower()]
        return list(dict.fromkeys((*short, *begins, *parts, *inside)))[:_MOST]

    def _values(self, text: str, found: re.Match[str]) -> list[NameCandidate]:
        name, begun = found.group(1), found.group(2).lower()
        if name in _CHOICES:
            values: Sequence[str] = _CHOICES[name]
        elif name in _LISTED:
            values = self._names.texts_of(name)
        else:
            known = self._names.ranges([name]).get(name)
            values = known.texts if known is not None else ()
        before = text[: found.start(2)]
        shown = [each for each in values if each.lower().startswith(begun) and each.lower() != begun]
        return [NameCandidate(text=each, kind="value", completed=f"{before}{_quoted(each)} ") for each in shown[:_MOST]]


_OFTEN: Final = ("learning_rate", "accuracy", "state", "network", "batch_size", "epochs")


@cache
def _declared() -> tuple[str, ...]:
    """Return the paths of all fields of a training, and the metrics that every training may have."""
    return (*dict.fromkeys(field.path for field in describe_fields(TrainSpec)), *_METRICS)


def _candidate(name: str, values: NameRange | None, before: str) -> NameCandidate:
    completed = f"{before}{name} "
    if name in _CHOICES:
        return NameCandidate(text=name, kind="text", note=", ".join(_CHOICES[name]), completed=completed)
    if name in _TEXTS:
        return NameCandidate(text=name, kind="text", completed=completed)
    if name in _NUMBERS:
        return NameCandidate(text=name, kind="number", note=_NUMBERS[name], completed=completed)
    if values is None:
        return NameCandidate(text=name, kind="metric" if name in _METRICS else "setting", completed=completed)
    if values.minimum is None or values.maximum is None:
        return NameCandidate(text=name, kind="text", note=", ".join(values.texts), completed=completed)
    same = values.minimum == values.maximum
    note = as_number(values.minimum) if same else f"{as_number(values.minimum)} to {as_number(values.maximum)}"
    return NameCandidate(text=name, kind="metric" if values.is_curve else "number", note=note, completed=completed)


def _choice(name: str, value: Any) -> str:
    wanted = str(value).lower()
    wanted = _STATES.get(wanted, wanted) if name in ("state", "outcome") else wanted
    if wanted in _CHOICES[name]:
        return wanted
    nearest = nearest_names(wanted, _CHOICES[name], at_most=1)
    advice = f"Did you mean `{nearest[0]}`?" if nearest else ""
    details = {"name": str(value), **({"suggestion": nearest[0]} if nearest else {})}
    rule = f"`{name}` is one of {', '.join(_CHOICES[name])}."
    raise UsageError(rule, received=f"`{value}`", advice=advice, details=details)


def _number(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    details: dict[str, Any] = {"name": value}
    advice = "Write it as in `0.01` or `1e-4`."
    if re.fullmatch(r"-?\d+,\d+", value):
        details["suggestion"] = value.replace(",", ".")
        advice = f"Did you mean `{details['suggestion']}`?"
    raise UsageError(f"`{name}` is a number.", received=f"`{value}`", advice=advice, details=details)


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value
