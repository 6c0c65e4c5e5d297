"""Names in filters of jobs: whether a condition can hold, what was meant instead, and candidates while one types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Protocol

from ziggurat.entities import JOB_KINDS, JOB_STATES, JobFilter
from ziggurat.entities.best_checkpoint import metric_title, primary_metric
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
    "best": "best value of the metric that a job is judged by",
    "used_by": "number of jobs that need it",
}
_TEXTS: Final = (
    *("name", "id", "kind", "state", "outcome", "project", "dataset"),
    *("owner", "framework", "network", "group", "parent", "model", "tags", "notes", "reason", "host"),
)
_TIMES: Final = ("created", "started", "ended")
_COLUMNS: Final = {
    "duration": "elapsed",
    "status": "state",
    "user": "owner",
    "sweep": "group",
    "tag": "tags",
    "node": "host",
    "step": "global_step",
    "steps": "global_step",
    "progress": "global_step",
    "used by": "used_by",
    "epochs done": "epoch",
    "data": "facts.kind",
    "samples": "facts.samples",
    "classes": "facts.classes",
    "split": "facts.split",
    "checkpoint": "facts.step",
}
"""Heading of a column, in small letters, that is no setting and no metric → name of what it shows."""

_OF_ROWS: Final = ("result", "metric", "validation")
_FACTS: Final = tuple(f"facts.{each}" for each in ("kind", "samples", "classes", "split", "step", "accuracy", "count"))
_DAY_S: Final = 86400.0
_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), _DAY_S),
    **dict.fromkeys(("w", "week"), 7 * _DAY_S),
    "month": 30 * _DAY_S,
    "year": 365 * _DAY_S,
}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w|[a-z]+?)s?(?=\s|\d|$)", re.IGNORECASE)
"""A number of a unit of time; several stand behind each other."""
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d\d)")
_SIZE: Final = re.compile(r"(-?\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_FACTORS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
"""First letter of a unit → power of 1000, or of 1024 with ``i``."""
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
_KINDS: Final = {"training": "train", "evaluation": "evaluate", "prediction": "infer", "map": "embed"}
"""Words of the pages for kinds of jobs → their names."""

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
        now: returns the time, with the time zone in which days begin.
    """

    def __init__(self, names: Names, now: Callable[[], datetime] = lambda: datetime.now().astimezone()) -> None:
        self._names = names
        self._now = now

    def checked(self, chosen: JobFilter) -> JobFilter:
        """Return the filter with checked conditions; ``accuracy`` becomes that of the validation, if there is any.

        Raises:
            UsageError: if a name is unknown or a value is of the wrong type; ``details`` has ``name``, and
                ``suggestion`` if there is one.
        """
        if not chosen.conditions:
            return chosen
        return replace(chosen, conditions=tuple(each for given in chosen.conditions for each in self._checked(given)))

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

    def _checked(self, condition: Condition) -> Iterable[Condition]:
        name, operator, value = condition
        name = self._meant(name)
        values = value if isinstance(value, tuple) else (value,)
        if operator == "~" and (name in _CHOICES or self._is_number(name)):
            rule = f"`~` looks for a part of a text, and `{name}` is none."
            raise UsageError(rule, received=f"`{name} ~ {value}`", advice="Compare it by `=`, `<` or `>`.")
        if name == "state" and any(str(each).lower() == DIVERGED for each in values):
            name = "outcome"  # pages show it as a state
        if name in _TIMES:
            if len(values) > 1:
                raise UsageError(
                    f"`{name}` is compared with one time, not with several.", received=f"`{name} {operator} …`"
                )
            return _times(name, operator, values[0], self._now())
        if name in _CHOICES:
            found = tuple(_choice(name, each) for each in values)
        elif name in _TEXTS:
            found = tuple(str(each) for each in values)
        elif name == "elapsed":
            found = tuple(_span(each) for each in values)
        elif name in _NUMBERS:
            found = tuple(_number(name, each) for each in values)
        elif self._is_number(name):
            found = tuple(_number(name, _YES.get(each, each) if isinstance(each, str) else each) for each in values)
        else:
            is_ordered = operator not in ("=", "!=", "~")
            found = tuple(_sized(each) if is_ordered else each for each in values)
        return [(name, operator, found if isinstance(value, tuple) else found[0])]

    def _is_number(self, name: str) -> bool:
        return name in _NUMBERS or (name not in _TEXTS and self._names.known([name]).get(name) is False)

    def _meant(self, name: str) -> str:
        """Return the name of what a page shows by a name: of a field, a setting, a curve, or the heading of a column.

        Raises:
            UsageError: if there is none.
        """
        if name in (*_NUMBERS, *_TEXTS) or (name not in _METRICS and name in self._names.known([name])):
            return name
        base = _without_split(name)
        bases = dict.fromkeys((base, _LOSSES.get(base, base)))
        prefixed = [f"{part}{each}" for each in bases for part in _VALIDATION]
        wanted = prefixed if base != name else [*bases, *prefixed]
        found = self._names.known(wanted)
        meant = next((each for each in wanted if each in found), None)
        if meant is not None:
            return meant
        if name in _declared():
            return name
        shown = self._shown_names().get(name.lower())
        if shown is None:
            raise self._unknown(name)
        return shown

    def _shown_names(self) -> Mapping[str, str]:
        """Return what pages call a name, in small letters → the name; curves of the validation before others."""
        tags = self._names.all()
        ranges = self._names.ranges(tags)
        curves = sorted((tag for tag in tags if tag in ranges and ranges[tag].is_curve), key=_is_training)
        found = dict(_COLUMNS)
        for title, name in (
            *((field.title, field.path) for field in describe_fields(TrainSpec)),
            *((metric_title(tag), tag) for tag in curves),
            *((metric_title(tag).removeprefix("validation "), tag) for tag in curves),
            *((name, name) for name in (*_NUMBERS, *_TEXTS, *tags)),
            *((_without_split(tag), tag) for tag in curves),
        ):
            found.setdefault(title.lower(), name)
        return found

    def _example(self) -> str:
        """Return the name of a metric that any job has, as pages show it."""
        metric = primary_metric(self._names.all())
        return _without_split(metric[0]) if metric is not None else "accuracy"

    def _unknown(self, name: str) -> UsageError:
        known = [*_NUMBERS, *_TEXTS, *_declared(), *self._names.all(), *_METRICS]
        if name.lower() in _OF_ROWS:
            metric = self._example()
            raise UsageError(
                f"The column `{name}` shows another metric in each row.",
                received=f"`{name}`",
                advice=f"Name the metric, as in `{metric} > 0.9`, or `best > 0.9` for the one that a job is judged by.",
                details={"name": name, "suggestion": metric},
            )
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
    """Return the paths of all fields of a training, and the metrics and facts that columns may show."""
    return (*dict.fromkeys(field.path for field in describe_fields(TrainSpec)), *_METRICS, *_FACTS)


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
    wanted = (_KINDS if name == "kind" else _STATES).get(wanted, wanted)
    if wanted in _CHOICES[name]:
        return wanted
    nearest = nearest_names(wanted, _CHOICES[name], at_most=1)
    advice = f"Did you mean `{nearest[0]}`?" if nearest else ""
    details = {"name": str(value), **({"suggestion": nearest[0]} if nearest else {})}
    rule = f"`{name}` is one of {', '.join(_CHOICES[name])}."
    raise UsageError(rule, received=f"`{value}`", advice=advice, details=details)


