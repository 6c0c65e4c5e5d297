"""Metrics of a training: which curves are results, and which of them are shown first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ziggurat.entities.best_checkpoint import metric_names, metric_text, metric_title
from ziggurat.formatting import as_heading

__all__ = ["base_of", "figure_text", "figure_title", "grouped_tags", "is_result", "is_validation", "main_metrics"]

_NO_RESULTS: Final = ("StepTime/", "Throughput", "learning_rate", "backbone_rate", "GPU", "Memory")
"""Beginnings of the tags of curves that are no results."""

_VALIDATION: Final = ("validation_", "val/")
_LOSSES: Final = ("cost", "loss")
_TITLES: Final = {"top_5": "Top-5 accuracy", "ap": "AP"}
"""Shares of evaluations that are no curves, with their titles."""


def base_of(tag: str) -> str:
    """Return a tag without its split: ``accuracy`` for ``validation_accuracy``."""
    for start in (*_VALIDATION, "train/"):
        tag = tag.removeprefix(start)
    return tag


def is_validation(tag: str) -> bool:
    """Return whether a curve was measured on the validation split."""
    return tag.startswith(_VALIDATION)


def is_result(tag: str, tags: Iterable[str]) -> bool:
    """Return whether a curve tells how good a network is; an error beside an accuracy tells the same, and is none."""
    if tag.startswith(_NO_RESULTS):
        return False
    return base_of(tag) != "error" or tag.replace("error", "accuracy") not in set(tags)


def grouped_tags(tags: Iterable[str]) -> list[list[str]]:
    """Return the tags of results, those of one metric together, the loss first, then the main metrics."""
    known = list(tags)
    groups: dict[str, list[str]] = {}
    for tag in known:
        if is_result(tag, known):
            groups.setdefault(base_of(tag), []).append(tag)
    first = [*_LOSSES, *metric_names()["first"], "accuracy"]
    order = {name: place for place, name in enumerate(first)}
    return [
        sorted(groups[base], key=is_validation) for base in sorted(groups, key=lambda base: order.get(base, len(first)))
    ]


def figure_title(name: str) -> str:
    """Return the name of a metric of an evaluation for people."""
    return _TITLES.get(name) or as_heading(metric_title(name).removeprefix("training "))


def figure_text(name: str, value: float) -> str:
    """Return a value of a metric of an evaluation for people."""
    return metric_text("accuracy" if name in _TITLES else name, value)


def main_metrics(scalars: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the loss and the main metric of a training, each of the validation split if it has one."""
    groups = grouped_tags(scalars)
    losses = [group[-1] for group in groups if base_of(group[0]) in _LOSSES]
    others = [group[-1] for group in groups if base_of(group[0]) not in _LOSSES]
    return [(tag, scalars[tag]) for tag in (*losses[:1], *others[:1])]
