"""The best checkpoint of a training, decided once from the files of its folder for every user of a model."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.atomic import file_signature
from ziggurat.errors import CheckpointError, MissingCheckpointError, PluginError, UnknownNameError
from ziggurat.formatting import as_number, as_percent
from ziggurat.layout import CHECKPOINT_NAMES, CheckpointFiles, JobFolder, best_given_name, checkpoint_step
from ziggurat.plugins import available, load

__all__ = [
    "PRIMARY_METRIC",
    "BestCheckpoint",
    "KeptCheckpoint",
    "Mode",
    "best_checkpoint",
    "find_checkpoint",
    "given_names",
    "is_better",
    "is_share",
    "kept_checkpoints",
    "known_mode",
    "metric_names",
    "metric_text",
    "metric_title",
    "primary_metric",
    "primary_tags",
]

Mode = Literal["min", "max"]

PRIMARY_METRIC: Final = "auto"
"""In place of a metric's name: the one by which a training is judged; see ``primary_metric``."""

_VALIDATION: Final = re.compile(r"(?:validation|val)[_/](.+)")
_GENERAL: Final[tuple[tuple[str, Mode], ...]] = (
    ("accuracy", "max"),
    ("error", "min"),  # of a classifier, its accuracy upside down
    ("cost", "min"),
    ("loss", "min"),
)
_SHARE: Final = "share"
"""Unit of a metric that is read in percent, as tasks name it."""

_SPLITS: Final = ("validation", "val", "test", "train")
_SHARES: Final = ("accuracy", "precision", "recall", "f1", "iou", "map", "auc", "dice", "top1", "top5")
_GIVEN: Final = re.compile(r"(min|max)-(.+)")
_BEST: Final = "best"
_LATEST: Final = "latest"


@dataclass(frozen=True, kw_only=True)
class KeptCheckpoint:
    """A checkpoint on the disk.

    Args:
        name: of its folder.
        step: that it holds.
        epoch: that it holds; None where its files cannot be read.
        values: value of each metric that was measured at that very step.
    """

    name: str
    step: int
    epoch: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Its step and epoch in words: ``step 66, epoch 6``."""
        return f"step {self.step}" if self.epoch is None else f"step {self.step}, epoch {self.epoch}"


@dataclass(frozen=True, kw_only=True)
class BestCheckpoint:
    """The checkpoint that is used if none is named.

    Args:
        checkpoint: it.
        basis: ``best`` of the whole run, ``best_kept`` where only those that are left could be compared, or ``newest``
            where no metric tells which one is best.
        tag: the metric that decided; empty for ``newest``.
        mode: whether small or large values of it are good.
        value: of the metric at this checkpoint; None where it is not known.
    """

    checkpoint: KeptCheckpoint
    basis: Literal["best", "best_kept", "newest"]
    tag: str = ""
    mode: Mode = "min"
    value: float | None = None

    @property
    def why(self) -> str:
        """By what it was chosen: ``validation accuracy 26.0 %``."""
        if self.basis == "newest":
            return "no validation metric"
        return metric_title(self.tag) + ("" if self.value is None else f" {metric_text(self.tag, self.value)}")

    @property
    def text(self) -> str:
        """Return it in one line: ``Best: step 66, epoch 6 (validation accuracy 26.0 %)``."""
        word = {"best": "Best", "best_kept": "Best of the kept checkpoints", "newest": "Newest"}[self.basis]
        return f"{word}: {self.checkpoint.place} ({self.why})"


@functools.cache
def _primary() -> tuple[tuple[str, Mode], ...]:
    """Return name and mode of the metrics by which trainings are judged: those of the tasks, then those of any network.

    The accuracy comes after those of other tasks: their networks may report an accuracy of their own.
    """
    found: list[tuple[str, Mode]] = []
    for entry in available("tasks"):
        try:
            metric = load("tasks", entry.name).primary_metric
        except (PluginError, AttributeError):  # the registry of tasks tells of it
            continue
        if metric.name not in dict(_GENERAL):
            found.append((metric.name, metric.mode))
    return (*found, *_GENERAL)


def primary_metric(tags: Iterable[str]) -> tuple[str, Mode] | None:
    """Return the metric by which a training is judged, and whether small or large values are good.

    It is that of the task, such as the mean IoU; else the validation accuracy, error or loss; None without a
    validation.
    """
    bases = {found.group(1): tag for tag in sorted(tags, reverse=True) if (found := _VALIDATION.fullmatch(tag))}
    return next(((bases[base], mode) for base, mode in _primary() if base in bases), None)


def primary_tags() -> tuple[str, ...]:
    """Return all names of curves by which a training may be judged; see ``primary_metric``."""
    return tuple(f"{part}{sign}{base}" for part in ("validation", "val") for sign in "_/" for base, _ in _primary())


@functools.cache
def _described() -> Mapping[str, tuple[str, str, str]]:
    """Return metric → title, unit and mode, as the tasks describe them, where they say the same."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for name, info in _infos():
        found.setdefault(name, set()).add((info.title, info.unit, info.mode))
    return {name: next(iter(all_)) for name, all_ in found.items() if len(all_) == 1 and name not in dict(_GENERAL)}


