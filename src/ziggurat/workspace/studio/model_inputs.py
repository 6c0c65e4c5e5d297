"""What a trained model takes: images, rows of a table with their columns, or texts; and its task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ziggurat.errors import DataError, PluginError, UnknownNameError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.records.schema import Column, Schema
from ziggurat.tasks import CLASSIFICATION, Task, task

__all__ = ["InputKind", "ModelInputs", "read_model_inputs"]

InputKind = Literal["image", "row", "text"]

_KINDS: Final[Mapping[str, InputKind]] = {"image": "image", "row": "row", "text": "text"}
_NOT_ASKED: Final = ("identifier", "text")
"""Types of columns that no network for tables learns from."""


@dataclass(frozen=True, kw_only=True)
class ModelInputs:
    """What a model takes.

    Args:
        kind: ``image``, ``row`` of a table, or ``text``.
        task: what it learned.
        schema: of the data that it learned from.
    """

    kind: InputKind
    task: Task
    schema: Schema

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a row that networks learn from, without the target; empty where it takes no rows."""
        return tuple(
            each for each in self.schema.columns if each.name != self.schema.target and each.type not in _NOT_ASKED
        )


def read_model_inputs(folder: JobFolder) -> ModelInputs:
    """Return what the model of a training takes; one from before there were tasks classifies images.

    Args:
        folder: of the training.

    Raises:
        DataError: where its folder is damaged.
        PluginError: where the package that brings its task is not installed.
    """
    try:
        content = json.loads(folder.task.read_text())
    except FileNotFoundError:
        return ModelInputs(kind="image", task=CLASSIFICATION, schema=Schema(kind="image-classification"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    try:
        name, schema = str(content["task"]), Schema.from_json(content["schema"])
    except (KeyError, TypeError, ValueError, ZigguratError) as error:
        raise _damaged(folder, error) from error
    try:
        learned = task(name)
    except UnknownNameError:
        raise PluginError(
            f"The task `{name}` is not installed: a model is used with the package that brings its task.",
            advice="Install that package and start the studio again.",
        ) from None
    return ModelInputs(kind=_KINDS.get(schema.parts[0], "image"), task=learned, schema=schema)


def _damaged(folder: JobFolder, error: Exception) -> DataError:
    return DataError(
        f"What the model learned cannot be read from {folder.task}: {str(error).rstrip('.')}.",
        advice="Train the model again.",
    )
