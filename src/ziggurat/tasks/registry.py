"""Tasks by name, and the task of a dataset."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from ziggurat.errors import PluginError
from ziggurat.plugins import available, load
from ziggurat.records.schema import Schema
from ziggurat.tasks.base import Task

__all__ = ["AUTO_TASK", "default_task", "task", "tasks", "tasks_for"]

_logger = logging.getLogger(__name__)

AUTO_TASK = "auto"
"""In place of a task's name: the task of the network, else the default one of the dataset."""


@functools.cache
def tasks() -> Mapping[str, Task]:
    """Return name → task, in the order of the registry; a plugin that does not load is logged and left out."""
    found: dict[str, Task] = {}
    for entry in available("tasks"):
        try:
            found[entry.name] = task(entry.name)
        except PluginError as error:
            if entry.is_built_in:
                raise
            _logger.warning("%s", error)
    return found


@functools.cache
def task(name: str) -> Task:
    """Return a task by name.

    Raises:
        UnknownNameError: where there is none of that name; lists the nearest.
        PluginError: where the entry is no task.
    """
    found = load("tasks", name)
    if not isinstance(found, Task) or found.name != name:
        raise PluginError(
            "An entry of the group `ziggurat.tasks` must be a `ziggurat.tasks.Task` of that name.",
            received=f"{name}: {type(found).__name__}",
            advice="Update the package that brings it.",
        )
    return found


def tasks_for(schema: Schema) -> list[Task]:
    """Return the tasks that a dataset can be trained for without naming one, the default one first."""
    found = (each for each in tasks().values() if each.is_default and not each.accepts(schema))
    return sorted(found, key=lambda each: each.order)


def default_task(schema: Schema) -> Task | None:
    """Return the default task of a dataset; None where there is none."""
    return next(iter(tasks_for(schema)), None)