def _infos() -> list[tuple[str, Any]]:
    """Return each metric of each task, and its description."""
    found: list[tuple[str, Any]] = []
    for entry in available("tasks"):
        try:
            found += load("tasks", entry.name).metric_info.items()
        except (PluginError, AttributeError):  # the registry of tasks tells of it
            continue
    return found


def known_mode(tag: str) -> Mode | Literal[""] | None:
    """Return whether small or large values of a metric of a task are good, empty for neither; None for any other."""
    found = _VALIDATION.fullmatch(tag)
    known = _described().get(found.group(1) if found else tag)
    return None if known is None else "min" if known[2] == "min" else "max" if known[2] == "max" else ""


def metric_names() -> dict[str, Any]:
    """Return what the charts of a page know of metrics, as JSON values.

    Returns:
        ``titles`` (metric → title), ``shares`` (metric → whether it is read in percent), ``first``: the metrics by
        which trainings are judged, which are shown before others, ``charts`` (metric → the one in whose chart it is
        drawn, where it has none of its own), and ``folded``: those whose chart is hidden until a user opens it.
    """
    known, infos = _described(), _infos()
    return {
        "titles": {name: title for name, (title, *_) in known.items()},
        "shares": {name: unit == _SHARE for name, (_, unit, _) in known.items()},
        "first": [name for name, _ in _primary() if name not in dict(_GENERAL)],
        "charts": {name: info.chart for name, info in infos if info.chart and name in known},
        "folded": sorted({name for name, info in infos if not info.is_usual and name in known}),
    }


def is_better(mode: Mode, value: float, other: float) -> bool:
    """Return whether a value is strictly better than another one; NaN never is."""
    return value < other if mode == "min" else value > other


def metric_title(tag: str) -> str:
    """Return the name of a metric for people: ``validation loss`` for ``validation_cost``."""
    found = _VALIDATION.fullmatch(tag)
    base = found.group(1) if found else tag
    words = {"cost": "loss"}.get(base, base.replace("_", " "))
    if base in _described():
        title = _described()[base][0]
        words = title[:1].lower() + title[1:] if title[1:2].islower() else title  # RMSE stays as it is
    part = "validation " if found else "training " if base in dict(_primary()) else ""
    return f"{part}{words}"


def metric_text(tag: str, value: float | None) -> str:
    """Return a value of a metric for people: ``91.4 %`` of an accuracy, ``22.6 dB`` of a PSNR; a dash for None."""
    found = _VALIDATION.fullmatch(tag)
    known = _described().get(found.group(1) if found else tag)
    if known is not None and known[1] != _SHARE:
        return as_number(value) + (f" {known[1]}" if known[1] and value is not None else "")
    return as_percent(value) if is_share(tag) and value is not None and 0 <= value <= 1 else as_number(value)


def is_share(tag: str) -> bool:
    """Return whether a metric is a share of 1, such as an accuracy or the error of a classifier."""
    found = _VALIDATION.fullmatch(tag)
    known = _described().get(found.group(1) if found else tag)
    if known is not None:
        return known[1] == _SHARE
    words = [word for word in re.split(r"[^a-z0-9]+", tag.lower()) if word not in _SPLITS]
    # The error of a classifier is a share; a mean absolute error is none.
    return words == ["error"] or any(word in _SHARES for word in words)