def _without_split(tag: str) -> str:
    return next((tag.removeprefix(part) for part in _VALIDATION if tag.startswith(part)), tag)


def _is_training(tag: str) -> bool:
    return not tag.startswith(_VALIDATION)


def _span(value: Any) -> Any:
    """Return seconds for ``5 min``, ``1 h 30 min`` or ``1:30:00``; a number stays."""
    seconds = _seconds(value) if isinstance(value, str) else None
    return _number("elapsed", value) if seconds is None else seconds


def _seconds(text: str) -> float | None:
    """Return the seconds of a duration as text; None if it is none."""
    clock = _CLOCK.fullmatch(text.strip())
    if clock is not None:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return hours * 3600.0 + minutes * 60.0 + seconds
    parts = [(float(found[1]), _UNITS.get(found[2].lower())) for found in _SPAN.finditer(text)]
    if not parts or _SPAN.sub("", text).strip() or any(unit is None for _, unit in parts):
        return None
    return sum(count * unit for count, unit in parts if unit is not None)


def _times(name: str, operator: str, value: Any, now: datetime) -> list[Condition]:
    """Return conditions in seconds since 1970 for one on a day, a moment or a time before now.

    A day is compared by its first moment, with ``<=`` by its last one; ``=`` means during the day.
    """
    if not isinstance(value, str):
        return [(name, operator, value)]
    last = re.fullmatch(r"last\s+(\w+)", value, re.IGNORECASE)
    ago_s = _UNITS.get(last[1].lower()) if last is not None else None
    if ago_s is None and ":" not in value:
        ago_s = _seconds(re.sub(r"\s+ago$", "", value, flags=re.IGNORECASE))
    if ago_s is not None:
        # Full minutes: equal filters within one have an answer that is kept.
        moment = now.replace(second=0, microsecond=0) - timedelta(seconds=ago_s)
        return [(name, operator, moment.timestamp())]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        day = days.get(value.lower()) or datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(
            f"`{value}` is no time.",
            received=f"`{name} {operator} {value}`",
            advice=f"As in `{name} > yesterday`, `{name} > 3 days ago` or `{name} < {today:%Y-%m-%d}`.",
            details={"name": value},
        ) from None
    day = day if day.tzinfo is not None else day.replace(tzinfo=now.tzinfo)
    if ":" in value:
        return [(name, operator, day.timestamp())]
    first, behind = day.timestamp(), (day + timedelta(days=1)).timestamp()
    if operator == "!=":
        raise UsageError(
            "A day is compared by `=`, `<`, `<=`, `>` or `>=`.",
            received=f"`{name} != {value}`",
            details={"name": value},
        )
    if operator == "=":
        return [(name, ">=", first), (name, "<", behind)]
    return [(name, *{"<=": ("<", behind), ">": (">=", first)}.get(operator, (operator, first)))]


def _number(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    size = _sized(value)
    if not isinstance(size, str):
        return size
    details: dict[str, Any] = {"name": value}
    advice = "Write it as in `0.01` or `1e-4`."
    if re.fullmatch(r"-?\d+,\d+", value):
        details["suggestion"] = value.replace(",", ".")
        advice = f"Did you mean `{details['suggestion']}`?"
    raise UsageError(f"`{name}` is a number.", received=f"`{value}`", advice=advice, details=details)


def _sized(value: Any) -> Any:
    """Return the number of ``2k``, ``1.5 GB`` or ``4 MiB``; anything else as it is."""
    size = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return value if size is None else float(size[1]) * (1024 if size[3] else 1000) ** _FACTORS[size[2].lower()]


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value