def given_names(job: JobFolder) -> dict[str, str]:
    """Return given name → checkpoint; empty where the file is not there or damaged."""
    try:
        content = json.loads((job.checkpoints / CHECKPOINT_NAMES).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def kept_checkpoints(job: JobFolder) -> list[KeptCheckpoint]:
    """Return the checkpoints of a job with what they hold, the oldest step first."""
    return [_read(job, name) for name in _names(job)]


def _has_best(job: JobFolder) -> bool:
    """Return whether the task of a job has a measure of what is better; a job without a task classifies."""
    try:
        task = load("tasks", json.loads(job.task.read_bytes())["task"])
    except (OSError, ValueError, KeyError, TypeError, PluginError, UnknownNameError):
        return True
    return bool(getattr(task, "has_best", True))


def best_checkpoint(job: JobFolder) -> BestCheckpoint | None:
    """Return the checkpoint that is used if none is named; None where the job has none.

    The best one is that which a name marks: ``best``, ``min-…`` or ``max-…``. Where none is marked, as in a run of
    0.1, it is the one with the best primary metric of those that are left, the earlier one of equals. Only a value
    that was measured at the very step of a checkpoint counts. Without a validation it is the newest one; so it is where
    the task has no measure of what is better, as a generator has none: its loss is smallest before it has learned.
    """
    names = _names(job)
    if not names:
        return None
    given = given_names(job)
    mark = best_given_name(name for name, target in given.items() if target in names)
    if mark is not None:
        return _marked(mark, _read(job, given[mark]))
    kept = [_read(job, name) for name in names]
    metric = primary_metric({tag for each in kept for tag in each.values}) if _has_best(job) else None
    if metric is None:
        return BestCheckpoint(checkpoint=kept[-1], basis="newest")
    tag, mode = metric
    judged = [(each.values[tag], each) for each in kept if tag in each.values]
    value, checkpoint = judged[0]
    for other, each in judged[1:]:
        if is_better(mode, other, value):
            value, checkpoint = other, each
    return BestCheckpoint(checkpoint=checkpoint, basis="best_kept", tag=tag, mode=mode, value=value)


def find_checkpoint(job: JobFolder, name: str = "") -> KeptCheckpoint:
    """Return the checkpoint of a job that a name means now.

    Args:
        job: its folder.
        name: of the checkpoint's folder, a given name, ``best`` or ``latest``; empty: the best, or else the newest.

    Raises:
        CheckpointError: where the job has no checkpoint.
        MissingCheckpointError: where it has none of that name.
    """
    names, given = _names(job), given_names(job)
    if not names and not name:
        raise CheckpointError(f"The job {job.path} must have a checkpoint.", advice="Train it first.")
    if name == _LATEST and names:
        return _read(job, names[-1])
    if name in ("", _BEST):
        best = best_checkpoint(job)
        if best is not None and (not name or best.basis != "newest"):
            return best.checkpoint
    wanted = given.get(name, name)
    if wanted in names:
        return _read(job, wanted)
    known = ", ".join([*names, *sorted(given), *([_LATEST] if names else [])]) or "none"
    rule = f"There is no checkpoint `{name}` in {job.path}."
    if name == _BEST:
        rule = f"There is no checkpoint `{name}` in {job.path}: no validation metric tells which one it is."
    raise MissingCheckpointError(rule, advice=f"There are: {known}.", details={"name": name})


def _marked(mark: str, checkpoint: KeptCheckpoint) -> BestCheckpoint:
    found = _GIVEN.fullmatch(mark)
    if found is None:
        tag, mode = primary_metric(checkpoint.values) or (mark, "min")
    else:
        mode, tag = ("min" if found.group(1) == "min" else "max"), found.group(2)
    value = checkpoint.values.get(tag)
    return BestCheckpoint(checkpoint=checkpoint, basis="best", tag=tag, mode=mode, value=value)


def _names(job: JobFolder) -> list[str]:
    try:
        found = [path.name for path in job.checkpoints.iterdir() if checkpoint_step(path.name) is not None]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda name: checkpoint_step(name) or 0)


def _read(job: JobFolder, name: str) -> KeptCheckpoint:
    """Return what a checkpoint holds; only its name and step where its files are damaged, or removed meanwhile."""
    path = CheckpointFiles(job.checkpoints / name).state
    try:
        signature = file_signature(path)
    except OSError:
        return KeptCheckpoint(name=name, step=checkpoint_step(name) or 0)
    return _parsed(path, name, signature)


@functools.lru_cache(maxsize=4096)
def _parsed(path: Path, name: str, _signature: tuple[int, ...]) -> KeptCheckpoint:
    """Return what a state file holds. A list of many jobs asks again and again; the file is only ever replaced."""
    step = checkpoint_step(name) or 0
    try:
        meta = json.loads(path.read_bytes())["meta"]
        return KeptCheckpoint(name=name, step=step, epoch=int(meta["epoch_num"]), values=_values(meta, step))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return KeptCheckpoint(name=name, step=step)


def _values(meta: Mapping[str, Any], step: int) -> dict[str, float]:
    points = {tag: (int(at), float(value)) for tag, (at, value) in meta.get("latest", {}).items()}
    return {tag: value for tag, (at, value) in points.items() if at == step and math.isfinite(value)}
